"""The repeated-run evaluation checklist, answered from what a profile recorded.

Doyle, "Agent Reliability Needs Repeated Evidence" (2026), appendix B, item by item. Rule: "yes" needs a record that
shows it, "no" one that contradicts it, and whatever nobody recorded is "not recorded", not yes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from surefoot.processors.evidence.changes import shown
from surefoot.processors.evidence.classes import class_counts
from surefoot.processors.evidence.integrity import not_from_counts
from surefoot.processors.evidence.measure import Counted
from surefoot.processors.evidence.profile import INDICATORS, Profile, is_intact

Answer = Literal["yes", "no", "not recorded"]
Told = tuple[Answer, str]

# What must trigger a review when it changes.
_TRIGGERS: Final = ("model", "prompt", "tool", "schema")
# The outcome indicators that every profile has; their intervals must be there where they are defined.
_MEASURED: Final = (
    "outcome_yield",
    "strict_repeated_success_at_k",
    "mixed_outcome_rate",
    "consistent_wrong_rate",
    "non_equivalent_repeated_failure_rate",
)


@dataclass(frozen=True, slots=True)
class Item:
    """One line of the checklist."""

    question: str  # as the paper words it
    answer: Answer
    why: str


def verify(profile: Profile) -> list[Item]:
    """Whether the profile is as it was built and follows from its counts, then appendix B."""
    return [
        *(Item(question, *answer(profile)) for question, answer in _INTEGRITY),
        *(Item(question, *answer(profile)) for question, answer in _APPENDIX_B),
    ]


def _hash(profile: Profile) -> Told:
    if is_intact(profile):
        return "yes", profile.content_hash
    return "no", "the file was edited after it was built: build it again from its spec"


def _recomputed(profile: Profile) -> Told:
    if wrong := not_from_counts(profile):
        return "no", f"not what the counts give: {', '.join(wrong)}"
    intervals = len(profile.indicators.confidence_intervals)
    strata = f", and those of {len(profile.strata)} strata" if len(profile.strata) > 1 else ""
    return "yes", f"{len(INDICATORS)} indicators and {intervals} intervals computed again{strata}"


def _maps_to_production(profile: Profile) -> Told:
    found, production = profile.evidence.production_runs, profile.evidence.tally.production
    if production:
        return "yes", f"{production} of the runs are production's own"
    if not found:
        return "not recorded", "no production run of these task classes was in the lake"
    absent = [name for name, runs in found.items() if not runs]
    if absent:
        return "no", f"no production run of task class {', '.join(absent)}"
    return "yes", "; ".join(f"{runs} production runs of {name}" for name, runs in found.items())


def _equivalence(profile: Profile) -> Told:
    rule, tally = profile.outcome_contract.outcome_equivalence_rule, profile.evidence.tally
    if rule is None:
        return "not recorded", "outcome_contract.outcome_equivalence_rule is empty"
    if tally.with_task_id is None:
        return "yes", "outcomes by the contract's rule; inputs by the publication's tasks"
    if tally.with_task_id < tally.runs:
        return "no", f"{tally.runs - tally.with_task_id} of {tally.runs} runs have no task id"
    return "yes", f"inputs by task id, outcomes by {profile.evidence.equivalence_rule}"


def _version_set(profile: Profile) -> Told:
    tally = profile.evidence.tally
    return _all_of(tally.with_versions, tally.runs, "runs recorded their versions")


def _reset(profile: Profile) -> Told:
    return _written(profile.repeat_protocol.environment_reset, "repeat_protocol.environment_reset")


def _k_justified(profile: Profile) -> Told:
    k = profile.repeat_protocol.k
    return ("yes", f"k = {k.value}: {k.why}") if k.why else ("not recorded", f"k = {k.value}, and nobody wrote why")


def _separate(profile: Profile) -> Told:
    tally = profile.evidence.tally
    if tally.with_process_verdict is None:
        return "not recorded", "the source has outcome verdicts only"
    told = f"{tally.judged} runs judged by their outcome, {tally.with_process_verdict} by their process"
    return ("yes" if tally.judged and tally.with_process_verdict else "no"), told


def _agreement(profile: Profile) -> Told:
    grader = profile.grader
    undefined = [name for name, value in grader.agreement.items() if name.startswith("agreement") and value is None]
    if undefined:
        return "no", f"{', '.join(undefined)} is undefined: {'; '.join(grader.reasons)}"
    if grader.agreement:
        return "yes", ", ".join(f"{name} {value}" for name, value in grader.agreement.items())
    return "not recorded", "; ".join(grader.reasons)


def _below_budget(profile: Profile) -> Told:
    grader = profile.grader
    if grader.decision_grade:
        return "yes", "; ".join(grader.reasons)
    measured = grader.false_accept is not None or grader.false_reject is not None or bool(grader.agreement)
    return ("no" if measured else "not recorded"), "; ".join(grader.reasons)


def _both_reported(profile: Profile) -> Told:
    return _defined(profile, "outcome_yield", "strict_repeated_success_at_k")


def _mixed(profile: Profile) -> Told:
    return _defined(profile, "mixed_outcome_rate")


def _consistent_wrong(profile: Profile) -> Told:
    return _defined(profile, "consistent_wrong_rate")


def _exclusive(profile: Profile) -> Told:
    counted = Counted.of(profile.evidence, profile.repeat_protocol.k.value)
    found = class_counts(counted.groups)
    total = sum(found.values())
    told = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in found.items() if number)
    return ("yes" if total == profile.evidence.groups else "no"), f"{told}; {total} of {profile.evidence.groups} groups"


def _stratified(profile: Profile) -> Told:
    nameless = sum(one.task_class is None or one.consequence_class is None for one in profile.strata)
    if nameless:
        return "no", f"{nameless} of {len(profile.strata)} strata have no task class or no consequence class"
    return "yes", f"{len(profile.strata)} strata by {', '.join(profile.repeat_protocol.stratification)}"


def _horizon(profile: Profile) -> Told:
    found = profile.evidence.horizon
    if found is None:
        return "not recorded", "no descriptor was counted"
    more = sorted(name for name in found if name not in {"steps", "tool_calls", "model_calls"})
    return ("yes" if more else "no"), f"{', '.join(more) or 'only steps are counted'}"


def _uncertainty(profile: Profile) -> Told:
    found = profile.indicators
    bare = [
        name
        for name in _MEASURED
        if getattr(found, name).value is not None and not found.confidence_intervals.get(name)
    ]
    if bare:
        return "no", f"without an interval: {', '.join(bare)}"
    return "yes", f"{profile.evidence.groups} groups, {profile.evidence.tally.runs} runs, each number with its own n"


def _clusters(profile: Profile) -> Told:
    intervals = [part for parts in profile.indicators.confidence_intervals.values() for part in parts]
    by_run = sorted({part.method for part in intervals if part.unit == "run"})
    if by_run:
        return "no", f"{', '.join(by_run)} treats runs as independent"
    units = sorted({part.unit for part in intervals})
    return "yes", f"the unit of {len(intervals)} intervals is the {' or the '.join(units)}, never the run"


def _joint_rule(profile: Profile) -> Told:
    rule = profile.repeat_protocol.multiple_gate_adjustment
    if rule is None:
        return "not recorded", "repeat_protocol.multiple_gate_adjustment is empty"
    return "yes", f"{rule.method.replace('_', '-')}, for {rule.purpose}"


def _dependence(profile: Profile) -> Told:
    intervals = [part for parts in profile.indicators.confidence_intervals.values() for part in parts]
    production = profile.evidence.tally.production
    if not production:
        return "yes", "no interval here is about production: all are about repeated task groups"
    plain = [part for part in intervals if part.gate and part.unit != "block"]
    blocks = [part for part in intervals if part.gate and part.unit == "block"]
    if plain:
        return "no", f"{production} runs are production's, and {len(plain)} intervals are not labelled descriptive"
    modelled = f"{len(blocks)} intervals are over {blocks[0].method.replace('_', ' ')}, " if blocks else ""
    rest = "the others are" if blocks else "every interval is"
    return "yes", f"{production} runs are production's; {modelled}{rest} labelled descriptive"


def _effects(profile: Profile) -> Told:
    effects, protocol = profile.evidence.tool_effects, profile.repeat_protocol
    if effects is None:
        return "not recorded", "no tool call was recorded with its effect"
    acting = effects.get("write", 0) + effects.get("irreversible", 0)
    if effects.get("unknown", 0):
        return "not recorded", f"{effects['unknown']} tool calls did not record their effect"
    if not acting:
        return "yes", "no run wrote anything"
    if live := profile.evidence.tally.production or (profile.evidence.environments or {}).get("production", 0):
        return "no", f"{acting} tool calls wrote, and {live} runs were production's"
    return _written(protocol.state_fixture, "repeat_protocol.state_fixture", f"{acting} tool calls wrote into it: ")


def _invariants(profile: Profile) -> Told:
    found = profile.evidence.tally.executable_process_verdicts
    if found is None:
        return "not recorded", "the source has outcome verdicts only"
    return ("yes" if found else "no"), f"{found} process verdicts by executable graders"


def _by_stratum(profile: Profile) -> Told:
    lacking = sorted(
        {
            name
            for one in profile.strata
            for name in ("outcome_yield", "autonomous_coverage")
            if getattr(one.indicators, name).value is None
        }
    )
    if not lacking:
        return "yes", f"in each of {len(profile.strata)} strata"
    return "not recorded", f"undefined in at least one stratum: {', '.join(lacking)}"


def _held_out(profile: Profile) -> Told:
    named = [name for name in profile.evidence.versions if "guideline" in name or "memor" in name]
    if named:
        return "not recorded", f"the version set has {', '.join(named)}; no validation on held-out tasks is recorded"
    return "not recorded", "no guideline and no memory is named in the version set"


def _review(profile: Profile) -> Told:
    triggers = profile.change_control.drift_triggers
    if triggers is None:
        return "not recorded", "change_control.drift_triggers is empty"
    text = str(triggers).lower()
    absent = [word for word in _TRIGGERS if word not in text]
    return (
        ("no", f"drift_triggers do not name: {', '.join(absent)}")
        if absent
        else ("yes", f"review on {shown(triggers)}")
    )


def _written(value: Any, field: str, before: str = "") -> Told:
    return ("not recorded", f"{before}{field} is empty") if value is None else ("yes", f"{before}{shown(value)}")


def _all_of(found: int | None, total: int, what: str) -> Told:
    if found is None:
        return "not recorded", f"the source does not say which {what}"
    return ("yes" if found == total else "no"), f"{found} of {total} {what}"


def _defined(profile: Profile, *names: str) -> Told:
    found = {name: getattr(profile.indicators, name) for name in names}
    undefined = [f"{name}: {one.reason or 'undefined'}" for name, one in found.items() if one.value is None]
    if undefined:
        return "no", "; ".join(undefined)
    return "yes", ", ".join(f"{name} {one.value:.4f}" for name, one in found.items())


Question = tuple[str, Callable[[Profile], Told]]

_INTEGRITY: Final[tuple[Question, ...]] = (
    ("The profile is as it was built.", _hash),
    ("Its numbers follow from its counts.", _recomputed),
)
_APPENDIX_B: Final[tuple[Question, ...]] = (
    ("The task population maps to real production work.", _maps_to_production),
    ("Equivalent inputs and outcomes are defined.", _equivalence),
    ("Every run uses a recorded version set.", _version_set),
    ("Environment reset rules are explicit.", _reset),
    ("k is stated and justified.", _k_justified),
    ("Outcome and process verdicts are separate.", _separate),
    ("Grader agreement with human adjudication is measured.", _agreement),
    ("Grader error is smaller than the narrowest budget being governed.", _below_budget),
    ("Mean@k and Pass^k are both reported.", _both_reported),
    ("Mixed outcomes are counted.", _mixed),
    ("Consistent-wrong outcomes are counted.", _consistent_wrong),
    ("Repeated-run groups use mutually exclusive outcome classes.", _exclusive),
    ("Results are stratified by task and consequence class.", _stratified),
    ("Horizon descriptors include more than raw step count.", _horizon),
    ("Sample sizes and uncertainty are reported.", _uncertainty),
    ("Repeated runs are resampled as task clusters.", _clusters),
    ("Multiple boundary gates use a pre-specified joint decision rule.", _joint_rule),
    ("Production dependence is modelled or its intervals are labelled descriptive.", _dependence),
    ("Repeated effects are simulated or withheld.", _effects),
    ("Deterministic invariants are tested independently.", _invariants),
    ("Coverage, outcomes and escalation are reported by boundary-defining stratum.", _by_stratum),
    ("Guidelines or memories are validated on held-out tasks.", _held_out),
    ("Model, prompt, tool or schema changes trigger review.", _review),
)
