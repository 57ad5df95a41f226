"""The engine over a real lake: what it counts, when it writes, and what a change of the files does."""

from __future__ import annotations

import json
import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from support.slo_events import Row, Tables
from surefoot.processors.settings import Settings
from surefoot.processors.slo import SloEngine, StatusReport
from surefoot.processors.slo.report import Counts, SloReport

NOW = 1_773_144_000.0  # 2026-03-10 12:00:00 UTC
TODAY = date(2026, 3, 10)

SLO = """\
apiVersion: openslo/v1
kind: SLO
metadata: {{name: {name}}}
spec:
  service: desk
  budgetingMethod: Occurrences
  timeWindow: [{{duration: {period}, isRolling: true}}]
  indicator:
    metadata: {{name: mine}}
    spec:
      ratioMetric:
        rawType: success
        raw: {{metricSource: {{type: surefoot, spec: {{indicator: availability, where: {where}, by: {by}}}}}}}
  objectives: [{{target: {target}}}]
"""


def put(settings: Settings, name: str = "desk", file: str | None = None, **other: str) -> Path:
    values = {"period": "28d", "where": "{service_name: desk}", "by": "[]", "target": "0.99", **other}
    path = settings.slos_path / (file or f"{name}.yaml")
    path.write_text(SLO.format(name=name, **values))
    os.utime(path, ns=(path.stat().st_mtime_ns + 1, next(_TICKS)))
    return path


# Two writes within one tick of the file system's clock would look like none.
_TICKS = iter(range(10**18, 2 * 10**18, 10**9))


def run(number: int, ago: float, outcome: str = "ok", **other: object) -> Row:
    return {
        "run_id": f"r{number}",
        "trace_id": f"t{number}",
        "parent_run_id": None,
        "service_name": "desk",
        "task_class": "refund",
        "outcome": outcome,
        "ended_us": int((NOW - ago) * 1_000_000),
        **other,
    }


def period(report: StatusReport, name: str = "desk") -> Counts:
    return of(report, name).strata[0].windows[-1].counts


def of(report: StatusReport, name: str) -> SloReport:
    return next(slo for slo in report.slos if slo.slo == name)


@pytest.fixture
def engine(tables: Tables, settings: Settings) -> SloEngine:
    return SloEngine(tables.lake, settings)


def test_the_first_step_counts_the_whole_period(tables: Tables, settings: Settings, engine: SloEngine) -> None:
    put(settings)
    day = 86_400
    tables.hold(runs=[run(0, 10), run(1, 27 * day), run(2, 28 * day - 61, "error"), run(3, 28 * day + 61, "error")])
    report = engine.step(NOW, set())
    assert period(report) == Counts(good=2, bad=1)
    assert report.computed_at == NOW
    assert [window.window for window in report.slos[0].strata[0].windows] == [
        "5m", "30m", "1h", "2h", "6h", "1d", "3d", "28d",
    ]  # fmt: skip
    assert report.slos[0].strata[0].windows[0].counts == Counts(good=1)


def test_history_is_a_burn_down_that_ends_at_what_remains(
    tables: Tables, settings: Settings, engine: SloEngine
) -> None:
    put(settings, target="0.9")
    day = 86_400
    tables.hold(
        runs=[run(number, number * day / 10) for number in range(195)]
        + [run(900 + n, 3 * day, "error") for n in range(5)]
    )
    history = engine.step(NOW, set()).slos[0].history
    assert len(history) == 29
    assert (history[0].date, history[-1].date) == ("2026-02-10", "2026-03-10")
    left = [point.error_budget_remaining_ratio for point in history]
    assert left == [1.0] * 25 + [0.75] * 4  # 5 of the 20 that 200 runs allow, on the 7th
    assert history[25].counts.bad == 5


def test_dirty_dates_are_counted_again_and_others_are_not(
    tables: Tables, settings: Settings, engine: SloEngine
) -> None:
    put(settings)
    yesterday = 86_400
    tables.hold(runs=[run(0, 10), run(1, yesterday)])
    engine.step(NOW, set())
    tables.hold(runs=[run(0, 10, "error"), run(1, yesterday, "error")])
    assert period(engine.step(NOW, set())) == Counts(good=2)
    assert period(engine.step(NOW, {TODAY})) == Counts(good=1, bad=1)
    assert period(engine.step(NOW, {TODAY - timedelta(days=1)})) == Counts(bad=2)


def test_dirty_hours_are_counted_again_and_others_are_not(
    tables: Tables, settings: Settings, engine: SloEngine
) -> None:
    put(settings, by="[task_class]")
    hour, ago = int(NOW) // 3600, 3 * 3600
    tables.hold(runs=[run(0, 10), run(1, ago), run(2, 0), run(3, 10 * 86_400)])
    engine.step(NOW, set())
    after = [run(0, 10, "error"), run(1, ago, "error"), run(2, 0), run(3, 10 * 86_400, "error"), run(4, 20)]
    tables.hold(runs=after)
    assert period(engine.step(NOW, set(), {hour})) == Counts(good=4)
    assert period(engine.step(NOW, set(), {hour - 1})) == Counts(good=4, bad=1)
    assert period(engine.step(NOW, set(), {hour - 3, hour - 240})) == Counts(good=2, bad=3)
    assert engine.step(NOW, {TODAY}) == SloEngine(tables.lake, settings).step(NOW, set())
    known = minutes_of(tables)
    tables.hold(runs=after[:1])
    assert period(engine.step(NOW, set(), {hour - 3, hour - 240, hour, hour - 1})) == Counts(bad=1)
    assert len(known) > len(minutes_of(tables)) == 2


