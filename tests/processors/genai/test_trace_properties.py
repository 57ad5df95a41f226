"""Derivation is a function of the set of spans and events: any order, any duplicates, the same rows."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from support import derive_reference
from support.deriving import derive_rows, derive_tables
from support.random_traces import traces
from support.traces import T0, TRACE, logs_table, spans_table

Row = dict[str, Any]


@settings(max_examples=60, deadline=None)
@given(traces(), st.randoms(use_true_random=False), st.sampled_from([5.0, 5000.0]))
def test_order_and_duplicates_change_nothing(rows: list[Row], dice: Any, now: float) -> None:
    expected = derive_rows(rows, now)
    shuffled = rows + [row for row in rows if dice.random() < 0.3]
    dice.shuffle(shuffled)
    found = derive_rows(shuffled, now)
    for table in ("runs", "tool_calls", "model_calls", "verdicts"):
        assert getattr(found, table) == getattr(expected, table)


@settings(max_examples=60, deadline=None)
@given(traces(), st.sampled_from([5.0, 5000.0]))
def test_nothing_is_counted_twice(rows: list[Row], now: float) -> None:
    derived = derive_rows(rows, now)
    runs = {row["run_id"]: row for row in derived.runs}
    assert len(runs) == len(derived.runs)
    for calls, count in ((derived.tool_calls, "tool_calls"), (derived.model_calls, "model_calls")):
        assert len({row["span_id"] for row in calls}) == len(calls)
        inside = [row["run_id"] for row in calls if row["run_id"] is not None]
        assert {run_id: inside.count(run_id) for run_id in runs} == {key: row[count] for key, row in runs.items()}
    for row in derived.runs:
        seen = set()
        above = row
        while above["parent_run_id"] is not None:
            assert above["run_id"] not in seen
            seen.add(above["run_id"])
            above = runs[above["parent_run_id"]]
    told = {row["run_id"] for row in derived.model_calls if row["input_tokens"] is not None}
    for run_id in told & runs.keys():
        own = [row["input_tokens"] or 0 for row in derived.model_calls if row["run_id"] == run_id]
        assert runs[run_id]["input_tokens"] == sum(own)


@settings(max_examples=60, deadline=None)
@given(traces(), st.floats(1, 2000))
def test_when_the_trace_is_quiet_no_run_is_running_and_before_that_none_is_made_up(rows: list[Row], now: float) -> None:
    found = derive_rows(rows, now)
    quiet = bool(found.derived.traces.quiet[found.derived.traces.ids.index(TRACE)]) if found.runs else True
    outcomes = {row["outcome"] for row in found.runs}
    assert not outcomes & ({"running"} if quiet else {"abandoned", "unknown"})


def same_form(rows: list[Row]) -> dict[tuple[str, str], Row]:
    """Rows by identity, with maps in order and without what the reference leaves out."""
    forms: list[Row] = [
        {
            name: sorted(dict(value).items()) if name in ("versions", "strata") else value
            for name, value in row.items()
            if name != "cost_usd"
        }
        for row in rows
    ]
    return {(row["trace_id"], row["span_id"]): row for row in forms}


@settings(max_examples=25, deadline=None)
@given(
    st.tuples(*(traces(trace=f"{number:032x}", most=9) for number in (1, 2))),
    st.randoms(use_true_random=False),
    st.sampled_from([5.0, 30.0, 920.0, 5000.0]),
)
def test_interleaved_traces_derive_as_the_written_rules_say_one_by_one(
    several: tuple[list[Row], ...], dice: Any, now: float
) -> None:
    rows = [row for trace in several for row in trace]
    dice.shuffle(rows)
    spans = spans_table([row for row in rows if "parent_span_id" in row])
    logs = logs_table([row for row in rows if "parent_span_id" not in row])
    expected = derive_reference.derive([*spans.to_pylist(), *logs.to_pylist()], T0 + now, 900.0)
    found = derive_tables(spans, logs, T0 + now).derived.tables
    for table, right in expected.items():
        assert same_form(found[table].to_pylist()) == same_form(right)
