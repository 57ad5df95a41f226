"""An OpenAI-compatible model server that plays a script: n, tools, streaming, seeds, and variation where none is given.

Answers of requests without a ``seed`` are drawn from one generator of the server, so two live runs differ as they do
with a real model; with a ``seed`` they depend on the request only.
"""

from __future__ import annotations

import contextlib
import json
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Message = dict[str, Any]
# What the model says to these messages: the content of an assistant's message, drawn from a generator.
Script = Callable[[list[Message], random.Random], Message]


def support_desk(messages: list[Message], draw: random.Random) -> Message:
    """Look the order up, twice and at once with a note; then answer in words that vary."""
    results = [message["content"] for message in messages if message["role"] == "tool"]
    if not results:
        calls = [("look_up", {"order": 42}), ("look_up", {"order": 43}), ("note", {"text": f"case {draw.random()}"})]
        return {
            "tool_calls": [
                {
                    "id": f"call_{draw.getrandbits(64):x}",
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(arguments)},
                }
                for name, arguments in calls
            ]
        }
    said = draw.choice(["Your orders are", "As I see, they are", "They are", "Both are found:"])
    return {"content": f"{said} {' and '.join(sorted(map(str, results)))}. Ticket {draw.getrandbits(32):08x}."}


@dataclass
class ScriptedModel:
    """A running server. ``requests`` are the bodies that came, ``headers`` those of the last request."""

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    failures: list[tuple[int, str]] = field(default_factory=list)  # status and body for the next requests


@contextlib.contextmanager
def scripted_model(script: Script = support_desk) -> Iterator[ScriptedModel]:
    """Serve until the block ends; then nothing answers there any more."""
    luck = random.Random()
    lock = threading.Lock()
    model = ScriptedModel("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with lock:
                model.requests.append(body)
                model.headers.clear()
                model.headers.update(self.headers.items())
                failure = model.failures.pop(0) if model.failures else None
                number = len(model.requests)
                given = body.get("seed")
                draw = random.Random(f"{given}/{json.dumps(body['messages'])}" if given is not None else luck.random())
            if failure is not None:
                self.whole(failure[1].encode(), failure[0])
                return
            messages = [script(body["messages"], draw) for _ in range(body.get("n") or 1)]
            head = {"id": f"chatcmpl-{number}", "created": 1_780_000_000 + number, "model": body["model"]}
            if body.get("stream"):
                self.stream(head, messages)
            else:
                self.whole(json.dumps(completion(head, messages)).encode())

        def whole(self, body: bytes, status: int = 200) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.send_header("x-request-id", "req_1")
            self.end_headers()
            self.wfile.write(body)

        def stream(self, head: dict[str, Any], messages: list[Message]) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for index, message in enumerate(messages):
                for delta, reason in deltas(message):
                    choice = {"index": index, "delta": delta, "finish_reason": reason}
                    self.event(json.dumps({**head, "object": "chat.completion.chunk", "choices": [choice]}))
            self.event("[DONE]")
            self.wfile.write(b"0\r\n\r\n")

        def event(self, data: str) -> None:
            body = f"data: {data}\n\n".encode()
            self.wfile.write(f"{len(body):x}\r\n".encode() + body + b"\r\n")
            self.wfile.flush()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    model.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def completion(head: dict[str, Any], messages: list[Message]) -> dict[str, Any]:
    """Return the whole answer."""
    choices = [
        {
            "index": index,
            "message": {"role": "assistant", "content": None, **message},
            "finish_reason": "tool_calls" if "tool_calls" in message else "stop",
        }
        for index, message in enumerate(messages)
    ]
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    return {**head, "object": "chat.completion", "choices": choices, "usage": usage}


def deltas(message: Message) -> Iterator[tuple[dict[str, Any], str | None]]:
    """Yield a message piece by piece, as it is streamed: words, and arguments in two halves."""
    yield {"role": "assistant", "content": ""}, None
    for number, call in enumerate(message.get("tool_calls", [])):
        text = call["function"]["arguments"]
        first = {**call, "function": {**call["function"], "arguments": text[: len(text) // 2]}}
        yield {"tool_calls": [{"index": number, **first}]}, None
        yield {"tool_calls": [{"index": number, "function": {"arguments": text[len(text) // 2 :]}}]}, None
    for word in (message.get("content") or "").split():
        yield {"content": f"{word} "}, None
    yield {}, "tool_calls" if "tool_calls" in message else "stop"
