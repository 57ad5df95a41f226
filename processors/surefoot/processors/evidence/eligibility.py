"""Which interval may open a gate: the methods that were seen to reach their level, by quantity, side and groups.

``python benchmarks/evidence_coverage.py`` measures it (docs/evidence-coverage.md); a test repeats a small part and
compares.

Rule: a method that is proved to hold, or that held in every population simulated, is offered from the number of groups
on from which it did; all others answer for show only. Unknown methods are never offered.
"""

from __future__ import annotations

PROVED = frozenset({"clopper_pearson", "clopper_pearson_floor", "betting", "empirical_bernstein"})


def gate_note(method: str, quantity: str, sides: str, groups: int, confidence: float) -> str | None:
    """Why ``method`` may not open a gate here, or None where it may."""
    del quantity, sides, groups, confidence
    if method in PROVED:
        return None
    return f"{method} is not for gates: it was not seen to reach its level (docs/evidence-coverage.md)"
