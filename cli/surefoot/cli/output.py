"""How every command prints: a console for people, JSON for scripts."""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from typing import Any

import typer
from rich.console import Console

WIDE = 156  # columns; narrower terminals get fewer

JSON_OPTION = typer.Option(False, "--json", help="Print JSON for a script.")


def console() -> Console:
    """Standard output for people: colours only on a terminal, and no cutting at 80 columns where there is none."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else WIDE)


def print_json(data: Any) -> None:
    """One JSON document on stdout. Values that JSON does not know (times, dates) are written as text."""
    typer.echo(json.dumps(data, indent=2, default=str, allow_nan=False))


def number(value: float | None, pattern: str = "{:.2f}", missing: str = "–") -> str:
    """A number for people, or a dash where it is undefined."""
    return missing if value is None else pattern.format(value)


def percent(ratio: float | None, digits: int) -> str:
    """A ratio as per cent, or a dash where it is undefined."""
    return number(None if ratio is None else 100 * ratio, f"{{:.{digits}f}} %")


def objective_percent(objective: float) -> str:
    """An objective with all the digits that it was written with: 99.95 %, never 100 % for 99.9999 %."""
    return f"{(100 * Decimal(repr(objective))).normalize():f} %"


def lasting(seconds: float | None) -> str:
    """A length of time in the unit that people would use, or a dash where it is undefined."""
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds is not None and seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return number(seconds, "{:.0f} s")
