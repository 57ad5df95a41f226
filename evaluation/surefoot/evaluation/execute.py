"""One attempt, from its fixture to its verdicts: an instrumented run of the agent.

Rule: whatever the agent, its tools, its fixture or its checkers do, an ``Attempt`` comes back. A fixture or a hook that
fails is infrastructure; a checker that fails is unresolved; everything else that does not end well is the agent's.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import inspect
import random
import time
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from surefoot.evaluation import checkers, frozen
from surefoot.evaluation.agent import AttemptContext, call_with, takes_context
from surefoot.evaluation.calling import answer, call_plain
from surefoot.evaluation.errors import AttemptTimeoutError, InfrastructureError
from surefoot.evaluation.loading import resolve
from surefoot.evaluation.perturb.fault_errors import injected
from surefoot.evaluation.records import Attempt, Failure, Outcome, Verdict
from surefoot.evaluation.suite import Suite, Task, Variant, attempt_seed
from surefoot.evaluation.telling import tell
from surefoot.evaluation.usage import EFFECTS, UsageProcessor, Used
from surefoot.instrumentation import AgentRun, agent_run
from surefoot.instrumentation.operation import error_type

# For all checkers of an attempt together; a little less than after which the pool kills the child.
CHECK_SECONDS: Final = 240.0
_TRACEBACK: Final = 20_000  # characters that are kept, from the end


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be attempted."""

    attempt_id: str
    variant: str
    task_id: str
    repetition: int
    run: str  # name of the run folder
    provenance_id: str | None = None
    versions: Mapping[str, str] | None = None  # beside the variant's: commit, suite
    tried: int | None = None  # as the attempt's


@dataclass(frozen=True, slots=True)
class Means:
    """How attempts are made in this process."""

    suite: Suite
    usage: UsageProcessor
    threads: bool  # plain functions run in a thread each, which a time limit can leave behind


Told = Callable[[Attempt], None]


def begun(suite: Suite, order: Order) -> Attempt:
    """Return the attempt as it is when it begins."""
    task = suite.task(order.task_id)
    return Attempt(
        attempt_id=order.attempt_id,
        suite=suite.name,
        variant=order.variant,
        task_id=order.task_id,
        repetition=order.repetition,
        seed=attempt_seed(suite, order.task_id, order.repetition),
        started_at=frozen.real_time(),
        outcome="lost",
        equivalence=checkers.rule_name(task.equivalence),
        task_class=task.task_class,
        consequence_class=task.consequence_class,
        provenance_id=order.provenance_id,
        tried=order.tried,
    )


async def make_attempt(
    means: Means, order: Order, *, began: Told | None = None, answered: Told | None = None
) -> Attempt:
    """Call the agent once. ``began`` hears the attempt's ids, ``answered`` what came back, before it is checked."""
    suite = means.suite
    task, variant = suite.task(order.task_id), suite.variant(order.variant)
    attempt, since = begun(suite, order), time.monotonic()
    context = _context(suite, task, variant, attempt)
    try:
        with (
            frozen.frozen_world(suite.protocol.freeze, attempt_seed(suite, task.id, 0)),
            contextlib.ExitStack() as around,
        ):
            _set_up(suite, task, variant, context, around)
            attempt = await _run(means, task, variant, order, context, attempt, since, began)
            if answered is not None:
                answered(attempt)
            attempt = await _judged(means, task, context, attempt)
    except Exception as error:  # noqa: BLE001 - fixtures and hooks are the user's and may raise anything
        # What stands around an attempt may find at its end that it met another world than it should have.
        if attempt.ended_at is None or isinstance(error, InfrastructureError):
            attempt = _ended(
                replace(attempt, error=_failure(error), verdicts=(), signature=None), "infrastructure", since
            )
    if context.notes:
        attempt = replace(attempt, extra={**attempt.extra, "notes": context.notes})
    tell(attempt)
    return attempt


