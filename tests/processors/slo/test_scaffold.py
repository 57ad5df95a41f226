"""The starter of SLO files is valid whatever services are called, and says what was seen with its sample size."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from support.openslo_documents import GOOD, write
from support.slo_events import Row, Tables
from surefoot.processors.slo import load_slos
from surefoot.processors.slo.scaffold import MOST_SERVICES, Service, look, scaffold, without_slo

DESK = Service("support-desk", 120, 110, 8, ("desk",), ("refund", "query"), 3.21, 40, 2, 90, 30)
NOW = 1_773_144_000  # 2026-03-10 12:00:00 UTC


def run(number: int, service: str | None, outcome: str = "ok", **other: object) -> Row:
    return {
        "run_id": f"r{number}",
        "trace_id": f"t{number}",
        "service_name": service,
        "outcome": outcome,
        "ended_us": NOW * 1_000_000,
        "duration_ns": 2_000_000_000,
        **other,
    }


def test_what_was_seen_becomes_files_that_are_valid_as_they_are(tmp_path: Path) -> None:
    write(tmp_path, {name.removesuffix(".yaml"): text for name, text in scaffold([DESK]).items()})
    loaded = load_slos(tmp_path)
    assert (loaded.problems, loaded.unused) == ([], [])
    assert {slo.name: (slo.indicator, slo.by) for slo in loaded.slos} == {
        "support-desk-availability": ("availability", ("task_class",)),
        "support-desk-acceptable-outcome": ("acceptable_outcome", ("task_class",)),
        "support-desk-policy-compliance": ("policy_compliance", ("task_class",)),
        "support-desk-tool-success": ("tool_success", ()),
        "support-desk-latency": ("latency", ("task_class",)),
    }
    assert {slo.where for slo in loaded.slos} == {(("service_name", ("support-desk",)),)}
    text = (tmp_path / "support-desk.yaml").read_text()
    assert "# Observed: 93.22 % ended ok (n 118)." in text
    assert "# 95 % of the 110 good runs took at most 3.21 s; 5 s leaves room." in text
    assert "# Task classes: refund, query." in text


def test_what_was_seen_too_seldom_is_not_told_as_a_share(tmp_path: Path) -> None:
    few = replace(DESK, runs=3, ended_well=2, ended_badly=1, tool_calls=1, tool_errors=0, outcome_verdicts=1)
    ((name, text),) = scaffold([few]).items()
    write(tmp_path, {name.removesuffix(".yaml"): text})
    assert load_slos(tmp_path).problems == []
    too_few = "which is too few to go by: the target is not learnt from them."
    assert f"# Observed: 2 of 3 ended ok, {too_few}" in text
    assert f"# Observed: 1 of 1 calls of tools were ok, {too_few}" in text
    assert "# 1 outcome verdict was seen; too few to go by." in text
    assert "# 30 process verdicts were seen." in text
    assert "# 95 % of 2 good runs took at most 3.21 s. So few say little: 5 s is a guess." in text
    assert "Observed: 66.67 %" not in text


def test_nothing_seen_becomes_an_example_that_is_valid_and_says_what_to_do(tmp_path: Path) -> None:
    ((name, text),) = scaffold([]).items()
    write(tmp_path, {name.removesuffix(".yaml"): text})
    loaded = load_slos(tmp_path)
    assert loaded.problems == []
    assert [slo.name for slo in loaded.slos] == ["my-agent-acceptable-outcome", "my-agent-availability"]
    assert "Write your service's name" in text


@settings(max_examples=60, deadline=None)
@given(names=st.lists(st.text(min_size=1, max_size=80), min_size=1, max_size=4, unique=True), task=st.text(max_size=90))
def test_no_name_breaks_a_file(names: list[str], task: str) -> None:
    files = scaffold([replace(DESK, name=name, task_classes=(task, "other"), agents=(task,)) for name in names])
    assert len(files) == len(names)
    for name, text in zip(names, files.values(), strict=True):
        service, *slos = yaml.safe_load_all(text)
        assert (service["kind"], service["metadata"]["displayName"]) == ("Service", name[:63])
        assert [slo["kind"] for slo in slos] == ["SLO"] * 5
        sources = [str(slo["spec"]["indicator"]) for slo in slos]
        assert all(str({"service_name": name}) in source for source in sources)


def test_names_that_a_name_cannot_hold_are_quoted_and_told_apart(tmp_path: Path) -> None:
    names = ["Support Desk", "support_desk", 'a "b": {c}\n# d', "\U0001f916", "\x7f\x85", "x" * 200]
    write(tmp_path, {key[:-5]: text for key, text in scaffold([replace(DESK, name=name) for name in names]).items()})
    loaded = load_slos(tmp_path)
    assert loaded.problems == []
    assert {slo.where[0][1][0] for slo in loaded.slos} == set(names)
    assert len(loaded.slos) == 5 * len(names)


def test_services_beyond_the_busiest_are_left_out() -> None:
    assert len(scaffold([replace(DESK, name=f"s{n}") for n in range(30)])) == MOST_SERVICES


def test_a_service_that_an_slo_is_about_is_left_out(tmp_path: Path) -> None:
    source = "indicator: availability, where: {service_name: [shop, support-desk]}"
    write(tmp_path, {"a": GOOD.replace("indicator: availability", source)})
    (slo,) = load_slos(tmp_path).slos
    assert without_slo([DESK, replace(DESK, name="other")], [slo]) == [replace(DESK, name="other")]


def test_the_lake_is_asked_for_runs_as_users_saw_them(tables: Tables) -> None:
    tables.hold(
        runs=[
            run(0, "desk", task_class="refund", agent_name="a"),
            run(1, "desk", "error", task_class="refund", agent_name="b"),
            run(2, "desk", "abandoned", task_class="query"),
            run(3, "desk", "cancelled"),
            run(4, "desk", parent_run_id="r0"),
            run(5, "shop"),
            run(6, None),
            run(7, "old", ended_us=(NOW - 90 * 86_400) * 1_000_000),
            run(8, "running", "running", ended_us=None),
        ],
        tool_calls=[
            {"trace_id": "t0", "service_name": "desk", "outcome": outcome, "ended_us": NOW * 1_000_000}
            for outcome in ("ok", "ok", "error", "retry")
        ],
        verdicts=[
            {
                "verdict_id": f"v{n}",
                "run_id": "r0",
                "trace_id": "t0",
                "kind": kind,
                "verdict": "pass",
                "occurred_us": NOW * 1_000_000,
            }
            for n, kind in enumerate(["outcome", "outcome", "process", "other"])
        ],
    )
    con = tables.lake.connect()
    desk, shop = look(con, date(2026, 2, 10))
    assert desk == Service("desk", 4, 1, 2, ("a", "b"), ("refund", "query"), 2.0, 3, 1, 2, 1)
    assert (shop.name, shop.runs, shop.tool_calls, shop.outcome_verdicts) == ("shop", 1, 0, 0)
