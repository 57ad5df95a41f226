"""What OTLP/JSON costs beside the same requests as protobuf, in the two places where it is looked at.

Check: what the collector does before it acknowledges (parse, check, write canonical JSON; for protobuf: parse and
check). Decode: what the writer does to get Arrow rows. "Exact" is the way that JSON takes when something in a request
is not in order. All take the same spans in turn, so that a busy machine slows all alike; each round gives one ratio, of
processor times. Printed are medians, quartiles, and the number of rounds.

    python benchmarks/otlp_json.py [--rounds 9] [--traces 2000]
"""

from __future__ import annotations

import argparse
import base64
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import orjson
from decode import SPANS_PER_REQUEST, SPANS_PER_TRACE, requests, seconds
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from surefoot.collector import json_codec
from surefoot.collector.segment import Encoding, Record, Signal
from surefoot.collector.validate import check
from surefoot.processors.otlp import decode_spans


def exact(text: bytes) -> bytes:
    """JSON to protobuf field by field, which is what a request of which something is not in order costs."""
    request = ExportTraceServiceRequest()
    json_codec.parse(text, request)
    return request.SerializeToString()


def as_json(body: bytes) -> bytes:
    """A request as OTLP/JSON, 64-bit integers as text."""
    request = ExportTraceServiceRequest.FromString(body)
    return orjson.dumps(_with_hex_ids(json_format.MessageToDict(request, use_integers_for_enums=True)))


def _with_hex_ids(content: Any) -> Any:
    if isinstance(content, list):
        return [_with_hex_ids(item) for item in content]
    if not isinstance(content, dict):
        return content
    return {
        key: base64.b64decode(value).hex() if key in ("traceId", "spanId", "parentSpanId") else _with_hex_ids(value)
        for key, value in content.items()
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--traces", type=int, default=2000)
    options = parser.parse_args(arguments)
    records: list[Record] = requests(options.traces)
    spans = options.traces * SPANS_PER_TRACE
    texts = [as_json(record.body) for record in records]
    kept = []
    for record, text in zip(records, texts, strict=True):
        checked = check(Signal.TRACES, text, is_json=True)
        assert checked.encoding is Encoding.JSON
        kept.append(Record(Signal.TRACES, checked.encoding, record.received_unix_nano, record.source, checked.body))
    assert decode_spans(kept).num_rows == decode_spans(records).num_rows == spans
    work: dict[str, Callable[[], Any]] = {
        "check protobuf": lambda: [check(Signal.TRACES, record.body) for record in records],
        "check JSON": lambda: [check(Signal.TRACES, text, is_json=True) for text in texts],
        "check JSON, exact": lambda: [exact(text) for text in texts],
        "decode protobuf": lambda: decode_spans(records),
        "decode JSON": lambda: decode_spans(kept),
    }
    took: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(options.rounds):
        for name, job in work.items():
            took[name].append(seconds(job))
    size = sum(map(len, texts)) / spans
    print(f"{spans:,} spans, {size:.0f} bytes each in JSON, {SPANS_PER_REQUEST} a request; one core")
    for name, times in took.items():
        base = took[f"{name.split()[0]} protobuf"]
        print(_told(name, [slow / own for slow, own in zip(base, times, strict=True)], [spans / own for own in times]))


def _told(name: str, ratios: Sequence[float], rates: Sequence[float]) -> str:
    low, middle, high = statistics.quantiles(ratios, n=4)
    return (
        f"{name:<18} {middle:5.2f} x protobuf (quartiles {low:.2f} to {high:.2f}, {len(ratios)} rounds), "
        f"median {statistics.median(rates):,.0f} spans/s, best {max(rates):,.0f}"
    )


if __name__ == "__main__":
    main()
