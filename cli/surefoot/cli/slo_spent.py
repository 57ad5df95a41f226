"""What an SLO's budget was spent on, for ``surefoot slo explain``: incidents, releases and strata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from surefoot.cli.output import console, percent

if TYPE_CHECKING:
    from surefoot.processors.settings import Settings
    from surefoot.processors.slo import Slo
    from surefoot.processors.slo.report import SloReport
    from surefoot.processors.slo.spent import Part, Spending

_SHOWN = 5


def spent_on(settings: Settings, slo: Slo | None, report: SloReport) -> Spending | str:
    """What the period of a view was spent on, or in one sentence why that cannot be said."""
    from surefoot.processors.errors import LakeNotFoundError
    from surefoot.processors.lake import Lake
    from surefoot.processors.slo.spent import spending

    if slo is None or slo.generation != report.generation:
        return "What it was spent on is not told: the file is another one than that of the report."
    if not report.strata[0].windows[-1].counts.bad:
        return "Nothing was spent."
    try:
        con = Lake.open(settings.lake_path, create=False).connect()
    except LakeNotFoundError as error:
        return f"What it was spent on is not told: {error}."
    return spending(con, slo, report, settings.lookback_days)


def print_spent(spending: Spending) -> None:
    """A small table for each way to divide what was spent; ways with one part say nothing new."""
    for title, parts in (
        ("incident", spending.incidents),
        ("release", spending.releases),
        ("stratum", spending.strata),
    ):
        if len(parts) > 1:
            console().print(_table(title, parts))


def _table(title: str, parts: Sequence[Part]) -> Table:
    from surefoot.processors.slo.spent import OUTSIDE

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(f"spent by {title}", overflow="fold")
    for column in ("bad", "n", "of the bad", "of the budget"):
        table.add_column(column, justify="right", no_wrap=True)
    shown = [part for place, part in enumerate(parts) if place < _SHOWN or part.name == OUTSIDE]
    for part in shown:
        counts = part.counts
        table.add_row(
            Text(part.name),
            f"{counts.bad:,}",
            f"{counts.good + counts.bad:,}",
            percent(part.of_bad, 1),
            percent(part.of_budget, 1),
        )
    if len(parts) > len(shown):
        rest = sum(part.counts.bad for part in parts) - sum(part.counts.bad for part in shown)
        table.add_row(Text(f"{len(parts) - len(shown)} more", style="dim"), f"{rest:,}", "", "", "")
    return table
