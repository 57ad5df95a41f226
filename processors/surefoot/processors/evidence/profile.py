"""A reliability profile: the written part, what was measured, and the counts from which anybody can compute it again.

Contract: ``read_profile`` and ``to_yaml``/``to_json`` are each other's inverse. Rule: ``content_hash`` is the SHA-256
of the canonical JSON of everything else but when and from which table versions it was built, so that two builds of the
same runs are one profile; a profile whose hash does not fit was edited: it is evidence of nothing. It cites run ids,
sufficient counts and hashes; table versions stand beside them only, because vacuum removes those.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import Field

from surefoot.processors.evidence.estimate import Estimate, Interval
from surefoot.processors.evidence.template import MOST_GROUPS, BlockUnit, Selection, Written
from surefoot.processors.yaml_models import Part, parse_model, read_model

# As many groups are listed run by run, the worst first; of the others the counts and the hash of the run ids stand for
# all. A file of 500 groups of five runs has some 300 KB.
LISTED: Final = 500
# Reasons in ``Evidence.left_out``.
STILL_RUNNING: Final = "still running"
AHEAD: Final = "ended after the day of the build: a clock is wrong"
# Of the evidence: another build of the same runs has others.
UNHASHED: Final = {"built_at", "table_versions"}


class IntervalPart(Part):
    """An ``Interval`` in a file."""

    method: str
    confidence: float
    sides: Literal["two", "lower", "upper"]
    low: float | None
    high: float | None
    unit: str
    gate: bool
    note: str

    @classmethod
    def of(cls, interval: Interval) -> IntervalPart:
        """From the record."""
        return cls(**{name: getattr(interval, name) for name in cls.model_fields})


class IndicatorPart(Part):
    """An ``Estimate`` in a file, without its intervals."""

    value: float | None
    variant: str
    k: int | None
    groups: int
    runs: int
    definition: str
    source: str
    reason: str | None

    @classmethod
    def of(cls, estimate: Estimate) -> IndicatorPart:
        """From the record."""
        return cls(**{name: getattr(estimate, name) for name in cls.model_fields})


class Indicators(Part):
    """The template's indicators, in its order."""

    outcome_yield: IndicatorPart
    strict_repeated_success_at_k: IndicatorPart
    normalised_consistency_at_k: IndicatorPart
    mixed_outcome_rate: IndicatorPart
    equivalent_outcome_agreement: IndicatorPart
    consistent_wrong_rate: IndicatorPart
    non_equivalent_repeated_failure_rate: IndicatorPart
    policy_compliance_rate: IndicatorPart
    grader_false_accept_rate: IndicatorPart
    grader_false_reject_rate: IndicatorPart
    recovery_success: IndicatorPart
    autonomous_coverage: IndicatorPart
    intervention_success: IndicatorPart
    confidence_intervals: dict[str, list[IntervalPart]]  # by indicator


INDICATORS: Final = tuple(name for name in Indicators.model_fields if name != "confidence_intervals")


class OutcomeCount(Part):
    """So many groups of a stratum are alike in all that the outcome indicators look at."""

    n: Annotated[int, Field(ge=0)]
    c: Annotated[int, Field(ge=0)]
    missing: Annotated[int, Field(ge=0)]
    equivalent: bool | None
    groups: Annotated[int, Field(ge=1, le=MOST_GROUPS)]


class RatioCount(Part):
    """So many groups of a stratum have ``hits`` among the ``runs`` that an indicator is about."""

    runs: int
    hits: int
    groups: Annotated[int, Field(ge=1, le=MOST_GROUPS)]


class BlockCount(Part):
    """A block of production runs of a stratum: so many runs that an indicator is about, of which ``hits``."""

    block: str
    runs: int
    hits: int


class StratumCounts(Part):
    """The sufficient counts of a stratum."""

    task_class: str | None
    consequence_class: str | None
    horizon: str | None
    outcomes: list[OutcomeCount]
    ratios: dict[str, list[RatioCount]]  # by indicator: those that are averages over runs of something else
    blocks: dict[str, list[BlockCount]] = Field(default_factory=dict)  # by indicator, of declared blocks of production

    @property
    def key(self) -> tuple[str | None, str | None, str | None]:
        """What makes it a stratum of its own."""
        return self.task_class, self.consequence_class, self.horizon


class StratumResult(Part):
    """The indicators of a stratum."""

    task_class: str | None
    consequence_class: str | None
    horizon: str | None
    indicators: Indicators


class GraderUse(Part):
    """Who judged, and how often."""

    name: str
    version: str | None
    kind: str | None  # human executable model
    judges: str  # outcome process
    verdicts: int


class AuditedVerdicts(Part):
    """One of a grader's two verdicts: on how many runs, and what adjudication of some of them said."""

    runs: int
    groups: int  # with such a run
    audited: int
    right: int  # of the audited
    unresolved: int  # adjudication could not tell: not in ``audited``
    effective: int  # how many independent runs the audited ones are worth; those of a group are alike


class ClassAudit(Part):
    """What adjudication found about the outcome grader in a task class."""

    task_class: str | None
    groups: int
    accepted: AuditedVerdicts
    rejected: AuditedVerdicts


