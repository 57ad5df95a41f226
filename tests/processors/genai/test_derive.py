"""The deriver on a real lake: arrivals, settlement, late spans, verdicts, restarts, crashes between commits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from support import derive_reference
from support.random_traces import traces
from support.traces import T0, agent, chat, evaluation, logs_table, put, run_started, span, spans_table, tool
from surefoot.instrumentation import semconv
from surefoot.processors.genai import batch as batch_module
from surefoot.processors.genai import derive as derive_module
from surefoot.processors.genai import events
from surefoot.processors.genai.derive import Deriver
from surefoot.processors.genai.records import to_table
from surefoot.processors.genai.verdicts import RunIndex, home_of, judged, unique_responses
from surefoot.processors.lake import Lake, replace_traces, settle_traces
from surefoot.processors.lake.schema import TABLES, TRACE_TABLES
from surefoot.processors.settings import Settings

Row = dict[str, Any]
Rows = Callable[[str], list[Row]]

SETTLE = 900.0
DAY = 86_400.0


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path)


@pytest.fixture
def lake(settings: Settings) -> Lake:
    return Lake.open(settings.lake_path)


@pytest.fixture
def rows(lake: Lake) -> Rows:
    return lambda table: tables(lake)[table]


def tables(lake: Lake) -> dict[str, list[Row]]:
    """Everything that was derived, in a fixed order."""
    return {table: ordered(lake.read(table).to_pylist()) for table in TRACE_TABLES}


def in_order(table: str, row: Row) -> Row:
    """A row of the reference as Arrow would give it."""
    maps: Row = {name: sorted(row[name].items()) for name in ("versions", "strata") if name in row}
    whole: Row = {"cost_usd": None, **row, **maps}
    return {name: whole[name] for name in TABLES[table].names}


def ordered(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["trace_id"], row["span_id"] or "", str(row)))


def day(at: float) -> date:
    return datetime.fromtimestamp(T0 + at, UTC).date()


def test_a_run_arrives_children_first_and_settles(lake: Lake, settings: Settings, rows: Rows) -> None:
    deriver = Deriver(lake, settings)
    put(lake, run_started("desk"), tool("search", "desk"), chat("c", "desk", input_tokens=11, output_tokens=7))
    derived = deriver.step(T0 + 5)
    (run,) = rows("runs")
    assert (run["outcome"], run["ended_at"], run["tool_calls"], run["settled"]) == ("running", None, 1, False)
    assert derived.rows == {"runs": 1, "tool_calls": 1, "model_calls": 1, "verdicts": 0}

    put(lake, agent("desk"))
    derived = deriver.step(T0 + 15)
    (run,) = rows("runs")
    assert (run["outcome"], run["tool_calls"], run["input_tokens"], run["settled"]) == ("ok", 1, 11, False)
    assert derived.dirty_dates == {run["date"]}
    assert derived.dirty_hours == {int(row["ended_at"].timestamp()) // 3600 for row in (run, *rows("tool_calls"))}
    assert derived.next_deadline == T0 + 10 + SETTLE

    assert deriver.step(derived.next_deadline - 1).changed_traces == frozenset()
    deriver.step(derived.next_deadline)
    assert [row["settled"] for table in TRACE_TABLES for row in rows(table)] == [True] * 3
    assert deriver.step(derived.next_deadline + DAY).next_deadline is None


def test_a_killed_agent_is_running_then_abandoned_even_over_a_restart(
    lake: Lake, settings: Settings, rows: Rows
) -> None:
    put(lake, run_started("desk"), tool("search", "desk", 4, 1))
    assert Deriver(lake, settings).step(T0 + 6).next_deadline == T0 + 5 + SETTLE
    restarted = Deriver(lake, settings)
    assert restarted.step(T0 + 7).next_deadline == T0 + 5 + SETTLE
    assert [row["outcome"] for row in rows("runs")] == ["running"]
    derived = Deriver(lake, settings).step(T0 + 5 + SETTLE)
    (run,) = rows("runs")
    assert (run["outcome"], run["settled"], run["tool_calls"]) == ("abandoned", True, 1)
    assert run["ended_at"] == datetime.fromtimestamp(T0 + 5 + SETTLE, UTC)
    assert derived.dirty_dates == {run["date"]}
    assert len(rows("tool_calls")) == 1


def test_a_late_span_reopens_its_trace_and_replaces_what_was_derived(
    lake: Lake, settings: Settings, rows: Rows
) -> None:
    deriver = Deriver(lake, settings)
    put(lake, run_started("desk"), tool("search", "desk", agent_name="desk"))
    deriver.step(T0 + SETTLE + 5)
    (abandoned,) = rows("runs")
    assert (abandoned["outcome"], abandoned["settled"]) == ("abandoned", True)
    put(lake, agent("desk", lasts=DAY, received=DAY))
    derived = deriver.step(T0 + DAY + 1)
    (run,) = rows("runs")
    assert (run["run_id"], run["outcome"], run["settled"]) == (abandoned["run_id"], "ok", False)
    assert derived.dirty_dates == {day(0), day(DAY)}
    assert [row["run_id"] for row in rows("tool_calls")] == [run["run_id"]]


def test_children_before_their_root_make_no_run_and_are_not_counted_twice(
    lake: Lake, settings: Settings, rows: Rows
) -> None:
    deriver = Deriver(lake, settings)
    put(lake, tool("t", "desk", agent_name="desk"), chat("c", "desk", agent_name="desk"))
    deriver.step(T0 + 3)
    assert (rows("runs"), [row["run_id"] for row in rows("tool_calls")]) == ([], [None])
    deriver.step(T0 + 2 + SETTLE)
    (unknown,) = rows("runs")
    assert (unknown["outcome"], unknown["tool_calls"], unknown["settled"]) == ("unknown", 1, True)
    put(lake, agent("desk", lasts=4000, received=4000))
    deriver.step(T0 + 4001)
    (run,) = rows("runs")
    assert (run["run_id"], run["outcome"], run["tool_calls"]) == (unknown["run_id"], "ok", 1)
    assert [row["run_id"] for row in rows("tool_calls") + rows("model_calls")] == [run["run_id"]] * 2


def test_a_verdict_comes_before_its_run_and_another_days_after(lake: Lake, settings: Settings, rows: Rows) -> None:
    deriver = Deriver(lake, settings)
    put(lake, evaluation("desk", 1, attributes={"score.label": "pass"}))
    deriver.step(T0 + 2)
    assert [row["run_id"] for row in rows("verdicts")] == [None]
    put(lake, agent("desk"))
    deriver.step(T0 + 11)
    (run,) = rows("runs")
    assert [row["run_id"] for row in rows("verdicts")] == [run["run_id"]]
    deriver.step(T0 + 11 + SETTLE)
    put(lake, evaluation("desk", 3 * DAY, attributes={"score.label": "fail"}))
    derived = deriver.step(T0 + 3 * DAY + 1)
    assert [(row["verdict"], row["run_id"]) for row in rows("verdicts")].count(("fail", run["run_id"])) == 1
    assert len(rows("verdicts")) == 2
    assert derived.dirty_dates == {run["date"]}


def test_a_verdict_beyond_the_look_back_joins_and_leaves_the_run_as_it_was(
    lake: Lake, settings: Settings, rows: Rows
) -> None:
    deriver = Deriver(lake, settings)
    put(lake, agent("desk", attributes={"surefoot.versions.prompt": "7"}), tool("t", "desk"), chat("c", "desk"))
    deriver.step(T0 + 11 + SETTLE)
    before = tables(lake)
    later = 30 * DAY
    put(lake, evaluation("t", later, attributes={"score.label": "fail"}))
    derived = deriver.step(T0 + later + 1)
    assert derived.dirty_dates == {before["runs"][0]["date"]}
    (verdict,) = rows("verdicts")
    assert (verdict["run_id"], verdict["settled"]) == (before["runs"][0]["run_id"], False)
    assert derived.next_deadline == T0 + later + SETTLE
    deriver.step(T0 + later + SETTLE)
    after = tables(lake)
    changed = {"received_at": datetime.fromtimestamp(T0 + later, UTC)}
    assert after["runs"] == [before["runs"][0] | changed]
    assert (after["tool_calls"], after["model_calls"]) == (before["tool_calls"], before["model_calls"])
    assert [row["settled"] for row in after["verdicts"]] == [True]


def test_a_trace_that_lives_longer_than_the_look_back_is_followed_while_it_is_open(
    lake: Lake, settings: Settings, rows: Rows
) -> None:
    settings = settings.model_copy(update={"settle_seconds": 3 * DAY})
    deriver = Deriver(lake, settings)
    put(lake, run_started("desk"))
    for days in range(0, 12, 2):
        put(lake, tool(f"t{days}", "desk", at=days * DAY), tool(f"u{days}", "desk", at=days * DAY + 1))
        deriver.step(T0 + days * DAY + 5)
    assert [(row["outcome"], row["tool_calls"]) for row in rows("runs")] == [("running", 12)]
    put(lake, agent("desk", lasts=12 * DAY))
    Deriver(lake, settings).step(T0 + 12 * DAY + 5)
    assert [(row["outcome"], row["tool_calls"]) for row in rows("runs")] == [("ok", 12)]


def test_history_that_arrives_today_is_derived_whole_although_its_partition_is_clamped(
    lake: Lake, settings: Settings, rows: Rows
) -> None:
    """The writer files a span at most 8 days before its arrival; midnight then passes before the trace settles."""
    arrival = 28 * DAY
    clamped: dict[str, Any] = {"received": arrival, "date": day(arrival - 8 * DAY)}
    deriver = Deriver(lake, settings)
    put(lake, tool("t", "desk", **clamped))
    deriver.step(T0 + arrival + 1)
    put(lake, agent("desk", **clamped))
    deriver.step(T0 + arrival + DAY)
    deriver.step(T0 + arrival + 2 * DAY)
    assert [(row["tool_calls"], row["settled"], row["date"]) for row in rows("runs")] == [(1, True, day(0))]


def test_a_verdict_without_trace_context_finds_the_run_of_its_response(
    lake: Lake, settings: Settings, rows: Rows
) -> None:
    deriver = Deriver(lake, settings)

    def told(label: str, response: str, trace: str | None) -> Row:
        return evaluation(None, 1, trace=trace, attributes={"score.label": label, semconv.RESPONSE_ID: response})

    put(lake, told("pass", "r1", None), told("fail", "r1", "ee" * 16), told("pass", "r2", None))
    deriver.step(T0 + 2)
    assert [row["run_id"] for row in rows("verdicts")] == [None] * 3
    put(lake, chat("c", "desk", response_id="r1"))
    deriver.step(T0 + 3)
    assert [row["run_id"] for row in rows("verdicts")] == [None] * 3
    put(lake, agent("desk"))
    derived = deriver.step(T0 + 11)
    (run,) = rows("runs")
    assert sorted((row["verdict"], row["run_id"] or "") for row in rows("verdicts")) == [
        ("fail", run["run_id"]),
        ("pass", ""),
        ("pass", run["run_id"]),
    ]
    assert derived.dirty_dates == {run["date"]}
    deriver.step(T0 + DAY)
    put(lake, told("perhaps", "r1", "dd" * 16))
    assert deriver.step(T0 + DAY + 1).dirty_dates == {run["date"]}
    assert sum(row["run_id"] == run["run_id"] for row in rows("verdicts")) == 3


def test_a_verdict_without_trace_context_settles_in_its_own_time_over_a_restart(
    lake: Lake, settings: Settings, rows: Rows
) -> None:
    put(lake, evaluation(None, 1, trace=None, attributes={semconv.RESPONSE_ID: "r1"}))
    Deriver(lake, settings).step(T0 + 2)
    assert Deriver(lake, settings).step(T0 + 3).next_deadline == T0 + 1 + SETTLE
    assert [row["settled"] for row in rows("verdicts")] == [False]
    Deriver(lake, settings).step(T0 + 1 + SETTLE)
    assert [row["settled"] for row in rows("verdicts")] == [True]


def test_a_large_trace_is_derived_when_it_appears_and_when_it_is_due(
    lake: Lake, settings: Settings, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (derive_module, batch_module):
        monkeypatch.setattr(module, "LARGE", 4)
    deriver = Deriver(lake, settings)
    put(lake, run_started("desk"), *(tool(f"t{number}", "desk") for number in range(6)))
    deriver.step(T0 + 3)
    assert [row["tool_calls"] for row in rows("runs")] == [6]
    put(lake, tool("t6", "desk", 9))
    assert deriver.step(T0 + 10).changed_traces == frozenset()
    assert [row["tool_calls"] for row in rows("runs")] == [6]
    put(lake, agent("desk", lasts=700))
    derived = deriver.step(T0 + 701)
    assert (derived.changed_traces, derived.next_deadline) == (frozenset(), T0 + 701 + SETTLE)
    deriver.step(T0 + 701 + SETTLE)
    assert [(row["outcome"], row["tool_calls"], row["settled"]) for row in rows("runs")] == [("ok", 7, True)]


def test_traces_without_agents_are_not_waited_for(lake: Lake, settings: Settings, rows: Rows) -> None:
    deriver = Deriver(lake, settings)
    put(lake, span("GET /"), span("query", "GET /"))
    assert deriver.step(T0 + 3).next_deadline is None
    assert all(not found for found in tables(lake).values())


def test_user_facing_runs_are_counted_once_when_they_are_first_seen_ended(lake: Lake, settings: Settings) -> None:
    deriver = Deriver(lake, settings)
    put(lake, run_started("desk"))
    deriver.step(T0 + 1)
    assert deriver.counters == []
    put(lake, agent("desk"), agent("sub", "desk"), agent("other", trace="ab" * 16, status="error"))
    deriver.step(T0 + 11)
    put(lake, tool("late", "desk"))
    deriver.step(T0 + 12)
    put(lake, agent("third", trace="cd" * 16, status="error"))
    deriver.step(T0 + 13)
    assert {(c.service_name, c.outcome): (c.runs, c.exemplar_trace_id[:2]) for c in deriver.counters} == {
        ("desk", "ok"): (1, "0a"),
        ("desk", "error"): (2, "cd"),
    }


def test_after_a_restart_recent_dates_are_told_again_once(lake: Lake, settings: Settings) -> None:
    put(lake, agent("desk"))
    Deriver(lake, settings).step(T0 + DAY)
    restarted = Deriver(lake, settings)
    assert restarted.step(T0 + DAY + 1).dirty_dates == {day(0)}
    assert restarted.step(T0 + DAY + 2).dirty_dates == set()


def test_batches_are_cut_by_size(lake: Lake, settings: Settings, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derive_module, "_BATCH_SPANS", 4)
    put(lake, *(row for n in range(5) for row in (agent("a", trace=f"{n:032x}"), tool("t", "a", trace=f"{n:032x}"))))
    derived = Deriver(lake, settings).step(T0 + 11)
    assert (len(derived.changed_traces), derived.rows["runs"], derived.rows["tool_calls"]) == (5, 5, 5)
    assert [row["tool_calls"] for row in rows("runs")] == [1] * 5


@pytest.mark.parametrize("survives", range(4))
def test_a_crash_between_the_commits_is_repaired(
    lake: Lake, settings: Settings, monkeypatch: pytest.MonkeyPatch, survives: int
) -> None:
    put(lake, run_started("desk"), tool("t", "desk"), chat("c", "desk"), evaluation("desk", 1))
    for now in (T0 + 5, T0 + 5 + SETTLE):
        _crash(Deriver(lake, settings), now, survives, monkeypatch)
        Deriver(lake, settings).step(now)
        assert tables(lake) == from_scratch(lake, settings, now)
        assert {table: len(found) for table, found in tables(lake).items()} == dict.fromkeys(TRACE_TABLES, 1)
    assert [row["outcome"] for row in tables(lake)["runs"]] == ["abandoned"]


@pytest.mark.parametrize("survives", [1, 2])
def test_a_crash_while_traces_settle_as_they_are_is_repaired(
    lake: Lake, settings: Settings, monkeypatch: pytest.MonkeyPatch, survives: int
) -> None:
    put(lake, agent("desk"), tool("t", "desk"), chat("c", "desk"))
    now = T0 + 11 + SETTLE
    deriver = Deriver(lake, settings)
    deriver.step(T0 + 11)
    _crash(deriver, now, survives, monkeypatch, settle_traces)
    Deriver(lake, settings).step(now)
    assert tables(lake) == from_scratch(lake, settings, now)
    assert [row["settled"] for table in TRACE_TABLES for row in tables(lake)[table]] == [True] * 3


def _crash(
    deriver: Deriver,
    now: float,
    survives: int,
    monkeypatch: pytest.MonkeyPatch,
    real: Callable[..., Any] = replace_traces,
) -> None:
    calls = count()

    def dying(*arguments: Any, **more: Any) -> Any:
        if next(calls) == survives:
            raise KeyboardInterrupt
        return real(*arguments, **more)

    with monkeypatch.context() as patch:
        patch.setattr(derive_module, real.__name__, dying)
        with pytest.raises(KeyboardInterrupt):
            deriver.step(now)


def from_scratch(lake: Lake, settings: Settings, now: float) -> dict[str, list[Row]]:
    """What a first deriver on a new lake with the same spans and logs makes of them at ``now``."""
    fresh = Lake.open(settings.home / f"scratch-{next(_scratches)}")
    for table in ("spans", "logs"):
        found = lake.read(table)
        if found.num_rows:
            fresh.commit(table, found, app_id="copy", app_version=1)
    Deriver(fresh, settings).step(now)
    return tables(fresh)


_scratches = count()


@st.composite
def arrivals(draw: st.DrawFn) -> list[tuple[list[Row], float]]:
    """Rows of a few traces in batches, each with the moment of the step after it; children before parents or not."""
    several = [draw(traces(trace=f"{number:032x}", most=7)) for number in range(1, draw(st.integers(2, 4)))]
    rows = [row for trace in several for row in reversed(trace)]
    if draw(st.booleans()):
        rows = draw(st.permutations(rows))
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    moments = sorted(draw(st.lists(st.sampled_from([40.0, 500.0, 939.0, 2000.0, 9000.0]), min_size=4, max_size=4)))
    parts = [rows[start:end] for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    return list(zip(parts, moments[: len(parts)], strict=True))


def index_of(trace: derive_reference.Trace, models: list[Row]) -> RunIndex:
    """Where a verdict finds its run within its own trace."""
    owner = trace.owner | {run: run for run in trace.runs}
    top = [run for run, parent in trace.runs.items() if parent is None]
    return RunIndex(
        {span: f"{trace.id}-{run}" for span, run in owner.items()},
        unique_responses(row for row in models if row["trace_id"] == trace.id),
        f"{trace.id}-{top[0]}" if len(top) == 1 else None,
    )


def reference(rows: list[Row], now: float) -> dict[str, list[Row]]:
    """The tables by definition: each trace on its own, then verdicts on responses of other traces."""
    spans = spans_table([row for row in rows if "parent_span_id" in row])
    logs = logs_table([row for row in rows if "parent_span_id" not in row])
    traces_of = derive_reference.traces([*spans.to_pylist(), *logs.to_pylist()], now, SETTLE)
    found: dict[str, list[Row]] = {table: [] for table in TRACE_TABLES[:3]}
    for trace in traces_of.values():
        for table, derived in trace.tables().items():
            found[table] += derived
    told = [event for event in events.read_events(logs) if event.event_name == semconv.EVALUATION_EVENT]
    verdicts = []
    for home in sorted({home_of(event) for event in told}):
        of_home = [event for event in told if home_of(event) == home]
        if home in traces_of:
            verdicts += judged(of_home, index_of(traces_of[home], found["model_calls"]), traces_of[home].settled)
        else:
            settled = max(event.received_us for event in of_home) <= round((now - SETTLE) * 1e6)
            verdicts += judged(of_home, RunIndex({}, {}, None), settled)
    for row in verdicts:
        if row["run_id"] is None and row["response_id"]:
            answered = {call["run_id"] for call in found["model_calls"] if call["response_id"] == row["response_id"]}
            answered.discard(None)
            row["run_id"] = answered.pop() if len(answered) == 1 else None
    tables = {table: ordered([in_order(table, row) for row in rows]) for table, rows in found.items()}
    return {**tables, "verdicts": ordered(to_table("verdicts", verdicts).to_pylist())}


# Each example commits to a real lake: too slow to shrink, and examples are small as they are.
@hypothesis_settings(
    max_examples=10,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(parts=arrivals(), restart=st.booleans())
def test_at_every_prefix_deriving_step_by_step_equals_the_definition(
    tmp_path: Path, parts: list[tuple[list[Row], float]], restart: bool
) -> None:
    settings = Settings(home=tmp_path)
    lake = Lake.open(tmp_path / f"lake-{next(_scratches)}")
    deriver = Deriver(lake, settings)
    arrived: list[Row] = []
    for rows, now in parts:
        put(lake, *rows)
        arrived += rows
        if restart:
            deriver = Deriver(lake, settings)
        deriver.step(T0 + now)
        held, expected = tables(lake), reference(arrived, T0 + now)
        for table in TRACE_TABLES:
            assert held[table] == expected[table], table
