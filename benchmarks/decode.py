"""What a span costs from acknowledged bytes to rows, beside the same work in a Python loop over spans.

Both sides take the same requests, in turn, so that a busy machine slows both alike; each round gives one ratio, of
processor times. Printed are the median of these ratios, their quartiles, and the number of rounds.

Ours: ``decode_spans`` (ptars and Arrow), then ``canonical_spans``, then zstd Parquet. The loop: upb messages, one pass
over spans and their attributes into lists of columns, hex ids, maps of text, then Arrow; it leaves out canonical
columns, events, links, contents and Parquet, so it does less than ours.

    python benchmarks/decode.py [--rounds 9] [--traces 2000]
"""

from __future__ import annotations

import argparse
import io
import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from surefoot.collector.segment import Encoding, Record, Signal
from surefoot.processors.genai.columns import canonical_spans
from surefoot.processors.lake.parquet import write_parquet
from surefoot.processors.otlp import decode_spans

SPANS_PER_TRACE = 10
SPANS_PER_REQUEST = 100
MAP = pa.map_(pa.string(), pa.string())


def requests(traces: int) -> list[Record]:
    """Traces of an agent, its model calls and its tool calls, about ten attributes a span."""
    now = time.time_ns()
    records = []
    for first in range(0, traces, SPANS_PER_REQUEST // SPANS_PER_TRACE):
        request = ExportTraceServiceRequest()
        resource = request.resource_spans.add()
        for key, text in (
            ("service.name", "desk"),
            ("service.version", "1.2"),
            ("deployment.environment.name", "prod"),
        ):
            resource.resource.attributes.add(key=key).value.string_value = text
        group = resource.scope_spans.add()
        group.scope.name = "surefoot"
        for trace in range(first, min(traces, first + SPANS_PER_REQUEST // SPANS_PER_TRACE)):
            _trace(group.spans, trace, now)
        records.append(Record(Signal.TRACES, Encoding.PROTOBUF, now, "127.0.0.1", request.SerializeToString()))
    return records


def _trace(spans: Any, number: int, now: int) -> None:
    trace_id, root = os.urandom(16), os.urandom(8)
    for place in range(SPANS_PER_TRACE):
        operation = "invoke_agent" if place == 0 else ("chat" if place % 2 else "execute_tool")
        span = spans.add(trace_id=trace_id, span_id=os.urandom(8) if place else root, name=f"{operation} desk", kind=1)
        span.parent_span_id = root if place else b""
        span.start_time_unix_nano, span.end_time_unix_nano = now + place * 10**6, now + (place + 1) * 10**6
        texts = {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "gpt-4o-mini",
            "gen_ai.agent.name": "desk",
            "gen_ai.conversation.id": f"conversation-{number}",
            "gen_ai.tool.name": f"tool_{place}",
            "surefoot.task.class": "refund",
        }
        for key, text in texts.items():
            span.attributes.add(key=key).value.string_value = text
        span.attributes.add(key="gen_ai.usage.input_tokens").value.int_value = 100 + place
        span.attributes.add(key="gen_ai.usage.output_tokens").value.int_value = 10 + place
        span.attributes.add(key="gen_ai.request.temperature").value.double_value = 0.7


def in_a_loop(records: Sequence[Record]) -> pa.Table:
    """The same requests, span by span."""
    columns: dict[str, list[Any]] = {
        name: [] for name in ("trace_id", "span_id", "parent_span_id", "name", "kind", "start", "end", "status")
    }
    maps: list[list[tuple[str, str]]] = []
    for record in records:
        for resource in ExportTraceServiceRequest.FromString(record.body).resource_spans:
            for group in resource.scope_spans:
                for span in group.spans:
                    columns["trace_id"].append(span.trace_id.hex())
                    columns["span_id"].append(span.span_id.hex())
                    columns["parent_span_id"].append(span.parent_span_id.hex())
                    columns["name"].append(span.name)
                    columns["kind"].append(span.kind)
                    columns["start"].append(span.start_time_unix_nano)
                    columns["end"].append(span.end_time_unix_nano)
                    columns["status"].append(span.status.code)
                    maps.append([(pair.key, _text(pair.value)) for pair in span.attributes])
    return pa.table({**columns, "attributes": pa.array(maps, MAP)})


def _text(value: Any) -> str:
    return str(getattr(value, value.WhichOneof("value")))


def seconds(work: Callable[[], Any]) -> float:
    """Processor time of one call, of all threads: what other work on the machine takes is left out."""
    began = time.process_time()
    work()
    return time.process_time() - began


def parquet(table: pa.Table) -> None:
    """Write as the lake does, to memory."""
    write_parquet([table], io.BytesIO())


def told(name: str, ratios: Sequence[float], rates: Sequence[float]) -> str:
    """One line of the result."""
    low, _, high = statistics.quantiles(ratios, n=4)
    return (
        f"{name:<22} {statistics.median(ratios):5.2f} x the loop (quartiles {low:.2f} to {high:.2f}, "
        f"{len(ratios)} rounds), median {statistics.median(rates):,.0f} spans/s"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--traces", type=int, default=2000)
    options = parser.parse_args(arguments)
    records = requests(options.traces)
    spans = options.traces * SPANS_PER_TRACE
    raw = decode_spans(records)
    canonical, _ = canonical_spans(raw)
    loop: list[float] = []
    stages: dict[str, list[float]] = {"decode": [], "and canonical columns": [], "and Parquet": []}
    for _ in range(options.rounds):
        loop.append(seconds(lambda: in_a_loop(records)))
        took = 0.0
        work = (lambda: decode_spans(records), lambda: canonical_spans(raw), lambda: parquet(canonical))
        for times, stage in zip(stages.values(), work, strict=True):
            took += seconds(stage)
            times.append(took)
    size = sum(len(record.body) for record in records)
    print(f"{spans:,} spans, {size / spans:.0f} bytes each, {SPANS_PER_REQUEST} a request; one core")
    print(f"{'loop over spans':<22} {'':>5}   median {spans / statistics.median(loop):,.0f} spans/s")
    for name, times in stages.items():
        ratios = [slow / ours for slow, ours in zip(loop, times, strict=True)]
        print(told(name, ratios, [spans / ours for ours in times]))


if __name__ == "__main__":
    main()