def _context(suite: Suite, task: Task, variant: Variant, attempt: Attempt) -> AttemptContext:
    freeze, seed = suite.protocol.freeze, attempt.seed or 0
    fixed = freeze is not None and freeze.session_id
    # Of a generator of its own: the world's may be frozen, and must not be drawn from.
    bits = random.Random(attempt_seed(suite, task.id, 0)).getrandbits(128) if fixed else uuid.uuid4().int  # noqa: S311
    return AttemptContext(
        suite=suite.name,
        variant=variant.name,
        task_id=task.id,
        repetition=attempt.repetition,
        seed=seed,
        session_id=f"{bits:032x}",
        input=copy.deepcopy(task.input),
        sampling=suite.protocol.sampling,
        versions=variant.versions,
    )


def _set_up(suite: Suite, task: Task, variant: Variant, context: AttemptContext, around: contextlib.ExitStack) -> None:
    fixture = task.fixture
    if callable(fixture) or (isinstance(fixture, str) and ":" in fixture):
        made = resolve(fixture, f"fixture of {task.id}")
        given = made(context) if takes_context(made, 0) else made()
        context.state = around.enter_context(given) if hasattr(given, "__enter__") else given
    else:
        context.state = copy.deepcopy(fixture)
    for hook in (*suite.protocol.around, *variant.perturb):
        stands = resolve(hook, "around")(context)
        if hasattr(stands, "__enter__"):
            around.enter_context(stands)


async def _run(
    means: Means,
    task: Task,
    variant: Variant,
    order: Order,
    context: AttemptContext,
    attempt: Attempt,
    since: float,
    began: Told | None,
) -> Attempt:
    suite = means.suite
    agent = resolve(variant.agent or suite.agent, f"agent of {variant.name}")
    operation = agent_run(
        suite.called,
        task_class=task.task_class,
        task_id=task.id,
        consequence_class=task.consequence_class,
        run_group=f"{order.run}/{variant.name}/{task.id}",
        repetition=order.repetition,
        variant=variant.name,
        versions={**(order.versions or {}), **variant.versions},
    )
    world = {"world": frozen.seen()} if suite.protocol.isolation in {"process", "fresh"} else {}
    output, error, used = None, None, Used()
    try:
        async with operation as run:
            attempt, used = _identified(means, run, attempt)
            if began is not None:
                began(attempt)
            with _named_infrastructure(suite):
                output = await answer(agent, task, context, limit=suite.protocol.timeout_seconds, threads=means.threads)
            await _ask_confidence(means, suite, context, output)
            if context.stated_confidence is not None:
                run.set_confidence(context.stated_confidence)
            run.set_usage(input_tokens=context.input_tokens, output_tokens=context.output_tokens)
    except Exception as caught:  # noqa: BLE001 - the agent may raise anything, and all of it is recorded
        error = caught
    found = _with_usage(attempt, used, context)
    if attempt.trace_id is not None:
        means.usage.forget(int(attempt.trace_id, 16))
    ended = replace(
        found, output=output, error=None if error is None else _failure(error), extra={**found.extra, **world}
    )
    return _ended(ended, _outcome(error), since)


def _identified(means: Means, run: AgentRun, attempt: Attempt) -> tuple[Attempt, Used]:
    ids = run.span_context
    used = means.usage.watch(ids.trace_id, EFFECTS if means.suite.protocol.effects == "none" else frozenset())
    if not ids.is_valid:
        return attempt, used
    return replace(attempt, trace_id=f"{ids.trace_id:032x}", run_id=f"{ids.span_id:016x}"), used


async def _ask_confidence(means: Means, suite: Suite, context: AttemptContext, output: Any) -> None:
    """Ask afterwards how sure the agent is. One that cannot say so has told nothing; its answer stands."""
    if suite.protocol.confidence is None:
        return
    question = resolve(suite.protocol.confidence, "confidence")
    try:
        said = await call_plain(means.threads, call_with, question, context.input, output, context=context)
        context.confidence(float(await said if inspect.isawaitable(said) else said))
    except Exception as error:  # noqa: BLE001 - the answer is there already; what failed is noted
        context.notes["confidence"] = f"{type(error).__name__}: {error}"


