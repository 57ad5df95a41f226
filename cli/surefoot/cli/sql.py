"""``surefoot sql``: one SELECT over the lake's tables."""

from __future__ import annotations

import csv
import enum
import sys
from pathlib import Path

import typer
from rich.table import Table

from surefoot.cli.config import load
from surefoot.cli.output import console, print_json


class Format(enum.StrEnum):
    """How rows are printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sql")(sql)


def sql(
    statement: str = typer.Argument(..., help="One SELECT, for example: SELECT outcome, count(*) FROM runs GROUP BY 1"),
    form: Format = typer.Option(Format.TABLE, "--format", help="table, json (a list of objects) or csv."),
    lake: Path | None = typer.Option(None, help="Folder of the tables; default: the lake of the settings."),
) -> None:
    """Ask the tables: spans, runs, tool_calls, model_calls, verdicts, slo_minutes, logs, metric_points, contents."""
    from surefoot.processors.lake.console import query

    result = query(load(lake=lake).lake_path, statement)
    if form is Format.JSON:
        print_json([dict(zip(result.columns, row, strict=True)) for row in result.rows])
    elif form is Format.CSV:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(result.columns)
        writer.writerows(result.rows)
    else:
        table = Table(*result.columns, box=None, pad_edge=False)
        for row in result.rows:
            table.add_row(*("" if value is None else str(value) for value in row))
        out = console()
        out.print(table)
        out.print(f"[dim]{len(result.rows)} row{'' if len(result.rows) == 1 else 's'}[/dim]")
