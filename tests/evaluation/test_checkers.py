"""Verdicts: what each checker says of right and wrong, and that state and message both count."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot.evaluation import (
    AttemptContext,
    Checker,
    Endpoint,
    InfrastructureError,
    Protocol,
    Suite,
    Task,
    User,
    Verdict,
)
from surefoot.evaluation.calling import answer
from surefoot.evaluation.checkers import acceptable, check, signature
from surefoot.evaluation.runner import Plan, repeat

TESTS = """
import pytest

def test_good(attempt):
    assert attempt.output == "yes"

def test_state(attempt):
    assert attempt.state["paid"] == attempt.input["price"]

def test_broken(missing_fixture):
    pass

def test_skipped():
    pytest.skip("not now")
"""


def context(state: Any = None, given: Any = None) -> AttemptContext:
    return AttemptContext(
        suite="s", variant="v", task_id="t", repetition=0, seed=1, session_id="x", input=given, state=state
    )


def judge(answer: Any) -> tuple[bool, str]:
    return answer == "yes", "because"


@pytest.mark.parametrize(
    ("checker", "output", "state", "verdict", "told"),
    [
        (Checker(type="exact", expected=1), 1, None, "pass", ""),
        (Checker(type="exact", expected=1), True, None, "fail", "expected 1, found true"),
        (Checker(type="exact", expected="b", field="a.0"), {"a": ["b"]}, None, "pass", ""),
        (Checker(type="exact", expected="b", field="a.1"), {"a": ["b"]}, None, "fail", "there is no 'a.1'"),
        (Checker(type="regex", expected=r"order \d+"), "order 12", None, "pass", ""),
        (Checker(type="regex", expected=r"order \d+"), "order x", None, "fail", "does not match order x"),
        (Checker(type="json_schema", expected={"required": ["a"]}), '{"a": 1}', None, "pass", ""),
        (
            Checker(type="json_schema", expected={"required": ["a"]}),
            {"b": 1},
            None,
            "fail",
            "'a' is a required property",
        ),
        (Checker(type="json_schema", expected={"required": ["a"]}), "no", None, "fail", "not JSON"),
        (Checker(type="callable", expected=judge), "yes", None, "pass", "because"),
        (Checker(type="callable", expected=judge), "no", None, "fail", "because"),
        (Checker(type="callable", expected=lambda _: None), "no", None, "unresolved", "returned nothing"),
        (Checker(type="callable", expected=lambda x: x["y"]), {}, None, "unresolved", "KeyError"),
        (Checker(type="callable", expected=lambda s: s == 3, on="state"), "no", 3, "pass", ""),
        (Checker(type="final_state", expected={"a": [1]}), "", {"a": (1,)}, "pass", ""),
        (
            Checker(type="final_state", expected={"a": [1]}),
            "",
            {"a": [1], "b": 2},
            "fail",
            "b: expected nothing, found 2",
        ),
        (Checker(type="final_state", expected={"a": 1}, ignore=("b",)), "", {"a": 1, "b": {"c": 2}}, "pass", ""),
        (Checker(type="judge"), "yes", None, "unresolved", "needs an endpoint"),
    ],
)
def test_what_each_checker_says(checker: Checker, output: Any, state: Any, verdict: str, told: str) -> None:
    found = check(checker, output, context(state))
    assert found.verdict == verdict
    assert told in (found.explanation or "")


def test_a_pytest_function_is_a_checker(tmp_path: Path) -> None:
    file = tmp_path / "checks.py"
    file.write_text(TESTS)
    asked = {"price": 3}
    cases = [("test_good", "yes"), ("test_good", "no"), ("test_state", "no")]
    cases += [(name, "yes") for name in ("test_broken", "test_skipped", "test_missing")]
    verdicts = {
        (name, output): check(Checker(type="pytest", expected=f"{file}::{name}"), output, context({"paid": 3}, asked))
        for name, output in cases
    }
    found = {key: verdict.verdict for key, verdict in verdicts.items()}
    assert found["test_good", "yes"] == found["test_state", "no"] == "pass"
    assert found["test_good", "no"] == "fail"
    assert "assert 'no' == 'yes'" in (verdicts["test_good", "no"].explanation or "")
    unresolved = {found[name, "yes"] for name in ("test_broken", "test_skipped", "test_missing")}
    assert unresolved == {"unresolved"}


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        (["pass", "pass"], True),
        (["pass", "fail"], False),
        (["unresolved", "fail"], False),
        (["pass", "unresolved"], None),
        ([], None),
    ],
)
def test_acceptable_only_if_every_outcome_checker_passes(outcomes: list[Any], expected: bool | None) -> None:
    verdicts = [Verdict(str(n), "outcome", word) for n, word in enumerate(outcomes)]
    # Broken rules are another question.
    assert acceptable([*verdicts, Verdict("rule", "process", "fail")]) is expected


def test_signatures_are_equal_for_what_a_rule_calls_equivalent() -> None:
    one, two = {"messages": [{"role": "assistant", "content": "Yes, done."}]}, "yes done"
    assert signature("words", one, 1) == signature("words", two, 2)
    assert signature("message", one, 1) != signature("message", two, 1)
    assert signature("state", one, {"a": 1, "b": 2}) == signature("state", two, {"b": 2, "a": 1})
    assert signature("exact", "x", 1) != signature("exact", "x", 2)
    assert signature(lambda output, _: len(output), "ab", 0) == signature(lambda output, _: len(output), "cd", 0)
    assert signature(lambda *_: None, "ab", 0) is None


@pytest.fixture
def endpoint() -> Iterator[tuple[str, list[dict[str, Any]], list[Any]]]:
    """An OpenAI-compatible endpoint: its address, the requests that it got, and what it is to answer."""
    asked: list[dict[str, Any]] = []
    answers: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            answer = answers.pop(0)
            body = json.dumps({"choices": [{"message": {"role": "assistant", "content": answer}}]}).encode()
            self.send_response(200 if isinstance(answer, str) else 500)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", asked, answers
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_judge_is_asked_with_its_versioned_prompt_and_one_that_is_down_gives_no_verdict(
    endpoint: tuple[str, list[dict[str, Any]], list[Any]],
) -> None:
    url, asked, answers = endpoint
    told = Endpoint(url=url, model="judge-1", prompt="Is the answer polite?", version="3")
    checker = Checker(type="judge", endpoint=told, name="polite")
    answers += ['{"verdict": "pass", "reason": "kind"}', 'Sure: {"verdict": "fail"}', "maybe", None]
    found = [check(checker, "Dear customer", context(given="hello")) for _ in range(4)]
    assert [verdict.verdict for verdict in found] == ["pass", "fail", "unresolved", "unresolved"]
    assert (found[0].grader_name, found[0].grader_version, found[0].grader_kind) == ("judge:judge-1", "3", "model")
    prompt = asked[0]["messages"][0]["content"]
    assert all(part in prompt for part in ("Is the answer polite?", "hello", "Dear customer"))
    assert "500" in (found[3].explanation or "")


def conversing(user: User, folder: Path) -> Any:
    async def agent(messages: list[dict[str, Any]]) -> str:
        return f"{len(messages)}: {messages[-1]['content']}"

    task = Task(id="talk", input=None, user=user, checkers=(Checker(type="regex", expected="^3: "),))
    protocol = Protocol(k=1, effects="none", isolation="inline")
    (one,) = repeat(
        Plan(suite=Suite(name="talk", agent=agent, protocol=protocol, tasks=(task,)), folder=folder)
    ).attempts
    return one


def test_a_scripted_user_says_its_turns(tmp_path: Path) -> None:
    one = conversing(User(turns=("hello", "goodbye")), tmp_path)
    said = [(message["role"], message["content"]) for message in one.output["messages"]]
    assert said == [("user", "hello"), ("assistant", "1: hello"), ("user", "goodbye"), ("assistant", "3: goodbye")]
    assert one.acceptable


def test_an_endpoint_plays_the_user_from_an_instruction_that_the_agent_never_sees(
    tmp_path: Path, endpoint: tuple[str, list[dict[str, Any]], list[Any]]
) -> None:
    url, asked, answers = endpoint
    answers += ["I want a refund", "Order 7", "Thanks ###STOP###"]
    user = User(endpoint=Endpoint(url=url, model="user-1", prompt="You want order 7 refunded.", version="1"))
    one = conversing(user, tmp_path)
    assert [message["content"] for message in one.output["messages"]] == [
        "I want a refund",
        "1: I want a refund",
        "Order 7",
        "3: Order 7",
    ]
    assert asked[1]["messages"][1:] == [
        {"role": "assistant", "content": "I want a refund"},
        {"role": "user", "content": "1: I want a refund"},
    ]
    assert "order 7 refunded" in asked[0]["messages"][0]["content"]


def test_a_user_that_does_not_answer_is_the_infrastructure(
    tmp_path: Path, endpoint: tuple[str, list[dict[str, Any]], list[Any]]
) -> None:
    endpoint[2].append(None)
    user = User(endpoint=Endpoint(url=endpoint[0], model="user-1", prompt="p", version="1"))
    assert conversing(user, tmp_path).outcome == "infrastructure"


def test_a_schema_fetches_nothing() -> None:
    asked: list[str] = []

    class Schema(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Schema) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        there = {"$ref": f"http://127.0.0.1:{server.server_port}/schema.json"}
        found = check(Checker(type="json_schema", expected=there), {"a": 1}, context())
        server.shutdown()
        thread.join()
    assert asked == []
    assert found.verdict == "unresolved"
    draft = {"$ref": "https://json-schema.org/draft/2020-12/schema"}
    assert check(Checker(type="json_schema", expected=draft), {"type": 5}, context()).verdict == "fail"
    assert check(Checker(type="json_schema", expected=True), "5", context()).verdict == "pass"


def leaves(_: Any) -> Any:
    raise SystemExit(3)


def says_no(_: Any) -> Any:
    pytest.fail("not this one")


def skips(_: Any) -> Any:
    pytest.skip("another time")


def numpys(_: Any) -> Any:
    return np.bool_(False)


@pytest.mark.parametrize(
    ("function", "verdict", "told"),
    [
        (leaves, "unresolved", "SystemExit"),
        (says_no, "fail", "not this one"),
        (skips, "unresolved", "another time"),
        (numpys, "fail", None),
    ],
)
def test_a_callable_ends_nothing(function: Any, verdict: str, told: str | None) -> None:
    found = check(Checker(type="callable", expected=function), "x", context())
    assert found.verdict == verdict
    assert (told or "") in (found.explanation or "")


@pytest.mark.parametrize("found", [{"ok": 1}, {"ok": True, "more": 1}, {"ok": [True]}])
def test_exact_is_exact_at_every_depth(found: Any) -> None:
    checker = Checker(type="exact", expected={"ok": True})
    assert check(checker, {"ok": True}, context()).verdict == "pass"
    assert check(checker, found, context()).verdict == "fail"
    assert check(Checker(type="exact", expected=[1, [True]]), [1.0, [True]], context()).verdict == "pass"
    assert check(Checker(type="exact", expected=[1, [True]]), [1, [1]], context()).verdict == "fail"


async def test_a_user_that_does_not_answer_in_time_is_not_the_agents_failure() -> None:
    quiet = socket.create_server(("127.0.0.1", 0))  # takes connections, and answers none
    url = f"http://127.0.0.1:{quiet.getsockname()[1]}"
    user = User(endpoint=Endpoint(url=url, model="m", prompt="p", version="1", timeout_seconds=3))
    with quiet, pytest.raises(InfrastructureError, match="simulated user"):
        await answer(lambda _: "x", Task(id="t", input="hello", user=user), context(), limit=0.5, threads=True)


def test_no_answer_matches_nothing() -> None:
    found = check(Checker(type="regex", expected=r"\S"), None, context())
    assert (found.verdict, found.explanation) == ("fail", "there is no answer")


@pytest.mark.parametrize("said", ["###STOP###", ""])
async def test_a_user_that_says_nothing_is_not_the_agents_failure(said: str) -> None:
    class Says(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            body = json.dumps({"choices": [{"message": {"content": said}}]}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Says) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        user = User(endpoint=Endpoint(url=url, model="m", prompt="p", version="1"))
        with pytest.raises(InfrastructureError):
            await answer(lambda _: "x", Task(id="t", input=None, user=user), context(), limit=20, threads=True)
        server.shutdown()
        thread.join()


async def test_an_agent_that_streams_its_answer_has_not_answered() -> None:
    async def parts(given: Any) -> Any:
        yield given

    with pytest.raises(InfrastructureError, match="return the whole answer"):
        await answer(parts, Task(id="t", input="x"), context(), limit=5, threads=False)
