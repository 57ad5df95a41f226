"""How ``surefoot doctor`` prints what it found."""

from __future__ import annotations

import os
import re
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer
from rich.table import Table

from surefoot.cli.output import console, print_json

if TYPE_CHECKING:
    from surefoot.instrumentation.doctor import Diagnosis, Finding

_NOT_LET_IN = re.compile(r"\b(401|403|UNAUTHENTICATED|PERMISSION_DENIED)\b")
_STYLE = {"active": "green", "skipped": "dim", "broken": "bold red"}


def show(*, as_json: bool, endpoint: str | None) -> None:
    """Print the diagnosis; ends with 3 if the endpoint does not answer."""
    from surefoot.instrumentation.doctor import diagnose

    found = diagnose(os.environ, endpoint)
    if as_json:
        print_json(asdict(found))
    else:
        _print(found)
    if not found.endpoint.answers:
        raise typer.Exit(3)


def _print(found: Diagnosis) -> None:
    out = console()
    out.print(f"Python {found.python}   " + "   ".join(f"{name} {version}" for name, version in found.versions.items()))
    _section("Distros", found.distros)
    _section("Configurators", found.configurators)
    _section("Instrumentors", found.instrumentors)
    _section("Libraries that emit by themselves", found.native)
    kept = [where for where, on in (("spans", found.capture_on_spans), ("events", found.capture_on_events)) if on]
    out.print(f"\nMessage content: {'kept on ' + ' and '.join(kept) if kept else 'not kept'}")
    style = "green" if found.endpoint.answers else "bold red"
    out.print(f"Endpoint {found.endpoint.url} ({found.endpoint.protocol}): [{style}]{found.endpoint.detail}[/{style}]")
    if not found.endpoint.answers:
        out.print(_remedy(found.endpoint.detail), markup=False)


def _remedy(detail: str) -> str:
    if _NOT_LET_IN.search(detail):
        return (
            "The server wants a token: `surefoot token add NAME` beside the server makes one; then set "
            'OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20TOKEN".'
        )
    return "Start `surefoot serve`, or set OTEL_EXPORTER_OTLP_ENDPOINT to where your collector is."


def _section(title: str, findings: list[Finding]) -> None:
    out = console()
    out.print(f"\n[bold]{title}[/bold]")
    if not findings:
        out.print("[dim]none installed[/dim]")
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    for finding in findings:
        state = f"[{_STYLE[finding.state]}]{finding.state}[/{_STYLE[finding.state]}]"
        table.add_row(state, finding.name, f"[dim]{finding.package}[/dim]", finding.reason)
    out.print(table)
