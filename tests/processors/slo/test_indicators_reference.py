"""Every indicator gives each event the class that plain Python gives it, on random rows; and counts are their sums.

Hundreds of small random worlds lie in one set of tables, told apart by their ids: a query is asked of all at once.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pytest

from support import indicator_reference as reference
from support.indicator_reference import Event, Row, Tables
from support.slo_events import NOW, SECOND, table
from surefoot.processors.slo import Slo
from surefoot.processors.slo.count import count_hours, count_many, events, views_of
from surefoot.processors.slo.cube import CLASSES

WORLDS = 400
HOUR = 3600 * SECOND
NOW_US = NOW * SECOND
TODAY = datetime.fromtimestamp(NOW, UTC).date()
FIRST = TODAY - timedelta(days=3)
INDICATORS: dict[str, Callable[[Tables], list[Event]]] = {
    "availability": reference.availability,
    "latency": lambda tables: reference.latency(tables, 30),
    "cost": lambda tables: reference.cost(tables, 1.0),
    "tool_success": reference.tool_success,
    "autonomous_coverage": reference.autonomous_coverage,
    "acceptable_outcome": reference.acceptable_outcome,
    "policy_compliance": reference.policy_compliance,
    "recovery": reference.recovery,
    "intervention_success": reference.intervention_success,
    "strict_repeat": reference.strict_repeat,
    "consistent_wrong": reference.consistent_wrong,
}
GROUPS = {"strict_repeat", "consistent_wrong"}
# A minute's edge, a microsecond before it, and the day before.
ENDS = [NOW_US, NOW_US - 1, NOW_US - 150 * SECOND, NOW_US - 151 * SECOND, NOW_US - 30 * HOUR]
SOURCES = [None, "http", "http", "import:old.json"]


def _runs(pick: Callable[..., Any], world: int) -> Iterator[Row]:
    outcomes = ("ok", "ok", "ok", "ok", "error", "abandoned", "cancelled", "deferred", "refused", "running", None)
    for number in range(pick(*range(9))):
        outcome = pick(*outcomes)
        yield {
            "run_id": f"r{world}-{number}",
            "trace_id": f"t{world}",
            "parent_run_id": pick(None, None, None, *[f"r{world}-{other}" for other in range(number)]),
            "service_name": pick("desk", "a/b", None),
            "task_class": pick("refund", None),
            "run_group": pick(f"g{world}", f"g{world}", f"h/{world}", None),
            "task_id": pick("t", "t", "t", None),
            "repetition": pick(0, 1, 1, 2, 2, 3, None),
            "outcome": outcome,
            "mode": pick(None, "autonomous", "autonomous", "human_approval"),
            "ended_us": None if outcome == "running" else pick(*ENDS),
            "duration_ns": pick(None, -1, 30, 31),
            "cost_usd": pick(None, 0.25, 0.75, 1.0, 1.5),
            "model_calls": pick(None, 0, 1),
            "tool_errors": pick(None, 0, 1),
            "tool_retries": pick(None, 0, 1),
            "sample_weight": pick(None, 1.0, 2.5, 0.0, -1.0, 2e6),
            "source": pick(*SOURCES),
        }


def _tool_calls(pick: Callable[..., Any], world: int) -> Iterator[Row]:
    for number in range(pick(*range(5))):
        yield {
            "run_id": pick(f"r{world}-0", f"r{world}-1", f"r{world}-2", None),
            "trace_id": f"t{world}",
            "span_id": f"s{number}",
            "outcome": pick("ok", "error", "retry", "deferred", "refused", "cancelled", "unknown", None),
            "ended_us": pick(*ENDS),
            "sample_weight": pick(None, 3.0),
        }


def _verdicts(pick: Callable[..., Any], world: int) -> Iterator[Row]:
    earlier: list[str] = []
    for number in range(pick(*range(16))):
        row = {
            "verdict_id": f"v{pick(*range(10))}-{world}-{number}",
            "supersedes": pick(None, None, None, *earlier),
            "run_id": pick(*[f"r{world}-{run}" for run in (0, 0, 1, 1, 2, 3, 4, 99)], None),
            "name": pick("rules", "tone", None),
            "kind": pick("outcome", "outcome", "process", "other"),
            "verdict": pick("pass", "pass", "fail", "unresolved"),
            "finality": pick("provisional", "final", None),
            "grader_kind": pick("human", "executable", "model", None),
            "occurred_us": pick(NOW_US, NOW_US - 1, NOW_US - 40 * HOUR),
            "received_us": NOW_US + pick(-50, 0, 1, 50) * HOUR,
            "source": pick(*SOURCES),
        }
        earlier.append(row["verdict_id"])
        yield row


@pytest.fixture(scope="module", params=[1, 2])
def worlds(request: pytest.FixtureRequest) -> list[Tables]:
    chance = random.Random(request.param)
    pick = lambda *values: chance.choice(values)  # noqa: E731 - passed on
    return [
        Tables(list(_runs(pick, world)), list(_tool_calls(pick, world)), list(_verdicts(pick, world)))
        for world in range(WORLDS)
    ]


@pytest.fixture(scope="module")
def con(worlds: list[Tables]) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name in ("runs", "tool_calls", "verdicts"):
            rows = [row for world in worlds for row in getattr(world, name)]
            made = [row | ({"received_at": row["received_us"]} if "received_us" in row else {}) for row in rows]
            connection.register(name, table(name, made))
        yield connection


def slo(indicator: str, **said: Any) -> Slo:
    asked: dict[str, Any] = {"name": indicator, "threshold_ns": 30 if indicator == "latency" else None}
    asked |= {"threshold": 1.0 if indicator == "cost" else None, **said}
    return Slo(service="desk", indicator=indicator, objective=0.9, period="28d", period_seconds=28 * 86_400, **asked)


@pytest.mark.parametrize("name", INDICATORS)
def test_each_event_has_the_class_that_plain_python_gives_it(
    con: duckdb.DuckDBPyConnection, worlds: list[Tables], name: str
) -> None:
    text, values = events(slo(name), FIRST, TODAY, lookback_days=8)
    columns = "event_id, epoch_us(ended_at), class, fast_class, epoch_us(labelled_at), label_imported, weight"
    found = {Event(*row) for row in con.execute(f"SELECT {columns} FROM ({text})", values).fetchall()}
    expected = {event: world for world in worlds for event in INDICATORS[name](world)}
    wrong = sorted(found ^ set(expected), key=lambda event: event.event_id)
    assert wrong == [], expected.get(wrong[0])
    assert {event.kind for event in found} > {"good", "bad"}
    assert len(views_of(slo(name))) == 2 or all(event.kind == event.fast for event in found)


def _in_minutes(found: list[Event], view: str) -> dict[int, list[float]]:
    """Counts, millionths and squares by minute."""
    sums: dict[int, list[float]] = defaultdict(lambda: [0] * 8)
    for event in found:
        kind = event.fast if view == "fast" else event.kind
        row = sums[event.ended_us // SECOND // 60 * 60]
        row[CLASSES.index(kind)] += 1
        if kind != "excluded":
            row[4 + CLASSES.index(kind)] += round(event.weight * 1_000_000)
        if kind in {"good", "bad"}:
            row[7] += event.weight**2
    return dict(sums)


def test_counts_are_the_sums_of_the_events_however_many_slos_share_a_scan(
    con: duckdb.DuckDBPyConnection, worlds: list[Tables]
) -> None:
    of_runs = [name for name in INDICATORS if name not in {"tool_success", "strict_repeat", "consistent_wrong"}]
    asked = [slo(name) for name in INDICATORS]
    for at, services in enumerate([("desk",), ("a/b",), ("desk", "a/b")]):
        where = (("service_name", services),)
        asked += [slo(name, name=f"{name}-{at}", where=where, by=("task_class",)) for name in of_runs]
    asked.append(slo("acceptable_outcome", name="graded", selected=(("task_class", ("refund",)),)))
    days = [FIRST + timedelta(days=day) for day in range(4)]
    counted = count_many(con, asked, days, 60, lookback_days=8)
    runs = {run["run_id"]: run for world in worlds for run in world.runs}
    for each in asked:
        found = [event for world in worlds for event in INDICATORS[each.indicator](world)]
        for _, allowed in each.where:
            found = [event for event in found if runs[event.event_id]["service_name"] in allowed]
        for view in views_of(each):
            chosen = found
            if each.selected and view == "matured":
                left_out = {event for event in found if runs[event.event_id]["task_class"] != "refund"}
                chosen = [Event(event.event_id, event.ended_us, "excluded", "") for event in left_out]
                chosen += [event for event in found if event not in left_out]
            sums: dict[int, list[float]] = defaultdict(lambda: [0] * 8)
            for row in counted[each.name].to_pylist():
                if row["view"] == view:
                    names = (*CLASSES, "good_micros", "bad_micros", "unlabelled_micros", "weight_squares")
                    added = [row[name] for name in names]
                    sums[row["start"]] = [sum(pair) for pair in zip(sums[row["start"]], added, strict=True)]
            assert sums == _in_minutes(chosen, view), (each.name, view)


@pytest.mark.parametrize("name", [name for name in INDICATORS if name not in GROUPS])
def test_counting_hours_gives_what_counting_their_dates_gives_of_them(
    con: duckdb.DuckDBPyConnection, name: str
) -> None:
    whole = [slo(name, name="all", by=("task_class",)), slo(name, name="desk", where=(("service_name", ("desk",)),))]
    days = [FIRST + timedelta(days=day) for day in range(4)]
    by_date = count_many(con, whole, days, 60, lookback_days=8)
    with_events = sorted({start // 3600 for start in by_date["all"]["start"].to_pylist()})
    assert len(with_events) == 3
    chosen = [[hour] for hour in with_events] + [with_events[:2], [*with_events, 1], [with_events[0], with_events[2]]]
    for hours in chosen:
        by_hour = count_hours(con, whole, hours, 60, lookback_days=8)
        for each in ("all", "desk"):
            kept = [row for row in by_date[each].to_pylist() if row["start"] // 3600 in hours]
            assert sorted(map(repr, by_hour[each].to_pylist())) == sorted(map(repr, kept))
