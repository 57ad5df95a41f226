"""The identity filter against a set."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surefoot.processors.lake import Lake
from surefoot.processors.lake.identity import Generation, IdentityFilter, identity_hashes
from surefoot.processors.lake.schema import TABLES

Rows = Callable[..., pa.Table]
DAY = date(2026, 11, 30)

# Odd ids too: an empty one, one that is too long, one with signs beyond ASCII.
TRACE_IDS = ["0" * 32, "f" * 32, "0" * 31 + "1", "", "f" * 40, "\u00fc" * 32]
SPAN_IDS = ["0" * 16, "f" * 16, "1", "\u00fc" * 16]


def _start(trace: int, span: int) -> int:
    """Days from DAY at which the span starts, a function of its identity; many lie outside of the arrival's window."""
    return (trace * 7 + span * 3) % 23 - 14


def _batch(pairs: list[tuple[int, int]], arrival: int) -> pa.Table:
    rows: list[dict[str, Any]] = []
    for trace, span in pairs:
        start = _start(trace, span)
        date_of = DAY + timedelta(days=max(arrival - 8, min(arrival + 1, start)))
        rows.append(
            {
                "trace_id": TRACE_IDS[trace],
                "span_id": SPAN_IDS[span],
                "start_time": datetime.combine(DAY + timedelta(days=start), time(3), UTC),
                "date": date_of,
                "received_at": datetime.combine(DAY + timedelta(days=arrival), time(12), UTC),
            }
        )
    return pa.Table.from_pylist(rows, schema=TABLES["spans"])


PAIR = st.tuples(st.integers(0, len(TRACE_IDS) - 1), st.integers(0, len(SPAN_IDS) - 1))
STEP = st.tuples(
    st.lists(PAIR, max_size=12),
    st.integers(0, 5),  # days that passed
    st.sampled_from(["commit", "commit", "lose", "restart", "other"]),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=st.lists(STEP, min_size=1, max_size=6), budget=st.sampled_from([0, 8 * 4, 1 << 20]))
def test_the_filter_is_a_set(
    blank_lake: Path, steps: list[tuple[list[tuple[int, int]], int, str]], budget: int
) -> None:
    """Whatever the budget, over restarts, lost commits and a second writer."""
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake.open(Path(shutil.copytree(blank_lake, Path(folder) / "lake")))
        keeper = IdentityFilter(lake, budget=budget)
        reference: set[tuple[int, int]] = set()
        arrival = 0
        for version, (pairs, days, then) in enumerate(steps):
            arrival += days
            wanted = [pair for pair in dict.fromkeys(pairs) if pair not in reference]
            fresh = keeper.sift(_batch(pairs, arrival)).rows
            assert fresh.select(["trace_id", "span_id"]).to_pylist() == [
                {"trace_id": TRACE_IDS[trace], "span_id": SPAN_IDS[span]} for trace, span in wanted
            ]
            if then == "lose":
                continue
            reference.update(wanted)
            writer = Lake.open(lake.path) if then == "other" else lake
            made = writer.commit("spans", fresh, app_id="w", app_version=version)
            if then == "commit":
                keeper.remember(fresh, made)
            elif then == "restart":
                keeper = IdentityFilter(lake, budget=budget)


def test_duplicates_and_questions_are_counted(lake: Lake) -> None:
    keeper = IdentityFilter(lake)
    batch = _batch([(0, 0), (0, 0), (0, 1)], arrival=_start(0, 0))
    fresh = keeper.sift(batch).rows
    assert (fresh.num_rows, keeper.duplicates) == (2, 1)
    keeper.remember(fresh, lake.commit("spans", fresh, app_id="w", app_version=0))
    assert keeper.sift(batch).rows.num_rows == 0
    assert keeper.duplicates == 4
    assert keeper.asked > 0


def test_new_spans_of_a_known_date_ask_the_lake_nothing(lake: Lake, rows: Rows) -> None:
    def batch(first: int) -> pa.Table:
        start = datetime.combine(DAY, time(1), UTC)
        ids = (
            {"trace_id": f"{n:032x}", "span_id": f"{n:016x}", "start_time": start, "received_at": start}
            for n in range(first, first + 500)
        )
        return rows("spans", ids)

    keeper = IdentityFilter(lake)
    for version in range(4):
        fresh = keeper.sift(batch(version * 500)).rows
        assert fresh.num_rows == 500
        keeper.remember(fresh, lake.commit("spans", fresh, app_id="w", app_version=version))
    assert (keeper.duplicates, keeper.asked) == (0, 0)


