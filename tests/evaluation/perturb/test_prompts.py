"""The same request in other words: given, or written by an endpoint once and kept."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from surefoot.evaluation.agent import AttemptContext
from surefoot.evaluation.perturb import PerturbError, Prompts
from surefoot.evaluation.perturb.prompts import PROMPT_VERSION, generate, load, save
from surefoot.evaluation.suite import Endpoint

GIVEN = {"cancel": ["please end my plan", "I want out of my subscription"]}


def context(given: Any, repetition: int, task: str = "cancel") -> AttemptContext:
    return AttemptContext(
        suite="s", variant="v", task_id=task, repetition=repetition, seed=1, session_id="", input=given
    )


def test_each_repetition_gets_the_next() -> None:
    told = []
    for repetition in range(3):
        ctx = context("cancel my subscription", repetition)
        Prompts(given=GIVEN)(ctx)
        told.append((ctx.input, ctx.notes["prompts"]["paraphrase"]))
    assert told == [(GIVEN["cancel"][0], 0), (GIVEN["cancel"][1], 1), (GIVEN["cancel"][0], 0)]


def test_inside_of_an_object_and_where_there_is_none() -> None:
    ctx = context({"user": "mia", "say": {"first": "cancel"}}, 0)
    Prompts(given=GIVEN, field="say.first")(ctx)
    assert ctx.input == {"user": "mia", "say": {"first": GIVEN["cancel"][0]}}
    other = context("hello", 0, task="greet")
    Prompts(given=GIVEN)(other)
    assert (other.input, other.notes["prompts"]["paraphrase"]) == ("hello", None)
    for wrong in (Prompts(given=GIVEN), Prompts(given=GIVEN, field="say.last")):
        with pytest.raises(PerturbError):
            wrong(context({"say": {}}, 0))
    with pytest.raises(PerturbError, match="at least one"):
        Prompts(given={"cancel": []})


class Model(BaseHTTPRequestHandler):
    answer = "[]"
    asked: ClassVar[list[Any]] = []

    def do_POST(self) -> None:
        self.asked.append((self.path, json.loads(self.rfile.read(int(self.headers["content-length"])))))
        body = json.dumps({"choices": [{"message": {"content": self.answer}}]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    Model.asked.clear()
    yield Endpoint(url=f"http://127.0.0.1:{server.server_port}/v1", model="writer", prompt="", version="")
    server.shutdown()
    server.server_close()


def test_an_endpoint_writes_them_once(endpoint: Endpoint, tmp_path: Path) -> None:
    Model.answer = json.dumps(GIVEN["cancel"])
    made = generate({"cancel": "cancel my subscription"}, endpoint, count=2)
    assert made.given == GIVEN
    ((path, body),) = Model.asked
    assert path == "/v1/chat/completions"
    assert "cancel my subscription" in body["messages"][0]["content"]
    assert made.provenance["model"] == "writer"
    assert made.provenance["prompt_version"] == PROMPT_VERSION
    save(made, tmp_path / "words.json")
    assert load(tmp_path / "words.json") == made


@pytest.mark.parametrize("answer", ["sure!", '["one", "one"]', '["cancel my subscription", "x"]', "[1, 2]"])
def test_an_answer_that_is_no_list_of_other_words(endpoint: Endpoint, answer: str) -> None:
    Model.answer = answer
    with pytest.raises(PerturbError):
        generate({"cancel": "cancel my subscription"}, endpoint, count=2)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(PerturbError, match="save"):
        load(tmp_path / "x.json")
