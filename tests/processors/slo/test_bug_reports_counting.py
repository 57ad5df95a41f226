"""Bugs in counting that users of other SLO tools reported, and that must not happen here; each named by its report."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import duckdb
import pytest

from support.slo_events import NOW, SECOND, Row, table
from surefoot.processors.slo import Slo
from surefoot.processors.slo.count import count_many
from surefoot.processors.slo.cube import CLASSES

TODAY = date(2026, 3, 10)
MATURED = "matured"


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def counts(con: duckdb.DuckDBPyConnection, indicator: str, view: str, **tables: list[Row]) -> Row | None:
    """What the only bucket of a view holds; None without one."""
    for name in ("runs", "tool_calls", "verdicts"):
        con.register(name, table(name, tables.get(name, [])))
    slo = Slo("x", "desk", indicator, 0.99, "28d", 28 * 86_400)
    found = [row for row in count_many(con, [slo], [TODAY], 60, 8)["x"].to_pylist() if row["view"] == view]
    assert len(found) <= 1
    return {name: found[0][name] for name in CLASSES} if found else None


def run(number: int = 0, **said: object) -> Row:
    return {"run_id": f"r{number}", "trace_id": "t", "outcome": "ok", "ended_us": NOW * SECOND, **said}


def verdict(number: int = 0, **said: object) -> Row:
    ground = {"verdict_id": f"v{number}", "run_id": "r0", "name": "outcome", "kind": "outcome", "verdict": "pass"}
    return {**ground, "finality": "final", "grader_kind": "human", "occurred_us": NOW * SECOND, **said}


def test_sloth_440_without_any_error_yet_bad_is_zero_and_not_missing(con: duckdb.DuckDBPyConnection) -> None:
    found = counts(con, "availability", "fast", runs=[run(0), run(1)])
    assert found == {"good": 2, "bad": 0, "unlabelled": 0, "excluded": 0}


def test_sloth_440_without_any_success_yet_good_is_zero_and_not_missing(con: duckdb.DuckDBPyConnection) -> None:
    found = counts(con, "availability", "fast", runs=[run(outcome="error")])
    assert found == {"good": 0, "bad": 1, "unlabelled": 0, "excluded": 0}


@pytest.mark.parametrize("indicator", ["acceptable_outcome", "policy_compliance", "intervention_success"])
def test_slo_generator_111_good_never_exceeds_the_runs_however_many_verdicts_a_run_has(
    con: duckdb.DuckDBPyConnection, indicator: str
) -> None:
    kind = "process" if indicator == "policy_compliance" else "outcome"
    said = [verdict(number, kind=kind, name=f"rule {number % 3}") for number in range(9)]
    found = counts(con, indicator, MATURED, runs=[run(mode="checkpoint")], verdicts=said)
    assert found == {"good": 1, "bad": 0, "unlabelled": 0, "excluded": 0}


def test_slo_generator_111_good_never_exceeds_the_runs_when_a_tool_was_refused_twice(
    con: duckdb.DuckDBPyConnection,
) -> None:
    calls = [
        {"run_id": "r0", "trace_id": "t", "span_id": s, "outcome": "refused", "ended_us": NOW * SECOND} for s in "ab"
    ]
    found = counts(con, "autonomous_coverage", "fast", runs=[run(mode="autonomous")], tool_calls=calls)
    assert found == {"good": 0, "bad": 1, "unlabelled": 0, "excluded": 0}


def test_pyrra_1231_an_agent_that_never_fails_burns_nothing_in_any_view(con: duckdb.DuckDBPyConnection) -> None:
    tables = {"runs": [run(number, mode="autonomous") for number in range(5)]}
    late = [verdict(number, run_id=f"r{number}") for number in range(5)]
    for indicator in ("availability", "autonomous_coverage"):
        found = counts(con, indicator, "fast", **tables)
        assert found == {"good": 5, "bad": 0, "unlabelled": 0, "excluded": 0}
    for view in ("fast", MATURED):
        found = counts(con, "acceptable_outcome", view, **tables, verdicts=late)
        assert found == {"good": 5, "bad": 0, "unlabelled": 0, "excluded": 0}


def test_rhobs_144_all_good_is_all_good_and_not_zero_when_nothing_else_was_told(con: duckdb.DuckDBPyConnection) -> None:
    # No verdicts, no tool calls, no sub-runs: every join of an indicator finds nothing.
    found = counts(con, "availability", "fast", runs=[run()])
    assert found == {"good": 1, "bad": 0, "unlabelled": 0, "excluded": 0}
    found = counts(con, "autonomous_coverage", "fast", runs=[run(mode="autonomous")])
    assert found == {"good": 1, "bad": 0, "unlabelled": 0, "excluded": 0}


def test_sloth_153_the_same_verdict_twice_counts_its_run_once(con: duckdb.DuckDBPyConnection) -> None:
    found = counts(con, "acceptable_outcome", MATURED, runs=[run()], verdicts=[verdict(), verdict()])
    assert found == {"good": 1, "bad": 0, "unlabelled": 0, "excluded": 0}


def test_sloth_220_one_run_with_many_labels_is_one_event_in_one_stratum(con: duckdb.DuckDBPyConnection) -> None:
    for name in ("tool_calls", "verdicts"):
        con.register(name, table(name, []))
    con.register("runs", table("runs", [run(strata={"tier": "gold", "plan": "a"}), run(1, strata={"tier": "gold"})]))
    slo = Slo("x", "desk", "availability", 0.99, "28d", 28 * 86_400, by=("stratum.tier",))
    both = Slo("y", "desk", "availability", 0.99, "28d", 28 * 86_400, by=("stratum.tier", "stratum.plan"))
    found = count_many(con, [slo, both], [TODAY], 60, 8)
    assert [(row["stratum_key"], row["good"]) for row in found["x"].to_pylist()] == [("stratum.tier=gold", 2)]
    assert sorted((row["stratum_key"], row["good"]) for row in found["y"].to_pylist()) == [
        ("stratum.tier=gold,stratum.plan=", 1),
        ("stratum.tier=gold,stratum.plan=a", 1),
    ]
