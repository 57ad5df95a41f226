"""``surefoot import otlp``: files of telemetry, through the running server or, if none runs, by this process."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from surefoot.cli.config import load
from surefoot.cli.output import JSON_OPTION, console, print_json
from surefoot.cli.results_importing import results
from surefoot.errors import UnreachableError

if TYPE_CHECKING:
    from surefoot.processors.importing import Refused, Report, Unit
    from surefoot.processors.settings import Settings

_START_SECONDS = 30.0  # in which a server that is starting says where it listens
_SHOWN = 20


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Take in telemetry, or results of repeated runs, from files.")
    group.command("otlp")(otlp)
    group.command("results")(results)
    group.callback()(lambda: None)
    app.add_typer(group, name="import")


def otlp(
    files: list[Path] = typer.Argument(
        help="OTLP/JSON lines or documents, or OTLP protobuf; plain, gzip or zstd.", exists=True, dir_okay=False
    ),
    token: str | None = typer.Option(None, envvar="SUREFOOT_TOKEN", help="Token, if the running server asks for one."),
    as_json: bool = JSON_OPTION,
) -> None:
    """Import OTLP files; returns when their runs and verdicts can be queried. Ends with 2 if anything was refused."""
    from surefoot.processors.importing import Sender, read_file

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="surefoot: %(levelname)s %(message)s")
    settings = load()
    with destination(settings) as (url, finish), _progress(files) as advance:
        sender = Sender(url, token, settings.tls_certificate)
        report = sender.send_all((unit for file in files for unit in read_file(file)), advance)
    duplicates = finish()
    _tell(files, report, duplicates, _runs(settings, files), as_json=as_json)
    if report.refused:
        raise typer.Exit(2)


@contextlib.contextmanager
def destination(settings: Settings) -> Iterator[tuple[str, Any]]:
    """Where OTLP is sent, and what to do afterwards: the server that runs on this home, or a collector of our own."""
    from surefoot.collector.config import Config
    from surefoot.collector.errors import SpoolLockedError
    from surefoot.collector.server import running
    from surefoot.processors.importing import settle_here, wait_for_server

    limits = {
        field.name: getattr(settings, field.name)
        for field in dataclasses.fields(Config)
        if field.name.startswith("max_") and hasattr(settings, field.name)
    }
    limits["max_backlog_bytes"] = 1 << 62  # nobody takes anything out of the spool meanwhile
    limits["max_requests_per_second"] = 0.0
    own = Config(spool=settings.spool_path, port_grpc=0, port_http=0, **limits)
    with contextlib.ExitStack() as stack:
        try:
            collector = stack.enter_context(running(own))
        except SpoolLockedError:
            before = _duplicates(settings)
            yield _server(settings), lambda: _after(settings, before, wait_for_server)
        else:
            yield collector.addresses["http"], lambda: settle_here(settings)


def _server(settings: Settings) -> str:
    """The OTLP/HTTP address of the collector that holds the spool."""
    from surefoot.processors import status

    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        said = status.read(settings.status_path, "collector") or {}
        if said.get("pid") == _holder(settings):
            return str(said["addresses"]["http"])
        time.sleep(0.1)
    raise UnreachableError(
        f"A collector holds {settings.spool_path} but does not say in {settings.status_path} where it listens. "
        "If it was not started by `surefoot serve`, stop it and import again."
    )


def _holder(settings: Settings) -> int | None:
    text = (settings.spool_path / "lock").read_text().strip()
    return int(text) if text.isdigit() else None


def _after(settings: Settings, before: int, wait: Any) -> int:
    wait(settings, lambda: _is_alive(_holder(settings)))
    return _duplicates(settings) - before


def _is_alive(pid: int | None) -> bool:
    return pid is not None and Path(f"/proc/{pid}").exists()


def _duplicates(settings: Settings) -> int:
    from surefoot.processors import status

    return int((status.read(settings.status_path, "writer") or {}).get("duplicates_total", 0))


def _runs(settings: Settings, files: list[Path]) -> int:
    """Runs in the traces of spans that came from files of these names, in this import or an earlier one."""
    from surefoot.processors.lake import Lake

    sources = [f"import:{file.name}" for file in files]
    with Lake.open(settings.lake_path, create=False).connect() as con:
        (found,) = con.execute(
            "SELECT count(*) FROM runs WHERE trace_id IN ("
            "SELECT trace_id FROM spans WHERE list_contains($1, regexp_replace(source, ' by [^/]*$', ''))"
            " OR list_contains($1, source))",
            [sources],
        ).fetchall()
    return int(found[0])


@contextlib.contextmanager
def _progress(files: list[Path]) -> Iterator[Any]:
    """A bar on a terminal's stderr that counts files as they are read; nothing elsewhere."""
    err = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task("importing", total=None)
        started: set[Path] = set()

        def advance(unit: Unit | Refused) -> None:
            started.add(unit.file)
            sent = len(getattr(unit, "body", b""))
            bar.update(task, advance=sent, description=f"{unit.file.name} ({len(started)} of {len(files)})")

        yield advance


def _tell(files: list[Path], report: Report, duplicates: int, runs: int, *, as_json: bool) -> None:
    refused = Counter(item.reason for item in report.refused)
    if as_json:
        places = [
            {"file": str(item.file), "place": item.place, "reason": item.reason, "items": item.items}
            for item in report.refused
        ]
        print_json(
            {
                "files": len(files),
                "spans": report.accepted["traces"],
                "logs": report.accepted["logs"],
                "points": report.accepted["metrics"],
                "runs": runs,
                "duplicates": duplicates,
                "refused": places,
            }
        )
        return
    out = console()
    names = {"traces": "span", "logs": "log record", "metrics": "data point"}
    taken = ", ".join(_count(report.accepted[signal], name) for signal, name in names.items())
    out.print(
        f"{_count(len(files), 'file')}: {taken}, of which {duplicates:,} {'was' if duplicates == 1 else 'were'} "
        f"there already; {_count(runs, 'run')} in the tables came of {'it' if len(files) == 1 else 'them'}",
        soft_wrap=True,
    )
    for item in report.refused[:_SHOWN]:
        out.print(f"refused  {item.file}, {item.place}: {item.reason}", style="yellow", markup=False)
    if len(report.refused) > _SHOWN:
        more = _count(len(report.refused) - _SHOWN, "more place")
        out.print(f"... and {more}, {_count(len(refused), 'reason')} in all")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
