"""Agents' traces as OTLP bodies, made once and sent again and again as fresh spans.

Every trace id and every span id begins with a salt. Replacing the salt's bytes makes a body of new spans in some 50 us,
so that the client takes little of the machine that it shares with the server.
"""

from __future__ import annotations

import itertools
import json
import random
import struct
import time
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

SPANS_PER_TRACE = 10
_TRACE_SALT, _SPAN_SALT = b"\xfb\xf1salt\xf7\xfd", b"\xfc\xf3\xf9\xf2"
_MESSAGE_BYTES = 900


class Fresh(NamedTuple):
    """A body and the salt of its trace ids: the first 16 hex digits of each."""

    body: bytes
    salt: str


class Bodies:
    """An endless supply of bodies of ``spans`` spans each; their traces have ten spans, or fewer in smaller bodies."""

    def __init__(self, spans: int, *, content: bool = False, distinct: int = 32, seed: int = 1) -> None:
        chance = random.Random(seed)
        self.spans = spans
        self._templates = itertools.cycle([_body(spans, content, chance) for _ in range(distinct)])
        self._number = itertools.count(1)
        self._run = time.time_ns() & 0xFFFFFFFF

    def fresh(self) -> Fresh:
        """The next body."""
        number = next(self._number)
        salt = struct.pack(">II", self._run, number)
        body = next(self._templates).replace(_TRACE_SALT, salt).replace(_SPAN_SALT, struct.pack(">I", number))
        return Fresh(body, salt.hex())


def _body(spans: int, content: bool, chance: random.Random) -> bytes:
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    for key, text in (("service.name", "desk"), ("service.version", "1.2"), ("deployment.environment.name", "prod")):
        resource.resource.attributes.add(key=key).value.string_value = text
    group = resource.scope_spans.add()
    group.scope.name = "surefoot"
    now = time.time_ns() - 60 * 10**9
    for first in range(0, spans, SPANS_PER_TRACE):
        count = min(SPANS_PER_TRACE, spans - first)
        _trace(group.spans, first, count, now + chance.randrange(10**9), content, chance)
    return request.SerializeToString()


def _trace(group: Any, first: int, count: int, start: int, content: bool, chance: random.Random) -> None:
    trace_id = _TRACE_SALT + struct.pack(">Q", first + 1)
    conversation = f"conversation-{chance.randrange(10**6)}"
    ids = [_SPAN_SALT + struct.pack(">I", first + place + 1) for place in range(count)]
    moment = start
    for place in range(count):
        operation = "invoke_agent" if place == 0 else ("chat" if place % 2 else "execute_tool")
        span = group.add(trace_id=trace_id, span_id=ids[place], name=f"{operation} desk", kind=1)
        span.parent_span_id = ids[0] if place else b""
        end = moment + chance.randrange(10**6, 10**8)
        span.start_time_unix_nano, span.end_time_unix_nano = moment, start + 10**9 if place == 0 else end
        moment = end
        for key, text in {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": chance.choice(("gpt-4o-mini", "gpt-4o")),
            "gen_ai.agent.name": "desk",
            "gen_ai.conversation.id": conversation,
            "gen_ai.tool.name": f"tool_{chance.randrange(20)}",
            "surefoot.task.class": chance.choice(("refund", "order", "question")),
        }.items():
            span.attributes.add(key=key).value.string_value = text
        span.attributes.add(key="gen_ai.usage.input_tokens").value.int_value = chance.randrange(100, 5000)
        span.attributes.add(key="gen_ai.usage.output_tokens").value.int_value = chance.randrange(5, 500)
        span.attributes.add(key="gen_ai.request.temperature").value.double_value = 0.7
        if content:
            span.attributes.add(key="gen_ai.input.messages").value.string_value = _message(chance)


def _message(chance: random.Random) -> str:
    words = " ".join(f"{chance.randrange(1 << chance.randrange(4, 33)):x}" for _ in range(_MESSAGE_BYTES // 5))
    return json.dumps([{"role": "user", "parts": [{"type": "text", "content": words[: _MESSAGE_BYTES - 60]}]}])
