"""``surefoot demo``: the support desk from four weeks ago until now, then live through an incident.

Runs the same server as ``surefoot serve`` in a folder of its own, sends it the desk's telemetry over OTLP, waits for
the burn-rate page, prints what an SRE would look at, and ends. With ``--keep`` it stays up.
"""

from __future__ import annotations

import logging
import os
import shutil
import socket
import sys
import time
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from surefoot.cli.config import load
from surefoot.cli.output import console
from surefoot.cli.slo import latest, print_table
from surefoot.errors import SurefootError, UnreachableError

if TYPE_CHECKING:
    from surefoot.processors.settings import Settings
    from surefoot.processors.slo.report import StatusReport

DRAIN_SECONDS = 120.0
INCIDENT_SECONDS = 60.0
SHORTEST_INCIDENT = 0.4  # of the above; a page that comes sooner is looked at a little longer
_MARKER = ".surefoot-demo"

QUERIES = (
    ("What ended how", "SELECT outcome, count(*) AS runs FROM runs GROUP BY outcome ORDER BY runs DESC"),
    (
        "Which tool fails",
        (
            "SELECT tool_name, count(*) AS calls, avg(CASE WHEN outcome = 'error' THEN 1.0 ELSE 0.0 END) AS failing "
            "FROM tool_calls GROUP BY tool_name ORDER BY failing DESC"
        ),
    ),
    (
        "Same task, every time?",
        (
            "SELECT r.task_id, count(*) AS runs, avg(CASE WHEN v.verdict = 'pass' THEN 1.0 ELSE 0.0 END) AS good "
            "FROM runs r JOIN verdicts v ON v.run_id = r.run_id AND v.kind = 'outcome' GROUP BY r.task_id ORDER BY good"
        ),
    ),
)


class DemoError(SurefootError):
    """The demo did not get where it should."""

    exit_code = 1


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo")(demo)


def demo(
    keep: bool = typer.Option(False, "--keep", help="Stay up after the incident, until Ctrl-C."),
    home: Path = typer.Option(Path(".demo"), help="Folder of the demo; replaced at each start."),
    days: int = typer.Option(28, min=1, max=28, help="Days of history."),
    seed: int = typer.Option(7, help="Seed of the desk's dice."),
) -> None:
    """Watch a support desk: four weeks of history, then a live incident; a few minutes."""
    from surefoot.cli.programs import programs
    from surefoot.cli.supervisor import Supervisor, stop_on_signals
    from surefoot.processors import status

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="surefoot: %(levelname)s %(message)s")
    settings = _settings(home)
    _prepare(settings)
    supervisor = Supervisor(programs(settings), partial(status.publish, settings.status_path, "supervisor"))
    with stop_on_signals(supervisor):
        ready = supervisor.start()
        try:
            _play(settings, ready, days, seed)
            _finish(settings, ready, keep)
            if keep:
                supervisor.watch()
        finally:
            supervisor.stop()


def _settings(home: Path) -> Settings:
    base = load(home=home)
    return load(
        home=home,
        lake=home / "lake",
        port_grpc=_free_or_zero(base.port_grpc),
        port_http=_free_or_zero(base.port_http),
        port_web=_free_or_zero(base.port_web),
        # A demo cannot wait a quarter of an hour to call a killed run abandoned.
        settle_seconds=20.0,
        jobs_interval_seconds=2.0,
        segment_seconds=0.5,
    )


def _free_or_zero(port: int) -> int:
    """The wanted port if it is free, else 0 (any free port): a demo must not fail because a server is running."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return 0
    return port


def _prepare(settings: Settings) -> None:
    home = settings.home
    if home.exists():
        if not (home / _MARKER).exists() and any(home.iterdir()):
            raise DemoError(f"{home} holds something that is not a demo. Name another folder with --home.")
        shutil.rmtree(home)
    settings.slos_path.mkdir(parents=True)
    (home / _MARKER).touch()
    for source in files("surefoot.demo").joinpath("slos").iterdir():
        (settings.slos_path / source.name).write_text(source.read_text())


def _play(settings: Settings, ready: dict[str, Any], days: int, seed: int) -> None:
    from surefoot.demo.telling import History, Incident, connect
    from surefoot.instrumentation import flush

    connect(ready["http"])
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}"))
    with Progress(*columns, TimeElapsedColumn(), console=console()) as progress:
        history = History(seed=seed, days=days, until=time.time())
        bar = progress.add_task(f"{days} days of history", total=1.0, note="")
        for done, runs in history.play():
            progress.update(bar, completed=done, note=f"{runs:,} runs")
        bar = progress.add_task("into the tables", total=None, note="")
        _await_runs(settings, history.runs, lambda seen: progress.update(bar, note=f"{seen:,} runs"))
        progress.update(bar, total=1, completed=1)
        bar = progress.add_task("live, payments down", total=1.0, note="")
        burning: list[str] = []
        live = 0
        for done, live in Incident(seed=seed).play(INCIDENT_SECONDS):
            burning = _paging(settings)
            progress.update(bar, completed=done, note=f"{live:,} runs, paging: {', '.join(burning) or 'nothing yet'}")
            if burning and done > SHORTEST_INCIDENT:
                break
        flush()
        _await_runs(settings, history.runs + live, lambda _: None)
        burning = burning or _paging(settings)
        progress.update(bar, completed=1.0)
    if not burning:
        raise DemoError(f"No SLO paged within {INCIDENT_SECONDS:.0f} s of a live incident. See {settings.status_path}.")


def _await_runs(settings: Settings, wanted: int, tell: Any) -> None:
    """Wait until every run of the history is in the tables and judged."""
    from surefoot.processors.lake.console import query

    deadline = time.monotonic() + DRAIN_SECONDS
    arrived: float | None = None
    while time.monotonic() < deadline:
        seen = int(query(settings.lake_path, "SELECT count(*) FROM runs WHERE outcome <> 'running'").rows[0][0])
        tell(seen)
        if seen >= wanted:
            arrived = arrived or time.time()
            report = _report(settings)
            if report is not None and report.computed_at >= arrived:
                return
        time.sleep(0.5)
    raise DemoError(f"Only {seen} of {wanted} runs reached the tables within {DRAIN_SECONDS:.0f} s.")


def _report(settings: Settings) -> StatusReport | None:
    try:
        return latest(settings.status_path)
    except UnreachableError:
        return None


def _paging(settings: Settings) -> list[str]:
    report = _report(settings)
    return [] if report is None else [slo.slo for slo in report.slos if slo.strata[0].state == "burning_page"]


def _finish(settings: Settings, ready: dict[str, Any], keep: bool) -> None:
    out = console()
    out.print()
    print_table(latest(settings.status_path), time.time())
    program = "surefoot" if shutil.which("surefoot") else os.path.relpath(sys.argv[0])
    lake = settings.lake_path
    near = lake.is_relative_to(Path.cwd())
    command = f"{program} sql --lake {lake.relative_to(Path.cwd()) if near else lake}"
    out.print("\nThree questions for DuckDB:")
    for title, text in QUERIES:
        out.print(f"\n[dim]# {title}[/dim]", soft_wrap=True)
        out.print(f'{command} "{text}"', soft_wrap=True, markup=False)
    out.print()
    where = f"The page: {ready['web']}"
    out.print(where if keep else f"{where} (while it runs; KEEP=1 stays up)")
    if keep:
        out.print(f"OTLP: {ready['grpc']} and {ready['http']}. Ctrl-C stops.")
