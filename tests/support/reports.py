"""Reports as the SLO engine makes them, in every state, for what shows them."""

from __future__ import annotations

from dataclasses import replace

from surefoot.processors.slo import tiers_for
from surefoot.processors.slo.report import (
    ActionReport,
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
                reason=_reason(tier.severity == severity, state == "frozen", counts),
                p_value=1e-9 if tier.severity == severity else 0.4 if counts.good + counts.bad else None,
            )
            for tier in tiers_for("28d", objective)
        ],
        error_budget_remaining_ratio=left,
        interval_low=None if period.error_ratio is None else max(0.0, 1 - period.error_ratio - 0.01),
        interval_high=None if period.error_ratio is None else min(1.0, 1 - period.error_ratio + 0.01),
        state=state,
        budget_remaining_low=None if period.error_ratio_high is None else 1 - period.error_ratio_high / (1 - objective),
        time_to_exhaustion_seconds=86_400.0 if left is not None and left > 0 and severity != state else None,
        overdispersion=0.02 if counts.good else None,
        overdispersion_n=600 if counts.good else 0,
        last_event_at=1_000.0 if counts != Counts() else None,
        silence_limit_seconds=7_200.0 if counts.good > 100 else None,
    )


def _reason(burning: bool, frozen: bool, counts: Counts) -> str:
    n = f"{counts.bad} bad of n {counts.good + counts.bad}"
    if frozen:
        return f"with the {counts.unlabelled} missing labels good it does not burn, with them bad it does; {n}"
    return f"{n}, p 1e-09" if burning else f"below its factor; {n}"


def late(name: str, computed_at: float) -> list[SloReport]:
    """An SLO whose labels come late: the fast view is fine, too many labels of the matured one are missing."""
    refunds = stratum("burning_page", Counts(60, 40), 0.95, "task_class=refund", {"task_class": "refund"})
    fast = slo(name, "ok", Counts(2_000, 10, 0, 40), 0.95, (refunds,))
    matured = slo(name, "frozen", Counts(1_400, 60, 500, 40), 0.95)
    views = ("fast", "matured")
    action = ActionReport(
        "desk-policy", "tighten_mode", "human_approval", "", computed_at - 7_200, "budget left is 17.8 %, n 1,460"
    )
    return [
        replace(fast, views=views, severities=("page",), evaluated_at=computed_at),
        replace(
            matured,
            views=views,
            view="matured",
            severities=("ticket",),
            evaluated_at=computed_at - 21_600,
            label_delay_seconds=21_600.0,
            label_delay_n=812,
            watermark_stale="no label came for 9 h, and 1 h is usual",
            actions=[action],
            adjustments=["2026-11-24 18:00 to 2026-11-24 20:00 UTC: the ledger moves (Ada)"],
        ),
    ]


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
            replace(
                slo("tickets", "burning_ticket", Counts(960, 40, 12, 0), 0.95, (refunds,)),
                evaluated_at=computed_at,
                actions=[ActionReport("desk-policy", "notify", None, "", computed_at, "budget left is 20 %, n 1,000")],
            ),
            slo("pages", "burning_page", Counts(700, 300)),
            slo("spent", "exhausted", Counts(900, 100)),
            slo("silent", "no_data", Counts()),
            *late("late", computed_at),
        ],
        ["slos/broken.yaml:3: spec.target: 1 leaves no budget; use a number below 1"],
    )
