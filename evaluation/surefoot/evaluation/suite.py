"""What is to be repeated: tasks, the protocol, the variants. Plain data that YAML or a Python module builds.

Rule: a suite says everything that makes its figures comparable (k and why, reset, effects, checkers, equivalence), and
its hash covers all of it. Code that it refers to is covered by the run's provenance.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Final, Literal, get_args

from surefoot.evaluation.errors import SuiteError

Reference = str | Callable[..., Any]  # "module:function" or the function itself
Effects = Literal["none", "fixture", "replayed", "simulated", "withheld", "real"]
Isolation = Literal["process", "fresh", "thread", "inline"]
CheckerType = Literal["exact", "json_schema", "regex", "callable", "final_state", "pytest", "judge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An OpenAI-compatible endpoint and the prompt that it gets; both are part of the grader's or user's version."""

    url: str  # base address, without /chat/completions
    model: str
    prompt: str
    version: str
    api_key_env: str | None = None  # the environment variable that holds the key
    temperature: float | None = 0.0
    timeout_seconds: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A simulated user: turns that are given, or an endpoint whose prompt is the hidden instruction."""

    turns: tuple[str, ...] = ()
    endpoint: Endpoint | None = None
    max_turns: int = 20  # of the endpoint
    stop: str = "###STOP###"  # what the endpoint says when it has what it wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Checker:
    """One question about an attempt. A run is acceptable only if every outcome checker passes."""

    type: CheckerType
    expected: Any = None  # value, schema, pattern, state, function, "file.py::test"; of a judge nothing
    name: str = ""
    kind: Literal["outcome", "process"] = "outcome"
    on: Literal["message", "state"] = "message"  # what the agent answered, or what it left behind
    field: str = ""  # a dotted path into it
    ignore: tuple[str, ...] = ()  # dotted paths of a final state that may differ
    severity: str | None = None
    version: str = "1"
    endpoint: Endpoint | None = None  # of a judge

    def __post_init__(self) -> None:
        """Raise SuiteError for a checker that would never give a verdict."""
        _known("checker", self.type, get_args(CheckerType))

    @property
    def title(self) -> str:
        """The name of its verdicts."""
        return self.name or self.type


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One thing to do. Equal ids mean equivalent inputs."""

    id: str
    input: Any
    task_class: str | None = None
    consequence_class: str | None = None
    fixture: Any = None  # data that each attempt gets a copy of, or "module:function" (a context manager, too)
    checkers: tuple[Checker, ...] = ()
    equivalence: Reference = "exact"  # exact, state, message, words; or a function of (output, state)
    user: User | None = None
    made_from: str | None = None  # the template
    neighbour_of: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """When a run ends by itself; what is under way is finished."""

    seconds: float | None = None
    tokens: int | None = None
    usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """What every attempt finds the same. None: left as it is."""

    clock: str | None = None  # an instant, 2026-01-15T09:00:00+00:00
    timezone: str | None = None
    locale: str | None = None
    random: bool = True  # random and numpy, seeded per attempt
    uuid: bool = True  # uuid1 and uuid4, drawn from the seed
    session_id: bool = True  # AttemptContext.session_id, drawn from the seed
    hash_seed: int | None = 0  # PYTHONHASHSEED


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """How attempts are made."""

    k: int
    effects: Effects  # what the tools' effects reach
    why: str = ""  # why this k
    reset: str = ""  # how state is put back between attempts, in words
    isolation: Isolation = "process"
    concurrency: int = 4
    timeout_seconds: float = 300.0
    budget: Budget = field(default_factory=Budget)
    seed: int = 0
    sampling: Mapping[str, Any] = field(default_factory=dict)  # temperature and so on, for the agent and the record
    freeze: Frozen | None = None
    confidence: Reference | None = None  # asked after the answer: (task_input, output) -> 0..100
    # Functions of the context, entered around each attempt if they give a context manager: cassettes, perturbations.
    around: tuple[Reference, ...] = ()
    infrastructure_errors: tuple[str, ...] = ()  # exceptions that are nobody's failure, "openai.APIConnectionError"

    def __post_init__(self) -> None:
        """Raise SuiteError for what would be run, and not be what was meant."""
        # A word that is not known would be no refusal: "Real" is as real as "real".
        _known("protocol.effects", self.effects, get_args(Effects))
        _known("protocol.isolation", self.isolation, get_args(Isolation))
        if self.concurrency < 1 or self.timeout_seconds <= 0:
            raise SuiteError(
                f"protocol: concurrency {self.concurrency} and timeout_seconds {self.timeout_seconds:g} let no attempt "
                "run; write 1 or more, and more than 0."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One version of the system under test."""

    name: str
    agent: Reference | None = None  # where it is not the suite's
    versions: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    perturb: tuple[Any, ...] = ()  # as Protocol.around, of this variant only


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Everything that is repeated together."""

    name: str
    tasks: tuple[Task, ...]
    protocol: Protocol
    agent: Reference
    variants: tuple[Variant, ...] = (Variant(name="baseline"),)
    agent_name: str = ""

    def __post_init__(self) -> None:
        """Raise SuiteError where attempts of two tasks or variants would be taken for one's."""
        for what, names in (("tasks", [task.id for task in self.tasks]), ("variants", list(self.names))):
            twice = next((name for name, count in Counter(names).items() if count > 1), None)
            if twice is not None:
                raise SuiteError(f"The suite {self.name}: two {what} are called {twice!r}; give each its own name.")
        for name in (self.name, *self.names):
            if not re.fullmatch(r"\w[\w. -]*", name):  # a part of a file's name
                raise SuiteError(f"The suite {self.name}: {name!r} is no name; write letters, digits, points, hyphens.")

    @property
    def called(self) -> str:
        """The agent's name in its runs."""
        return self.agent_name or self.name

    def variant(self, name: str) -> Variant:
        """Return the variant of this name; KeyError if there is none."""
        return {variant.name: variant for variant in self.variants}[name]

    @property
    def names(self) -> tuple[str, ...]:
        """The variants' names."""
        return tuple(variant.name for variant in self.variants)

    def task(self, task_id: str) -> Task:
        """Return the task of this id; KeyError if there is none."""
        found = next((task for task in self.tasks if task.id == task_id), None)
        if found is None:
            raise KeyError(task_id)
        return found


def _known(what: str, word: str, words: tuple[str, ...]) -> None:
    if word not in words:
        raise SuiteError(f"{what}: {word!r} is not one of {', '.join(words)}; write one of them.")


def plain(value: Any) -> Any:
    """Return a suite, or a part of one, as plain data; functions by their names."""
    if is_dataclass(value) and not isinstance(value, type):
        return {part.name: plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return named(value)


def named(value: Any) -> str:
    """Return a function as ``module:name``; other objects by their class."""
    name = getattr(value, "__qualname__", None) or type(value).__qualname__
    return f"{getattr(value, '__module__', None) or type(value).__module__}:{name}"


# A run that is continued with more repetitions, or with other speed, is the same run.
_FREE: Final = frozenset({"k", "concurrency", "budget", "timeout_seconds"})


def suite_hash(suite: Suite) -> str:
    """Return a hash of all that makes attempts comparable: not of k, concurrency, time limit and budget."""
    data = plain(suite)
    data["protocol"] = {key: value for key, value in data["protocol"].items() if key not in _FREE}
    text = json.dumps(data, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def attempt_seed(suite: Suite, task_id: str, repetition: int) -> int:
    """Return the seed of an attempt: equal for all variants, so that they meet the same luck."""
    text = f"{suite.protocol.seed}/{task_id}/{repetition}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])