class GraderError(Part):
    """What is known of the outcome grader's error; without it nothing is decided."""

    decision_grade: bool
    reasons: list[str]
    false_accept: IndicatorPart | None = None
    false_reject: IndicatorPart | None = None
    false_accept_intervals: list[IntervalPart] = Field(default_factory=list)
    false_reject_intervals: list[IntervalPart] = Field(default_factory=list)
    agreement: dict[str, float | int | None] = Field(default_factory=dict)  # kappa, adjudicated, ...
    smallest_budget: float | None = None  # of runs: the grader's own error may be half of it
    audits: list[ClassAudit] = Field(default_factory=list)  # by task class, of runs of this profile


class Spread(Part):
    """How a horizon descriptor is spread over the runs."""

    runs: int
    least: float
    median: float
    most: float


class Tally(Part):
    """How many of the selected runs have what the checklist asks for."""

    runs: int
    infrastructure: int  # ended by the infrastructure: in no denominator
    excluded: int  # ended in a way that nobody judges (cancelled, deferred, refused): not in the outcome's
    production: int  # of production, or repeated by nobody: their intervals are descriptive
    judged: int  # by an outcome verdict, or unacceptable without one because nothing acceptable was left
    crashed: int  # of those, unacceptable without a verdict: ended in error, or abandoned
    with_process_verdict: int | None  # null where it was not recorded
    with_versions: int | None
    with_task_id: int | None
    executable_process_verdicts: int | None  # deterministic invariants, checked apart from the outcome
    same_number: int | None = None  # judged runs whose repetition number another judged run of their group has, too


class ListedGroup(Part):
    """A run group, run by run: a mark for each of ``run_ids``.

    ``outcomes``: 1 acceptable, 0 not, ? no verdict, - set apart (infrastructure, or ended so that nobody judges it).
    """

    group_id: str
    task_id: str
    stratum: int  # place in ``Evidence.counts``
    outcomes: str
    run_ids: list[str]


class Evidence(Part):
    """What the numbers rest on."""

    source: Literal["lake", "published"]
    publication: str | None
    selection: Selection | None
    built_at: str  # UTC, ISO 8601
    first_run: str | None  # when the first of the runs began
    last_run: str | None  # when the last of them ended
    groups: int
    tally: Tally
    left_out: dict[str, int]  # runs by reason
    run_ids_sha256: str | None  # of all run ids, sorted, a line feed after each
    table_versions: dict[str, int]  # of the lake when it was read; removed files make them unreadable after a day
    versions: dict[str, str]  # the one version set that the runs recorded
    equivalence_rule: str  # by which `equivalent` was told
    graders: list[GraderUse] | None
    environments: dict[str, int] | None  # runs
    tool_effects: dict[str, int] | None  # tool calls of the runs
    horizon: dict[str, Spread] | None
    production_runs: dict[str, int] | None  # by task class of the population: runs outside of any run group
    cost_per_run: float | None  # USD, mean of the runs whose cost is known
    seconds_per_run: float | None  # mean
    counts: list[StratumCounts]
    listed_groups: list[ListedGroup]
    block_unit: BlockUnit | None = None  # what divided the runs of production; null of repeated task groups


class Profile(Written):
    """The whole."""

    indicators: Indicators
    strata: list[StratumResult]
    grader: GraderError
    evidence: Evidence
    content_hash: str


def sealed(parts: dict[str, Any]) -> Profile:
    """A profile of these fields, with its hash."""
    unsealed = Profile(**parts, content_hash="")
    return unsealed.model_copy(update={"content_hash": content_hash(unsealed)})


def content_hash(profile: Profile) -> str:
    """``sha256:`` and 64 hex digits, of everything but the hash itself and ``UNHASHED``."""
    content = profile.model_dump(mode="json", exclude={"content_hash": True, "evidence": UNHASHED})
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def is_intact(profile: Profile) -> bool:
    """Whether it is as it was built."""
    return profile.content_hash == content_hash(profile)


def read_profile(path: Path) -> Profile:
    """From YAML or JSON (by the file's name); raises FileError. The hash is not looked at here."""
    return read_model(path, Profile)


def parse_profile(text: str, name: str) -> Profile:
    """The same of a text."""
    return parse_model(text, Profile, name)


def to_json(profile: Profile) -> str:
    """JSON, indented."""
    return json.dumps(profile.model_dump(mode="json"), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def to_yaml(profile: Profile) -> str:
    """YAML, a record on a line."""
    return yaml.dump(profile.model_dump(mode="json"), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


# What a profile has hundreds of stands on one line each.
_RECORDS: Final = frozenset(
    frozenset(part.model_fields)
    for part in (
        *(IndicatorPart, IntervalPart, OutcomeCount, RatioCount, BlockCount, GraderUse, Spread, ListedGroup),
        AuditedVerdicts,
    )
)


class _Dumper(yaml.SafeDumper):
    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> yaml.MappingNode:
        del flow_style
        return super().represent_mapping(tag, mapping, flow_style=frozenset(dict(mapping)) in _RECORDS)

    def ignore_aliases(self, data: Any) -> bool:
        """No anchors: equal parts are written twice."""
        del data
        return True
