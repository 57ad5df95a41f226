"""``surefoot explain``: how a trace was understood, from the lake or from files, as a tree for people or as JSON."""

from __future__ import annotations

import enum
import re
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from surefoot.cli.config import load
from surefoot.cli.explain_tree import show
from surefoot.cli.output import console, print_json
from surefoot.errors import SurefootError

if TYPE_CHECKING:
    from surefoot.collector.segment import Record
    from surefoot.processors.genai.explain_source import Answer
    from surefoot.processors.settings import Settings

_SHOWN = 10  # traces of a file
_CANDIDATES = 20
_ID = re.compile(r"([0-9a-f]{1,32})(-[0-9a-f]{1,16})?")


class Format(enum.StrEnum):
    """How it is printed."""

    TREE = "tree"
    JSON = "json"


class UnknownTraceError(SurefootError):
    """There is no such trace."""

    exit_code = 1


class AmbiguousTraceError(SurefootError):
    """Several traces are meant, or nothing that could be one."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("explain")(explain)


def explain(
    what: list[str] = typer.Argument(
        metavar="TRACE_ID|FILE...", help="A trace id, its beginning or a run id; or files as `import otlp` takes them."
    ),
    form: Format = typer.Option(Format.TREE, "--format", help="tree or json."),
    trace: str = typer.Option("", "--trace", help="Of files: only traces whose ids begin so."),
) -> None:
    """Show how a trace was understood: what became of each span, by which rule, and what the counts come from."""
    settings = load()
    files = [Path(one) for one in what if Path(one).is_file()]
    if len(files) == len(what):
        answer = _from_files(files, trace.lower(), settings)
    elif len(what) == 1:
        answer = _from_lake(what[0].lower(), settings)
    else:
        others = ", ".join(one for one in what if not Path(one).is_file())
        raise AmbiguousTraceError(f"To explain several things at once, all must be files; these are none: {others}.")
    if form is Format.JSON:
        print_json(asdict(answer))
        return
    out = console()
    for line in show(answer, out.width):
        out.print(line, no_wrap=True, crop=False, overflow="ignore")


def _from_files(files: list[Path], prefix: str, settings: Settings) -> Answer:
    from surefoot.processors.genai.explain_source import explain_records

    now = time.time()
    records = [record for file in files for record in _records(file, now)]
    answer = explain_records(records, prefix, _SHOWN, now, settings.settle_seconds)
    if not answer.traces:
        names = ", ".join(str(file) for file in files)
        known = f" It has {len(answer.others)} others." if answer.others else ""
        raise UnknownTraceError(f"There is no trace{f' {prefix}' if prefix else ''} in {names}.{known}")
    return answer


def _records(file: Path, now: float) -> list[Record]:
    """The file's requests, checked as the collector does; what it would refuse is told on stderr."""
    from surefoot.collector.errors import BadRequestError
    from surefoot.collector.segment import Record, Signal
    from surefoot.collector.validate import check
    from surefoot.processors.genai.explain_source import imported
    from surefoot.processors.importing.reading import JSON, Refused, read_file

    signals = {"traces": Signal.TRACES, "logs": Signal.LOGS}
    found = []
    for unit in read_file(file):
        if isinstance(unit, Refused):
            typer.echo(f"surefoot: left out {file}, {unit.place}: {unit.reason}", err=True)
        elif unit.signal in signals:
            signal = signals[unit.signal]
            try:
                checked = check(signal, unit.body, is_json=unit.content_type == JSON)
            except BadRequestError as error:
                typer.echo(f"surefoot: left out {file}, {unit.place}: {error}", err=True)
                continue
            if checked.message:
                typer.echo(f"surefoot: left out of {file}, {unit.place}: {checked.message}", err=True)
            found.append(Record(signal, checked.encoding, int(now * 1e9), imported(file.name), checked.body))
    return found


def _from_lake(what: str, settings: Settings) -> Answer:
    from surefoot.processors.genai.explain_source import explain_stored, find_traces
    from surefoot.processors.lake import Lake

    told = _ID.fullmatch(what)
    if told is None:
        raise AmbiguousTraceError(f"Cannot explain {what!r}: it is no file, and no trace id (up to 32 hex digits).")
    lake = Lake.open(settings.lake_path, create=False)
    found = find_traces(lake, told[1], _CANDIDATES + 1)
    if not found:
        raise UnknownTraceError(
            f"There is no trace {told[1]} in {settings.lake_path}: it never arrived, is not written yet (a few seconds "
            "after it came), or is past its retention."
        )
    if len(found) > 1:
        lines = [f"  {trace_id}  {agents}".rstrip() for trace_id, agents in list(found.items())[:_CANDIDATES]]
        lines += ["  ... and more"] if len(found) > _CANDIDATES else []
        candidates = "\n".join(lines)
        raise AmbiguousTraceError(f"Several traces begin with {told[1]}; give more of the one you mean:\n{candidates}")
    return explain_stored(lake, next(iter(found)), time.time(), settings.settle_seconds)
