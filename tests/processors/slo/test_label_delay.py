"""Labels take hours, those of failures longest: an outage is paged, ticketed and charged to the budget all the same.

600 runs an hour at a target of 99 %, of which 0.5 % fail. Successes are labelled after half an hour in the median,
failures after six. For two hours half of all runs fail.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
import yaml

from support.slo_events import Tables
from surefoot.processors.lake.schema import TABLES
from surefoot.processors.settings import Settings
from surefoot.processors.slo import SloEngine
from surefoot.processors.slo.definition import Labels
from surefoot.processors.slo.delay import Delays, delay_of
from surefoot.processors.slo.report import SloReport

HOUR: Final = 3600.0
BEGIN: Final = 1_773_100_800.0  # 2026-03-10 00:00 UTC: the outage begins
OUTAGE: Final = 2 * HOUR
SLO: Final = {
    "apiVersion": "openslo/v1",
    "kind": "SLO",
    "metadata": {"name": "outcome"},
    "spec": {
        "service": "desk",
        "budgetingMethod": "Occurrences",
        "timeWindow": [{"duration": "28d", "isRolling": True}],
        "indicator": {
            "metadata": {"name": "outcome"},
            "spec": {
                "ratioMetric": {
                    "rawType": "success",
                    "raw": {"metricSource": {"type": "surefoot", "spec": {"indicator": "acceptable_outcome"}}},
                }
            },
        },
        "objectives": [{"target": 0.99}],
    },
}


@dataclass
class World:
    """Runs that ended at ``ended`` (unix seconds), and what a grader will say of them at ``told``."""

    ended: npt.NDArray[np.float64]
    bad: npt.NDArray[np.bool_]
    seen: npt.NDArray[np.bool_]  # the run's own end says that it failed
    told: npt.NDArray[np.float64]


def world(seed: int, *, outage: bool, seen: float) -> World:
    random = np.random.default_rng(seed)
    ended = np.arange(BEGIN - 48 * HOUR, BEGIN + 26 * HOUR, 6.0)
    trouble = (ended >= BEGIN) & (ended < BEGIN + OUTAGE) if outage else np.zeros(len(ended), bool)
    bad = random.random(len(ended)) < np.where(trouble, 0.5, 0.005)
    delay = np.where(bad, 6 * HOUR, HOUR / 2) * random.lognormal(0, 0.5, len(ended))
    return World(ended, bad, bad & (random.random(len(ended)) < seen), ended + delay)


class Replay:
    """The world in a real lake, as far as it is known at each step."""

    def __init__(self, tables: Tables, settings: Settings, lived: World) -> None:
        (settings.slos_path / "outcome.yaml").write_text(yaml.safe_dump(SLO))
        self._lake = tables.lake
        self._lived = lived
        self._told = -np.inf
        self._version = 100
        self._engine = SloEngine(tables.lake, settings)
        ids = [f"r{number}" for number in range(len(lived.ended))]
        self._ids = np.array(ids)
        outcome = np.where(lived.seen, "error", "ok")
        self._put("runs", lived.ended, run_id=ids, trace_id=ids, ended_at=_times(lived.ended), outcome=outcome)

    def at(self, now: float) -> dict[str, SloReport]:
        """The reports by view, after the labels that came until ``now``."""
        new = (self._lived.told > self._told) & (self._lived.told <= now)
        ended, told = self._lived.ended[new], _times(self._lived.told[new])
        verdict = np.where(self._lived.bad[new], "fail", "pass")
        said = {"verdict_id": [f"v{name}" for name in self._ids[new]], "run_id": self._ids[new], "verdict": verdict}
        same = {"kind": "outcome", "finality": "final", "grader_kind": "human"}
        given = {name: [value] * int(new.sum()) for name, value in same.items()}
        self._put("verdicts", self._lived.told[new], **said, **given, received_at=told, occurred_at=told)
        self._told = now
        dirty = {_date(at) for at in (*np.unique(ended // 86_400) * 86_400, now)}
        return {report.view: report for report in self._engine.step(now, dirty).slos}

    def _put(self, name: str, dated: npt.NDArray[np.float64], **columns: Any) -> None:
        schema = TABLES[name]
        days = pa.array(dated.astype("datetime64[s]").astype("datetime64[D]"))
        arrays = {field.name: pa.nulls(len(dated), field.type) for field in schema} | {"date": days}
        arrays |= {key: pa.array(values).cast(schema.field(key).type) for key, values in columns.items()}
        self._version += 1
        if len(dated):
            rows = pa.Table.from_pydict(arrays, schema)
            self._lake.commit(name, rows, app_id="test", app_version=self._version)


def _times(seconds: npt.NDArray[np.float64]) -> pa.Array:
    return pa.array((seconds * 1e6).astype(np.int64), pa.timestamp("us", tz="UTC"))


def _date(at: float) -> date:
    return datetime.fromtimestamp(at, UTC).date()


def alarms(report: SloReport) -> set[str]:
    return {tier.severity for tier in report.strata[0].tiers if tier.burning}


def test_what_is_known_at_once_pages_during_the_outage(tables: Tables, settings: Settings) -> None:
    """The runs' own ends tell of 60 % of the failures."""
    lived = world(1, outage=True, seen=0.6)
    replay = Replay(tables, settings, lived)
    assert alarms(replay.at(BEGIN - 60)["fast"]) == set()
    paged = {minutes: alarms(replay.at(BEGIN + 60 * minutes)["fast"]) for minutes in (1, 10, 30, 60, 119)}
    assert paged == {1: set(), 10: set(), 30: {"page"}, 60: {"page"}, 119: {"page"}}
    assert alarms(replay.at(BEGIN + OUTAGE + HOUR)["fast"]) == set()
    in_full(replay, lived)


