"""``surefoot rules build`` and ``surefoot dashboards build``: files for Prometheus and Grafana."""

from __future__ import annotations

from pathlib import Path

import typer

from surefoot.cli.config import load
from surefoot.errors import SurefootError, UnreachableError


class SloFilesError(SurefootError):
    """SLO files that cannot be used stand in the way of building rules from them."""


OUT = typer.Option(None, "--out", "-o", help="File to write; default: standard output.")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    rules = typer.Typer(no_args_is_help=True, help="Prometheus recording and alerting rules.")
    rules.callback()(_group)
    rules.command("build")(build_rules)
    app.add_typer(rules, name="rules")
    dashboards = typer.Typer(no_args_is_help=True, help="Grafana dashboards.")
    dashboards.callback()(_group)
    dashboards.command("build")(build_dashboards)
    app.add_typer(dashboards, name="dashboards")


def _group() -> None:
    """A callback keeps typer from folding a group with one command into that command."""


def build_rules(
    path: Path | None = typer.Argument(None, help="SLO file or folder; default: the slos/ folder of the settings."),
    out: Path | None = OUT,
) -> None:
    """Write Prometheus rules for the SLOs: pages and tickets on burn rates, staleness and absence alerts."""
    from surefoot.dashboards.rules import build_rules as build
    from surefoot.processors.slo import load_slos

    folder = path or load().slos_path
    if not folder.exists():
        raise UnreachableError(f"There are no SLO files at {folder}. Put OpenSLO v1 YAML there or name another path.")
    loaded = load_slos(folder)
    if loaded.problems:
        raise SloFilesError("\n".join(["No rules were written:", *(str(problem) for problem in loaded.problems)]))
    _write(build(loaded.slos), out, f"rules for {len(loaded.slos)} SLOs")


def build_dashboards(out: Path | None = OUT) -> None:
    """Write the Grafana dashboard: SLO overview and detail in one."""
    from surefoot.dashboards.grafana import build_dashboard

    _write(build_dashboard(), out, "the dashboard")


def _write(text: str, out: Path | None, what: str) -> None:
    if out is None:
        typer.echo(text, nl=not text.endswith("\n"))
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text)
    typer.echo(f"Wrote {what} to {out}", err=True)
