"""A suite from YAML: every mistake with file, line and remedy, and nothing in the file ignored."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, Field, model_validator

from surefoot.evaluation import frozen, suite, templates
from surefoot.evaluation.errors import SuiteError
from surefoot.processors.yaml_models import FileError, Name, Part, Text, Word, read_model, refusal

_TYPES: Final = get_args(suite.CheckerType)


def _reference(value: str) -> str:
    if not re.fullmatch(r"[\w.]+:[\w.]+", value):
        raise refusal(f"{value!r} is no function", "write module:function")
    return value


Function = Annotated[str, AfterValidator(_reference)]
Positive = Annotated[float, Field(gt=0)]
Whole = Annotated[int, Field(ge=1)]


class EndpointPart(Part):
    """An OpenAI-compatible endpoint."""

    url: Text
    model: Text
    prompt: Text
    version: Word
    api_key_env: Text | None = None
    temperature: float | None = 0.0
    timeout_seconds: Positive = 60.0

    def built(self) -> suite.Endpoint:
        """Return it as the suite has it."""
        return suite.Endpoint(**self.model_dump())


class UserPart(Part):
    """A simulated user."""

    turns: list[Text] | None = None
    endpoint: EndpointPart | None = None
    max_turns: Whole = 20
    stop: Text = "###STOP###"

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.turns is None) == (self.endpoint is None):
            raise refusal("a user is scripted or an endpoint", "write turns, or endpoint, and not both")
        return self

    def built(self) -> suite.User:
        """Return it as the suite has it."""
        endpoint = None if self.endpoint is None else self.endpoint.built()
        return suite.User(turns=tuple(self.turns or ()), endpoint=endpoint, max_turns=self.max_turns, stop=self.stop)


class CheckerPart(Part):
    """One checker: its type is the field that says what is expected."""

    exact: Any = None
    json_schema: dict[str, Any] | None = None
    regex: str | None = None
    callable: Function | None = None
    final_state: Any = None
    pytest: Text | None = None
    judge: EndpointPart | None = None
    name: Word = ""
    kind: Literal["outcome", "process"] = "outcome"
    on: Literal["message", "state"] = "message"
    field: str = ""
    ignore: list[Text] = Field(default_factory=list)
    severity: Literal["low", "medium", "high", "critical"] | None = None
    version: Word = "1"

    @model_validator(mode="after")
    def _one_type(self) -> Self:
        given = [name for name in _TYPES if name in self.model_fields_set]
        if len(given) != 1:
            what = "says nothing that is expected" if not given else f"is several: {', '.join(given)}"
            raise refusal(f"the checker {what}", f"write exactly one of {', '.join(_TYPES)}")
        if self.regex is not None:
            try:
                re.compile(self.regex)
            except re.error as error:
                raise refusal(f"not a regular expression: {error}", "correct it", "regex") from error
        if self.json_schema is not None:
            from jsonschema import Draft202012Validator
            from jsonschema.exceptions import SchemaError

            try:
                Draft202012Validator.check_schema(self.json_schema)
            except SchemaError as error:
                raise refusal(f"not a JSON schema: {error.message}", "correct it", "json_schema") from error
        return self

    def built(self) -> suite.Checker:
        """Return it as the suite has it."""
        kind = next(name for name in _TYPES if name in self.model_fields_set)
        return suite.Checker(
            type=kind,
            expected=None if kind == "judge" else getattr(self, kind),
            endpoint=None if self.judge is None else self.judge.built(),
            name=self.name,
            kind=self.kind,
            on="state" if kind == "final_state" else self.on,
            field=self.field,
            ignore=tuple(self.ignore),
            severity=self.severity,
            version=self.version,
        )


class TaskPart(Part):
    """A task, or what a template makes tasks from."""

    id: Text
    input: Any = None
    task_class: Word | None = Field(default=None, alias="class")
    consequence_class: Word | None = Field(default=None, alias="consequence")
    fixture: Any = None
    checkers: list[CheckerPart] = Field(default_factory=list)
    equivalence: Literal["exact", "state", "message", "words"] | Function = "exact"
    user: UserPart | None = None

    @model_validator(mode="after")
    def _something_to_do(self) -> Self:
        if self.input is None and self.user is None:
            raise refusal("the task has nothing to do", "write input, or a user")
        return self

    def built(self) -> suite.Task:
        """Return it as the suite has it."""
        return suite.Task(
            id=self.id,
            input=self.input,
            task_class=self.task_class,
            consequence_class=self.consequence_class,
            fixture=self.fixture,
            checkers=tuple(checker.built() for checker in self.checkers),
            equivalence=self.equivalence,
            user=None if self.user is None else self.user.built(),
        )


class Range(Part):
    """Whole numbers to draw from, both ends included."""

    first: int = Field(alias="from")
    last: int = Field(alias="to")

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if self.last < self.first:
            raise refusal("the range is empty", f"write to: {self.first} or more", "to")
        return self


class TemplatePart(TaskPart):
    """Tasks that differ in their parameters, which stand in braces: {order}."""

    vary: dict[str, list[Any] | Range]
    count: Whole
    neighbours: Annotated[int, Field(ge=0)] = 0
    seed: int = 0

    @model_validator(mode="after")
    def _told_apart(self) -> Self:
        missing = [name for name in self.vary if f"{{{name}}}" not in self.id]
        if missing:
            raise refusal(f"tasks that differ in {missing[0]} would have one id", f"put {{{missing[0]}}} into it", "id")
        return self

    def expanded(self) -> list[suite.Task]:
        """Return the tasks. Raises SuiteError if there are fewer different ones than asked for."""
        choices = {
            name: range(values.first, values.last + 1) if isinstance(values, Range) else values
            for name, values in self.vary.items()
        }
        base = self.built()
        return templates.expand(base, choices, count=self.count, neighbours=self.neighbours, seed=self.seed)


class BudgetPart(Part):
    """When a run ends by itself."""

    seconds: Positive | None = None
    tokens: Whole | None = None
    usd: Positive | None = None


class FrozenPart(Part):
    """What every attempt finds the same."""

    clock: Text | None = None
    timezone: Text | None = None
    locale: Text | None = None
    random: bool = True
    uuid: bool = True
    session_id: bool = True
    hash_seed: Annotated[int, Field(ge=0, le=4_294_967_295)] | None = 0

    @model_validator(mode="after")
    def _possible(self) -> Self:
        try:
            frozen.check(suite.Frozen(**self.model_dump()))
        except SuiteError as error:
            raise refusal(str(error), "correct it") from error
        return self


class ProtocolPart(Part):
    """How attempts are made."""

    k: Whole
    effects: Literal["none", "fixture", "replayed", "simulated", "withheld", "real"]
    why: str = ""
    reset: str = ""
    isolation: Literal["process", "fresh", "thread", "inline"] = "process"
    concurrency: Whole = 4
    timeout_seconds: Positive = 300.0
    budget: BudgetPart = Field(default_factory=BudgetPart)
    seed: int = 0
    sampling: dict[str, Any] = Field(default_factory=dict)
    freeze: FrozenPart | None = None
    confidence: Function | None = None
    around: list[Function] = Field(default_factory=list)
    infrastructure_errors: list[Text] = Field(default_factory=list)

    def built(self) -> suite.Protocol:
        """Return it as the suite has it."""
        plain = {name: getattr(self, name) for name in ProtocolPart.model_fields}
        return suite.Protocol(
            **plain
            | {
                "budget": suite.Budget(**self.budget.model_dump()),
                "freeze": None if self.freeze is None else suite.Frozen(**self.freeze.model_dump()),
                "around": tuple(self.around),
                "infrastructure_errors": tuple(self.infrastructure_errors),
            }
        )


class VariantPart(Part):
    """One version of the system under test."""

    name: Name
    agent: Function | None = None
    versions: dict[str, Word] = Field(default_factory=dict)
    env: dict[str, Word] = Field(default_factory=dict)
    perturb: list[Function] = Field(default_factory=list)

    def built(self) -> suite.Variant:
        """Return it as the suite has it."""
        return suite.Variant(**self.model_dump() | {"perturb": tuple(self.perturb)})


class SuitePart(Part):
    """The file."""

    name: Name
    agent: Function
    agent_name: Word = ""
    protocol: ProtocolPart
    variants: list[VariantPart] = Field(default_factory=lambda: [VariantPart(name="baseline")], min_length=1)
    tasks: list[TaskPart] = Field(default_factory=list)
    templates: list[TemplatePart] = Field(default_factory=list)

    @model_validator(mode="after")
    def _told_apart(self) -> Self:
        if not self.tasks and not self.templates:
            raise refusal("the suite has no task", "write tasks, or templates")
        for field, names in (("tasks", [t.id for t in self.tasks]), ("variants", [v.name for v in self.variants])):
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                raise refusal(f"{twice!r} stands twice", "give each its own name", field)
        return self


_MOST_VALUES: Final = 5_000_000


def _is_larger(value: Any, most: int) -> bool:
    """Whether more values than this stand in it. An alias of YAML costs nothing until it is written out."""
    left, seen = [value], 0
    while left:
        found = left.pop()
        seen += 1
        if isinstance(found, BaseModel):
            left += found.__dict__.values()
        elif isinstance(found, dict):
            left += found.values()
        elif isinstance(found, list):
            left += found
        if seen + len(left) > most:
            return True
    return False


def read_suite(path: Path) -> suite.Suite:
    """Return the suite of a file. Raises SuiteError with a line for each mistake."""
    try:
        part = read_model(path, SuitePart)
    except FileError as error:
        raise SuiteError(str(error)) from error
    if _is_larger(part, _MOST_VALUES):
        raise SuiteError(
            f"{path}: with its aliases (*name) written out it holds more than {_MOST_VALUES:,} values, or itself; "
            "write it without them, or let a fixture make what is large."
        )
    tasks = [task.built() for task in part.tasks]
    for template in part.templates:
        try:
            tasks += template.expanded()
        except SuiteError as error:
            raise SuiteError(f"{path}: templates, {template.id}: {error}") from error
    ids = [task.id for task in tasks]
    if len(set(ids)) < len(ids):
        twice = next(name for name in ids if ids.count(name) > 1)
        raise SuiteError(f"{path}: two tasks have the id {twice!r}; give each its own.")
    return suite.Suite(
        name=part.name,
        agent=part.agent,
        agent_name=part.agent_name,
        protocol=part.protocol.built(),
        variants=tuple(variant.built() for variant in part.variants),
        tasks=tuple(tasks),
    )
