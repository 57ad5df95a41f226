"""Other people's results: read by name, as attempts. A new format is one module with a ``Format``, entered here.

from surefoot.evaluation.importers import read_results
attempts = list(read_results("tau-bench", [path]))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from surefoot.evaluation.importers import inspect_logs, plain, swe_bench, tau_bench, terminal_bench
from surefoot.evaluation.importers.folder import write_folder
from surefoot.evaluation.importers.reading import Dropped, Format, Options, Results, ResultsError

__all__ = ["FORMATS", "Dropped", "Format", "Options", "Results", "ResultsError", "read_results", "write_folder"]

_ALL: Final = (
    tau_bench.FORMAT,
    inspect_logs.FORMAT,
    terminal_bench.FORMAT,
    swe_bench.FORMAT,
    plain.JSONL,
    plain.CSV,
)
FORMATS: Final[Mapping[str, Format]] = {form.name: form for form in _ALL}


def read_results(name: str, paths: Sequence[Path], options: Options | None = None) -> Results:
    """Return the attempts of some files, to be iterated once. Raises ResultsError with the remedy."""
    if name not in FORMATS:
        raise ResultsError(f"Importing results: no format {name!r}; there are {', '.join(FORMATS)}.")
    if not paths:
        raise ResultsError("Importing results: no file; name at least one.")
    return Results(FORMATS[name], paths, options or Options())
