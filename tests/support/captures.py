"""Captures of real instrumentations, taken the way that a request takes: JSON, protobuf, decoder, canonical columns.

``tests/captures/*.json`` are OTLP/JSON requests recorded from programs with scripted models; ``truth.json`` says what
each program really did.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from surefoot.collector.json_codec import parse
from surefoot.collector.segment import Encoding, Record, Signal
from surefoot.processors.genai.columns import canonical_logs, canonical_spans
from surefoot.processors.lake.schema import SPANS
from surefoot.processors.otlp.decode import decode_logs, decode_spans

FOLDER = Path(__file__).parent.parent / "captures"

# Captures were recorded in November 2026; what arrives is filed under a date near its arrival.
RECEIVED = 1_796_010_000.0


@dataclass(frozen=True)
class Capture:
    """A recorded program: its spans and logs as rows of the tables, and what it did."""

    name: str
    spans: pa.Table
    logs: pa.Table
    truth: dict[str, Any]


@cache
def truth() -> dict[str, Any]:
    files: dict[str, Any] = json.loads((FOLDER / "truth.json").read_text())["files"]
    return files


def names() -> list[str]:
    """Captures of spans that there is a truth for."""
    return sorted(name for name in truth() if (FOLDER / name).exists())


def capture(name: str) -> Capture:
    logs = FOLDER / name.replace(".json", ".logs.json")
    return Capture(
        name,
        canonical_spans(decode_spans([_record(FOLDER / name, Signal.TRACES, ExportTraceServiceRequest)]))[0].cast(
            SPANS
        ),
        canonical_logs(decode_logs([_record(logs, Signal.LOGS, ExportLogsServiceRequest)] if logs.exists() else []))[0],
        truth().get(name, {}),
    )


def _record(path: Path, signal: Signal, message: Any) -> Record:
    request = message()
    parse(path.read_bytes(), request)
    return Record(signal, Encoding.PROTOBUF, int(RECEIVED * 1e9), "test", request.SerializeToString())
