"""The history of an SLO holds what was counted, by generation, in whole minutes, hours or days."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from support.slo_events import Row, Tables
from surefoot.processors.lake import Lake
from surefoot.processors.lake.schema import TABLES
from surefoot.processors.slo.history import generations, history, known_slos

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)


def minute(at: str, good: int, bad: int, **other: object) -> Row:
    start = datetime.fromisoformat(at).replace(tzinfo=UTC)
    return {
        "slo": "desk",
        "generation": "g2",
        "view": "fast",
        "stratum_key": "",
        "minute": start,
        "good": good,
        "bad": bad,
        "unlabelled": 1,
        "excluded": 2,
        "computed_at": NOON,
        "date": start.date(),
        **other,
    }


ROWS = [
    minute("2026-03-09 23:59", 1, 1),
    minute("2026-03-10 00:00", 2, 0),
    minute("2026-03-10 00:01", 3, 1),
    minute("2026-03-10 01:00", 0, 0),
    minute("2026-03-10 01:00", 7, 7, generation="g1"),
    minute("2026-03-10 01:00", 5, 5, view="matured"),
    minute("2026-03-10 01:00", 5, 5, stratum_key="task_class=refund"),
    minute("2026-03-10 01:00", 9, 9, slo="shop"),
]


def put(tables: Tables, name: str, rows: list[Row]) -> Lake:
    tables.lake.commit(name, pa.Table.from_pylist(rows, TABLES[name]), app_id="test", app_version=1)
    return tables.lake


@pytest.fixture
def counted(tables: Tables) -> Lake:
    return put(tables, "slo_minutes", ROWS)


def read(lake: Lake, every: str, **other: str) -> list[tuple[str, int, int, float | None]]:
    rows = history(lake.connect(), "desk", every, **other).to_pylist()
    return [(f"{row['start']:%d %H:%M}", row["good"], row["bad"], row["error_ratio"]) for row in rows]


def test_counts_add_up_by_day_hour_and_minute(counted: Lake) -> None:
    chosen = {"view": "fast", "stratum": "", "generation": "g2"}
    assert read(counted, "day", **chosen) == [("09 00:00", 1, 1, 0.5), ("10 00:00", 5, 1, 1 / 6)]
    assert read(counted, "hour", **chosen) == [
        ("09 23:00", 1, 1, 0.5),
        ("10 00:00", 5, 1, 1 / 6),
        ("10 01:00", 0, 0, None),  # nothing is known, so there is no ratio: not 0 and not NaN
    ]
    assert len(read(counted, "minute", **chosen)) == 4


def test_generations_views_and_strata_stay_apart(counted: Lake) -> None:
    rows = history(counted.connect(), "desk", "day").to_pylist()
    assert [(row["view"], row["stratum_key"], row["generation"], row["good"]) for row in rows] == [
        ("fast", "", "g2", 1),
        ("fast", "", "g1", 7),
        ("fast", "", "g2", 5),
        ("fast", "task_class=refund", "g2", 5),
        ("matured", "", "g2", 5),
    ]
    assert known_slos(counted.connect()) == ["desk", "shop"]


def test_sample_weights_decide_the_ratio_and_counts_stay_counts(tables: Tables) -> None:
    weights = {"good_micros": 3_000_000, "bad_micros": 500_000, "unlabelled_micros": 0}
    lake = put(tables, "slo_minutes", [minute("2026-03-10 00:00", 3, 1, **weights), minute("2026-03-10 00:01", 1, 0)])
    (row,) = history(lake.connect(), "desk", "day").to_pylist()
    assert (row["good"], row["bad"], row["good_weight"], row["bad_weight"]) == (4, 1, 4.0, 0.5)
    assert row["error_ratio"] == 0.5 / 4.5


def test_the_definitions_that_an_slo_had_are_listed_oldest_first(tables: Tables) -> None:
    def definition(generation: str, at: str, slo: str = "desk") -> Row:
        when = datetime.fromisoformat(at).replace(tzinfo=UTC)
        said = {"objective": 0.99, "definition": "{}", "first_seen_at": when, "computed_at": when}
        return {"slo": slo, "generation": generation, "date": date(2026, 3, 10), **said}

    rows = [
        definition("g2", "2026-03-10"),
        definition("g1", "2026-03-01"),
        definition("g9", "2026-03-01", "shop"),
    ]
    lake = put(tables, "slo_generations", rows)
    assert [item.generation for item in generations(lake.connect(), "desk")] == ["g1", "g2"]