def test_an_upkeep_between_batches_loses_no_identity(lake: Lake) -> None:
    keeper = IdentityFilter(lake)
    batch = _batch([(0, 0), (1, 1)], arrival=0)
    keeper.remember(batch, lake.commit("spans", batch, app_id="w", app_version=0))
    table = lake.table("spans")
    table.checkpoint()
    (table.log_path / f"{1:020}.json").unlink()
    assert keeper.sift(batch).rows.num_rows == 0


@given(st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=40), max_size=8), st.lists(st.integers(0, 2**64 - 1)))
def test_a_generation_is_a_set_of_hashes(added: list[list[int]], asked: list[int]) -> None:
    generation = Generation()
    for hashes in added:
        generation.add(np.array(hashes, dtype=np.uint64))
    known = {value for hashes in added for value in hashes}
    mixed = [*asked, *list(known)[:5]]
    assert generation.holds(np.array(mixed, dtype=np.uint64)).tolist() == [value in known for value in mixed]
    assert len(generation) == sum(map(len, added))


@pytest.mark.parametrize("encode", [False, True])
def test_a_hash_does_not_depend_on_its_neighbours(encode: bool) -> None:
    whole = _batch([(trace, span) for trace in range(len(TRACE_IDS)) for span in range(len(SPAN_IDS))], arrival=0)
    if encode:
        place = whole.schema.get_field_index("trace_id")
        whole = whole.set_column(place, "trace_id", whole["trace_id"].dictionary_encode())
    hashes = identity_hashes(whole)
    assert len(set(hashes.tolist())) == whole.num_rows
    for first in range(0, whole.num_rows, 5):
        assert identity_hashes(whole.slice(first, 3)).tolist() == hashes[first : first + 3].tolist()


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("starts", [(0, -1), (-1, 0), (0, None), (None, 0), (-8, 1), (1, -8), (90, 0), (0, 90)])
@pytest.mark.parametrize("later", [0, 8])
def test_a_copy_with_another_start_is_a_copy(
    lake: Lake, starts: tuple[int | None, int | None], later: int, restart: bool
) -> None:
    """``starts`` are days from the first arrival, None is no start at all; the second copy comes ``later``."""

    def copy(start: int | None, arrival: int, ended: int) -> pa.Table:
        began = datetime(1970, 1, 1, tzinfo=UTC) if start is None else datetime.combine(DAY, time(3), UTC)
        began += timedelta(days=start or 0)
        row = {
            "trace_id": TRACE_IDS[0],
            "span_id": SPAN_IDS[0],
            "start_time": began,
            "date": max(DAY + timedelta(days=arrival - 8), min(DAY + timedelta(days=arrival + 1), began.date())),
            "received_at": datetime.combine(DAY + timedelta(days=arrival), time(12), UTC),
            "end_unix_nano": ended,
        }
        return pa.Table.from_pylist([row], schema=TABLES["spans"])

    keeper = IdentityFilter(lake)
    first = keeper.sift(copy(starts[0], 0, 5)).rows
    keeper.remember(first, lake.commit("spans", first, app_id="w", app_version=0))
    if restart:
        keeper = IdentityFilter(lake)
    assert keeper.sift(copy(starts[1], later, 5)).rows.num_rows == 0
    richer = keeper.sift(copy(starts[1], later, 6))
    assert richer.rows.num_rows == 1
    assert richer.poorer["date"].to_pylist() == first["date"].to_pylist()


def test_recent_dates_beyond_the_budget_are_left_out_the_oldest_first_and_read_once(lake: Lake) -> None:
    def arrived(age: int, first: int) -> pa.Table:
        day = DAY - timedelta(days=age)
        at = datetime.combine(day, time(3), UTC)
        ids = ({"trace_id": f"{n:032x}", "span_id": f"{n:016x}"} for n in range(first, first + 10))
        rows = [{**row, "start_time": at, "received_at": at, "date": day} for row in ids]
        return pa.Table.from_pylist(rows, schema=TABLES["spans"])

    for age in range(4):
        lake.commit("spans", arrived(age, age * 10), app_id="w", app_version=age)
    keeper = IdentityFilter(lake, budget=8 * 35)
    for first in (100, 110):
        assert keeper.sift(arrived(0, first)).rows.num_rows == 10
    assert [keeper.sift(arrived(0, age * 10)).rows.num_rows for age in range(4)] == [0, 0, 0, 10]
