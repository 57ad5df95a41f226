"""A record that a command adds to a table of evidence: once, and to no other table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from surefoot.processors.errors import LakeError
from surefoot.processors.lake import Lake
from surefoot.processors.lake.operate import begin
from surefoot.processors.settings import Settings

ROW = {
    "profile_id": "sha256:1",
    "name": "reconcile",
    "created_at": 1_790_000_000_000_000,
    "document": "{}",
    "date": 20_717,
}


def recorded(lake: Lake, settings: Settings, table: str, row: dict[str, Any]) -> dict[str, Any]:
    work = begin("record", {"table": table, "row": row}, "somebody", lake, settings, lambda _: None)
    next(work)
    with pytest.raises(StopIteration) as end:
        work.send(0.0)
    answer: dict[str, Any] = end.value.value
    return answer


def test_the_same_record_twice_is_one_row(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    lake = Lake.open(settings.lake_path)
    assert recorded(lake, settings, "profiles", ROW)["recorded"]
    assert not recorded(Lake.open(settings.lake_path), settings, "profiles", ROW)["recorded"]
    assert recorded(lake, settings, "profiles", ROW | {"profile_id": "sha256:2"})["recorded"]
    rows = Lake.open(settings.lake_path).read("profiles").to_pylist()
    assert sorted(row["profile_id"] for row in rows) == ["sha256:1", "sha256:2"]
    assert str(rows[0]["created_at"]) == "2026-09-21 14:13:20+00:00"
    assert str(rows[0]["date"]) == "2026-09-21"


def test_other_tables_are_refused(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    lake = Lake.open(settings.lake_path)
    work = begin("record", {"table": "runs", "row": {}}, "somebody", lake, settings, lambda _: None)
    with pytest.raises(LakeError, match="only those of profiles, decisions"):
        next(work)
