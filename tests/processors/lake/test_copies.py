"""Copies: a resent request changes no count, the richer copy of a span wins, once, whatever dies in between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from support.segments import RECEIVED, logs, points, record, seal, traces
from surefoot.collector.segment import Record, Signal
from surefoot.collector.spool import Spool
from surefoot.processors.lake import Lake, supersede
from surefoot.processors.lake.compact import compact
from surefoot.processors.lake.fingerprint import fingerprints
from surefoot.processors.lake.inspect import verify
from surefoot.processors.writer import Writer

Rows = Callable[..., pa.Table]


DAY = 86_400_000_000_000


def call(started: int = RECEIVED, /, *, ended: int, **attributes: str) -> Record:
    """A request with one model call, always the same one, as far as its sender knew it."""
    request = ExportTraceServiceRequest()
    span = (
        request.resource_spans.add()
        .scope_spans.add()
        .spans.add(
            trace_id=b"t" * 16, span_id=b"s" * 8, name="call", start_time_unix_nano=started, end_time_unix_nano=ended
        )
    )
    for key, value in attributes.items():
        span.attributes.add(key=key.replace("__", ".")).value.string_value = value
    return record(Signal.TRACES, request)


BARE = {"gen_ai__operation__name": "chat"}
FULL = BARE | {"gen_ai__response__model": "m", "gen_ai__output__messages": '["full"]'}


def write(lake: Lake, spool: Spool, *records: Any) -> Writer:
    writer = Writer(lake, spool)
    for item in records:
        seal(spool, [item])
        while writer.step():
            pass
        assert writer.waiting is None, writer.waiting
    return writer


@pytest.mark.parametrize("together", [False, True])
def test_the_richer_copy_of_a_span_takes_the_place_of_the_poorer(lake: Lake, tmp_path: Path, together: bool) -> None:
    spool = Spool(tmp_path / "spool")
    copies = [call(ended=RECEIVED + 5, **BARE), call(ended=RECEIVED + 5, **FULL), call(ended=RECEIVED + 5, **BARE)]
    if together:
        seal(spool, copies)
        writer = write(lake, spool)
        while writer.step():
            pass
    else:
        writer = write(lake, spool, traces([1]), *copies)
    found = lake.read("spans", ["name", "response_model", "attribute_count"], "name = 'call'").to_pylist()
    assert found == [{"name": "call", "response_model": "m", "attribute_count": 3}]
    assert lake.read("contents", ["content"], "content = '[\"full\"]'").num_rows == 1
    assert writer.published()["duplicates_total"] == 2
    assert verify(lake) == []


@pytest.mark.parametrize(
    "starts", [(RECEIVED, RECEIVED - DAY), (RECEIVED - DAY, RECEIVED), (0, RECEIVED), (RECEIVED, 0)]
)
def test_the_richer_copy_wins_also_on_another_date(lake: Lake, tmp_path: Path, starts: tuple[int, int]) -> None:
    poor, rich = starts
    write(
        lake,
        Spool(tmp_path / "spool"),
        call(poor, ended=RECEIVED + 5, **BARE),
        call(rich, ended=RECEIVED + 5, **FULL),
        call(poor, ended=RECEIVED + 5, **BARE),
    )
    found = lake.read("spans", ["start_unix_nano", "response_model"]).to_pylist()
    assert found == [{"start_unix_nano": rich, "response_model": "m"}]
    assert verify(lake) == []


def test_a_later_end_counts_more_than_attributes(lake: Lake, tmp_path: Path) -> None:
    write(lake, Spool(tmp_path / "spool"), call(ended=RECEIVED + 5, **FULL), call(ended=RECEIVED + 9, **BARE))
    assert lake.read("spans", ["end_unix_nano"])["end_unix_nano"].to_pylist() == [RECEIVED + 9]


def test_a_richer_copy_is_news_and_its_neighbours_are_not(lake: Lake, tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    seal(spool, [traces([1, 2]), call(ended=RECEIVED + 5, **BARE)])
    writer = Writer(lake, spool)
    assert writer.step()
    before = lake.version("spans")
    seal(spool, [call(ended=RECEIVED + 6, **BARE)])
    assert writer.step()
    [news] = lake.added_since("spans", before).files
    assert news.rows == 1
    assert lake.read("spans").num_rows == 3


@pytest.mark.parametrize("started", [RECEIVED, RECEIVED - DAY])
@pytest.mark.parametrize("call_number", [1, 2])
def test_a_writer_that_dies_while_it_replaces_a_copy_goes_on(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call_number: int, started: int
) -> None:
    from surefoot.processors import writer as module

    spool = Spool(tmp_path / "spool")
    write(lake, spool, call(ended=RECEIVED + 5, **BARE, gen_ai__output__messages='["poor"]'))
    seal(spool, [call(started, ended=RECEIVED + 6, **FULL)])
    calls, real = 0, supersede

    def dies(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        made = real(*arguments)
        if calls == call_number:
            raise KeyboardInterrupt
        return made

    with monkeypatch.context() as patch:
        patch.setattr(module, "supersede", dies)
        with pytest.raises(KeyboardInterrupt):
            Writer(lake, spool).step()
    writer = Writer(Lake.open(lake.path), Spool(spool.path))
    while writer.step():
        pass
    assert spool.sealed() == []
    assert lake.read("spans", ["response_model"])["response_model"].to_pylist() == ["m"]
    assert lake.read("contents", ["content"])["content"].to_pylist() == ['["full"]']


def test_logs_and_points_that_are_sent_again_are_dropped_also_after_a_restart(lake: Lake, tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    first = write(lake, spool, logs([1, 2]), points([1, 2]), logs([2, 3]))
    again = write(Lake.open(lake.path), spool, logs([1, 2, 3]), points([2, 3]))
    assert sorted(lake.read("logs", ["event_name"])["event_name"].to_pylist()) == [f"event {n}" for n in (1, 2, 3)]
    assert lake.read("metric_points").num_rows == 3
    assert (first.published()["duplicates_total"], again.published()["duplicates_total"]) == (1, 4)


def test_logs_without_a_time_are_never_taken_for_copies(lake: Lake, tmp_path: Path) -> None:
    request = ExportLogsServiceRequest()
    request.resource_logs.add().scope_logs.add().log_records.add(event_name="heartbeat")
    beat = record(Signal.LOGS, request)
    write(lake, Spool(tmp_path / "spool"), beat, beat)
    assert lake.read("logs").num_rows == 2


def test_a_fingerprint_does_not_depend_on_the_order_of_attributes_but_on_everything_else(rows: Rows) -> None:
    plain = {"event_name": "e", "time_unix_nano": 5, "attributes": [("a", "1"), ("b", "2")], "resource_attributes": []}
    other: list[dict[str, Any]] = [
        plain,
        plain | {"attributes": [("b", "2"), ("a", "1")]},
        plain | {"attributes": [("a", "2"), ("b", "1")]},
        plain | {"attributes": [], "resource_attributes": plain["attributes"]},
        plain | {"attributes": []},
        plain | {"time_unix_nano": 6},
        plain | {"event_name": None},
    ]
    table = rows("logs", other)
    con = duckdb.connect()
    hashes = fingerprints(con, table)
    assert hashes[0] == hashes[1]
    assert len(set(hashes.tolist())) == len(other) - 1
    assert np.array_equal(fingerprints(con, table.slice(3, 2)), hashes[3:5])


def test_compaction_drops_a_span_that_got_past_every_filter_and_counts_it(lake: Lake, rows: Rows) -> None:
    for version in range(3):
        ids = [{"trace_id": "a" * 32, "span_id": f"{n:016x}"} for n in (0, version)]
        lake.commit("spans", rows("spans", ids[version == 0 :]), app_id="w", app_version=version)
    assert [sentence for sentence in verify(lake) if "spans: 2 rows that repeat" in sentence]
    done = compact(lake.table("spans"), 1 << 30, min_files=2)
    assert (len(done.files), done.twice) == (3, 2)
    assert sorted(lake.read("spans", ["span_id"])["span_id"].to_pylist()) == [f"{n:016x}" for n in range(3)]
    assert verify(lake) == []