def test_without_such_a_signal_the_ticket_comes_with_the_watermark(tables: Tables, settings: Settings) -> None:
    lived = world(2, outage=True, seen=0.0)
    replay = Replay(tables, settings, lived)
    first = replay.at(BEGIN - 60)["matured"]
    lag = first.label_delay_seconds
    assert lag is not None
    # 95 % of the failures' labels take at most 6 h * exp(0.5 * 1.645) = 13.7 h; most labels take 0.5 to 1.2 h.
    assert 11 * HOUR < lag < 18 * HOUR
    assert first.label_delay_n > 20_000
    ticketed_at = None
    for hour in (1, 6, 10, 12, 13, 14, 15, 16, 17, 18, 19, 20):
        now = BEGIN + hour * HOUR
        reports = replay.at(now)
        watermark = reports["matured"].evaluated_at
        assert watermark is not None
        assert alarms(reports["fast"]) == set()
        if alarms(reports["matured"]):
            ticketed_at = watermark
            break
    # With an hour of the outage behind the watermark 370 of the day's 14,400 runs are bad, a burn of 2.6.
    assert ticketed_at is not None
    assert BEGIN < ticketed_at < BEGIN + 2.5 * HOUR
    in_full(replay, lived)


def test_nothing_happens_when_nothing_happens(tables: Tables, settings: Settings) -> None:
    lived = world(3, outage=False, seen=0.6)
    replay = Replay(tables, settings, lived)
    for hour in (0, 1, 6, 14, 24):
        reports = replay.at(BEGIN + hour * HOUR)
        assert {view: (alarms(report), report.strata[0].state) for view, report in reports.items()} == {
            "fast": (set(), "ok"),
            "matured": (set(), "ok"),
        }
    in_full(replay, lived)


def in_full(replay: Replay, lived: World) -> None:
    """Days later the budget knows of every failure, whenever it was known."""
    after = replay.at(BEGIN + 6 * 24 * HOUR)["matured"]
    period = after.strata[0].windows[-1]
    assert (period.counts.bad, period.counts.good) == (int(lived.bad.sum()), int((~lived.bad).sum()))
    assert period.counts.unlabelled == 0
    left = after.strata[0].error_budget_remaining_ratio
    assert left == pytest.approx(1 - 100 * lived.bad.mean())


