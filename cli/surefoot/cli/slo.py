"""``surefoot slo validate`` and ``surefoot slo status``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.table import Table
from rich.text import Text

from surefoot.cli.config import load
from surefoot.cli.output import JSON_OPTION, WIDE, console, number, percent, print_json
from surefoot.errors import UnreachableError

if TYPE_CHECKING:
    from surefoot.processors.slo.report import SloReport, StatusReport, StratumReport

_SHOWN_WINDOWS = ("5m", "1h", "6h", "3d")
_FEW_WINDOWS = ("1h", "6h")
ROOMY = 92  # columns; narrower terminals get one burn rate, so that names stay whole
_STATE_STYLE = {
    "ok": "green",
    "no_data": "dim",
    "burning_ticket": "yellow",
    "burning_page": "bold red",
    "exhausted": "red",
}


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        no_args_is_help=True, help="Service level objectives: validate the files, see where they stand."
    )
    group.command("validate")(validate)
    group.command("status")(show_status)
    app.add_typer(group, name="slo")


def validate(
    path: Path | None = typer.Argument(None, help="A file or folder; default: the slos/ folder of the settings."),
    as_json: bool = JSON_OPTION,
) -> None:
    """Check OpenSLO files; ends with 2 and names file, line and remedy if one is wrong."""
    from surefoot.processors.slo import load_slos

    folder = path or load().slos_path
    if not folder.exists():
        raise UnreachableError(f"There are no SLO files at {folder}. Put OpenSLO v1 YAML there or name another path.")
    loaded = load_slos(folder)
    if as_json:
        print_json({"valid": [slo.name for slo in loaded.slos], "problems": [str(item) for item in loaded.problems]})
    else:
        for problem in loaded.problems:
            typer.echo(str(problem), err=True)
        typer.echo(f"{len(loaded.slos)} valid, {len(loaded.problems)} problems in {folder}")
    if loaded.problems:
        raise typer.Exit(2)


def show_status(
    as_json: bool = JSON_OPTION,
    fail_on_burning: bool = typer.Option(False, "--check", help="End with 1 if an SLO burns, or its budget is spent."),
) -> None:
    """Budget left, burn rates and what is burning, as last computed by `surefoot serve`."""
    report = latest(load().status_path)
    if as_json:
        print_json(report.to_json())
    else:
        print_table(report, time.time())
    troubled = [
        slo.slo for slo in report.slos if slo.strata[0].state in {"burning_page", "burning_ticket", "exhausted"}
    ]
    if fail_on_burning and troubled:
        raise typer.Exit(1)


def latest(folder: Path) -> StatusReport:
    """The report that the jobs process published last. Raises UnreachableError if it never did."""
    from surefoot.processors import status
    from surefoot.processors.slo.report import StatusReport

    content = status.read(folder, "slo")
    if content is None:
        raise UnreachableError(f"No SLO has been computed yet in {folder}. Start `surefoot serve` and try again.")
    return StatusReport.from_json(content)


def print_table(report: StatusReport, now: float) -> None:
    """The table that people see: one line an SLO, its strata below it when it has some."""
    out = console()
    wide = out.width >= WIDE
    windows = _SHOWN_WINDOWS if wide else _FEW_WINDOWS if out.width >= ROOMY else _FEW_WINDOWS[:1]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("SLO", overflow="fold")  # the one that gives way: a cut number would mislead
    titles = (
        ["objective", "good", "95 % interval", "n", "unlabelled", "budget left"] if wide else ["good", "n", "budget"]
    )
    for title in [*titles, *(f"burn {window}" for window in windows)]:
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for slo in report.slos:
        for stratum in slo.strata:
            cells = _cells(slo, stratum, windows)
            table.add_row(*(cells[title] for title in ["SLO", *titles, *windows, "state"]))
    out.print(table)
    for slo in report.slos:
        if slo.problem:
            out.print(f"[yellow]{slo.slo}: {slo.problem}[/yellow]")
    for problem in report.problems:
        out.print(f"[yellow]{problem}[/yellow]")
    age = max(0.0, now - report.computed_at)
    out.print(f"[dim]Computed {age:.0f} s ago over each SLO's period; intervals are Wilson's and descriptive.[/dim]")


def _cells(slo: SloReport, stratum: StratumReport, windows: tuple[str, ...]) -> dict[str, Text]:
    period = stratum.windows[-1]
    burns = {window.window: window.burn_rate for window in stratum.windows}
    burning = {name for tier in stratum.tiers if tier.burning for name in (tier.long_window, tier.short_window)}
    interval = "–"
    if stratum.interval_low is not None and stratum.interval_high is not None:
        interval = f"{100 * stratum.interval_low:.2f}–{100 * stratum.interval_high:.2f}"
    left = stratum.error_budget_remaining_ratio
    budget = Text(percent(left, 1), style="red" if left is not None and left < 0 else "")
    return {
        "SLO": Text(f"  {stratum.key}", style="dim") if stratum.key else Text(slo.slo),
        "objective": Text("" if stratum.key else f"{100 * slo.objective:g} % / {slo.period}"),
        "good": Text(percent(None if period.error_ratio is None else 1 - period.error_ratio, 2)),
        "95 % interval": Text(interval),
        "n": Text(f"{period.counts.good + period.counts.bad:,}"),
        "unlabelled": Text(f"{period.counts.unlabelled:,}"),
        "budget left": budget,
        "budget": budget,
        **{w: Text(number(burns.get(w), "{:.1f}"), style="bold red" if w in burning else "") for w in windows},
        "state": Text(stratum.state.replace("_", " "), style=_STATE_STYLE.get(stratum.state, "")),
    }
