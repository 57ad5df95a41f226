"""Imported attempts as a run folder: ``attempts.jsonl`` and ``manifest.json``, as a run of one's own leaves them.

Rule: a folder appears whole or not at all, and never takes the place of another.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Final

from surefoot.evaluation.importers.reading import Results, ResultsError
from surefoot.evaluation.importers.tally import Tally
from surefoot.evaluation.records import FILE, MANIFEST, to_json

_LONGEST: Final = 100


def _file_name(variant: str) -> str:
    """Return a name of its own for each variant, whatever it is called; its own where that is one already."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", variant)[:_LONGEST]
    mark = "" if name == variant.replace("/", "-") else f"-{hashlib.sha256(variant.encode()).hexdigest()[:8]}"
    return f"published-{name}{mark}.yaml"


def write_folder(results: Results, folder: Path) -> Tally:
    """Write all attempts, where they came from, and for each variant the counts that a profile may cite."""
    if (folder / FILE).exists():
        raise ResultsError(f"Importing into {folder}: it holds attempts already. Name another folder.")
    tally, suite = Tally(), ""
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f"{FILE}.unfinished"
    try:
        with unfinished.open("w", encoding="utf-8", errors="backslashreplace") as file:
            for attempt in results:
                tally.add(attempt)
                suite = attempt.suite
                file.write(json.dumps({"event": "finished", **to_json(attempt)}, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        provenance = results.provenance()
        manifest = {
            "suite": {"name": suite},
            "suite_hash": "imported",  # `surefoot repeat` never takes such a folder for one of its own
            "provenances": {results.provenance_id: provenance},
        }
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        for variant in tally.variants:
            source = f"{', '.join(one['name'] for one in provenance['files'])} as {provenance['imported_as']}"
            (folder / _file_name(variant)).write_text(tally.published(variant, source), encoding="utf-8")
        unfinished.replace(folder / FILE)
    finally:
        unfinished.unlink(missing_ok=True)
    return tally
