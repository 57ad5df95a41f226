"""Several gates, one statement: what confidence each bound needs, and which claim that supports.

Two claims, two rules. *False approval*: a boundary that opens only when every gate clears is wrongly opened no more
often than one gate clears wrongly, so that each bound keeps the whole level (intersection-union). *Simultaneous
coverage*: all the printed bounds hold together, for which each takes an equal part of the error (Bonferroni).

Rule: the rule is declared before anybody looks at the results, and its purpose is printed with them. A joint max-t
bootstrap is not offered: in the worked example 1.9 % of resamples have no consistent-wrong group, so no standard error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from scipy import stats

from surefoot.processors.evidence.types import EvidenceInputError

Rule = Literal["intersection_union", "bonferroni"]

PURPOSES: dict[Rule, str] = {
    "intersection_union": "false approval: the boundary opens only if every gate clears",
    "bonferroni": "simultaneous coverage: all bounds hold together",
}


@dataclass(frozen=True, slots=True)
class Multiplicity:
    """A declared rule and what it makes of the level."""

    rule: Rule
    purpose: str
    gates: int
    confidence: float  # of the claim
    per_gate: float  # of each one-sided bound
    z: float  # the normal quantile of per_gate


def multiplicity(rule: Rule, gates: int, confidence: float = 0.95) -> Multiplicity:
    """What each of ``gates`` one-sided bounds needs, so that the rule's claim has ``confidence``."""
    if rule not in PURPOSES:
        raise EvidenceInputError(f"no multiplicity rule {rule!r}; there are {', '.join(PURPOSES)}")
    if gates < 1 or not 0 < confidence < 1:
        raise EvidenceInputError(f"multiplicity needs 1 gate or more and a confidence in (0, 1): {gates}, {confidence}")
    per_gate = confidence if rule == "intersection_union" else 1 - (1 - confidence) / gates
    return Multiplicity(rule, PURPOSES[rule], gates, confidence, per_gate, float(stats.norm.ppf(per_gate)))