def test_a_grader_that_stopped_freezes_the_view_of_labels(tables: Tables, settings: Settings) -> None:
    """What burns was told; that nothing burns any more would be a guess."""
    lived = world(8, outage=False, seen=0.6)
    lived.told[lived.told > BEGIN] = np.inf
    replay = Replay(tables, settings, lived)
    assert replay.at(BEGIN)["matured"].watermark_stale is None
    later = replay.at(BEGIN + 25 * HOUR)
    roll_up = later["matured"].strata[0]
    assert later["matured"].watermark_stale is not None
    assert later["matured"].watermark_stale.startswith("no label came for 25.0 h, and ")
    assert (roll_up.state, {tier.frozen for tier in roll_up.tiers}) == ("frozen", {True})
    assert {tier.reason for tier in roll_up.tiers} == {later["matured"].watermark_stale}
    assert later["fast"].strata[0].state == "ok"


def sample(seed: int, hours: float, *, failures: float) -> tuple[Delays, float]:
    """Labels of ``hours`` of steady traffic, as far as they came; and the true quantile of the failures' delay."""
    random = np.random.default_rng(seed)
    size = 4000
    age = random.uniform(0, hours * HOUR, size)
    bad = random.random(size) < failures
    delay = np.where(bad, 6 * HOUR, HOUR / 2) * random.lognormal(0, 0.5, size)
    came = delay <= age
    known = Delays(
        np.where(came, np.where(bad, 2, 1), 0).astype(np.int64),
        np.where(came, delay, age),
        age,
        np.ones(size, np.int64),
    )
    return known, 6 * HOUR * float(np.exp(0.5 * 1.6449))


def test_the_failures_delay_is_not_hidden_by_the_successes() -> None:
    known, truth = sample(4, 72, failures=0.03)
    assert delay_of(known, Labels()) == pytest.approx(truth, rel=0.15)
    overall = Delays(np.minimum(known.labelled, 1), known.delay, known.age, known.count)
    assert delay_of(overall, Labels()) < 0.4 * truth  # what one estimate for all would say


def test_delays_that_are_longer_than_most_runs_are_old_are_not_underestimated() -> None:
    """Half of the runs are younger than 15 h: the failures that were labelled by now are the quick ones."""
    known, truth = sample(5, 30, failures=0.2)
    seen = known.of(known.labelled == 2)
    assert np.quantile(seen.delay, 0.95) < 0.9 * truth
    assert delay_of(known, Labels()) == pytest.approx(truth, rel=0.12)


def test_few_labels_wait_for_the_longest_that_may_be_waited_for() -> None:
    known, _ = sample(6, 72, failures=0.03)
    assert delay_of(known.of(np.arange(len(known.age)) < 25), Labels(max_delay_seconds=5000)) == 5000
    assert delay_of(known, Labels(max_delay_seconds=5000)) == 5000
    nothing = known.of(known.age < 0)
    assert delay_of(nothing, Labels()) == 3 * 86_400


def test_a_few_failures_count_by_the_longest_of_them() -> None:
    known, _ = sample(7, 72, failures=0.0)
    one = Delays(np.array([2]), np.array([20 * HOUR]), np.array([30 * HOUR]), np.array([1]))
    both = Delays(
        np.append(known.labelled, one.labelled),
        np.append(known.delay, one.delay),
        np.append(known.age, one.age),
        np.append(known.count, one.count),
    )
    assert delay_of(both, Labels()) == 20 * HOUR
    assert delay_of(known, Labels()) < 2 * HOUR


def test_a_grader_that_looks_at_one_run_in_twenty_has_not_stopped(tables: Tables, settings: Settings) -> None:
    """Ten runs an hour: six hours without a label are nothing unusual then, and a day is."""
    ended = BEGIN + np.arange(24 * HOUR, -5 * 24 * HOUR, -360.0)
    graded = (np.arange(len(ended)) % 20 == 0) & (ended < BEGIN - 6 * HOUR)
    none = np.zeros(len(ended), bool)
    replay = Replay(tables, settings, World(ended, none, none, np.where(graded, ended + 600.0, np.inf)))
    assert replay.at(BEGIN)["matured"].watermark_stale is None
    stale = replay.at(BEGIN + 24 * HOUR)["matured"].watermark_stale
    assert stale is not None
    assert "although 5% of runs get one" in stale
