"""``surefoot sql``: one SELECT over the lake's tables."""

from __future__ import annotations

import csv
import enum
import sys
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

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
        print_rows(result.columns, [["" if value is None else str(value) for value in row] for row in result.rows])


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table where it fits, else one column a line: an id that is cut can be neither read nor copied."""
    out = console()
    widths = [
        max(len(line) for cell in cells for line in cell.split("\n")) for cells in zip(columns, *rows, strict=True)
    ]
    if rows and sum(widths) + 2 * (len(columns) - 1) > out.width:
        margin = max(map(len, columns))
        for number, row in enumerate(rows, 1):
            out.print(f"[dim]-- row {number}[/dim]")
            for column, cell in zip(columns, row, strict=True):
                out.print(Text(f"{column:<{margin}}  {cell}".rstrip()), soft_wrap=True)
    else:
        table = Table(*map(escape, columns), box=None, pad_edge=False)
        for row in rows:
            table.add_row(*map(Text, row))
        out.print(table)
    out.print(f"[dim]{len(rows)} row{'' if len(rows) == 1 else 's'}[/dim]")
