"""Files of OTLP as requests. What a file is, its content says and not its name.

JSON lines as the Collector's file exporter writes them, JSON documents on one line or many, protobuf requests or
``TracesData`` and the like by themselves or in streams with lengths before them; each plain, gzip or zstd.

Rule: a place that cannot be read is told with its reason and costs nothing but itself. Whether a request is sound is
not judged here: the collector does that, for everybody alike. Lines are read one at a time; everything else whole.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import msgspec
import pyarrow as pa
from msgspec import Raw, Struct

from surefoot.processors.importing.protobuf import protobuf_requests

BODY_BYTES: Final = 4 << 20  # larger ones are sent in parts
_LINE_BYTES: Final = 256 << 20
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_KEYS: Final = {"traces": "resourceSpans", "logs": "resourceLogs", "metrics": "resourceMetrics"}
JSON: Final = "application/json"
PROTOBUF: Final = "application/x-protobuf"


@dataclass(frozen=True, slots=True)
class Unit:
    """One request to send, and how many spans, log records or data points it holds."""

    file: Path
    place: str
    signal: str  # traces, logs or metrics
    content_type: str
    body: bytes
    items: int


@dataclass(frozen=True, slots=True)
class Refused:
    """Something that was not taken: where it stands, why, and how many items it was (0 if nobody can tell)."""

    file: Path
    place: str
    reason: str
    items: int = 0


class _Points(Struct, rename="camel"):
    data_points: list[Raw] = []


class _Metric(Struct, rename="camel"):
    gauge: _Points | None = None
    sum: _Points | None = None
    histogram: _Points | None = None
    exponential_histogram: _Points | None = None
    summary: _Points | None = None


class _Scope(Struct, rename="camel"):
    spans: list[Raw] = []
    log_records: list[Raw] = []
    metrics: list[_Metric] = []


class _Resource(Struct, rename="camel"):
    scope_spans: list[_Scope] = []
    scope_logs: list[_Scope] = []
    scope_metrics: list[_Scope] = []


_TOP: Final = msgspec.json.Decoder(dict[str, Raw])
_GROUPS: Final = msgspec.json.Decoder(list[Raw])
_COUNTED: Final = msgspec.json.Decoder(_Resource)


def read_file(path: Path) -> Iterator[Unit | Refused]:
    """The requests of a file, and what in it could not be read."""
    try:
        with _opened(path) as stream:
            if stream.peek(1).startswith(codecs.BOM_UTF8):
                stream.read(len(codecs.BOM_UTF8))
            start = stream.peek(1)
            if not start.lstrip().startswith(b"{"):
                yield from _protobuf(path, stream.read())
            elif start.startswith(b"\n"):  # which is also how protobuf begins, and a brace may be its length
                data = stream.read()
                yield from (
                    _protobuf(path, data) if protobuf_requests(data, BODY_BYTES) else _json(path, io.BytesIO(data))
                )
            else:
                yield from _json(path, stream)
    except (OSError, EOFError, zlib.error) as error:
        yield Refused(path, "file", f"cannot be read: {error}")


def _opened(path: Path) -> io.BufferedReader:
    with path.open("rb") as file:
        magic = file.read(4)
    if magic.startswith(_GZIP):
        return io.BufferedReader(gzip.open(path))
    if magic == _ZSTD:
        return io.BufferedReader(pa.input_stream(str(path), compression="zstd"))
    return path.open("rb")


def _json(path: Path, stream: IO[bytes]) -> Iterator[Unit | Refused]:
    first = stream.readline(_LINE_BYTES)
    if _top(first) is not None:
        yield from _lines(path, [first], stream)
        return
    text = first + stream.read()
    whole = _top(text)
    if whole is not None:
        yield from _units(path, "document", whole)
        return
    documents, trouble = _documents(text)
    lines = text.splitlines()
    if not documents and any(_top(line) for line in lines[:100]):  # lines, of which the first is broken
        yield from _lines(path, lines, ())
        return
    for number, document in enumerate(documents, 1):
        yield from _units(path, f"document {number}", document)
    if trouble:
        yield Refused(path, f"document {len(documents) + 1}" if documents else "document", trouble)


def _documents(text: bytes) -> tuple[list[dict[str, Raw]], str]:
    """Documents one after the other, each on many lines, up to the first that is none; and why that is none."""
    found: list[dict[str, Raw]] = []
    decoder, at = json.JSONDecoder(), 0
    try:
        left = text.decode().strip()
        while at < len(left):
            _, end = decoder.raw_decode(left, at)
            content = _top(left[at:end].encode())
            if content is None:
                return found, "is not a JSON object"
            found.append(content)
            at = end
            while at < len(left) and left[at].isspace():
                at += 1
    except (ValueError, RecursionError) as error:
        return found, f"is not JSON: {error}"
    return found, ""


def _lines(path: Path, first: list[bytes], rest: Iterable[bytes]) -> Iterator[Unit | Refused]:
    number = 0
    for lines in (first, rest):
        for line in lines:
            number += 1
            if not line.strip():
                continue
            content = _top(line)
            if content is None:
                yield Refused(path, f"line {number}", "is not a JSON object")
            else:
                yield from _units(path, f"line {number}", content)


def _top(text: bytes) -> dict[str, Raw] | None:
    try:
        return _TOP.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _units(path: Path, place: str, content: dict[str, Raw]) -> Iterator[Unit | Refused]:
    """The requests of a JSON object, resource groups together as long as they are small."""
    known = [(signal, key) for signal, key in _KEYS.items() if key in content]
    if not known:
        yield Refused(path, place, f"has none of {', '.join(_KEYS.values())}")
    for signal, key in known:
        try:
            groups = [bytes(group) for group in _GROUPS.decode(content[key])]
        except msgspec.MsgspecError:
            yield Refused(path, place, f"{key} is not a list")
            continue
        for part in _parts(groups):
            body = b'{"%s":[%s]}' % (key.encode(), b",".join(part))
            yield Unit(path, place, signal, JSON, body, sum(map(_count, part)))


def _parts(groups: Iterable[bytes]) -> Iterator[list[bytes]]:
    part: list[bytes] = []
    size = 0
    for group in groups:
        if part and size + len(group) > BODY_BYTES:
            yield part
            part, size = [], 0
        part.append(group)
        size += len(group)
    if part:
        yield part


def _count(group: bytes) -> int:
    """Items in a resource group; 0 if it is so wrong that they cannot be counted, which the collector will say."""
    try:
        resource = _COUNTED.decode(group)
    except (msgspec.MsgspecError, RecursionError):
        return 0
    scopes = [*resource.scope_spans, *resource.scope_logs, *resource.scope_metrics]
    points = sum(_data_points(metric) for scope in scopes for metric in scope.metrics)
    return points + sum(len(scope.spans) + len(scope.log_records) for scope in scopes)


def _data_points(metric: _Metric) -> int:
    kinds = (metric.gauge, metric.sum, metric.histogram, metric.exponential_histogram, metric.summary)
    return sum(len(kind.data_points) for kind in kinds if kind is not None)


def _protobuf(path: Path, data: bytes) -> Iterator[Unit | Refused]:
    found = protobuf_requests(data, BODY_BYTES)
    if not found:
        yield Refused(path, "file", "is neither OTLP/JSON nor an OTLP request in protobuf")
    for request in found:
        if request.signal is None:
            yield Refused(path, request.place, "is no OTLP request in protobuf")
        else:
            yield Unit(path, request.place, request.signal, PROTOBUF, request.body, request.items)