def _with_usage(attempt: Attempt, used: Used, context: AttemptContext) -> Attempt:
    cost = context.cost_usd if used.cost_usd is None else used.cost_usd + (context.cost_usd or 0.0)
    return replace(
        attempt,
        input_tokens=_sum(used.input_tokens, context.input_tokens),
        output_tokens=_sum(used.output_tokens, context.output_tokens),
        cost_usd=None if used.unpriced else cost,
        model_calls=used.model_calls,
        tool_calls=len(used.actions),
        tool_errors=used.tool_errors,
        actions=tuple(used.actions),
        confidence=context.stated_confidence,
        extra={"effects": sorted(used.effects)} if used.effects else {},
    )


def _sum(one: int | None, two: int | None) -> int | None:
    return two if one is None else one + (two or 0)


def _outcome(error: Exception | None) -> Outcome:
    if error is None:
        return "ok"
    if isinstance(error, AttemptTimeoutError):
        return "timeout"
    return "infrastructure" if isinstance(error, InfrastructureError) else "error"


@contextlib.contextmanager
def _named_infrastructure(suite: Suite) -> Iterator[None]:
    """Turn what the protocol calls infrastructure into the error by whose name the lake knows it, too."""
    try:
        yield
    except Exception as error:
        names = {error_type_of(kind) for kind in type(error).__mro__}
        if names.isdisjoint(suite.protocol.infrastructure_errors) or injected(error):
            raise  # a fault that was made on purpose is there for the agent to handle
        raise InfrastructureError(f"{error_type(error)}: {error}") from error


def error_type_of(kind: type) -> str:
    """Return a class as a protocol's ``infrastructure_errors`` names it."""
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _failure(error: BaseException) -> Failure:
    text = "".join(traceback.format_exception(error))
    return Failure(error_type(error), str(error), text[-_TRACEBACK:])


def ended_at(attempt: Attempt, since: float) -> float:
    """Return when an attempt ended that began at ``since`` of the monotonic clock; the other may be set meanwhile."""
    return (attempt.started_at or 0.0) + time.monotonic() - since


def _ended(attempt: Attempt, outcome: Outcome, since: float) -> Attempt:
    # An agent that did not answer left nothing acceptable; what the infrastructure ended says nothing.
    unanswered = {"error": False, "timeout": False}.get(outcome)
    return replace(attempt, ended_at=ended_at(attempt, since), outcome=outcome, acceptable=unanswered)


async def _judged(means: Means, task: Task, context: AttemptContext, attempt: Attempt) -> Attempt:
    if attempt.outcome == "infrastructure":
        return attempt
    answered = attempt.outcome == "ok"
    # Whether the rules were kept can be asked of an attempt that failed, too.
    asked = [checker for checker in task.checkers if answered or (checker.kind == "process" and checker.on == "state")]
    verdicts: list[Verdict] = []
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            for checker in asked:
                found = await call_plain(means.threads, checkers.check, checker, attempt.output, context)
                verdicts.append(found)
    except TimeoutError:
        slow = f"all checkers together took longer than {CHECK_SECONDS:g} s"
        rest = asked[len(verdicts) :]
        verdicts += [Verdict(each.title, each.kind, "unresolved", explanation=slow) for each in rest]
    return replace(
        attempt,
        verdicts=tuple(verdicts),
        acceptable=checkers.acceptable(verdicts) if answered else False,
        signature=_signature(task, context, attempt),
    )


def _signature(task: Task, context: AttemptContext, attempt: Attempt) -> str | None:
    try:
        if attempt.outcome != "ok":
            # An agent that crashes the same way each time is as predictable as one that answers wrongly.
            return f"{attempt.outcome}:{attempt.error.type if attempt.error else ''}"
        return checkers.signature(task.equivalence, attempt.output, checkers.final_state(context))
    except Exception as error:  # noqa: BLE001 - a rule of the user's that fails leaves equivalence unknown
        context.notes["equivalence"] = f"{type(error).__name__}: {error}"
        return None
