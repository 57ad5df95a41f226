"""A boundary file: the gates that a profile has to clear, what for and how long, and what follows when it does not.

Rule: it is declared before anybody looks at the numbers, so it says everything that a decision needs and nothing that
could be chosen afterwards: each bound with its confidence, the joint rule with its purpose, the mode of each failure.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator
from scipy import stats

from surefoot.processors.evidence.grading.decision_grade import ERROR_SHARE
from surefoot.processors.evidence.measure import METHODS
from surefoot.processors.evidence.multiplicity import multiplicity
from surefoot.processors.evidence.profile import INDICATORS
from surefoot.processors.evidence.template import Adjustment, Dimension, Mode, System, TaskPopulation
from surefoot.processors.suggestions import suggestion
from surefoot.processors.yaml_models import Day, Facts, Name, Part, Text, Word, read_model, refusal

# From the least restrictive to the most.
LADDER: Final[tuple[Mode, ...]] = (
    "autonomous",
    "deterministic_check",
    "replay",
    "checkpoint",
    "human_approval",
    "refuse",
)
# Publications round z: 2.128 for 2.12805 makes three tails .0500055.
_ROUNDED: Final = 1e-4

# What has to be rare; of every other indicator there has to be much.
BAD: Final = frozenset(
    {
        *("mixed_outcome_rate", "consistent_wrong_rate", "non_equivalent_repeated_failure_rate"),
        *("grader_false_accept_rate", "grader_false_reject_rate"),
    }
)

Share = Annotated[float, Field(ge=0, le=1)]
Level = Annotated[float, Field(gt=0.5, lt=1)]


class Gate(Part):
    """One condition: a one-sided bound of an indicator, not its observed value, is compared."""

    name: Word | None = None  # in messages; the indicator's where there is none
    indicator: str
    comparison: Literal[">=", "<="]
    bound: Share
    confidence: Level | None = None  # one-sided; what the joint rule needs where there is none
    z: Annotated[float, Field(gt=0)] | None = None  # instead of confidence: a publication's rounded normal quantile
    method: str | None = None  # to reproduce a publication; the default is one that holds
    stratum: dict[Dimension, Word] = Field(default_factory=dict)  # only these groups
    if_failed: Mode | None = None

    @model_validator(mode="after")
    def _known(self) -> Self:
        if self.indicator not in INDICATORS:
            raise refusal(
                f"there is no indicator {self.indicator!r}", suggestion(self.indicator, INDICATORS), "indicator"
            )
        if self.name is not None and not self.name.isprintable():
            raise refusal(
                "a gate's name is a line that can be read, as it stands in tables", "write it plainly", "name"
            )
        wanted = "<=" if self.indicator in BAD else ">="
        if self.comparison != wanted:
            what = f"{self.indicator} {self.comparison} {self.bound:g} is cleared by what is bad"
            raise refusal(what, f'write "{wanted}"', "comparison")
        if self.method is not None and self.method not in METHODS:
            raise refusal(f"there is no method {self.method!r}", suggestion(self.method, METHODS), "method")
        if self.bound == (0 if self.comparison == ">=" else 1):
            raise refusal(
                f"every share is {self.comparison} {self.bound:g}: the gate decides nothing", "correct it", "bound"
            )
        if self.z is not None and self.confidence is not None:
            raise refusal("confidence and z say the same thing twice", "keep one of the two", "z")
        return self

    @property
    def title(self) -> str:
        """What it is called."""
        return self.name or self.indicator


class JointRule(Part):
    """How the gates decide together."""

    rule: Literal["all"]
    multiplicity: Adjustment
    confidence: Level = 0.95  # of the claim that the purpose names
    purpose: Text
    declared: Day  # before the first run of the evaluation


class MinimumEvidence(Part):
    """Below it nothing is decided, whatever the bounds are."""

    groups: Annotated[int, Field(ge=1)]
    runs: Annotated[int, Field(ge=1)]
    k: Annotated[int, Field(ge=1)]
    verdict_coverage: Share  # judged runs / runs that are to be judged
    grader_error_share: Share = ERROR_SHARE  # of each gate's budget that the grader's own error may be
    cited_runs: bool = True  # false accepts counts of which nobody can see the runs: a publication's


class Validity(Part):
    """What the decision is about: a profile of anything else does not clear the boundary."""

    system: System
    versions: dict[str, Word] = Field(default_factory=dict)  # as the runs recorded them
    task_population: TaskPopulation
    grader_and_version: Facts = None
    outcome_equivalence_rule: Facts = None
    expires: Day  # the last day on which it holds


class Boundary(Part):
    """The whole file."""

    boundary_id: Name
    version: Name
    owner: Text
    allowed_mode: Mode
    if_failed: Mode  # of gates that name none, of missing evidence and of a profile of something else
    validity: Validity
    minimum_evidence: MinimumEvidence
    joint_rule: JointRule
    gates: Annotated[list[Gate], Field(min_length=1)]
    slos: list[Word] = Field(default_factory=list)  # whose error-budget policies may lower the mode

    @model_validator(mode="after")
    def _can_be_cleared(self) -> Self:
        if self.validity.expires < self.joint_rule.declared:
            raise refusal("it expires before it is declared", "correct one of the two days", "validity")
        seen: dict[tuple[str, str], int] = {}
        for place, gate in enumerate(self.gates, 1):
            key = gate.indicator, repr(sorted(gate.stratum.items()))
            if key in seen:
                what = f"gates {seen[key]} and {place} are both about {gate.indicator} of the same groups"
                raise refusal(what, "keep the stricter one", "gates")
            seen[key] = place
        return self

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        tails = sum(1 - confidence_of(gate, self) for gate in self.gates)
        allowed = 1 - self.joint_rule.confidence
        if self.joint_rule.multiplicity == "bonferroni" and tails > allowed * (1 + _ROUNDED):
            raise refusal(
                f"the gates' chances of error add up to {tails:.6f}, more than the joint rule's {allowed:.6f}",
                "remove their confidence, and each gets its part",
                "gates",
            )
        for place, gate in enumerate(self.gates):
            if confidence_of(gate, self) < self.joint_rule.confidence * (1 - _ROUNDED):
                raise refusal(
                    f"gate {place + 1} has less confidence than the joint rule claims",
                    "remove it, or raise it",
                    "gates",
                )
        least = LADDER.index(self.allowed_mode)
        for mode in (self.if_failed, *(gate.if_failed for gate in self.gates)):
            if mode is not None and LADDER.index(mode) <= least:
                raise refusal(
                    f"{mode} is not stricter than the allowed mode {self.allowed_mode}",
                    f"use one of {', '.join(LADDER[least + 1 :]) or 'a less strict allowed_mode'}",
                    "if_failed",
                )
        return self


def confidence_of(gate: Gate, boundary: Boundary) -> float:
    """One-sided, of the gate's bound."""
    if gate.z is not None:
        return float(stats.norm.cdf(gate.z))
    rule = boundary.joint_rule
    return gate.confidence or multiplicity(rule.multiplicity, len(boundary.gates), rule.confidence).per_gate


def read_boundary(path: Path) -> Boundary:
    """From YAML or JSON; raises FileError."""
    return read_model(path, Boundary)