def test_hours_that_memory_does_not_hold_reach_the_table_with_their_whole_dates(
    tables: Tables, settings: Settings, engine: SloEngine
) -> None:
    put(settings)
    long_ago, ahead = 40 * 86_400, -86_400
    tables.hold(runs=[run(0, 10), run(1, long_ago), run(2, long_ago + 7200), run(3, ahead)])
    engine.step(NOW, set(), {int(NOW - long_ago) // 3600, int(NOW - ahead) // 3600})
    assert sorted(row["minute"].timestamp() for row in minutes_of(tables)) == sorted(
        (NOW - ago) // 60 * 60 for ago in (10, long_ago, long_ago + 7200, ahead)
    )


def test_windows_move_with_now_alone(tables: Tables, settings: Settings, engine: SloEngine) -> None:
    put(settings)
    tables.hold(runs=[run(0, 0, "error")])

    def hour(report: StatusReport) -> Counts:
        return report.slos[0].strata[0].windows[2].counts

    assert hour(engine.step(NOW, set())) == Counts(bad=1)
    assert hour(engine.step(NOW + 3599, set())) == Counts(bad=1)
    assert hour(engine.step(NOW + 3600, set())) == Counts()
    assert period(engine.step(NOW + 29 * 86_400, set())) == Counts()


def test_a_run_dated_in_the_future_counts_when_its_time_comes(
    tables: Tables, settings: Settings, engine: SloEngine
) -> None:
    put(settings)
    tables.hold(runs=[run(0, -86_400, "error")])
    assert period(engine.step(NOW, set())) == Counts()
    assert period(engine.step(NOW + 86_400, set())) == Counts(bad=1)


def test_nothing_is_written_when_nothing_changed(tables: Tables, settings: Settings, engine: SloEngine) -> None:
    put(settings)
    tables.hold(runs=[run(0, 10)])
    engine.step(NOW, set())
    version = tables.lake.version("slo_minutes")
    engine.step(NOW + 5, {TODAY})
    assert tables.lake.version("slo_minutes") == version
    tables.hold(runs=[run(0, 10), run(1, 20)])
    engine.step(NOW + 10, {TODAY})
    assert tables.lake.version("slo_minutes") == version + 1


def test_a_new_engine_says_the_same_and_leaves_the_table_as_it_was(
    tables: Tables, settings: Settings, engine: SloEngine
) -> None:
    put(settings, by="[task_class]")
    tables.hold(runs=[run(number, number * 3600, "error" if number % 9 == 0 else "ok") for number in range(300)])
    before = engine.step(NOW, set())
    rows = minutes_of(tables)
    assert SloEngine(tables.lake, settings).step(NOW, set()) == before
    assert minutes_of(tables) == rows
    assert len(rows) > 300


def minutes_of(tables: Tables) -> list[Row]:
    def place(row: Row) -> tuple[object, ...]:
        return row["slo"], row["stratum_key"], row["minute"]

    return sorted(tables.lake.read("slo_minutes").to_pylist(), key=place)


def test_a_new_target_keeps_the_counts_and_a_new_definition_replaces_them(
    tables: Tables, settings: Settings, engine: SloEngine
) -> None:
    put(settings)
    tables.hold(runs=[run(0, 10), run(1, 86_400, "error", service_name="shop")])
    first = engine.step(NOW, set()).slos[0]
    version = tables.lake.version("slo_minutes")

    put(settings, target="0.9")
    second = engine.step(NOW, set()).slos[0]
    assert (second.objective, second.generation) == (0.9, first.generation)
    assert tables.lake.version("slo_minutes") == version

    put(settings, where="{service_name: [desk, shop]}")
    third = engine.step(NOW, set()).slos[0]
    assert third.generation != first.generation
    assert third.strata[0].windows[-1].counts == Counts(good=1, bad=1)
    rows = tables.lake.read("slo_minutes").to_pylist()
    assert {(row["generation"], row["date"]) for row in rows} == {
        (third.generation, TODAY),
        (third.generation, TODAY - timedelta(days=1)),
    }


def test_slos_come_and_go(tables: Tables, settings: Settings, engine: SloEngine) -> None:
    tables.hold(runs=[run(0, 10), run(1, 60 * 86_400)])
    assert engine.step(NOW, set()).slos == []
    put(settings)
    assert period(engine.step(NOW, set())) == Counts(good=1)
    other = put(settings, name="long", period="90d")
    report = engine.step(NOW, set())
    assert (period(report), period(report, "long")) == (Counts(good=1), Counts(good=2))
    other.unlink()
    assert [slo.slo for slo in engine.step(NOW, set()).slos] == ["desk"]
    rows = tables.lake.read("slo_minutes", where="date >= DATE '2026-02-01'").to_pylist()
    assert {row["slo"] for row in rows} == {"desk"}


def test_a_bad_file_is_told_and_the_good_ones_go_on(tables: Tables, settings: Settings, engine: SloEngine) -> None:
    put(settings)
    put(settings, name="wrong", target="1")
    tables.hold(runs=[run(0, 10)])
    report = engine.step(NOW, set())
    assert [slo.slo for slo in report.slos] == ["desk"]
    (problem,) = report.problems
    assert "wrong.yaml:14: spec.objectives[0].target: 1 leaves no error budget" in problem
    put(settings, name="wrong", target="0.9")
    assert engine.step(NOW, set()).problems == []


def test_without_events_the_report_says_what_it_looked_for(
    tables: Tables, settings: Settings, engine: SloEngine
) -> None:
    put(settings)
    (slo,) = engine.step(NOW, set()).slos
    assert slo.problem == "no event of the last 28d is about it; it counts runs where service_name is desk"
    assert slo.strata[0].state == "no_data"
    tables.hold(runs=[run(0, 10, "unknown"), run(1, 10, "cancelled")])
    (slo,) = engine.step(NOW, {TODAY}).slos
    assert slo.problem == "none of the last 28d's events is good or bad: 1 unlabelled, 1 excluded"


def test_strata_beyond_the_cap_are_chosen_anew_every_day(tables: Tables, settings: Settings, engine: SloEngine) -> None:
    put(settings, by="[task_class]")
    old = [run(number, 3600, task_class=f"old{number:02}") for number in range(50)]
    late = run(99, 3600, task_class="aaa")
    tables.hold(runs=old)
    engine.step(NOW, set())
    tables.hold(runs=[*old, late])
    crowded = engine.step(NOW, {TODAY}).slos[0]
    assert crowded.strata[-1].key == "other"
    assert crowded.strata[-1].windows[-1].counts == Counts(good=1)
    fresh = engine.step(NOW + 86_400, set()).slos[0]
    assert "task_class=aaa" in {stratum.key for stratum in fresh.strata}
    assert fresh.strata[0].windows[-1].counts == Counts(good=51)


def test_a_page_burns_while_both_windows_do_and_stops_with_the_short_one(
    tables: Tables, settings: Settings, engine: SloEngine
) -> None:
    put(settings)
    tables.hold(runs=[run(number, number * 10, "error" if number % 4 == 0 else "ok") for number in range(360)])
    burning = engine.step(NOW, set()).slos[0].strata[0]
    assert burning.state == "burning_page"
    assert [tier.name for tier in burning.tiers if tier.burning] == [
        "page_fast", "page_slow", "ticket_fast", "ticket_slow",
    ]  # fmt: skip
    later = engine.step(NOW + 400, set()).slos[0].strata[0]
    assert "page_fast" not in [tier.name for tier in later.tiers if tier.burning]
    assert later.tiers[0].factor == 13.44


def test_a_tier_burns_above_its_factor_and_not_at_it(tables: Tables, settings: Settings, engine: SloEngine) -> None:
    put(settings, target="0.9")  # the page tiers burn above 5, an error ratio of one half

    def burning(good: int, bad: int) -> list[str]:
        outcomes = ["ok"] * good + ["error"] * bad
        tables.hold(runs=[run(number, 10, outcome) for number, outcome in enumerate(outcomes)])
        roll_up = engine.step(NOW, {TODAY}).slos[0].strata[0]
        return [tier.name for tier in roll_up.tiers if tier.burning]

    assert burning(100, 100) == ["ticket_fast", "ticket_slow"]
    assert burning(100, 101) == ["page_fast", "page_slow", "ticket_fast", "ticket_slow"]
    assert burning(3, 1) == []  # chance, for all that four events say


def test_scaled_windows_keep_their_labels(tables: Tables, settings: Settings) -> None:
    put(settings)
    tables.hold(runs=[run(0, 3, "error"), run(1, 6, "error"), run(2, 59), run(3, 61)])
    report = SloEngine(tables.lake, settings.model_copy(update={"window_scale": 1 / 60})).step(NOW, set())
    counts = {window.window: window.counts for window in report.slos[0].strata[0].windows}
    assert counts["5m"] == Counts(bad=1)
    assert counts["1h"] == Counts(good=1, bad=2)
    assert counts["2h"] == Counts(good=2, bad=2)
    minutes = [row["minute"] for row in tables.lake.read("slo_minutes").to_pylist()]
    assert datetime.fromtimestamp(NOW - 59, UTC) in minutes


def test_a_report_survives_json(tables: Tables, settings: Settings, engine: SloEngine) -> None:
    put(settings, by="[task_class]")
    put(settings, name="empty", where="{service_name: nobody}")
    tables.hold(runs=[run(0, 10), run(1, 20, "error", task_class="a,b=c")])
    report = engine.step(NOW, set())
    assert StatusReport.from_json(json.loads(json.dumps(report.to_json(), allow_nan=False))) == report
