"""(d) kill -9 of each server process while spans are sent: every acknowledged span is in the lake exactly once."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from support.serving import Server, eventually, serving

SPANS_A_REQUEST = 20


@dataclass
class Sender:
    """Sends requests one after another and sends a request again until it is acknowledged, as exporters do."""

    url: str
    stop: threading.Event = field(default_factory=threading.Event)
    acknowledged: list[str] = field(default_factory=list)
    again: int = 0

    def run(self) -> None:
        while not self.stop.is_set():
            trace = os.urandom(16)
            spans = [os.urandom(8) for _ in range(SPANS_A_REQUEST)]
            body = _request(trace, spans)
            while not self._send(body):
                self.again += 1
                time.sleep(0.1)
            self.acknowledged += [span.hex() for span in spans]

    def _send(self, body: bytes) -> bool:
        request = urllib.request.Request(
            f"{self.url}/v1/traces", body, {"Content-Type": "application/x-protobuf"}, method="POST"
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False


def _request(trace: bytes, spans: list[bytes]) -> bytes:
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    scope = group.scope_spans.add()
    start = time.time_ns()
    for number, span_id in enumerate(spans):
        span = scope.spans.add()
        span.trace_id, span.span_id = trace, span_id
        if number:
            span.parent_span_id = spans[0]
        operation = "execute_tool" if number else "invoke_agent"
        span.name = f"{operation} thing"
        span.start_time_unix_nano, span.end_time_unix_nano = start + number, start + 1000 + number
        for key, value in {
            "gen_ai.operation.name": operation,
            "gen_ai.agent.name": "thing",
            "gen_ai.tool.name": "t",
        }.items():
            span.attributes.add(key=key).value.string_value = value
    return request.SerializeToString()


def kill_some(server: Server, names: list[str], kills: int, dice: random.Random) -> int:
    done = 0
    while done < kills:
        time.sleep(dice.uniform(0.1, 0.9))
        pid = server.pids().get(names[done % len(names)])
        if pid is None:
            continue  # still being started again
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
        done += 1
    return done


def attack(home: Path, kills: int, seed: int) -> None:
    dice = random.Random(seed)
    names = ["collector", "writer", "jobs", "writer", "collector", "web"]
    with serving(home) as server:
        sender = Sender(server.http)
        thread = threading.Thread(target=sender.run)
        thread.start()
        assert kill_some(server, names, kills, dice) == kills
        enough = 25 * SPANS_A_REQUEST
        eventually("enough to look at", lambda: len(sender.acknowledged) >= enough, 120)
        sender.stop.set()
        thread.join(60)
        assert not thread.is_alive()
        wanted = set(sender.acknowledged)
        query = "SELECT span_id FROM spans"
        eventually("every span", lambda: wanted <= {row["span_id"] for row in server.rows(query)}, 120)
        seen = [row["span_id"] for row in server.rows(query)]
        assert len(seen) == len(set(seen))  # nothing twice
        runs = len(wanted) // SPANS_A_REQUEST
        derived = "SELECT count(*) AS runs, count(DISTINCT run_id) AS distinct_runs, sum(tool_calls) AS calls FROM runs"
        expected = [{"runs": runs, "distinct_runs": runs, "calls": runs * (SPANS_A_REQUEST - 1)}]
        eventually("every run once", lambda: server.rows(derived) == expected, 120)


def test_kill_nine_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    attack(tmp_path / "home", kills=8, seed=3)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_kill_nine_a_hundred_times(tmp_path: Path, seed: int) -> None:
    attack(tmp_path / "home", kills=20, seed=seed)
