"""How much of a perturbation was asked for, and how much arrived.

Rule: a robustness figure without its delivered dose says nothing; an agent that no fault reached looks robust.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from surefoot.evaluation.perturb.faults import NOTE
from surefoot.evaluation.records import Attempt
from surefoot.processors.evidence.estimate import Interval
from surefoot.processors.evidence.intervals import share_interval


@dataclass(frozen=True, slots=True)
class Dose:
    """Of ``calls`` calls, ``drawn`` were to fail and ``delivered`` did so before the agent's eyes."""

    asked: float
    calls: int
    drawn: int
    delivered: int
    by_kind: Mapping[str, int]  # delivered
    interval: Interval  # of the delivered share, over calls

    @property
    def share(self) -> float | None:
        """The delivered share of calls."""
        return self.delivered / self.calls if self.calls else None

    @property
    def as_asked(self) -> bool:
        """Whether the dose asked for lies in the interval of what was delivered."""
        low, high = self.interval.low, self.interval.high
        return low is not None and high is not None and low <= self.asked <= high

    def __str__(self) -> str:
        if not self.calls:
            return f"dose asked {self.asked:g}; no tool was called"
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.by_kind.items()))
        return (
            f"dose asked {self.asked:g}, delivered {self.share:.4f} ({self.delivered} of {self.calls} calls, "
            f"95 % {self.interval.low:.4f} to {self.interval.high:.4f}){f': {kinds}' if kinds else ''}"
        )


def dose(asked: float, calls: int, kinds: Iterable[str], drawn: int | None = None) -> Dose:
    """Return the dose of so many calls; ``kinds``: one for each delivered fault."""
    by_kind = Counter(kinds)
    hits = by_kind.total()
    interval = share_interval(hits, calls, sides="two", unit="call")
    return Dose(asked, calls, hits if drawn is None else drawn, hits, dict(by_kind), interval)


def doses(attempts: Iterable[Attempt]) -> dict[str, Dose]:
    """Return the dose of faults per variant, from what each attempt recorded; attempts without a record count nothing.

    An attempt whose process was killed left no record, so its calls are in no denominator.
    """
    found: dict[str, list[Mapping[str, Any]]] = {}
    for attempt in attempts:
        reports = attempt.extra.get("notes", {}).get(NOTE, [])
        if reports:
            found.setdefault(attempt.variant, []).extend(reports)
    return {variant: _summed(reports) for variant, reports in found.items()}


def _summed(reports: list[Mapping[str, Any]]) -> Dose:
    injections = [one for report in reports for one in report["injections"]]
    calls = sum(report["calls"] for report in reports)
    plans = {report["asked"] for report in reports}
    # Weighted by calls, where a variant asks for more on one tool than on another.
    weighted = sum(report["asked"] * report["calls"] for report in reports)
    asked = weighted / calls if len(plans) > 1 and calls else plans.pop()
    return dose(asked, calls, (one["kind"] for one in injections if one["delivered"]), len(injections))
