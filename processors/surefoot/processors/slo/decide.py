"""Does a tier burn? Two windows, an exact test, the missing labels at both extremes; and one sentence why.

A tier burns when the burn rates of both windows are above its factor and the long window's bad events could not be
chance: the exact binomial test against the error budget gives p < alpha / pages. Where so few events come that six
hours may not hold enough for any test, a page tier burns once n events in a row were bad, n being the fewest that the
test rejects. While such a streak grows, a ticket tier that would burn is frozen until the streak pages or ends, so that
an outage pages before it tickets.

Missing labels: the question is answered twice, with all of them good and with all of them bad. The same answer is the
answer; else the tier is frozen. A window turns to burning, never back, when one more of its events is bad, so the two
extremes speak for everything between. A short window without events cannot tell whether the trouble is over: while the
long one burns the tier is then frozen, too.

Rule: pure, and the same for engine and simulation; docs/slo-statistics.md measures what it promises.
"""

from __future__ import annotations

from surefoot.processors.slo.answer import (
    QUIET_WINDOW_SECONDS,
    TRAFFIC_SECONDS,
    Question,
    Sample,
    Tail,
    expected_events,
    streaks,
)
from surefoot.processors.slo.burn import Tier
from surefoot.processors.slo.definition import Alerting
from surefoot.processors.slo.reasons import why
from surefoot.processors.slo.report import TierReport

__all__ = ["QUIET_WINDOW_SECONDS", "TRAFFIC_SECONDS", "Sample", "Tail", "decide", "expected_events", "streaks"]


def decide(
    tier: Tier, long: Sample, short: Sample, alerting: Alerting, objective: float, pages: int, tail: Tail
) -> TierReport:
    """Whether ``tier`` burns. ``pages``: the strata, the roll-up among them, that alert from this view."""
    question = Question(tier, long, short, alerting, objective, pages, tail)
    least = question.answer(worst=False)
    most = question.answer(worst=True) if question.something_is_missing else least
    return TierReport(
        name=tier.name,
        severity=tier.severity,
        long_window=tier.long_window,
        short_window=tier.short_window,
        factor=tier.factor,
        nominal_factor=tier.nominal_factor,
        burning=least.burning and not question.may_become_a_page,
        frozen=most.burning and (question.may_become_a_page or not least.burning),
        reason=why(question, least, most),
        note=tier.note,
        p_value=least.p if least.long.total > 0 else None,
    )
