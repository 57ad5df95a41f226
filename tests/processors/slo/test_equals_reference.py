"""Counts, windows, burn rates, budgets and states equal a slow, obvious computation in plain Python, on random data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from hypothesis import Phase, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from support import slo_events as made
from support import slo_reference as reference
from support.slo_checks import by_stratum, check, check_report, expected_minutes
from support.slo_events import NOW, Row, Tables, day_of, table
from surefoot.processors.lake import Lake
from surefoot.processors.settings import Settings
from surefoot.processors.slo import INDICATORS, Slo, SloEngine
from surefoot.processors.slo.count import count_events
from surefoot.processors.slo.definition import Calendar
from surefoot.processors.slo.indicator import LATE
from surefoot.processors.slo.minutes import Minutes

OBJECTIVES = ["0.5", "0.9", "0.95", "0.99", "0.999"]
PERIODS = {"1d": 86_400, "3d": 3 * 86_400, "4d": 4 * 86_400, "1w": 7 * 86_400, "28d": 28 * 86_400}
SLICINGS = [("Occurrences", None, None)] * 4 + [
    ("Timeslices", 300, 0.9),
    ("Timeslices", 3600, 1.0),
    ("RatioTimeslices", 300, None),
    ("RatioTimeslices", 7200, None),
]
# Day, count, unit, zone, and the longest window in seconds. NOW is half an hour or so after a local midnight somewhere.
CALENDARS = [
    ("2026-01-01", 1, "M", "Europe/Berlin", "1M", 31 * 86_400 + 3600),
    ("2026-03-02", 1, "w", "America/New_York", "1w", 7 * 86_400 + 3600),
    ("2026-03-05", 4, "d", "Asia/Kolkata", "4d", 4 * 86_400),
    ("2024-02-29", 1, "Y", "UTC", "1Y", 366 * 86_400),
    ("2026-03-01", 1, "d", "Asia/Kathmandu", "1d", 86_400),
    ("2026-03-01", 1, "d", "America/New_York", "1d", 86_400 + 3600),
]


@st.composite
def slos(draw: st.DrawFn, name: str = "slo") -> Slo:
    indicator = draw(st.sampled_from(sorted(reference.INDICATORS)))
    period = draw(st.sampled_from(sorted(PERIODS)))
    conditions = st.sampled_from(
        [
            (),
            (("service_name", ("desk",)),),
            (("service_name", ("desk", "shop")),),
            (("stratum.tier", ("gold",)),),
            (("service_name", ("desk",)), ("task_class", ("refund", "a,b"))),
        ]
    )
    budgeting, slice_seconds, slice_target = draw(st.sampled_from(SLICINGS))
    fixed = draw(st.sampled_from([None, None, None, *CALENDARS]))
    late = INDICATORS[indicator].labels == LATE
    slo = Slo(
        name=name,
        service="desk",
        indicator=indicator,
        objective=float(draw(st.sampled_from(OBJECTIVES))),
        period=period,
        period_seconds=PERIODS[period],
        where=draw(conditions),
        by=draw(st.sampled_from([(), ("task_class",), ("task_class", "stratum.plan"), ("stratum.tier",)])),
        threshold_ns=30_000_000_000 if indicator == "latency" else None,
        budgeting=budgeting,
        slice_seconds=slice_seconds,
        slice_target=slice_target,
        selected=draw(st.sampled_from([(), (), (("service_name", ("desk",)),)])) if late else (),
    )
    if fixed is None:
        return slo
    day, count, unit, zone, written, longest = fixed
    calendar = Calendar(f"{day} 00:00:00", zone, count, unit)
    return replace(slo, period=written, period_seconds=longest, calendar=calendar)


def events_of(slo: Slo, runs: list[Row], tool_calls: list[Row], verdicts: list[Row]) -> list[reference.Event]:
    find = reference.INDICATORS[slo.indicator]
    return reference.graded(
        reference.selected(find(runs, tool_calls, verdicts, slo.threshold_ns), slo.where), slo.selected
    )


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


@given(
    slo=slos(),
    runs=made.runs(),
    tool_calls=made.tool_calls(),
    verdicts=made.verdicts(),
    scale=st.sampled_from([1.0, 1.0, 1 / 60, 0.5, 7 / 60]),
    lag=st.sampled_from([0.0, 90.0, 3600.0, 2 * 86_400.0]),
)
# Shrinking a failure would take longer than reading it.
@hypothesis_settings(max_examples=60, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_numbers_equal_the_reference(
    con: duckdb.DuckDBPyConnection,
    slo: Slo,
    runs: list[Row],
    tool_calls: list[Row],
    verdicts: list[Row],
    scale: float,
    lag: float,
) -> None:
    for name, rows in (("runs", runs), ("tool_calls", tool_calls), ("verdicts", verdicts)):
        con.register(name, table(name, rows))
    bucket = max(1, round(60 * scale))
    dates = {day_of(row) for row in [*runs, *tool_calls]}
    counted = count_events(con, slo, dates, bucket, lookback_days=8)
    events = events_of(slo, runs, tool_calls, verdicts)
    assert by_stratum(counted.to_pylist()) == expected_minutes(slo, events, bucket, rolled_up=False)

    minutes = Minutes(slo, scale)
    minutes.replace(dates, counted)
    minutes.choose()
    check(slo, minutes, events, float(NOW), scale, lag=lag)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return Tables(Lake.open(tmp_path_factory.mktemp("lake") / "lake"))


@given(data=st.data())
# Every step commits to a real lake; shrinking a failure would take longer than reading it.
@hypothesis_settings(max_examples=5, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_the_engine_equals_the_reference_step_by_step(
    shared: Tables, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Rows come, change and go between steps; after each one report and table say what the rows say."""
    home = tmp_path_factory.mktemp("home")
    slo = data.draw(slos())
    (home / "slos").mkdir()
    write(home / "slos" / "slo.yaml", slo)
    shared.hold(slo_minutes=[])
    engine = SloEngine(shared.lake, Settings(home=home, lake=shared.lake.path))
    before: list[Row] = []
    now = float(NOW - 60)
    for _ in range(3):
        runs, calls, verdicts = data.draw(made.runs()), data.draw(made.tool_calls()), data.draw(made.verdicts())
        shared.hold(runs=runs, tool_calls=calls, verdicts=verdicts)
        changed = [*before, *runs, *calls]
        if data.draw(st.booleans()):
            report = engine.step(now, {day_of(row) for row in changed})
        else:
            ended = [row["ended_us"] for row in changed if row["ended_us"] is not None]
            report = engine.step(now, set(), {at // 3_600_000_000 for at in ended})
        before, now = [*runs, *calls], now + 30
        assert report.problems == []
        events = events_of(slo, runs, calls, verdicts)
        if now - 30 == NOW:
            check_report(slo, report.slos[0], held(slo, events), NOW, 1.0)
        rows = [{**row, "start": int(row["minute"].timestamp())} for row in shared.lake.read("slo_minutes").to_pylist()]
        assert by_stratum(rows) == expected_minutes(slo, events, 60, rolled_up=True)
        assert {(row["slo"], row["generation"]) for row in rows} <= {("slo", slo.generation)}
        assert all(row["minute"].date() == row["date"] for row in rows)


def held(slo: Slo, events: list[reference.Event]) -> list[reference.Event]:
    """What an engine remembers at NOW: the whole UTC dates that the period, three days and the label delay reach."""
    delay = slo.labels.max_delay_seconds if INDICATORS[slo.indicator].labels == LATE else 0
    days = math.ceil((max(slo.period_seconds, 3 * 86_400) + delay) / 86_400)
    first = (NOW // 86_400 - days) * 86_400
    return [event for event in events if event.ended_us >= first * 1_000_000]


def write(file: Path, slo: Slo) -> None:
    """The SLO as the file that says the same."""
    where, selected = ({name: list(values) for name, values in conditions} for conditions in (slo.where, slo.selected))
    spec: dict[str, Any] = {"indicator": slo.indicator, "where": where, "by": list(slo.by)}
    source = {"type": "surefoot", "spec": spec | ({"selected": selected} if selected else {})}
    objective: dict[str, Any] = {"target": slo.objective}
    metric: dict[str, Any] = {"ratioMetric": {"rawType": "success", "raw": {"metricSource": source}}}
    if slo.threshold_ns is not None:
        objective |= {"op": "lte", "value": slo.threshold_ns / 1e9}
        metric = {"thresholdMetric": {"metricSource": source}}
    if slo.slice_seconds is not None:
        objective |= {"timeSliceWindow": f"{slo.slice_seconds // 60}m"}
    if slo.slice_target is not None:
        objective |= {"timeSliceTarget": slo.slice_target}
    window: dict[str, Any] = {"duration": slo.period, "isRolling": slo.calendar is None}
    if slo.calendar is not None:
        window |= {"calendar": {"startTime": slo.calendar.start, "timeZone": slo.calendar.zone}}
    file.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "openslo/v1",
                "kind": "SLO",
                "metadata": {"name": slo.name},
                "spec": {
                    "service": slo.service,
                    "budgetingMethod": slo.budgeting,
                    "timeWindow": [window],
                    "indicator": {"metadata": {"name": "mine"}, "spec": metric},
                    "objectives": [objective],
                },
            }
        )
    )
