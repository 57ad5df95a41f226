"""Faults at the tool boundary: what an agent meets when the world behind its tools is ill.

Rule: the agent sees every fault that is counted as delivered. It is raised to the agent, or returned to it; nothing
here retries, and nothing calls the real tool instead. (The public fault suite of HAL swallows its four raising kinds,
nine tenths of its faults, and so measures a nearly undisturbed agent.)

Whether a call fails is drawn from the attempt's seed (of suite, task and repetition), the tool and the number of this
tool's call: a repetition meets the same faults when it is run again, in each variant, and concurrent tools do not
change each other's luck.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import random
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, get_args

from opentelemetry import trace

from surefoot.evaluation.agent import AttemptContext
from surefoot.evaluation.perturb.calls import Call, Counts, PerturbError, around
from surefoot.evaluation.perturb.fault_errors import MAKERS, Raised
from surefoot.instrumentation import sdk, semconv

Kind = Literal["timeout", "http_500", "http_429", "network_error", "partial", "malformed", "empty"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
NOTE: Final = "faults"  # the key of an attempt's notes
RAISING: Final = frozenset({"timeout", "http_500", "http_429", "network_error"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """How often tools fail, and how. The kinds are equally likely unless ``weights`` says otherwise.

    It stands in ``Variant.perturb``, after cassettes, so that a fault is neither recorded nor replayed.
    """

    p: float = 0.2
    weights: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(KINDS, 1.0))
    tools: tuple[str, ...] = ()  # none named: all
    deliver: Literal["raise", "return"] = "raise"  # errors as exceptions, or as {"error": ...} in place of the result
    errors: Literal["plain", "httpx"] = "plain"  # whose exceptions: Python's own, or those of HTTPX

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise PerturbError(f"Faults with p = {self.p}: a probability is between 0 and 1 (.2, not 20).")
        if unknown := set(self.weights) - set(KINDS):
            raise PerturbError(f"Faults of kind {', '.join(sorted(unknown))}: there are {', '.join(KINDS)}.")
        if min(self.weights.values(), default=0) < 0 or sum(self.weights.values()) <= 0:
            raise PerturbError("Faults whose weights are negative or all 0: give one kind at least a weight above 0.")
        if self.errors not in MAKERS:
            raise PerturbError(f"Faults with errors = {self.errors!r}: use {' or '.join(MAKERS)}.")

    @contextlib.contextmanager
    def __call__(self, context: AttemptContext) -> Iterator[FaultInjector]:
        """Stand around an attempt's tools, and note what was injected."""
        injector = FaultInjector(self, context.seed)
        context.wraps.append(injector.wrap)
        try:
            yield injector
        finally:
            context.notes.setdefault(NOTE, []).append(injector.report())


@dataclass(frozen=True, slots=True)
class Injection:
    """A fault that was drawn. Not delivered: the tool itself failed first, so there was no result to spoil."""

    tool: str
    index: int
    kind: str
    delivered: bool


class FaultInjector:
    """The faults of one attempt."""

    def __init__(self, plan: Faults, seed: int) -> None:
        self.plan = plan
        self.injections: list[Injection] = []
        self._counts = Counts()
        self._seed = seed

    def report(self) -> dict[str, Any]:
        """Return the dose asked for, the calls that could have failed, and what was injected."""
        injections = [asdict(one) for one in self.injections]
        return {"asked": self.plan.p, "calls": self._counts.total, "injections": injections}

    def wrap(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the tool as this attempt meets it."""
        if self.plan.tools and name not in self.plan.tools:
            return function
        return around(name, function, self._counts, self._steps)

    def _steps(self, call: Call) -> Generator[Call, Any, Any]:
        luck = random.Random(f"{self._seed}/{call.tool}/{call.index}")  # noqa: S311 - luck, no secret
        if luck.random() >= self.plan.p:
            return (yield call)
        kinds = [kind for kind in KINDS if self.plan.weights.get(kind)]
        kind = luck.choices(kinds, [self.plan.weights[kind] for kind in kinds])[0]
        if kind in RAISING:
            with marked(call.tool, kind):
                self._note(call, kind, delivered=True)
                raised = Raised(call.tool, kind, luck.randint(1, 30))
                if self.plan.deliver == "return":
                    return raised.as_result()
                raise MAKERS[self.plan.errors](raised)
        try:
            result = yield call
        except BaseException:
            self._note(call, kind, delivered=False)
            raise
        self._note(call, kind, delivered=True)
        mark(kind)
        return spoiled(kind, result)

    def _note(self, call: Call, kind: str, *, delivered: bool) -> None:
        self.injections.append(Injection(call.tool, call.index, kind, delivered))


def spoiled(kind: str, result: Any) -> Any:
    """Return what is left of a result: part of it, text that cannot be parsed, or nothing. Never the same again."""
    if kind == "partial":
        changed = _part(result)
    elif kind == "malformed":
        text = result if isinstance(result, str) else _told(result)
        changed = f"{text[: len(text) // 2]}\ufffd"
    else:
        changed = _empty(result)
    if _same(changed, result):
        return None if result is not None else ""
    return changed


def _told(result: Any) -> str:
    try:
        return json.dumps(result, default=str)
    except (TypeError, ValueError):  # keys that are no text; a circle
        return repr(result)


def _empty(result: Any) -> Any:
    """Return an empty one of the same type, as far as a type can be made without arguments; else nothing."""
    kind = next((kind for kind in (str, bytes, list, tuple, dict, set, frozenset) if isinstance(result, kind)), None)
    if kind is None:
        return None
    try:
        return type(result)()
    except TypeError:  # a named tuple, or a type that insists on its arguments
        return kind()


def _part(result: Any) -> Any:
    """Return the first half; of an object that has fields those of its first half, as a mapping."""
    if isinstance(result, dict):
        return dict(list(result.items())[: len(result) // 2])
    if isinstance(result, str | bytes | list | tuple):
        return result[: len(result) // 2]
    if dataclasses.is_dataclass(result) or hasattr(type(result), "model_fields"):
        return _part(vars(result) if hasattr(result, "__dict__") else dataclasses.asdict(result))
    return None


def _same(changed: Any, result: Any) -> bool:
    return type(changed) is type(result) and bool(changed == result)


_TOOL_SPAN: Final = frozenset({semconv.TOOL_NAME, "tool.name"})


def mark(kind: str) -> bool:
    """Mark the tool's span that is open, so that the lake tells this fault from a real one; False if none is."""
    span = trace.get_current_span()
    attributes = getattr(span, "attributes", None) or {}
    if _TOOL_SPAN.isdisjoint(attributes):
        return False
    span.set_attribute(semconv.FAULT_INJECTED, kind)
    return True


@contextlib.contextmanager
def marked(tool: str, kind: str) -> Iterator[None]:
    """Mark a call that the tool never gets: on the span that is open, or on one of its own, as it is nowhere else."""
    if mark(kind):
        yield
    else:
        with sdk.tool(tool, attributes={semconv.FAULT_INJECTED: kind}):
            yield
