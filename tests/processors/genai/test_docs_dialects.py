"""docs/dialects.md names every dialect, and its example is a dialect that works."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from surefoot.processors.genai.dialects import DIALECTS

PAGE = Path(__file__).parents[3] / "docs" / "dialects.md"

# In a process of its own: dialects are read once, when the columns are imported.
PROGRAM = """
import json, sys
namespace = {}
exec(sys.stdin.read(), namespace)
from surefoot.processors.genai import dialects
dialects.DIALECTS = (namespace["DIALECT"], *dialects.DIALECTS)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from surefoot.collector.segment import Encoding, Record, Signal
from surefoot.processors.genai.columns import canonical_spans
from surefoot.processors.otlp import decode_spans

request = ExportTraceServiceRequest()
for scope, name, attributes in (
    ("toybox.tracing", "robo", {"toy.kind": "robot", "toy.usage": '{"in": 7}', "toy.said": "secret"}),
    ("x", "hammer", {"toy.kind": "gadget", "toy.tokens": "3", "toy.said.0": "secret", "gen_ai.system": "openai"}),
    ("surefoot", "chat m", {"gen_ai.operation.name": "chat"}),
):
    group = request.resource_spans.add().scope_spans.add()
    group.scope.name = scope
    span = group.spans.add(trace_id=b"t" * 16, span_id=b"s" * 8, start_time_unix_nano=10**18, name=name)
    for key, text in attributes.items():
        span.attributes.add(key=key).value.string_value = text
spans, contents = canonical_spans(
    decode_spans([Record(Signal.TRACES, Encoding.PROTOBUF, 10**18, "t", request.SerializeToString())])
)
columns = ["dialect", "operation", "agent_name", "tool_name", "input_tokens", "provider_name"]
left = "secret" in str(spans["attributes"].to_pylist())
print(json.dumps([[list(row.values()) for row in spans.select(columns).to_pylist()], contents.num_rows, left]))
"""


def test_the_example_is_a_dialect() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    program = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(program, input=example, capture_output=True, text=True, check=True)
    rows, contents, left = json.loads(done.stdout)
    assert rows == [
        ["toybox", "invoke_agent", "robo", None, 7, None],
        ["toybox", "execute_tool", None, "hammer", 3, "openai"],
        ["otel_genai", "chat", None, None, None, None],
    ]
    assert (contents, left) == (2, False)


def test_every_dialect_has_a_row() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (?:scope|`aws)", PAGE.read_text(), re.MULTILINE)
    assert sorted(rows) == sorted({dialect.name for dialect in DIALECTS})
