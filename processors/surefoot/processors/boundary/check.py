"""A profile against a boundary: each gate, what stands in the way, the mode that is allowed, and the claim.

Rule: it is not cleared unless everything says so. A profile that was edited, is of something else, rests on too little
or on a grader of unknown error, an expired boundary, a gate that failed, is undefined or uses a method that does not
hold: each is a reason, all reasons are told, and the strictest mode among them is the mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal

from surefoot.processors.boundary.claim import claim
from surefoot.processors.boundary.definition import LADDER, Boundary
from surefoot.processors.boundary.gates import GateResult, check_gate
from surefoot.processors.boundary.slo_actions import SloAction
from surefoot.processors.boundary.soundness import remarks, unsound
from surefoot.processors.boundary.validity import differences_from
from surefoot.processors.evidence.changes import shown
from surefoot.processors.evidence.grading.decision_grade import contradiction, too_coarse
from surefoot.processors.evidence.grading.propagation import OF_THE_OUTCOME
from surefoot.processors.evidence.multiplicity import multiplicity
from surefoot.processors.evidence.profile import Profile
from surefoot.processors.evidence.template import Mode

Answer = Literal["proceed", "verify", "ask a human", "refuse"]
ANSWERS: Final[dict[Mode, Answer]] = {
    "autonomous": "proceed",
    "deterministic_check": "verify",
    "replay": "verify",
    "checkpoint": "verify",
    "human_approval": "ask a human",
    "refuse": "refuse",
}
# What an operator does in a mode.
OBLIGATIONS: Final[dict[Mode, str]] = {
    "autonomous": "the agent acts on its own",
    "deterministic_check": "a deterministic check must pass before an effect is committed",
    "replay": "the run is repeated against a snapshot, and effects are withheld until the runs agree",
    "checkpoint": "the run stops at each checkpoint until its state is confirmed",
    "human_approval": "a person approves before an effect is committed",
    "refuse": "the agent does not act",
}


@dataclass(frozen=True, slots=True)
class Reason:
    """Why it is not cleared, and which mode that leaves."""

    code: str  # expired, declared_late, edited, revoked, evidence, grader, gate, reproduction_only, error_budget
    what: str
    mode: Mode


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer."""

    boundary_id: str
    boundary_version: str
    profile_id: str
    profile_version: str
    content_hash: str
    decided_on: str
    cleared: bool
    mode: Mode
    answer: Answer
    obligation: str
    reasons: list[Reason]
    gates: list[GateResult]
    joint_rule: str
    claim: str
    notes: list[str]


def check_boundary(profile: Profile, boundary: Boundary, today: date, actions: Sequence[SloAction] = ()) -> Decision:
    """The decision on ``today``; ``actions`` are the error-budget actions that are open now."""
    gates = [check_gate(gate, boundary, profile) for gate in boundary.gates]
    reasons = [
        *_about_the_profile(profile, boundary, today),
        *_about_the_evidence(profile, boundary),
        *_about_the_gates(gates),
        *_about_budgets(boundary, actions),
    ]
    mode = max((boundary.allowed_mode, *(reason.mode for reason in reasons)), key=LADDER.index)
    return Decision(
        boundary_id=boundary.boundary_id,
        boundary_version=boundary.version,
        profile_id=profile.profile_id,
        profile_version=profile.version,
        content_hash=profile.content_hash,
        decided_on=today.isoformat(),
        cleared=not reasons,
        mode=mode,
        answer=ANSWERS[mode],
        obligation=OBLIGATIONS[mode],
        reasons=reasons,
        gates=gates,
        joint_rule=_joint(boundary),
        claim=claim(profile, boundary.allowed_mode),
        notes=remarks(profile, boundary),
    )


