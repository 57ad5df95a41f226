"""Run groups and horizons from a real lake."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import slo_events
from support.slo_events import NOW, SECOND, Row, Tables
from surefoot.processors.evidence import classes, consistency, run_rates
from surefoot.processors.evidence.groups import CONSISTENT_WRONG, MIXED, UNCLASSED, GroupsError
from surefoot.processors.evidence.horizon import BUCKETS, describe
from surefoot.processors.evidence.reading import Reading, read_groups
from surefoot.processors.lake import Lake
from surefoot.processors.slo.indicator import INDICATORS

TODAY = datetime.fromtimestamp(NOW, UTC).date()
FIRST = TODAY - timedelta(days=3)
V1 = [("model", "m1"), ("prompt", "p1")]


class Held(Tables):
    """A lake that holds what the last test gave it, and nothing of those before."""

    def hold(self, **rows: list[Row]) -> None:
        every: dict[str, list[Row]] = {"runs": [], "tool_calls": [], "verdicts": [], "spans": []}
        super().hold(**(every | rows))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return Held(Lake.open(tmp_path_factory.mktemp("evidence") / "lake"))


def run(name: str, task: str | None = "t1", **more: Any) -> Row:
    row: Row = {
        "run_id": name,
        "trace_id": f"trace-{name}",
        "span_id": f"span-{name}",
        "task_id": task,
        "task_class": "refund",
        "outcome": "ok",
        "versions": V1,
        "ended_us": NOW * SECOND,
        "duration_ns": 5_000_000_000,
    }
    return row | more


def verdict(key: str, of: str, said: str, /, **more: Any) -> Row:
    row: Row = {
        "verdict_id": key,
        "run_id": of,
        "trace_id": f"trace-{of}",
        "kind": "outcome",
        "name": "outcome",
        "verdict": said,
        "finality": "final",
        "grader_kind": "executable",
        "grader_name": "tests",
        "grader_version": "1",
        "occurred_us": NOW * SECOND,
    }
    return row | more


def call(name: str, of: str, tool: str, at: int, **more: Any) -> Row:
    row: Row = {
        "run_id": of,
        "trace_id": f"trace-{of}",
        "span_id": name,
        "tool_name": tool,
        "outcome": "ok",
        "effect": "read",
        "started_at": (NOW - 100 + at) * SECOND,
        "ended_us": (NOW - 100 + at + 1) * SECOND,
    }
    return row | more


def read(tables: Tables, **more: Any) -> Reading:
    return read_groups(tables.lake.connect(), FIRST, TODAY, **more)


def test_groups_missing_verdicts_and_ends_that_nobody_judges(tables: Tables) -> None:
    tables.hold(
        runs=[
            run("a1", repetition=1),
            run("a2", repetition=2),
            run("a3", repetition=3),
            run("a4", outcome="error"),
            run("a5", outcome="error", error_type="InfrastructureError"),
            run("a6", outcome="refused"),
            run("a7", outcome="running", ended_us=None),
            run("sub", parent_run_id="a1"),
            run("b1", None, run_group="g"),
            run("lost", None),
        ],
        verdicts=[
            verdict("v1", "a1", "pass"),
            verdict("v2", "a2", "unresolved"),
            verdict("v3", "b1", "fail", grader_name="judge", grader_kind="model"),
            verdict("v4", "b1", "pass", finality="provisional", grader_kind="human"),
            verdict("v5", "a6", "pass"),
        ],
    )
    found = read(tables)
    groups = found.groups
    assert groups.task_id.tolist() == [None, "t1"]
    assert groups.n.tolist() == [1, 2]  # t1: a1 by its verdict, a4 because it crashed
    assert groups.c.tolist() == [0, 1]
    assert groups.missing.tolist() == [0, 2]  # an unresolved verdict and none at all
    assert groups.infrastructure.tolist() == [0, 1]
    assert groups.excluded.tolist() == [0, 1]
    assert groups.classes().tolist() == [UNCLASSED, MIXED]
    assert found.crashed == 1
    assert found.left_out == {"neither a task id nor a run group": 1}
    assert {(use.name, use.runs) for use in found.graders} == {("tests", 3), ("judge", 1)}


def test_a_verdict_counts_whatever_error_ended_the_run(tables: Tables) -> None:
    broken: Row = {"outcome": "error", "error_type": "InfrastructureError"}
    tables.hold(
        runs=[run(f"a{number}", repetition=number, **broken) for number in range(4)],
        verdicts=[verdict("v0", "a0", "fail"), verdict("v1", "a1", "pass"), verdict("v2", "a2", "unresolved")],
    )
    groups = read(tables).groups
    found = (groups.n, groups.c, groups.missing, groups.infrastructure)
    assert [column.tolist() for column in found] == [[2], [1], [0], [2]]


def test_versions_and_variants_are_never_mixed(tables: Tables) -> None:
    tables.hold(
        runs=[
            run("a1"),
            run("a2", versions=V1[::-1]),  # the same set in another order
            run("a3", versions=[("model", "m2"), ("prompt", "p1")]),
            run("a4", variant="paraphrase"),
            run("a5", agent_version="2"),
            run("a6", run_group="second try"),
            run("a7", versions=None),
        ],
        verdicts=[verdict(f"v{i}", f"a{i}", "pass") for i in range(1, 8)],
    )
    found = read(tables)
    assert sorted(found.groups.n.tolist()) == [1, 1, 1, 1, 1, 2]
    assert found.without_versions == 1
    both = found.groups.group_id[found.groups.n == 2][0]
    assert both == '{"task_id": "t1", "versions": {"model": "m1", "prompt": "p1"}}'
    place = found.groups.group_id.tolist().index(both)
    told = found.systems.names[found.systems.codes[place]]
    assert told == '{"agent": null, "versions": {"model": "m1", "prompt": "p1"}}'


def test_equivalence_comes_from_signatures_of_one_comparator(tables: Tables) -> None:
    def signed(of: str, label: str, version: str = "1", **more: Any) -> Row:
        told = {"kind": "other", "name": "Outcome.Signature", "label": label, "grader_version": version}
        return verdict(f"s-{of}-{version}", of, "unresolved", **(told | more))

    names = ["a1", "a2", "b1", "b2", "c1", "c2", "d1", "d2"]
    tables.hold(
        runs=[run(name, name[0]) for name in names],
        verdicts=[
            *[verdict(f"v-{name}", name, "fail") for name in names],
            signed("a1", "balance=0"),
            signed("a2", "balance=0"),
            signed("b1", "balance=0"),
            signed("b2", "balance=7"),
            signed("c1", "balance=0"),
            signed("c2", "balance=0", version="2"),
            signed("d1", "x"),
        ],
    )
    found = read(tables)
    assert found.groups.task_id.tolist() == ["a", "b", "c", "d"]
    assert found.groups.equivalent.tolist() == [1, 0, -1, -1]
    assert found.groups.classes()[0] == CONSISTENT_WRONG
    assert found.groups.equivalence_rule == "signature-equality/1;tests@1;tests@2"
    assert found.left_out == {"signature by more than one comparator in a group, taken as unknown": 2}
    assert "between 0.25 and 0.75" in (classes.consistent_wrong_rate(found.groups).reason or "")


def test_flags_of_runs(tables: Tables) -> None:
    def rule(key: str, of: str, said: str, **more: Any) -> Row:
        return verdict(key, of, said, kind="process", **more)

    tables.hold(
        runs=[
            run("a1", mode="autonomous", tool_errors=1),
            run("a2", mode="human_approval"),
            run("a3", mode="autonomous"),
            run("a4"),
            run("a5", mode="refuse", outcome="refused"),
            run("a6", outcome="abandoned"),
        ],
        tool_calls=[call("c1", "a3", "pay", 1, outcome="deferred")],
        verdicts=[
            verdict("v1", "a1", "pass"),
            verdict("v2", "a2", "pass"),
            verdict("v3", "a3", "fail"),
            rule("p1", "a1", "pass", name="tone"),
            rule("p2", "a1", "fail", name="amount", severity="low"),
            rule("p3", "a2", "pass", name="tone"),
            rule("p4", "a3", "fail", name="tone", severity="critical"),
            rule("p5", "a3", "fail", name="amount", severity="odd"),
            rule("p6", "a4", "fail", name="tone"),
            verdict("ab", "a4", "unresolved", kind="other", name="Abstention", label="Yes"),
        ],
    )
    found = read(tables)
    runs = found.groups.runs
    assert runs is not None
    assert runs.run_id.tolist() == ["a1", "a2", "a3", "a4", "a5", "a6"]
    assert runs.flags["autonomous"].tolist() == [1, 0, 0, -1, 0, -1]
    assert runs.flags["intervened"].tolist() == [0, 1, 1, -1, 1, -1]
    assert runs.flags["compliant"].tolist() == [0, 1, 0, 0, -1, -1]
    assert runs.flags["available"].tolist() == [1, 1, 1, 1, -1, 0]
    assert runs.flags["disturbed"].tolist() == [1, 0, 0, 0, 0, 0]
    assert runs.flags["abstained"].tolist() == [-1, -1, -1, 1, -1, -1]
    severity = runs.numbers["severity"].tolist()
    assert severity[0] == 0.25
    assert severity[2] == 1.0
    assert np.isnan(severity[3])
    assert run_rates.run_rate(found.groups, "autonomous_coverage").value == 0.25
    assert run_rates.run_rate(found.groups, "intervention_success").value == 0.5
    assert run_rates.run_rate(found.groups, "recovery_success").value == 1.0


def test_actions_are_in_order_and_those_of_sub_runs_count(tables: Tables) -> None:
    tables.hold(
        runs=[run("a1"), run("sub", parent_run_id="a1", trace_id="trace-a1"), run("a2"), run("a0")],
        tool_calls=[
            call("c3", "a1", "pay", 9),
            call("c1", "a1", "find", 1),
            call("c2", "sub", "ask", 5, trace_id="trace-a1"),
            call("c4", "a2", "find", 1),
        ],
        verdicts=[verdict(f"v{name}", name, "pass") for name in ("a0", "a1", "a2")],
    )
    groups = read(tables).groups
    runs = groups.runs
    assert runs is not None
    names = [runs.actions.names[code] for code in runs.actions.codes]
    assert names == ["find", "ask", "pay", "find"]
    assert runs.offsets.tolist() == [0, 0, 3, 4]
    assert consistency.trajectory_sequence(groups).value == pytest.approx(1 / 3)


def test_horizon_of_runs_and_of_their_group(tables: Tables) -> None:
    def span(name: str, of: str, at: int, **more: Any) -> Row:
        began = (NOW - 100 + at) * SECOND
        row: Row = {"trace_id": f"trace-{of}", "span_id": name, "start_time": began, "ended_us": began}
        return row | {"end_time": began} | more

    tables.hold(
        runs=[run("a1"), run("sub", parent_run_id="a1", trace_id="trace-a1"), run("a2"), run("b1", "t2")],
        tool_calls=[
            call("c1", "a1", "find", 1, dependency="crm"),
            call("c2", "a1", "write", 1, effect="write", dependency="crm", outcome="error"),
            call("c3", "a1", "pay", 9, effect="irreversible", dependency="bank"),
            call("c4", "a2", "find", 1, effect="unknown"),
        ],
        spans=[
            span("c1", "a1", 1, authority_domain="crm"),
            span("c2", "a1", 1, authority_domain="crm"),
            span("c3", "a1", 9, authority_domain="bank"),
            span("ask", "a1", 5, checkpoint="human"),
        ],
        verdicts=[],
    )
    found = read(tables)
    horizons = found.horizons.values
    assert {name: values[0] for name, values in horizons.items()} == {
        "state_changes": 2,
        "dependencies": 2,
        "authority_crossings": 1,
        "elapsed_ns": 5e9,
        "branches": 2,  # a sub-run, and c2 beside c1
        "recovery_points": 1,
        "irreversible": 1,
        "checkpoints": 1,
    }
    # a2: effect unknown, no dependency told, its spans are gone.
    for name in ("state_changes", "dependencies", "authority_crossings", "irreversible", "checkpoints"):
        assert np.isnan(horizons[name][1])
    assert [BUCKETS[level] for level in found.horizons.bucket()] == ["medium", "short", "short"]
    strata = found.groups.strata["horizon"]
    assert [strata.names[code] for code in strata.codes] == ["medium", "short"]


def test_a_run_of_which_nothing_is_known_has_no_horizon() -> None:
    steps = pa.table(
        {name: pa.array(["r", "x"], pa.string()) for name in ("run_id", "tool_name", "outcome")}
        | {name: pa.nulls(2, pa.string()) for name in ("effect", "dependency", "authority_domain", "checkpoint")}
        | {name: pa.nulls(2, pa.timestamp("us", "UTC")) for name in ("started_at", "ended_at")}
        | {"span_kept": [0, 0]}
    )
    runs = pa.table({"run_id": ["r"], "duration_ns": pa.nulls(1, pa.int64()), "sub_runs": [0]})
    found = describe(runs, steps)
    assert np.isnan(found.values["elapsed_ns"][0])
    assert found.bucket().tolist() == [0]  # no branch is known, so it is short as far as anybody knows


def test_choosing_runs(tables: Tables) -> None:
    tables.hold(
        runs=[run("a1"), run("a2", "t2", task_class="query"), run("old", ended_us=(NOW - 9 * 86_400) * SECOND)],
        verdicts=[],
    )
    assert read(tables, where={"task_class": "query"}).groups.task_id.tolist() == ["t2"]
    assert read(tables).groups.task_id.tolist() == ["t1", "t2"]
    assert len(read(tables, where={"task_class": "none"}).groups) == 0
    with pytest.raises(GroupsError, match="no column 'colour'"):
        read(tables, where={"colour": "red"})


@settings(max_examples=8, deadline=None)
@given(st.data())
def test_verdicts_count_as_in_the_slo_acceptable_outcome(tables: Tables, data: st.DataObject) -> None:
    runs = [row | {"task_id": "t", "versions": None} for row in data.draw(slo_events.runs())]
    tables.hold(runs=runs, verdicts=data.draw(slo_events.verdicts()))
    con = tables.lake.connect()
    first, last = TODAY - timedelta(days=9), TODAY + timedelta(days=1)
    before = first - timedelta(days=8)
    indicator = INDICATORS["acceptable_outcome"].sql
    parameters = {"from_date": first, "to_date": last, "verdicts_from": before}
    rows = con.sql(f"SELECT event_id, class FROM ({indicator})", params=parameters).fetchall()
    groups = read_groups(con, first, last).groups
    got: dict[str, str] = {}
    if groups.runs is not None:
        acceptable, excluded = groups.runs.flags["acceptable"], groups.runs.flags["excluded"]
        for name, verdict_, out in zip(groups.runs.run_id, acceptable, excluded, strict=True):
            got[name] = "excluded" if out == 1 else {1: "good", 0: "bad", -1: "unlabelled"}[int(verdict_)]
    assert got == dict(rows)
