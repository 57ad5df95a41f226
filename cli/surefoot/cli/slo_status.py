"""``surefoot slo status``: a line for each view of each SLO, and below the table what a line cannot say."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.table import Table
from rich.text import Text

from surefoot.cli.config import load
from surefoot.cli.output import JSON_OPTION, WIDE, console, lasting, number, objective_percent, percent, print_json
from surefoot.errors import UnreachableError

if TYPE_CHECKING:
    from surefoot.processors.slo.report import ActionReport, SloReport, StatusReport, StratumReport

_SHOWN_WINDOWS = ("5m", "1h", "6h", "3d")
_FEW_WINDOWS = ("1h", "6h")
ROOMY = 92  # columns; narrower terminals get one burn rate, so that names stay whole
STATE_STYLE = {
    "ok": "green",
    "no_data": "dim",
    "frozen": "cyan",
    "burning_ticket": "yellow",
    "burning_page": "bold red",
    "exhausted": "red",
}
# As the alert SurefootSloEvaluationStale.
STALE_SECONDS = 300.0
TROUBLED = ("burning_page", "burning_ticket", "exhausted")


def show_status(
    as_json: bool = JSON_OPTION,
    fail_on_burning: bool = typer.Option(
        False, "--check", help="End with 1 if an SLO or a stratum of it burns, or its budget is spent."
    ),
) -> None:
    """Budget left, burn rates and what is burning, as last computed by `surefoot serve`."""
    report = latest(load().status_path)
    now = time.time()
    if as_json:
        print_json(report.to_json())
    else:
        print_table(report, now)
    if not fail_on_burning:
        return
    if any(stratum.state in TROUBLED for slo in report.slos for stratum in slo.strata):
        raise typer.Exit(1)
    if now - report.computed_at > STALE_SECONDS:
        raise UnreachableError(
            f"Nothing burned when this was computed, {lasting(now - report.computed_at)} ago; of now nothing is known. "
            "Is `surefoot serve` running?"
        )


def latest(folder: Path) -> StatusReport:
    """The report that the jobs process published last. Raises UnreachableError if it never did."""
    from surefoot.processors import status
    from surefoot.processors.slo.report import StatusReport

    content = status.read(folder, "slo")
    if content is None:
        raise UnreachableError(f"No SLO has been computed yet in {folder}. Start `surefoot serve` and try again.")
    return StatusReport.from_json(content)


def print_table(report: StatusReport, now: float) -> None:
    """The table that people see: one line a view of an SLO, its strata below it when it has some."""
    out = console()
    wide = out.width >= WIDE
    windows = _SHOWN_WINDOWS if wide else _FEW_WINDOWS if out.width >= ROOMY else _FEW_WINDOWS[:1]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("SLO", overflow="fold")  # the one that gives way: a cut number would mislead
    titles = (
        ["objective", "good", "95 % interval", "n", "unlabelled", "budget left", "lasts"]
        if wide
        else ["good", "n", "budget"]
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
        for note in _notes(slo, report.computed_at):
            out.print(Text(f"{_title(slo)}: {note}", style="yellow"))
    for problem in report.problems:
        out.print(Text(problem, style="yellow"))
    age = max(0.0, now - report.computed_at)
    out.print(f"[dim]Computed {age:.0f} s ago over each SLO's period; intervals are Wilson's and descriptive.[/dim]")
    if any(slo.strata[0].state in TROUBLED or slo.strata[0].state == "frozen" for slo in report.slos):
        out.print("[dim]Why, in words: surefoot slo explain NAME[/dim]")


def _title(slo: SloReport) -> str:
    return slo.slo if len(slo.views) == 1 else f"{slo.slo} ({slo.view})"


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
        "SLO": Text(f"  {stratum.key}", style="dim") if stratum.key else Text(_title(slo)),
        "objective": Text("" if stratum.key else f"{objective_percent(slo.objective)} / {slo.period}"),
        "good": Text(percent(None if period.error_ratio is None else 1 - period.error_ratio, 2)),
        "95 % interval": Text(interval),
        "n": Text(f"{period.counts.good + period.counts.bad:,}"),
        "unlabelled": Text(f"{period.counts.unlabelled:,}"),
        "budget left": budget,
        "budget": budget,
        "lasts": Text(lasting(stratum.time_to_exhaustion_seconds)),
        **{w: Text(number(burns.get(w), "{:.1f}"), style="bold red" if w in burning else "") for w in windows},
        "state": Text(stratum.state.replace("_", " "), style=STATE_STYLE.get(stratum.state, "")),
    }


def _notes(slo: SloReport, computed_at: float) -> Iterator[str]:
    """What stands below the table, in one sentence each."""
    if slo.problem:
        yield slo.problem
    if slo.label_delay_seconds:
        yield watermark(slo)
    frozen = [tier for tier in slo.strata[0].tiers if tier.frozen]
    if frozen:
        why = f", {slo.watermark_stale}" if slo.watermark_stale else f", {frozen[0].reason}" if frozen[0].reason else ""
        yield f"{', '.join(tier.name for tier in frozen)} frozen{why}"
    for action in slo.actions:
        where = f" in {action.stratum_key}" if action.stratum_key else ""
        yield f"for {lasting(max(0.0, computed_at - action.since))} {demand(action)}{where}: {action.evidence}"
    for adjustment in slo.adjustments:
        yield f"not counted, {adjustment}"


def demand(action: ActionReport) -> str:
    """What an error-budget policy demands."""
    what = action.action.replace("_", " ") + (f" to {action.mode}" if action.mode else "")
    return f"the policy {action.policy} demands: {what}"


def watermark(slo: SloReport) -> str:
    """Where a matured view ends, and what that was learnt from."""
    learnt = (
        f"learnt from {slo.label_delay_n:,} labels"
        if slo.label_delay_n
        else "too few labels of live runs to learn it from"
    )
    return f"its numbers end {lasting(slo.label_delay_seconds)} ago, when most labels have come ({learnt})"
