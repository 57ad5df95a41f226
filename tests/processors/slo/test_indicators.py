"""What each indicator counts as what, and that its file stays portable and says so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import duckdb
import pytest

from support.slo_events import NOW, SECOND, Row, table
from surefoot.processors.lake.schema import TABLES
from surefoot.processors.slo import INDICATORS, Indicator, Slo, indicator
from surefoot.processors.slo.count import count_events, dimensions_of, stretches, views_of
from surefoot.processors.slo.cube import CLASSES

TODAY = date(2026, 3, 10)
FILES = sorted((Path(indicator.__file__).parent / "indicators").glob("*.sql"))


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def run(**said: object) -> Row:
    return {"run_id": "r", "trace_id": "t", "outcome": "ok", "ended_us": NOW * SECOND, **said}


def verdict(**said: object) -> Row:
    ground = {"verdict_id": "v", "run_id": "r", "name": "amount", "kind": "outcome", "verdict": "pass"}
    return {**ground, "finality": "final", "grader_kind": "human", "occurred_us": NOW * SECOND, **said}


def counted(con: duckdb.DuckDBPyConnection, slo: Slo, **tables: list[Row]) -> list[Row]:
    """Counts of the view that has the labels."""
    for name in ("runs", "tool_calls", "verdicts"):
        con.register(name, table(name, tables.get(name, [])))
    found: list[Row] = count_events(con, slo, [TODAY], 60, lookback_days=8).to_pylist()
    return [row for row in found if row["view"] == views_of(slo)[-1]]


def classed(con: duckdb.DuckDBPyConnection, name: str, **tables: list[Row]) -> str | None:
    """The class of the only event; None without one."""
    threshold = 30_000_000_000 if name == "latency" else None
    rows = counted(con, Slo("x", "desk", name, 0.99, "28d", 28 * 86_400, threshold_ns=threshold), **tables)
    named = [kind for row in rows for kind in CLASSES for _ in range(row[kind])]
    assert len(named) <= 1
    return named[0] if named else None


RUNS = {
    "ok": "good",
    "error": "bad",
    "abandoned": "bad",
    "cancelled": "excluded",
    "deferred": "excluded",
    "refused": "excluded",
    "unknown": "unlabelled",
    "something new": "unlabelled",
    "running": None,
}


@pytest.mark.parametrize("outcome", RUNS)
def test_availability(con: duckdb.DuckDBPyConnection, outcome: str) -> None:
    assert classed(con, "availability", runs=[run(outcome=outcome)]) == RUNS[outcome]
    assert classed(con, "availability", runs=[run(outcome=outcome, parent_run_id="p")]) is None


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        ("ok", "good"),
        ("error", "bad"),
        ("retry", "excluded"),
        ("cancelled", "excluded"),
        ("deferred", "excluded"),
        ("refused", "excluded"),
        ("unknown", "unlabelled"),
    ],
)
def test_tool_success(con: duckdb.DuckDBPyConnection, outcome: str, expected: str) -> None:
    call = {"trace_id": "t", "outcome": outcome, "ended_us": NOW * SECOND}
    assert classed(con, "tool_success", tool_calls=[call]) == expected


@pytest.mark.parametrize(
    ("outcome", "duration", "expected"),
    [
        ("ok", 30_000_000_000, "good"),
        ("ok", 30_000_000_001, "bad"),
        ("ok", -1, "unlabelled"),
        ("ok", None, "unlabelled"),
        ("error", 1, "excluded"),
        ("abandoned", 10**12, "excluded"),
        ("running", None, None),
    ],
)
def test_latency(con: duckdb.DuckDBPyConnection, outcome: str, duration: int | None, expected: str | None) -> None:
    assert classed(con, "latency", runs=[run(outcome=outcome, duration_ns=duration)]) == expected


EARLIER = NOW * SECOND - 1


@pytest.mark.parametrize(
    ("outcome", "verdicts", "expected"),
    [
        ("ok", [], "unlabelled"),
        ("error", [], "bad"),
        ("abandoned", [], "bad"),
        ("unknown", [], "unlabelled"),
        ("cancelled", [{"verdict": "fail"}], "excluded"),
        ("ok", [{}], "good"),
        ("error", [{}], "good"),  # it failed loudly, and somebody found its work acceptable
        ("ok", [{"verdict": "fail"}], "bad"),
        ("error", [{"verdict": "unresolved"}], "unlabelled"),
        ("ok", [{"kind": "process", "verdict": "fail"}], "unlabelled"),
        ("ok", [{"run_id": "other"}], "unlabelled"),
        ("ok", [{"finality": "provisional"}, {"verdict": "fail", "grader_kind": "model"}], "bad"),
        ("ok", [{"grader_kind": "executable"}, {"verdict": "fail"}], "bad"),
        ("ok", [{"grader_kind": "model"}, {"verdict": "fail", "grader_kind": "executable"}], "bad"),
        ("ok", [{"grader_kind": None}, {"verdict": "fail", "grader_kind": "model"}], "bad"),
        ("ok", [{}, {"verdict": "fail", "occurred_us": EARLIER}], "good"),
        ("ok", [{"verdict_id": "a"}, {"verdict_id": "b", "verdict": "fail"}], "bad"),
        (
            "ok",
            [
                {"verdict_id": "a", "verdict": "fail"},
                {"verdict_id": "b", "supersedes": "a", "finality": "provisional", "grader_kind": "model"},
            ],
            "good",
        ),
    ],
)
def test_acceptable_outcome(con: duckdb.DuckDBPyConnection, outcome: str, verdicts: list[Row], expected: str) -> None:
    said = [verdict(**{"verdict_id": str(number), **row}) for number, row in enumerate(verdicts)]
    assert classed(con, "acceptable_outcome", runs=[run(outcome=outcome)], verdicts=said) == expected


@pytest.mark.parametrize(
    ("outcome", "verdicts", "expected"),
    [
        ("ok", [], "unlabelled"),
        ("error", [], "unlabelled"),
        ("ok", [{}], "good"),
        ("cancelled", [{"verdict": "fail"}], "bad"),
        ("ok", [{"name": "amount"}, {"name": "tone", "verdict": "fail"}], "bad"),
        ("ok", [{"name": "amount"}, {"name": "tone", "verdict": "unresolved"}], "good"),
        ("ok", [{"verdict": "fail", "grader_kind": "model"}, {}], "good"),
        ("ok", [{"kind": "outcome"}], "unlabelled"),
    ],
)
def test_policy_compliance(con: duckdb.DuckDBPyConnection, outcome: str, verdicts: list[Row], expected: str) -> None:
    said = [verdict(**{"verdict_id": str(number), "kind": "process", **row}) for number, row in enumerate(verdicts)]
    assert classed(con, "policy_compliance", runs=[run(outcome=outcome)], verdicts=said) == expected


def test_a_verdict_counts_in_the_minute_of_the_run_whenever_it_came(con: duckdb.DuckDBPyConnection) -> None:
    late = verdict(occurred_us=(NOW + 5 * 86_400) * SECOND)
    slo = Slo("x", "desk", "acceptable_outcome", 0.99, "28d", 28 * 86_400)
    (row,) = counted(con, slo, runs=[run()], verdicts=[late])
    assert (row["start"], row["good"]) == (NOW - NOW % 60, 1)


HOSTILE = "'); DROP TABLE runs; --"


def test_text_of_a_file_is_a_parameter(con: duckdb.DuckDBPyConnection) -> None:
    slo = Slo(
        "x", "desk", "availability", 0.99, "28d", 28 * 86_400,
        where=(("service_name", (HOSTILE,)), ("stratum.tier", ("$bucket", "gold"))), by=("task_class", "stratum.tier"),
    )  # fmt: skip
    runs = [run(service_name=HOSTILE, task_class="a=1,b%2C%", strata={"tier": "gold"}), run(service_name="desk")]
    (row,) = counted(con, slo, runs=runs)
    assert row["good"] == 1
    assert dimensions_of(row["stratum_key"]) == {"task_class": "a=1,b%2C%", "stratum.tier": "gold"}


@pytest.mark.parametrize("name", sorted(set(INDICATORS) - {"sql"}))
def test_an_indicator_offers_the_columns_that_it_declares(con: duckdb.DuckDBPyConnection, name: str) -> None:
    found = INDICATORS[name]
    for each in ("runs", "tool_calls", "verdicts"):
        con.register(each, table(each, []))
    dates = dict.fromkeys(("from_date", "to_date", "verdicts_from", "runs_to"), TODAY)
    values = dates | {"threshold_ns": 1, "threshold": 1.0}
    offered = con.sql(found.sql, params={key: values[key] for key in found.parameters}).columns
    late = ["fast_class", "labelled_at", "label_imported"] if found.labels == "late" else []
    assert offered == ["event_id", "trace_id", "ended_at", *found.columns, "strata", "weight", "class", *late]
    own = {"k"} if found.repeated else set()
    assert set(found.columns) - own < set(TABLES["runs" if found.repeated else found.population].names)
    units = {frozenset(): None, frozenset({"threshold_ns"}): "seconds", frozenset({"threshold"}): "USD"}
    assert units[found.parameters & {"threshold_ns", "threshold"}] == found.threshold


# Not in the subset that DuckDB, Spark and ClickHouse run verbatim with the same answer.
NOT_PORTABLE = re.compile(
    r"\bQUALIFY\b|::|//|\bepoch|\bEXCLUDE\b|\bILIKE\b|\bUNNEST\b|\bRECURSIVE\b|\bNOT\s+EXISTS\b|\bASOF\b|\bLATERAL\b"
    r"|\blist_|\barray_|\bpercentile|\bUSING\b|\bGROUP BY ALL\b|\[",
    re.IGNORECASE,
)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_declares_what_the_program_knows_of_it_and_stays_portable(file: Path) -> None:
    found = INDICATORS[file.stem]
    header = [line for line in file.read_text().splitlines() if line.startswith("--")]
    assert header[0].startswith(f"-- {file.stem}: ")
    said = {line[3:15].strip(): line[16:].strip() for line in header if line[3:15].strip()}
    always = {"Population", "Eligible", "Good", "Bad", "Unlabelled", "Excluded", "Labels", "Verdict from"}
    assert always <= set(said)
    assert said["Labels"] == found.labels
    assert ("Fast" in said) == (found.labels == "late")
    assert said.get("Threshold") == found.threshold
    assert ("Repeated" in said) == found.repeated
    code = re.sub(r"--[^\n]*", "", file.read_text())
    assert NOT_PORTABLE.findall(code) == []


def test_every_indicator_has_its_file() -> None:
    assert {file.stem for file in FILES} == set(INDICATORS) - {"sql"}
    assert all(isinstance(found, Indicator) and found.name == name for name, found in INDICATORS.items())


def test_dates_are_asked_for_in_stretches() -> None:
    days = [date(2026, 2, 28), date(2026, 3, 1), date(2026, 3, 1), date(2026, 3, 3)]
    assert stretches(reversed(days)) == [(days[0], days[1]), (days[3], days[3])]
    assert stretches([]) == []
