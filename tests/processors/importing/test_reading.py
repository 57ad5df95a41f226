"""What a file is, its content says; what cannot be read costs nothing but itself."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.internal.encoder import _VarintBytes  # type: ignore[attr-defined]  # the one way to a varint

from surefoot.collector.testing import log_request, metric_request, trace_request
from surefoot.processors.importing import Refused, Unit, read_file

SPAN = {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "name": "s"}


def document(spans: int = 1) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": [SPAN] * spans}]}]}


def read(path: Path, data: bytes) -> list[Unit | Refused]:
    path.write_bytes(data)
    return list(read_file(path))


def summary(found: list[Unit | Refused]) -> list[tuple[str, str, int]]:
    return [(one.place, one.signal if isinstance(one, Unit) else "refused", one.items) for one in found]


def test_lines_of_which_some_are_broken(tmp_path: Path) -> None:
    metric: dict[str, Any] = {
        "resourceMetrics": [{"scopeMetrics": [{"metrics": [{"gauge": {"dataPoints": [{}, {}]}}]}]}]
    }
    logs: dict[str, Any] = {"resourceLogs": [{"scopeLogs": [{"logRecords": [{}]}]}]}
    lines = [
        json.dumps(document(2)),
        "",
        "{broken",
        json.dumps(metric),
        "[]",
        '{"a": 1}',
        json.dumps(logs | document()),
    ]
    expected = [
        ("line 1", "traces", 2),
        ("line 3", "refused", 0),
        ("line 4", "metrics", 2),
        ("line 5", "refused", 0),
        ("line 6", "refused", 0),
        ("line 7", "traces", 1),
        ("line 7", "logs", 1),
    ]
    assert summary(read(tmp_path / "any.name", "\n".join(lines).encode())) == expected
    lines[0] = lines[0][:-5]
    assert summary(read(tmp_path / "torn", "\n".join(lines).encode())) == [("line 1", "refused", 0), *expected[1:]]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_document(tmp_path: Path, indent: int | None) -> None:
    found = read(tmp_path / "x", json.dumps(document(3), indent=indent).encode())
    assert [one.items for one in found] == [3]
    assert [one.items for one in read(tmp_path / "z", b"\n" + json.dumps(document(3)).encode())] == [3]
    assert summary(read(tmp_path / "y", b'{\n "resourceSpans": [')) == [("document", "refused", 0)]


def test_a_byte_order_mark_is_no_content(tmp_path: Path) -> None:
    for indent in (None, 2):
        text = json.dumps(document(3), indent=indent).encode()
        assert [one.items for one in read(tmp_path / "x", b"\xef\xbb\xbf" + text)] == [3]


def test_several_documents_on_many_lines(tmp_path: Path) -> None:
    one, two = (json.dumps(document(number), indent=2) for number in (1, 2))
    expected = [("document 1", "traces", 1), ("document 2", "traces", 2)]
    assert summary(read(tmp_path / "x", f"{one}\n\n{two}\n".encode())) == expected
    assert summary(read(tmp_path / "x", f"{one}{two}".encode())) == expected
    torn = read(tmp_path / "y", f"{one}\n{two[:-9]}".encode())
    assert summary(torn) == [("document 1", "traces", 1), ("document 2", "refused", 0)]
    assert isinstance(torn[1], Refused)
    assert re.search(r"is not JSON: .* line \d+ column", torn[1].reason)


def test_large_documents_go_in_parts(tmp_path: Path) -> None:
    large = {"resourceSpans": document()["resourceSpans"] * 5}
    large["resourceSpans"][0] = {"resource": {"attributes": [{"key": "x" * (4 << 20)}]}}
    parts = read(tmp_path / "x", json.dumps(large).encode())
    assert [one.items for one in parts] == [0, 4]


@pytest.mark.parametrize(
    ("make", "signal"), [(trace_request, "traces"), (log_request, "logs"), (metric_request, "metrics")]
)
def test_protobuf_alone_and_in_streams(tmp_path: Path, make: Any, signal: str) -> None:
    body = make(2).SerializeToString()
    assert summary(read(tmp_path / "alone", body)) == [("file", signal, 2)]
    stream = (len(body).to_bytes(4, "big") + body) * 3
    assert [one[1:] for one in summary(read(tmp_path / "stream", stream))] == [(signal, 2)] * 3
    stream = (_VarintBytes(len(body)) + body) * 3
    assert [one[1:] for one in summary(read(tmp_path / "varints", stream))] == [(signal, 2)] * 3
    broken = (len(body).to_bytes(4, "big") + body) + b"\0\0\0\4abcd"
    assert summary(read(tmp_path / "broken", broken)) == [("message 1", signal, 2), ("message 2", "refused", 0)]


def test_compressed_files(tmp_path: Path) -> None:
    text = (json.dumps(document()) + "\n").encode() * 3
    assert len(read(tmp_path / "gzip", gzip.compress(text))) == 3
    packed = pa.compress(text, codec="zstd", asbytes=True)
    assert len(read(tmp_path / "zstd", packed)) == 3
    torn = read(tmp_path / "torn", gzip.compress(text)[:-9])
    assert isinstance(torn[-1], Refused)


@pytest.mark.parametrize("data", [b"", b"text", b"\xff" * 50, b"  \n ", b"{}"])
def test_what_is_no_telemetry_is_refused(tmp_path: Path, data: bytes) -> None:
    assert [type(one) for one in read(tmp_path / "x", data)] == [Refused]
