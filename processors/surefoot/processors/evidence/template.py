"""The written part of a reliability profile: the template's sections and fields, as pydantic reads them.

Doyle, "Agent Reliability Needs Repeated Evidence" (2026), appendix A, field by field and in its order. Rule: a field
that nobody wrote is null, and ``verify`` says that it is not recorded; no default claims something that nobody did.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from surefoot.processors.yaml_models import Day, Facts, Name, Part, Text, Word, refusal

Mode = Literal["autonomous", "deterministic_check", "replay", "checkpoint", "human_approval", "refuse"]
Dimension = Literal["task_class", "consequence_class", "horizon"]
Adjustment = Literal["intersection_union", "bonferroni"]


class System(Part):
    """What was measured. Any difference in it makes another system (``boundary``)."""

    agent_architecture: Facts = None
    model_and_serving_configuration: Facts = None
    prompt_and_policy_version: Facts = None
    tool_and_schema_versions: Facts = None
    environment: Facts = None
    principal_and_authority_scope: Facts = None


class TaskPopulation(Part):
    """Which tasks the claim is about."""

    task_class: Facts = None
    inclusion_rule: Facts = None
    exclusions: Facts = None
    consequence_class: Facts = None
    horizon_descriptors: Facts = None
    dependency_set: Facts = None


class OutcomeContract(Part):
    """What counts as acceptable, and who says so."""

    acceptable_final_state: Facts = None
    required_evidence: Facts = None
    outcome_equivalence_rule: Facts = None
    process_constraints: Facts = None
    prohibited_actions: Facts = None
    grader_and_version: Facts = None
    adjudication_procedure: Facts = None


class Repetitions(Part):
    """k, and why it fits the operational question."""

    value: Annotated[int, Field(ge=1, le=10_000)]
    why: Text | None = None


class MultipleGates(Part):
    """How several gates are decided together, and which claim that serves."""

    method: Adjustment
    purpose: Text


class BlockUnit(Part):
    """Production's clustering unit: runs that can fail together are one block; blocks are taken as independent."""

    blocks: Literal["time", "release", "dependency", "incident"]
    hours: Annotated[int, Field(ge=1)] | None = None  # of time: a stretch, counted from 1970 on
    stratum: Word | None = None  # of the others: the run's `surefoot.stratum.<name>` that says its block
    declared: Day  # before the first of the runs

    @model_validator(mode="after")
    def _told(self) -> Self:
        if self.blocks == "time" and (self.hours is None or self.stratum is not None):
            raise refusal("blocks by time need their length", "write hours, and no stratum", "hours")
        if self.blocks != "time" and (self.stratum is None or self.hours is not None):
            raise refusal(f"blocks by {self.blocks} need to know each run's", "write stratum, and no hours", "stratum")
        return self


class RepeatProtocol(Part):
    """How the runs were repeated."""

    k: Repetitions
    environment_reset: Facts = None
    state_fixture: Facts = None
    concurrency: Facts = None
    sampling_settings: Facts = None
    evaluation_window: Facts = None
    clustering_unit: Literal["task group"] | BlockUnit = "task group"
    stratification: list[Dimension] = Field(default=["task_class", "consequence_class", "horizon"])
    interval_method: Text | None = None  # null: the default of each indicator; written by `build`
    confidence_level: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    multiple_gate_adjustment: MultipleGates | None = None


class OperatingBoundary(Part):
    """What the profile is to be held against, in words; the gates themselves are a boundary file."""

    required_slos: Facts = None
    minimum_evidence: Facts = None
    allowed_autonomous_mode: Mode | None = None
    deterministic_checks: Facts = None
    checkpoint_conditions: Facts = None
    human_approval_conditions: Facts = None
    refusal_conditions: Facts = None


class ChangeControl(Part):
    """What happens when something changes."""

    canary_protocol: Facts = None
    rollback: Facts = None
    error_budget_policy: Facts = None
    drift_triggers: Facts = None


class Written(Part):
    """Everything of a profile that a person writes."""

    profile_id: Name
    version: Name
    owner: Text
    review_date: Day
    system: System = System()
    task_population: TaskPopulation = TaskPopulation()
    outcome_contract: OutcomeContract = OutcomeContract()
    repeat_protocol: RepeatProtocol
    operating_boundary: OperatingBoundary = OperatingBoundary()
    change_control: ChangeControl = ChangeControl()


# More than anybody can run; a file of a few bytes must not fill the memory.
MOST_GROUPS: Final = 10_000_000
MOST_RUNS: Final = 10_000  # of a group


class PublishedCount(Part):
    """Groups that a publication counted alike: n runs each, c of them acceptable."""

    n: Annotated[int, Field(ge=0, le=MOST_RUNS)]
    c: Annotated[int, Field(ge=0)]
    groups: Annotated[int, Field(ge=1, le=MOST_GROUPS)]
    equivalent: bool | None = None  # of groups without an acceptable run: whether their outcomes are equivalent
    missing: Annotated[int, Field(ge=0, le=MOST_RUNS)] = 0  # runs of each group without a verdict
    task_class: Word | None = None
    consequence_class: Word | None = None
    horizon: Word | None = None

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.c > self.n:
            raise refusal(f"{self.c} of {self.n} runs cannot be acceptable", "correct n or c", "c")
        if self.c and self.equivalent is not None:
            raise refusal("equivalent is asked only of groups without an acceptable run", "remove it", "equivalent")
        return self


class Published(Part):
    """Evidence that is not in the lake: counts, and where they were published."""

    source: Text
    grader_kind: Literal["executable", "human", "model"] | None = None
    counts: Annotated[list[PublishedCount], Field(min_length=1)]


class Selection(Part):
    """Which runs of the lake are the evidence: each column has the value."""

    where: dict[str, Word] = Field(default_factory=dict)  # columns of runs; `surefoot profile build` names them
    versions: dict[str, Word] = Field(default_factory=dict)  # of the version set that the runs recorded
    since: Day  # of the UTC days on which a run ended, both included
    until: Day | None = None  # null: the day of the build


class Spec(Written):
    """A file for ``surefoot profile build``: the written part, and where the numbers come from."""

    select: Selection | None = None
    published: Published | None = None
