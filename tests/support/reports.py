"""Reports as the SLO engine makes them, in every state, for what shows them."""

from __future__ import annotations

from surefoot.processors.slo import tiers_for
from surefoot.processors.slo.report import (
    BudgetPoint,
    Counts,
    SloReport,
    StatusReport,
    StratumReport,
    TierReport,
    WindowReport,
)

WINDOWS = ("5m", "30m", "1h", "2h", "6h", "1d", "3d", "28d")


def window(name: str, counts: Counts, objective: float) -> WindowReport:
    labelled = counts.good + counts.bad
    total = labelled + counts.unlabelled
    ratio = counts.bad / labelled if labelled else None
    return WindowReport(
        window=name,
        counts=counts,
        error_ratio=ratio,
        error_ratio_low=counts.bad / total if total else None,
        error_ratio_high=(counts.bad + counts.unlabelled) / total if total else None,
        burn_rate=None if ratio is None else ratio / (1 - objective),
        label_coverage_ratio=labelled / total if total else None,
    )


def stratum(
    state: str, counts: Counts, objective: float, key: str = "", dimensions: dict[str, str] | None = None
) -> StratumReport:
    severity = state.removeprefix("burning_")
    period = window("28d", counts, objective)
    left = None if period.burn_rate is None else 1 - period.burn_rate
    return StratumReport(
        key=key,
        dimensions=dimensions or {},
        windows=[window(name, counts, objective) for name in WINDOWS],
        tiers=[
            TierReport(
                tier.name,
                tier.severity,
                tier.long_window,
                tier.short_window,
                tier.factor,
                tier.nominal_factor,
                burning=tier.severity == severity,
                frozen=state == "frozen",
            )
            for tier in tiers_for("28d", objective)
        ],
        error_budget_remaining_ratio=left,
        interval_low=None if period.error_ratio is None else max(0.0, 1 - period.error_ratio - 0.01),
        interval_high=None if period.error_ratio is None else min(1.0, 1 - period.error_ratio + 0.01),
        state=state,
    )


def slo(
    name: str, state: str, counts: Counts, objective: float = 0.99, extra: tuple[StratumReport, ...] = ()
) -> SloReport:
    total = stratum(state, counts, objective)
    history = [BudgetPoint(f"2026-11-{day:02d}", 1 - day / 40 if counts.good else None, counts) for day in range(1, 29)]
    return SloReport(
        slo=name,
        service="desk",
        display_name=f"The {name} & <more>",
        description="What it promises.",
        indicator="availability",
        objective=objective,
        period="28d",
        view="fast",
        generation="g1",
        strata=[total, *extra],
        history=history,
    )


def every_state(computed_at: float) -> StatusReport:
    refunds = stratum("burning_page", Counts(80, 20, 3, 1), 0.95, "task_class=refund", {"task_class": "refund"})
    return StatusReport(
        computed_at,
        [
            slo("fine", "ok", Counts(9_990, 10)),
            slo("tickets", "burning_ticket", Counts(960, 40, 12, 0), 0.95, (refunds,)),
            slo("pages", "burning_page", Counts(700, 300)),
            slo("spent", "exhausted", Counts(900, 100)),
            slo("silent", "no_data", Counts()),
        ],
        ["slos/broken.yaml:3: spec.target: 1 leaves no budget; use a number below 1"],
    )
