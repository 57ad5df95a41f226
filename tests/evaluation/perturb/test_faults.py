"""Faults at the tool boundary: the dose, what the agent sees of each kind, and that a repetition can be repeated."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
from typing import Any

import httpx
import pytest
from scipy import stats

from surefoot.evaluation.agent import AttemptContext
from surefoot.evaluation.perturb import KINDS, FaultInjector, Faults, PerturbError, injected
from surefoot.evaluation.perturb.dose import dose, doses
from surefoot.evaluation.perturb.faults import spoiled
from surefoot.evaluation.records import Attempt
from surefoot.instrumentation import sdk, semconv
from surefoot.instrumentation.testing import capture

ANSWER = {"flight": "HAT136", "seats": 4, "price": 250}


def lookup(flight: str) -> dict[str, Any]:
    return {**ANSWER, "flight": flight}


async def lookup_async(flight: str) -> dict[str, Any]:
    return lookup(flight)


def always(kind: str, **settings: Any) -> FaultInjector:
    return FaultInjector(Faults(p=1, weights={kind: 1.0}, **settings), seed=1)


def seen(injector: FaultInjector, *, asynchronous: bool) -> Any:
    """What an agent gets of one call: the result, or the exception."""
    tool = injector.wrap("lookup", lookup_async if asynchronous else lookup)
    try:
        return asyncio.run(tool("HAT136")) if asynchronous else tool("HAT136")
    except Exception as error:
        return error


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("deliver", ["raise", "return"])
@pytest.mark.parametrize("errors", ["plain", "httpx"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_agent_sees_every_kind(kind: str, errors: str, deliver: str, *, asynchronous: bool) -> None:
    injector = always(kind, errors=errors, deliver=deliver)
    answer = seen(injector, asynchronous=asynchronous)
    assert answer != ANSWER
    assert [(one["kind"], one["delivered"]) for one in injector.report()["injections"]] == [(kind, True)]
    assert "inject" not in repr(answer).lower()  # an agent must not read that it is being tested
    if isinstance(answer, Exception):
        assert injected(answer)


def test_what_each_kind_is() -> None:
    found = {kind: seen(always(kind), asynchronous=False) for kind in KINDS}
    assert isinstance(found["timeout"], TimeoutError)
    assert isinstance(found["network_error"], ConnectionError)
    assert found["http_500"].status_code == 500
    assert found["http_429"].status_code == 429
    assert found["http_429"].headers["retry-after"] == str(found["http_429"].retry_after)
    assert found["partial"] == {"flight": "HAT136"}
    assert found["empty"] == {}
    with pytest.raises(ValueError):  # noqa: PT011 - JSON's own
        json.loads(found["malformed"])


def test_httpx_clients_recognise_theirs() -> None:
    found = {kind: seen(always(kind, errors="httpx"), asynchronous=False) for kind in ("timeout", "http_429")}
    assert isinstance(found["timeout"], httpx.TimeoutException)
    assert isinstance(found["http_429"], httpx.HTTPStatusError)
    assert found["http_429"].response.status_code == 429
    assert int(found["http_429"].response.headers["retry-after"]) >= 1


@pytest.mark.parametrize("kind", ["partial", "malformed", "empty"])
@pytest.mark.parametrize("result", [{}, [], "", None, 5, 0, True, [1], {"a": 1}, "x", (), ("a",), {"a": {"b": []}}])
def test_a_spoiled_result_is_never_the_result(kind: str, result: Any) -> None:
    left = spoiled(kind, result)
    assert type(left) is not type(result) or left != result


@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_dose_asked_for_is_delivered(*, asynchronous: bool) -> None:
    visible: list[bool] = []
    attempts = []

    async def agent(context: AttemptContext) -> None:
        tool = context.tool("lookup", lookup_async if asynchronous else lookup)
        for _ in range(10):
            try:
                answer = await tool("HAT136") if asynchronous else tool("HAT136")
            except Exception:
                visible.append(True)
            else:
                visible.append(answer != ANSWER)

    for repetition in range(400):
        context = AttemptContext(
            suite="s", variant="faults", task_id="t", repetition=repetition, seed=repetition, session_id=""
        )
        with Faults()(context):
            asyncio.run(agent(context))
        attempts.append(
            Attempt(
                attempt_id=str(repetition),
                suite="s",
                variant="faults",
                task_id="t",
                repetition=repetition,
                outcome="ok",
                extra={"notes": context.notes},
            )
        )
    found = doses(attempts)["faults"]
    assert (found.asked, found.calls) == (0.2, 4000)
    assert found.delivered == sum(visible)  # counted is what the agent saw
    assert found.as_asked
    low, high = stats.binom.interval(0.999, 4000, 0.2)
    assert low <= found.delivered <= high
    assert set(found.by_kind) == set(KINDS)
    assert stats.chisquare(list(found.by_kind.values())).pvalue > 1e-3
    assert "dose asked 0.2, delivered 0." in str(found)


def test_a_repetition_can_be_repeated_whatever_else_is_called() -> None:
    def faults(seed: int, order: list[str]) -> dict[str, list[tuple[int, str]]]:
        injector = FaultInjector(Faults(p=0.5), seed)
        tools = {name: injector.wrap(name, lookup) for name in ("a", "b")}
        for name in order:
            with contextlib.suppress(Exception):
                tools[name]("HAT136")
        found = injector.report()["injections"]
        return {name: [(one["index"], one["kind"]) for one in found if one["tool"] == name] for name in tools}

    first = faults(7, ["a"] * 20 + ["b"] * 20)
    assert first == faults(7, ["a", "b"] * 20)
    assert first != faults(8, ["a", "b"] * 20)
    assert first["a"] != first["b"]


def test_a_tool_that_fails_itself_had_no_result_to_spoil() -> None:
    def broken() -> None:
        raise LookupError("no such flight")

    injector = always("partial")
    with pytest.raises(LookupError):
        injector.wrap("lookup", broken)()
    assert [one["delivered"] for one in injector.report()["injections"]] == [False]
    assert dose(1.0, 1, [], 1).delivered == 0


def test_only_the_named_tools_fail() -> None:
    injector = always("empty", tools=("pay",))
    assert injector.wrap("lookup", lookup)("HAT136") == ANSWER
    assert injector.wrap("pay", lookup)("HAT136") == {}


def test_the_tools_span_says_so() -> None:
    def broken(flight: str) -> None:
        raise LookupError(flight)

    with capture() as captured:
        assert sdk.tool("around")(always("empty").wrap("around", lookup))("HAT136") == {}
        with pytest.raises(LookupError):
            sdk.tool("really")(always("empty").wrap("really", broken))("HAT136")
        with pytest.raises(TimeoutError):
            sdk.tool("late")(always("timeout").wrap("late", lookup))("HAT136")
        with pytest.raises(TimeoutError):  # the tool's span is within it, and it is never called
            always("timeout").wrap("inside", sdk.tool("inside")(lookup))("HAT136")
        spans = captured.spans()
    kinds = {span.name: (span.attributes or {}).get(semconv.FAULT_INJECTED) for span in spans}
    assert len(spans) == 4
    assert kinds == {
        "execute_tool around": "empty",
        "execute_tool really": None,
        "execute_tool late": "timeout",
        "execute_tool inside": "timeout",
    }


def test_its_errors_can_be_sent_to_another_process() -> None:
    error = seen(always("http_429"), asynchronous=False)
    sent = copy.copy(error)  # by the same protocol
    assert sent is not error
    assert (sent.status_code, sent.retry_after, str(sent)) == (429, error.retry_after, str(error))
    assert injected(sent)


@pytest.mark.parametrize("settings", [{"p": 20}, {"weights": {"fire": 1}}, {"weights": {"empty": 0}}, {"errors": "x"}])
def test_what_cannot_be_asked(settings: dict[str, Any]) -> None:
    with pytest.raises(PerturbError):
        Faults(**settings)


def test_a_generator_is_refused() -> None:
    def stream() -> Any:
        yield 1

    with pytest.raises(PerturbError, match="generator"):
        always("empty").wrap("stream", stream)
