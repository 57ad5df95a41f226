"""What a cassette must not do under an agent that starts threads, outlives its attempt, or holds secrets oddly."""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest

from surefoot.evaluation import AttemptContext, InfrastructureError, Protocol, Suite, Task, replay
from surefoot.evaluation.execute import Means, Order, make_attempt
from surefoot.evaluation.replay.cassette import read_cassette, seal
from surefoot.evaluation.replay.errors import CassetteError, CassetteMissError
from surefoot.evaluation.usage import UsageProcessor


def test_a_tool_that_outlives_its_attempt_writes_into_no_other_file(tmp_path: Path) -> None:
    go, said = threading.Event(), []

    def slow(x: int) -> int:
        go.wait(10)
        return x

    def work(tool: Any) -> None:
        try:
            tool(1)
        except CassetteError as error:
            said.append(str(error))

    with replay.opened(tmp_path / "a.jsonl", "record") as world:
        tool = world.tool("slow", slow)
        left = threading.Thread(target=work, args=(tool,))
        left.start()
        while not world.report().unfinished:
            pass
    # It gets the number of the descriptor that the recording had.
    other = os.open(tmp_path / "other", os.O_RDWR | os.O_CREAT)
    go.set()
    left.join()
    os.close(other)
    assert (tmp_path / "other").read_bytes() == b""
    assert "after the recording was closed" in said[0]
    with pytest.raises(CassetteError, match="had ended"):
        tool(2)


class _Answers(BaseHTTPRequestHandler):
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def server() -> Any:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as there:
        _Answers.asked.clear()
        thread = threading.Thread(target=there.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{there.server_port}"
        there.shutdown()
        thread.join()


def get(url: str) -> Any:
    with httpx.Client(transport=replay.transport()) as client:
        return client.get(url).json()


def test_a_thread_without_the_attempts_context_is_replayed_too(tmp_path: Path, server: str) -> None:
    for mode in ("record", "replay"):
        with replay.opened(tmp_path / "a.jsonl", mode), ThreadPoolExecutor() as pool:
            assert pool.submit(get, f"{server}/once").result() == {}
    assert _Answers.asked == ["/once"]
    with (
        pytest.raises(CassetteMissError),
        replay.opened(tmp_path / "a.jsonl"),
        ThreadPoolExecutor() as pool,
    ):
        pool.submit(get, f"{server}/never").result()
    with (
        pytest.raises(CassetteError, match="to which of 2 attempts"),
        replay.opened(tmp_path / "a.jsonl"),
        replay.opened(tmp_path / "a.jsonl"),
        ThreadPoolExecutor() as pool,
    ):
        pool.submit(get, f"{server}/once").result()
    assert _Answers.asked == ["/once"]


def test_secrets_where_names_do_not_stand_beside_them(
    tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_TOKEN", "abcdefgh")
    monkeypatch.setenv("B_TOKEN", "abcdefgh-and-its-end")
    with replay.opened(tmp_path / "a.jsonl", "record") as world:
        get(f"{server}/bot{os.environ['B_TOKEN']}/send")
        world.tool("mixed", lambda: {1: "x", "password": "hunter2hunter"})()
        world.tool("raw", lambda: b'{"api_key": "hunter3hunter"}')()
    text = (tmp_path / "a.jsonl").read_text()
    assert "its-end" not in text
    assert "hunter2" not in text
    assert b"hunter3".hex() not in text
    with replay.opened(tmp_path / "a.jsonl") as world:
        assert get(f"{server}/bot{os.environ['B_TOKEN']}/send") == {}
        assert world.tool("mixed", lambda: None)() == {1: "x", "password": "[REDACTED]"}
        assert world.tool("raw", lambda: None)() == b'{"api_key": "[REDACTED]"}'


def test_a_number_and_its_text_are_two_keys(tmp_path: Path) -> None:
    with replay.opened(tmp_path / "a.jsonl", "record") as world:
        tool = world.tool("t", len)
        tool({1: "a", "1": "b"})
        tool({"1": "b"})
    with replay.opened(tmp_path / "a.jsonl") as world:
        assert world.tool("t", len)({"1": "b"}) == 1


EDITS: list[dict[str, Any]] = [
    {"result": None, "absent": "result"},
    {"result": {"$datetime": "yesterday"}},
    {"result": float("nan")},
    {"error": "boom"},
    {"name": ["t"]},
]


@pytest.mark.parametrize("edit", EDITS)
def test_a_line_that_could_not_be_replayed_is_not_sealed(tmp_path: Path, edit: dict[str, Any]) -> None:
    path = tmp_path / "a.jsonl"
    with replay.opened(path, "record") as world:
        world.tool("t", lambda x: x)(1)
    header, line, end = path.read_text().splitlines()
    edited = {**json.loads(line), **edit}
    edited.pop(edited.pop("absent", ""), None)
    path.write_text("\n".join([header, json.dumps(edited), end]) + "\n")
    before = path.read_bytes()
    with pytest.raises(CassetteError, match=r"a.jsonl:2"):
        seal(path)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [before]


def test_an_end_without_its_hash_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"cassette": 1}\n{"end": 0}\n')
    with pytest.raises(CassetteError, match="its end is missing"):
        read_cassette(path)


def context(task: str = "a/b", variant: str = "v") -> AttemptContext:
    return AttemptContext(suite="s", variant=variant, task_id=task, repetition=0, seed=1, session_id="")


def test_one_tasks_cassette_does_not_replace_anothers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUREFOOT_REPLAY", "record")
    around = replay.Around(tmp_path / "{task_id}.jsonl")

    def record(ctx: AttemptContext, value: int) -> None:
        with around(ctx):
            ctx.tool("t", lambda: value)()

    record(context(), 1)
    record(context(), 2)  # the same one again
    with pytest.raises(CassetteError, match="the task 'a/b', and this is 'a_b'"):
        record(context("a_b"), 3)
    with pytest.raises(CassetteError, match="the variant 'v', and this is 'w'"):
        record(context(variant="w"), 4)
    (entry,) = read_cassette(tmp_path / "a_b.jsonl").entries
    assert entry.outcome == {"result": 2}


async def test_a_recorded_result_whose_type_is_gone_is_not_the_agents_failure(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with replay.opened(path, "record") as world:
        world.tool("t", lambda: 1)()
    text = path.read_text().replace('"result": 1', '"result": {"$dataclass": "gone:Gone", "fields": {}}')
    path.write_text(text)
    seal(path)

    def agent(_: Any, ctx: AttemptContext) -> Any:
        return ctx.tool("t", lambda: 1)()

    suite = Suite(
        name="s",
        agent=agent,
        tasks=(Task(id="t", input="x"),),
        protocol=Protocol(k=1, effects="replayed", isolation="inline", around=(replay.Around(path),)),
    )
    means = Means(suite, UsageProcessor(), threads=False)
    attempt = await make_attempt(means, Order("1", "baseline", "t", 0, "run"))
    assert attempt.outcome == "infrastructure"
    assert attempt.acceptable is None
    assert "gone:Gone" in (attempt.error.message if attempt.error else "")


def test_what_is_wrong_with_a_cassette_is_infrastructure() -> None:
    assert issubclass(CassetteError, InfrastructureError)
