"""A lake in a temporary folder, and rows for its tables."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from surefoot.processors.lake import Lake
from surefoot.processors.lake.schema import TABLES

DAY = date(2026, 11, 30)

Rows = Callable[..., pa.Table]


def rows_of(table: str, rows: Iterable[dict[str, Any]]) -> pa.Table:
    """Rows of ``table``; what a row does not give is null, its date is DAY."""
    return pa.Table.from_pylist([{"date": DAY, **row} for row in rows], schema=TABLES[table])


def run_rows(*trace_ids: str, day: date = DAY, settled: bool = True) -> pa.Table:
    """One run per trace id, with a map and a time."""
    started = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    return rows_of(
        "runs",
        (
            {
                "run_id": f"run-{trace_id}",
                "trace_id": trace_id,
                "versions": [("model", "m1")],
                "started_at": started,
                "settled": settled,
                "date": day,
            }
            for trace_id in trace_ids
        ),
    )


@pytest.fixture
def rows() -> Rows:
    return rows_of


@pytest.fixture
def runs() -> Rows:
    return run_rows


@pytest.fixture(scope="session")
def blank_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All tables take a while to create; copying them does not."""
    return Lake.open(tmp_path_factory.mktemp("blank") / "lake").path


@pytest.fixture
def lake(tmp_path: Path, blank_lake: Path) -> Lake:
    return Lake.open(Path(shutil.copytree(blank_lake, tmp_path / "lake")))


@pytest.fixture
def traces_in() -> Callable[[Lake], list[str]]:
    """The trace id of every run in a lake, sorted."""

    def read(lake: Lake) -> list[str]:
        found: list[str] = lake.read("runs", ["trace_id"])["trace_id"].to_pylist()
        return sorted(found)

    return read
