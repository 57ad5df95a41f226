"""``surefoot slo status``: a line for each view of each SLO, and below the table what a line cannot say."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from surefoot.cli.config import load
from surefoot.cli.output import JSON_OPTION, console, lasting, number, objective_percent, percent, print_json
from surefoot.errors import UnreachableError

if TYPE_CHECKING:
    from surefoot.processors.slo.report import ActionReport, SloReport, StatusReport, StratumReport

# What stands between name and state: the first that leaves names whole.
_BURNS = ("5m", "1h", "6h", "3d")
_COLUMNS: tuple[tuple[str, ...], ...] = (
    ("objective", "good", "95 % interval", "n", "unlabelled", "budget left", "lasts", *_BURNS),
    ("objective", "good", "n", "unlabelled", "budget left", "lasts", *_BURNS),
    ("good", "n", "budget left", "1h", "6h"),
    ("good", "n", "budget", "1h"),
    ("good", "budget"),
    ("budget",),
)
_BETWEEN = 2  # spaces that rich puts between columns
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
    whole = max((cell_len(word) for name in _names(report) for word in name.split(" (")), default=0)
    print_widest(out, [*(_table(report, columns, whole) for columns in _COLUMNS), _table(report, _COLUMNS[-1], 1)])
    for slo in report.slos:
        for note in _notes(slo, report.computed_at):
            out.print(Text(f"{_title(slo)}: {note}", style="yellow"))
    for problem in report.problems:
        out.print(Text(problem, style="yellow"))
    age = max(0.0, now - report.computed_at)
    out.print(f"[dim]Computed {age:.0f} s ago over each SLO's period; intervals are Wilson's and descriptive.[/dim]")
    if any(slo.strata[0].state in TROUBLED or slo.strata[0].state == "frozen" for slo in report.slos):
        out.print("[dim]Why, in words: surefoot slo explain NAME[/dim]")


def print_widest(out: Console, tables: Iterable[Table]) -> None:
    """The first of several tables that needs to cut nothing, else the last."""
    found = None
    for found in tables:
        if _needs(found) <= out.width:
            break
    if found is not None:
        out.print(found)


def _needs(table: Table) -> int:
    """The columns that its cells take on a terminal."""
    widths = (
        column.min_width or max(cell_len(str(cell)) for cell in (column.header, *column.cells))
        for column in table.columns
    )
    return sum(widths) + _BETWEEN * (len(table.columns) - 1)


def _names(report: StatusReport) -> Iterator[str]:
    """What stands in the first column."""
    for slo in report.slos:
        yield from (f"  {stratum.key}" if stratum.key else _title(slo) for stratum in slo.strata)


def _table(report: StatusReport, columns: tuple[str, ...], names: int) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    # The one that gives way: a cut number would mislead.
    table.add_column("SLO", overflow="fold", min_width=names)
    for name in columns:
        table.add_column(f"burn {name}" if name in _BURNS else name, justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for slo in report.slos:
        for stratum in slo.strata:
            cells = _cells(slo, stratum)
            table.add_row(*(cells[name] for name in ("SLO", *columns, "state")))
    return table


def _title(slo: SloReport) -> str:
    return slo.slo if len(slo.views) == 1 else f"{slo.slo} ({slo.view})"


def _cells(slo: SloReport, stratum: StratumReport) -> dict[str, Text]:
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
        **{w: Text(number(burns.get(w), "{:.1f}"), style="bold red" if w in burning else "") for w in _BURNS},
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
    ends = f"its numbers end {lasting(slo.label_delay_seconds)} ago"
    if slo.label_delay_n:
        return f"{ends}, when most labels have come (learnt from {slo.label_delay_n:,} labels)"
    return f"{ends}, the longest wait for labels (labels.max_delay), until live runs have shown how late labels come"