def _about_the_profile(profile: Profile, boundary: Boundary, today: date) -> list[Reason]:
    mode, found = boundary.if_failed, []
    if today > boundary.validity.expires:
        found.append(Reason("expired", f"the boundary expired on {boundary.validity.expires}", mode))
    if today < boundary.joint_rule.declared:
        found.append(Reason("expired", f"the boundary is declared only from {boundary.joint_rule.declared}", mode))
    if today > profile.review_date:
        what = f"the profile's review was due on {profile.review_date}: {profile.owner} has to renew it"
        found.append(Reason("expired", what, mode))
    began = profile.evidence.first_run
    if began is not None and began[:10] < boundary.joint_rule.declared.isoformat():
        what = (
            f"the joint rule was declared on {boundary.joint_rule.declared}, after the first run began ({began[:10]})"
        )
        found.append(Reason("declared_late", what, mode))
    found += [Reason(code, what, mode) for code, what in unsound(profile, boundary, today)]
    found += [
        Reason("revoked", f"{one.field}: the boundary says {shown(one.before)}, the profile {shown(one.after)}", mode)
        for one in differences_from(boundary.validity, profile)
    ]
    return found


def _about_the_evidence(profile: Profile, boundary: Boundary) -> list[Reason]:
    least, mode = boundary.minimum_evidence, boundary.if_failed
    tally, groups, k = profile.evidence.tally, profile.evidence.groups, profile.repeat_protocol.k.value
    eligible = tally.runs - tally.infrastructure - tally.excluded
    coverage = tally.judged / eligible if eligible else 0.0
    short = [
        (groups < least.groups, f"{groups} of {least.groups} groups"),
        (tally.judged < least.runs, f"{tally.judged} of {least.runs} judged runs"),
        (k < least.k, f"k is {k}, {least.k} is needed"),
        (
            coverage < least.verdict_coverage,
            f"{coverage:.4g} of the runs have an outcome verdict, {least.verdict_coverage:g} is needed",
        ),
    ]
    found = [Reason("evidence", f"minimum evidence: {what}", mode) for lacks, what in short if lacks]
    if not profile.grader.decision_grade:
        found.append(Reason("grader", f"not decision-grade: {'; '.join(profile.grader.reasons)}", mode))
        return found
    if wrong := contradiction(profile):
        found.append(Reason("grader", f"not decision-grade: {wrong}", mode))
    for gate in boundary.gates:
        budget = 1 - gate.bound if gate.comparison == ">=" else gate.bound
        why = too_coarse(profile.grader, budget, least.grader_error_share) if gate.indicator in OF_THE_OUTCOME else None
        if why:
            found.append(Reason("grader", f"not decision-grade for {gate.title}: {why}", gate.if_failed or mode))
    return found


def _about_the_gates(gates: list[GateResult]) -> list[Reason]:
    found = []
    for gate in gates:
        seen = "nothing observed" if gate.observed is None else f"observed {gate.observed:.6f}"
        sample = f"({seen}, n = {gate.groups:,} groups, {gate.runs:,} runs)"
        if gate.status == "failed":
            what = f"{gate.name}: bound {gate.bound:.6f} is not {gate.comparison} {gate.required:g} {sample}"
            found.append(Reason("gate", what, gate.if_failed))
        elif gate.status == "undefined":
            found.append(Reason("gate", f"{gate.name}: undefined, {gate.why} {sample}", gate.if_failed))
    reproducing = [gate for gate in gates if gate.reproduction_only]
    if reproducing:
        what = ", ".join(f"{gate.name} ({gate.method})" for gate in reproducing)
        strictest = max((gate.if_failed for gate in reproducing), key=LADDER.index)
        found.append(
            Reason("reproduction_only", f"methods that reproduce and cannot widen autonomy: {what}", strictest)
        )
    return found


def _about_budgets(boundary: Boundary, actions: Sequence[SloAction]) -> list[Reason]:
    found = []
    for action in actions:
        if LADDER.index(action.mode) > LADDER.index(boundary.allowed_mode):
            since = f"since {action.started_at}: {action.evidence}"
            what = f"the error budget of {action.slo} demands {action.action} {since}"
            found.append(Reason("error_budget", what, action.mode))
    return found


def _joint(boundary: Boundary) -> str:
    rule = boundary.joint_rule
    number = len(boundary.gates)
    needs = multiplicity(rule.multiplicity, number, rule.confidence)
    how = "Bonferroni" if rule.multiplicity == "bonferroni" else "intersection-union"
    each = f"one-sided {needs.per_gate:.6f} each (z {needs.z:.6f})"
    return f"all of {number} gates, {how} at {rule.confidence:g}, {each}; for {rule.purpose}; declared {rule.declared}"
