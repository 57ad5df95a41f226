"""Random runs, tool calls and verdicts, and the lake's tables made of them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from surefoot.processors.lake import Lake
from surefoot.processors.lake.schema import TABLES

Row = dict[str, Any]

# 2026-03-10 00:02:30 UTC: two and a half minutes into a day, so that short windows cross midnight.
NOW = 1_773_100_950
SECOND = 1_000_000
DAY = 86_400 * SECOND
# Where windows begin and end, a microsecond before and after, and whole days.
EDGES = [0, 30, 60, 90, 300, 330, 1800, 3600, 7200, 21_600, 86_400, 259_200, 345_600, 604_800]


def ended_at() -> st.SearchStrategy[int]:
    edges = st.tuples(st.sampled_from(EDGES), st.sampled_from([-30 * SECOND, -1, 0, 1, 30 * SECOND]))
    near = edges.map(lambda pair: (NOW - pair[0]) * SECOND + pair[1])
    return st.one_of(near, st.integers((NOW - 8 * 86_400) * SECOND, (NOW + 3600) * SECOND))


def _texts(*values: str) -> st.SearchStrategy[str | None]:
    return st.sampled_from([*values, None])


TASKS = _texts("refund", "query", "a,b", "a=b", "%2C", "")
STRATA = st.one_of(st.none(), st.dictionaries(st.sampled_from(["tier", "plan"]), st.sampled_from(["gold", "x=1"])))
# Mostly none; what is no weight counts as 1.
WEIGHTS = st.sampled_from([None] * 12 + [1.0, 0.5, 2.0, 50.0, 0.0, -1.0, 1e9])
SERVICES = st.sampled_from(["desk", "shop", None])


@st.composite
def runs(draw: st.DrawFn) -> list[Row]:
    found = []
    for number in range(draw(st.integers(0, 12))):
        outcome = draw(
            st.sampled_from(
                ["ok"] * 5 + ["error", "abandoned", "cancelled", "deferred", "refused", "running", "unknown"]
            )
        )
        found.append(
            {
                "run_id": f"r{number}",
                "trace_id": f"t{number}",
                "parent_run_id": draw(st.sampled_from([None, None, None, "r0"])),
                "service_name": draw(SERVICES),
                "task_class": draw(TASKS),
                "strata": draw(STRATA),
                "outcome": outcome,
                "sample_weight": draw(WEIGHTS),
                "ended_us": None if outcome == "running" else draw(ended_at()),
                "duration_ns": draw(
                    st.one_of(st.none(), st.sampled_from([-1, 0, 29_999_999_999, 30_000_000_000, 30_000_000_001]))
                ),
            }
        )
    return found


@st.composite
def tool_calls(draw: st.DrawFn) -> list[Row]:
    return [
        {
            "run_id": draw(st.sampled_from(["r0", "r1", None])),
            "trace_id": f"t{number}",
            "service_name": draw(SERVICES),
            "task_class": draw(TASKS),
            "strata": draw(STRATA),
            "sample_weight": draw(WEIGHTS),
            "outcome": draw(
                st.sampled_from(["ok", "ok", "ok", "error", "retry", "cancelled", "deferred", "refused", "unknown"])
            ),
            "ended_us": draw(st.one_of(ended_at(), st.none())) if number % 5 == 0 else draw(ended_at()),
        }
        for number in range(draw(st.integers(0, 12)))
    ]


@st.composite
def verdicts(draw: st.DrawFn) -> list[Row]:
    found: list[Row] = []
    for number in range(draw(st.integers(0, 16))):
        earlier = [row["verdict_id"] for row in found]
        found.append(
            {
                "verdict_id": f"v{draw(st.integers(0, 9))}-{number}",
                "supersedes": draw(st.sampled_from([None, None, None, *earlier])),
                "run_id": draw(st.sampled_from(["r0", "r1", "r2", "r3", "r9", None])),
                "trace_id": "t",
                "name": draw(st.sampled_from(["rules", "tone", "amount"])),
                "kind": draw(st.sampled_from(["outcome", "outcome", "process", "process", "other"])),
                "verdict": draw(st.sampled_from(["pass", "fail", "unresolved"])),
                "finality": draw(st.sampled_from(["provisional", "final"])),
                "grader_kind": draw(st.sampled_from(["human", "executable", "model", None])),
                "occurred_us": NOW * SECOND - draw(st.sampled_from([0, 1, 3600 * SECOND, DAY])),
            }
        )
    return found


def table(name: str, rows: list[Row]) -> pa.Table:
    """The rows with the columns of a table of the lake."""
    return pa.Table.from_pylist([_row(row) for row in rows], TABLES[name])


def _row(row: Row) -> Row:
    said = {name: value for name, value in row.items() if not name.endswith("_us")}
    for name in ("ended", "occurred"):
        if row.get(f"{name}_us") is not None:
            said[f"{name}_at"] = row[f"{name}_us"]
    said["date"] = day_of(row)
    if row.get("strata") is not None:
        said["strata"] = list(row["strata"].items())
    return said


def day_of(row: Row) -> date:
    """The row's partition: the date of its end, or of now while it has none."""
    micros = row.get("ended_us") or row.get("occurred_us") or NOW * SECOND
    return datetime.fromtimestamp(micros // SECOND, UTC).date()


class Tables:
    """A real lake whose tables can be made to hold just some rows."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self._version = 0

    def hold(self, **rows: list[Row]) -> None:
        self._version += 1
        for name, chosen in rows.items():
            old = [str(path.relative_to(self.lake.path / name)) for path in self.lake.files(name)]
            new = table(name, chosen) if chosen else None
            self.lake.commit(name, new, app_id="test", app_version=self._version, remove=old)
