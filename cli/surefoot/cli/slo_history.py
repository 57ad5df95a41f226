"""``surefoot slo history``: an SLO's counts of the past, for a spreadsheet or another program."""

from __future__ import annotations

import enum
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from surefoot.cli.config import load
from surefoot.cli.output import console, objective_percent
from surefoot.cli.sql import print_rows
from surefoot.errors import SurefootError

if TYPE_CHECKING:
    import pyarrow as pa

    from surefoot.processors.slo.history import Generation


class Format(enum.StrEnum):
    """How rows are written."""

    TABLE = "table"
    CSV = "csv"
    PARQUET = "parquet"


class Every(enum.StrEnum):
    """How long a row is."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"


class HistoryError(SurefootError):
    """What was asked for is not there, or cannot be written so."""


def history(
    slo: str = typer.Argument(..., help="Name of the SLO."),
    form: Format = typer.Option(Format.TABLE, "--format", help="table, csv or parquet (which needs --out)."),
    out: Path | None = typer.Option(None, "--out", help="File to write; default: standard output."),
    every: Every = typer.Option(Every.DAY, "--every", help="A row per minute, hour or day (UTC)."),
    view: str | None = typer.Option(None, "--view", help="Only fast or matured."),
    stratum: str | None = typer.Option(None, "--stratum", help="Only this stratum; '' is all together."),
    generation: str | None = typer.Option(None, "--generation", help="Only this definition."),
) -> None:
    """Good, bad, unlabelled and excluded events of the past, by view, stratum and generation."""
    from surefoot.processors.lake import Lake
    from surefoot.processors.slo.history import generations, known_slos
    from surefoot.processors.slo.history import history as read
    from surefoot.processors.suggestions import suggestion

    if form is Format.PARQUET and out is None:
        raise HistoryError("Parquet is not text. Name a file: --out history.parquet")
    con = Lake.open(load().lake_path, create=False).connect()
    rows = read(con, slo, every.value, view=view, stratum=stratum, generation=generation)
    if not rows.num_rows:
        known = known_slos(con)
        if slo not in known:
            remedy = suggestion(slo, known) if known else "start `surefoot serve` and try again"
            raise HistoryError(f"There is no history of an SLO {slo!r}: {remedy}")
        raise HistoryError(f"The history of {slo} has no such view, stratum or generation. Leave the options out.")
    if form is Format.TABLE and out is None:
        _print(rows, generations(con, slo))
        return
    _write(rows, Format.CSV if form is Format.TABLE else form, out)
    if out is not None:
        typer.echo(f"Wrote {out}: {rows.num_rows:,} rows.", err=True)


def _write(rows: pa.Table, form: Format, out: Path | None) -> None:
    from pyarrow import csv, parquet

    if form is Format.PARQUET and out is not None:
        parquet.write_table(rows, out)
    elif out is None:
        csv.write_csv(rows, sys.stdout.buffer)
    else:
        csv.write_csv(rows, out)


def _print(rows: pa.Table, past: list[Generation]) -> None:
    shown = [name for name in rows.column_names if name not in {"slo", "computed_at"} and not name.endswith("_weight")]
    weighted = any(
        round(row[name]) != row[f"{name}_weight"] for row in rows.to_pylist() for name in ("good", "bad", "unlabelled")
    )
    if weighted:
        shown += ["good_weight", "bad_weight"]
    print_rows(shown, [[_cell(row[name]) for name in shown] for row in rows.to_pylist()])
    for item in past:
        since = f"{item.first_seen_at:%Y-%m-%d %H:%M} UTC"
        objective = objective_percent(item.objective)
        console().print(f"[dim]generation {item.generation}, objective {objective}, since {since}[/dim]")


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:%Y-%m-%d %H:%M}" if hasattr(value, "strftime") else str(value)
