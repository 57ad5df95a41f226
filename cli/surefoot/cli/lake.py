"""``surefoot lake``: status, verify, compact, vacuum, erase, upgrade, export-views."""

from __future__ import annotations

import getpass
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table

from surefoot.cli.config import load
from surefoot.cli.output import JSON_OPTION, console, print_json
from surefoot.errors import SurefootError

if TYPE_CHECKING:
    from surefoot.processors.lake import Lake
    from surefoot.processors.settings import Settings


class WrongUseError(SurefootError):
    """The options do not say what to do."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="The tables on the disk: where they stand, upkeep, erasure, proof.")
    group.command("status")(show_status)
    group.command("verify")(verify)
    group.command("compact")(compact)
    group.command("vacuum")(vacuum)
    group.command("erase")(erase)
    group.command("upgrade")(upgrade)
    group.command("export-views")(export_views)
    app.add_typer(group, name="lake")


def show_status(as_json: bool = JSON_OPTION) -> None:
    """Rows, files and bytes of each table, what waits to be deleted, and how long rows are kept."""
    from surefoot.processors.lake.inspect import state

    settings = load()
    states = state(_open(settings), settings)
    if as_json:
        print_json([asdict(row) for row in states])
        return
    columns = ("table", "rows", "files", "bytes", "oldest", "newest", "waiting", "kept")
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="left" if column in {"table", "oldest", "newest"} else "right", no_wrap=True)
    for row in states:
        cells = (row.rows, row.files, row.size_bytes, row.oldest_date, row.newest_date, row.waiting_bytes)
        shown = (f"{value:,}" if isinstance(value, int) else value or "–" for value in cells)
        kept = "for ever" if row.retention_days is None else f"{row.retention_days} d"
        table.add_row(row.table, *shown, kept)
    out = console()
    out.print(table)
    total = {
        name: sum(getattr(row, name) for row in states) for name in ("waiting_files", "waiting_bytes", "small_files")
    }
    last = max((row.last_commit for row in states if row.last_commit), default=None)
    out.print(
        f"[dim]Waiting to be deleted: {total['waiting_bytes']:,} bytes of {total['waiting_files']:,} replaced files. "
        f"Small files: {total['small_files']:,}. Last commit: {last[:19] + ' UTC' if last else 'none'}.[/dim]"
    )


def verify(as_json: bool = JSON_OPTION) -> None:
    """Prove that log and files are as they were committed and identities hold; ends with 1 and names what is wrong."""
    from surefoot.processors.lake.inspect import prove

    path = load().lake_path
    proof = prove(path)
    if as_json:
        print_json({"lake": str(path), "wrong": proof.wrong})
    else:
        for sentence in proof.wrong:
            typer.echo(sentence, err=True)
        typer.echo(f"{proof.files} files of {proof.tables} tables checked, {len(proof.wrong)} problems in {path}")
    if proof.wrong:
        raise typer.Exit(1)


def compact(as_json: bool = JSON_OPTION) -> None:
    """Merge small files now, however few they are."""
    _print(_do("compact", {}), as_json)


def vacuum(as_json: bool = JSON_OPTION) -> None:
    """Delete replaced files now, all but those that an open reader may still need."""
    _print(_do("vacuum", {}), as_json)


def erase(
    trace: str | None = typer.Option(None, help="Id of a trace."),
    run: str | None = typer.Option(None, help="Id of a run; all of its trace is erased."),
    conversation: str | None = typer.Option(None, help="Id of a conversation: all traces that name it."),
    user: str | None = typer.Option(None, help="Value of a user attribute: all traces that name it."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Say what would be erased; change nothing."),
    yes: bool = typer.Option(False, "--yes", help="Do not ask."),
    as_json: bool = JSON_OPTION,
) -> None:
    """Erase what belongs to a trace, run, conversation or user from every table and file. Cannot be undone."""
    given = {"trace": trace, "run": run, "conversation": conversation, "user": user}
    keys = [(kind, key) for kind, key in given.items() if key]
    if len(keys) != 1:
        raise WrongUseError("Name exactly one of --trace, --run, --conversation and --user.")
    from surefoot.processors.lake.erase import find

    [(kind, key)] = keys
    if dry_run or not yes:
        found = find(_open(load()), kind, key)
        if dry_run:
            _print({"traces": len(found.trace_ids), "rows": found.rows}, as_json)
            return
        rows = sum(found.rows.values())
        question = (
            f"Erase {rows} rows of {len(found.trace_ids)} traces for good?"
            if rows
            else f"The lake holds nothing of {kind} {key!r}. Erase what the spool may still hold of it?"
        )
        typer.confirm(question, abort=True)
    answer = _do("erase", {"kind": kind, "key": key})
    if not as_json and answer.get("record", "of an older server") is None:
        typer.echo(f"Found 0 traces and 0 rows of {kind} {key!r}: nothing was erased, nothing was recorded.")
        answer = {"quarantined": answer["quarantined"]}
    _print(answer, as_json)


def upgrade() -> None:
    """Bring the lake to this version's format. `surefoot serve` does so too when it starts."""
    from surefoot.processors.lake.lake import upgrade as bring_up

    done = bring_up(load().lake_path)
    if done.before == done.after and not done.columns:
        typer.echo(f"The lake has format {done.after} already.")
        return
    typer.echo(f"Format {done.before} became {done.after}; new columns: {', '.join(done.columns) or 'none'}.")


def export_views(
    out: Path | None = typer.Option(None, "--out", "-o", help="File to write; default: standard output."),
) -> None:
    """Write SQL that shows the tables to the plain `duckdb` shell: duckdb -init views.sql."""
    from surefoot.processors.lake.inspect import views_sql

    text = views_sql(_open(load()))
    if out is None:
        typer.echo(text, nl=False)
    else:
        out.write_text(text)


def _open(settings: Settings) -> Lake:
    from surefoot.processors.lake import Lake

    return Lake.open(settings.lake_path, create=False)


def _do(command: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Have it done by the server, or do it here when none runs; prints nothing but progress."""
    from surefoot.processors.inbox import have_done

    by = f"{getpass.getuser()}@{socket.gethostname()}"
    with _progress() as tell:
        return have_done(load(), command, arguments, by, tell=tell, clock=time.time, sleep=time.sleep)


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Say on standard error what is waited for: a spinner on a terminal, else a line for each new thing."""
    from rich.console import Console

    err = Console(stderr=True)
    if err.is_terminal:
        with err.status("starting") as spinner:
            yield spinner.update
        return
    said = ""

    def tell(text: str) -> None:
        nonlocal said
        if (thing := re.sub(r"\d+", "", text)) != said:  # a count that goes down is no news
            said = thing
            typer.echo(text, err=True)

    yield tell


def _print(answer: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    for name, value in answer.items():
        if not isinstance(value, dict):
            typer.echo(f"{name}: {value if value != [] else 'none'}")
            continue
        typer.echo(f"{name}:")
        for table, number in value.items():
            typer.echo(f"  {table}: {number}")
