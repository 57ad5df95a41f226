"""Counts, windows, burn rates, budgets and states equal a slow, obvious computation in plain Python, on random data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
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
from support.slo_events import NOW, Row, Tables, day_of, table
from surefoot.processors.lake import Lake
from surefoot.processors.settings import Settings
from surefoot.processors.slo import Slo, SloEngine
from surefoot.processors.slo.count import CLASSES, count_events, dimensions_of
from surefoot.processors.slo.judge import judge
from surefoot.processors.slo.minutes import ROLL_UP, Minutes
from surefoot.processors.slo.report import Counts, SloReport, StratumReport

OBJECTIVES = ["0.5", "0.9", "0.95", "0.99", "0.999"]
PERIODS = {"4d": 4 * 86_400, "1w": 7 * 86_400, "28d": 28 * 86_400}


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
    return Slo(
        name=name,
        service="desk",
        indicator=indicator,
        objective=float(draw(st.sampled_from(OBJECTIVES))),
        period=period,
        period_seconds=PERIODS[period],
        where=draw(conditions),
        by=draw(st.sampled_from([(), ("task_class",), ("task_class", "stratum.plan"), ("stratum.tier",)])),
        threshold_ns=30_000_000_000 if indicator == "latency" else None,
    )


def events_of(slo: Slo, runs: list[Row], tool_calls: list[Row], verdicts: list[Row]) -> list[reference.Event]:
    find = reference.INDICATORS[slo.indicator]
    return reference.selected(find(runs, tool_calls, verdicts, slo.threshold_ns), slo.where)


def strata_of(slo: Slo, events: list[reference.Event]) -> dict[reference.Key, list[reference.Event]]:
    """The events by stratum; the roll-up is ()."""
    divided: dict[reference.Key, list[reference.Event]] = {(): events}
    if slo.by:
        for event in events:
            divided.setdefault(reference.stratum(event, slo.by), []).append(event)
    return divided


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
    scale=st.sampled_from([1.0, 1 / 60, 0.5, 7 / 60]),
)
@hypothesis_settings(max_examples=100, deadline=None)
def test_numbers_equal_the_reference(
    con: duckdb.DuckDBPyConnection,
    slo: Slo,
    runs: list[Row],
    tool_calls: list[Row],
    verdicts: list[Row],
    scale: float,
) -> None:
    for name, rows in (("runs", runs), ("tool_calls", tool_calls), ("verdicts", verdicts)):
        con.register(name, table(name, rows))
    bucket = max(1, round(60 * scale))
    dates = {day_of(row) for row in [*runs, *tool_calls]}
    counted = count_events(con, slo, dates, bucket, lookback_days=8)
    events = events_of(slo, runs, tool_calls, verdicts)
    assert by_stratum(counted.to_pylist()) == expected_minutes(slo, events, bucket, rolled_up=False)

    minutes = Minutes(slo)
    minutes.replace(dates, counted, whole=True)
    check(slo, judge(slo, minutes, NOW, scale), events, scale, bucket)


def by_stratum(rows: Iterable[Row]) -> dict[tuple[reference.Key, int], tuple[int, ...]]:
    return {
        (tuple(dimensions_of(row["stratum_key"]).items()), row["start"]): tuple(row[kind] for kind in CLASSES)
        for row in rows
    }


def expected_minutes(
    slo: Slo, events: list[reference.Event], bucket: int, *, rolled_up: bool
) -> dict[tuple[reference.Key, int], tuple[int, ...]]:
    return {
        (key, start): tuple(counts.values())
        for key, chosen in strata_of(slo, events).items()
        if rolled_up or key or not slo.by
        for start, counts in reference.per_bucket(chosen, bucket).items()
    }


def check(slo: Slo, report: SloReport, events: list[reference.Event], scale: float, bucket: int) -> None:
    """Every number of the report against the reference."""
    divided = strata_of(slo, events)
    length = max(bucket, slo.period_seconds * scale)
    nothing = dict.fromkeys(CLASSES, 0)
    seen = {key for key, chosen in divided.items() if reference.in_window(chosen, length, NOW, bucket) != nothing}
    assert report.strata[0].key == ROLL_UP
    said = {(): (), **{tuple((name, value or "(none)") for name, value in key): key for key in divided}}
    assert {said[tuple(stratum.dimensions.items())] for stratum in report.strata} == seen | {()}
    for stratum in report.strata:
        check_stratum(slo, stratum, divided[said[tuple(stratum.dimensions.items())]], scale, bucket)
    final = report.history[-1]
    assert final.error_budget_remaining_ratio == report.strata[0].error_budget_remaining_ratio
    daily = [point.counts for point in report.history]
    assert sum_of(daily) == report.strata[0].windows[-1].counts


def sum_of(all_counts: list[Counts]) -> Counts:
    return Counts(*(sum(getattr(counts, kind) for counts in all_counts) for kind in CLASSES))


def check_stratum(slo: Slo, stratum: StratumReport, events: list[reference.Event], scale: float, bucket: int) -> None:
    objective = Fraction(repr(slo.objective))
    lengths = {**reference.WINDOWS, slo.period: slo.period_seconds}
    windows = {
        name: reference.in_window(events, max(bucket, length * scale), NOW, bucket) for name, length in lengths.items()
    }
    assert [window.window for window in stratum.windows] == list(lengths)
    for window in stratum.windows:
        counts = windows[window.window]
        assert window.counts == Counts(**counts)
        assert near(window.burn_rate, reference.burn_rate(counts, objective))
        total = counts["good"] + counts["bad"] + counts["unlabelled"]
        assert near(window.error_ratio_low, Fraction(counts["bad"], total) if total else None)
        assert near(window.error_ratio_high, Fraction(counts["bad"] + counts["unlabelled"], total) if total else None)
        assert near(window.label_coverage_ratio, Fraction(counts["good"] + counts["bad"], total) if total else None)
    left = reference.remaining(windows[slo.period], objective)
    burning = reference.burning_tiers(windows, slo.period_seconds, objective)
    assert near(stratum.error_budget_remaining_ratio, left)
    assert {(tier.name, tier.severity) for tier in stratum.tiers if tier.burning} == burning
    assert stratum.state == reference.state(left, burning)


def near(found: float | None, expected: Fraction | None) -> bool:
    """Equal up to the rounding of one float; None only equals None."""
    if found is None or expected is None:
        return found is None and expected is None
    return found == pytest.approx(float(expected), rel=1e-12, abs=1e-15)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return Tables(Lake.open(tmp_path_factory.mktemp("lake") / "lake"))


@given(data=st.data())
# Every step commits to a real lake; shrinking a failure would take longer than reading it.
@hypothesis_settings(max_examples=12, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
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
    before: set[Any] = set()
    now = float(NOW - 60)
    for _ in range(3):
        runs, calls, verdicts = data.draw(made.runs()), data.draw(made.tool_calls()), data.draw(made.verdicts())
        shared.hold(runs=runs, tool_calls=calls, verdicts=verdicts)
        dates = {day_of(row) for row in [*runs, *calls]}
        report = engine.step(now, before | dates)
        before, now = dates, now + 30
        assert report.problems == []
        events = events_of(slo, runs, calls, verdicts)
        if now - 30 == NOW:
            check(slo, report.slos[0], events, 1.0, 60)
        rows = [{**row, "start": int(row["minute"].timestamp())} for row in shared.lake.read("slo_minutes").to_pylist()]
        assert by_stratum(rows) == expected_minutes(slo, events, 60, rolled_up=True)
        assert {(row["slo"], row["generation"], row["view"]) for row in rows} <= {("slo", slo.generation, "fast")}
        assert all(row["minute"].date() == row["date"] for row in rows)


def write(file: Path, slo: Slo) -> None:
    """The SLO as the file that says the same."""
    where = {name: list(values) for name, values in slo.where}
    source = {"type": "surefoot", "spec": {"indicator": slo.indicator, "where": where, "by": list(slo.by)}}
    objective: dict[str, Any] = {"target": slo.objective}
    metric: dict[str, Any] = {"ratioMetric": {"rawType": "success", "raw": {"metricSource": source}}}
    if slo.threshold_ns is not None:
        objective |= {"op": "lte", "value": slo.threshold_ns / 1e9}
        metric = {"thresholdMetric": {"metricSource": source}}
    file.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "openslo/v1",
                "kind": "SLO",
                "metadata": {"name": slo.name},
                "spec": {
                    "service": slo.service,
                    "budgetingMethod": "Occurrences",
                    "timeWindow": [{"duration": slo.period, "isRolling": True}],
                    "indicator": {"spec": metric},
                    "objectives": [objective],
                },
            }
        )
    )
