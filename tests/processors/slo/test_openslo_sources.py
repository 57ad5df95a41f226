"""Thresholds in other units, and a query of one's own beside the SLO file."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from support.openslo_documents import FILES, GOOD, write
from surefoot.processors.slo import load_slos
from surefoot.processors.slo.load import watched_files

COST = """\
apiVersion: openslo/v1
kind: SLO
metadata: {name: desk-cost}
spec:
  service: desk
  budgetingMethod: Occurrences
  timeWindow: [{duration: 4w, isRolling: true}]
  indicator:
    metadata: {name: cost}
    spec: {thresholdMetric: {metricSource: {type: surefoot, spec: {indicator: cost}}}}
  objectives:
    - target: 0.95
      op: lte
      value: 0.25
"""
OWN = """\
apiVersion: openslo/v1
kind: SLO
metadata: {name: own}
spec:
  service: desk
  budgetingMethod: Occurrences
  timeWindow: [{duration: 28d, isRolling: true}]
  indicator:
    metadata: {name: own}
    spec:
      ratioMetric:
        rawType: success
        raw:
          metricSource:
            type: surefoot
            spec:
              indicator: sql
              file: queries/short.sql
              by: [task_class]
  objectives: [{target: 0.9}]
"""
QUERY = """\
SELECT run_id AS event_id, ended_at, task_class, CASE WHEN tool_calls <= 10 THEN 'good' ELSE 'bad' END AS class
FROM runs
WHERE parent_run_id IS NULL AND ended_at IS NOT NULL AND date BETWEEN $from_date AND $to_date
"""


def own(folder: Path, query: str | None = QUERY, old: str = "", new: str = "") -> list[str]:
    """Write the SLO and its query; what is then said, from the line on."""
    write(folder, {"own": OWN.replace(old, new, 1) if old else OWN, "good": GOOD})
    (folder / "queries").mkdir(exist_ok=True)
    if query is not None:
        (folder / "queries" / "short.sql").write_text(query)
    loaded = load_slos(folder)
    assert "good" in [slo.name for slo in loaded.slos]
    return [str(problem).removeprefix(f"{folder}/own.yaml:") for problem in loaded.problems]


def test_a_cost_is_compared_in_dollars(tmp_path: Path) -> None:
    write(tmp_path, {"cost": COST})
    (slo,) = load_slos(tmp_path).slos
    assert (slo.threshold, slo.threshold_ns, slo.period) == (0.25, None, "28d")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("value: 0.25", "value: 0", "14: spec.objectives[0].value: 0 is not a number of USD above 0"),
        ("value: 0.25", "value: 5000000", "14: spec.objectives[0].value: 5e+06 is not a number of USD"),
        ("op: lte", "op: gte", "13: spec.objectives[0].op: 'gte' is not supported"),
        (
            "\n      value: 0.25",
            "",
            "12: spec.objectives[0].value: cost needs op and value; write op: lte",
        ),
        (
            "thresholdMetric: {metricSource: {type: surefoot, spec: {indicator: cost}}}",
            "ratioMetric: {rawType: success, raw: {metricSource: {type: surefoot, spec: {indicator: cost}}}}",
            "10: spec.indicator.spec.ratioMetric: cost compares a cost; write thresholdMetric instead",
        ),
    ],
)
def test_a_cost_that_cannot_be_compared_is_refused(old: str, new: str, told: str, tmp_path: Path) -> None:
    assert old in COST
    write(tmp_path, {"cost": COST.replace(old, new)})
    loaded = load_slos(tmp_path)
    assert loaded.slos == []
    assert any(str(problem).startswith(f"{tmp_path}/cost.yaml:{told}") for problem in loaded.problems)


def test_a_query_beside_the_file_is_read_and_a_new_one_starts_a_new_generation(tmp_path: Path) -> None:
    def generation(query: str) -> str:
        assert own(tmp_path, query) == []
        slo = next(slo for slo in load_slos(tmp_path).slos if slo.name == "own")
        assert slo.custom_sql == query
        return slo.generation

    assert generation(QUERY) != generation(QUERY.replace("<= 10", "<= 5"))
    assert tmp_path / "queries" / "short.sql" in watched_files(tmp_path)


def test_a_query_that_an_sli_names_is_looked_for_beside_the_sli(tmp_path: Path) -> None:
    sli = dedent(OWN[OWN.index("    spec:\n") : OWN.index("  objectives")])
    write(tmp_path, {"deep/sli": f"apiVersion: openslo/v1\nkind: SLI\nmetadata: {{name: own}}\n{sli}"})
    inline = OWN[OWN.index("  indicator:\n") : OWN.index("  objectives")]
    write(tmp_path, {"own": OWN.replace(inline, "  indicatorRef: own\n")})
    (tmp_path / "deep" / "queries").mkdir()
    (tmp_path / "deep" / "queries" / "short.sql").write_text(QUERY)
    loaded = load_slos(tmp_path)
    assert loaded.problems == []
    assert [slo.custom_sql for slo in loaded.slos] == [QUERY]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (None, "'queries/short.sql' cannot be read: No such file"),
        ("SELECT 1 AS a", "no column ended_at"),
        ("SELECT ended_at, outcome AS klass FROM runs", "no column class"),
        ("SELECT ended_at, outcome AS class FROM runns", "runns"),
        ("DELETE FROM runs", "SELECT"),
        ("SELECT ended_at, outcome AS class FROM runs; SELECT 2", "one"),
        ("SELECT ended_at, outcome AS class FROM runs WHERE date > $since", "$since"),
        ("SELECT ended_at, outcome AS class FROM runs", "no 'task_class' to choose or divide by"),
    ],
)
def test_a_query_that_cannot_be_used_is_told_with_its_place(query: str | None, words: str, tmp_path: Path) -> None:
    (told,) = own(tmp_path, query)
    assert told.startswith("18: " if "divide" not in words else "19: ")
    assert words in told


def test_a_query_is_for_the_indicator_sql_alone_and_has_a_path_from_its_folder(tmp_path: Path) -> None:
    def told(old: str, new: str = "") -> str:
        return own(tmp_path, QUERY, old, new)[0]

    assert "add file: my-indicator.sql" in told("              file: queries/short.sql\n")
    assert "availability has a query of its own" in told("indicator: sql", "indicator: availability")
    assert "not a path from the folder" in told("queries/short.sql", str(tmp_path / "queries" / "short.sql"))


def test_labels_are_waited_for_only_where_they_come_late(tmp_path: Path) -> None:
    wait = ("by: [task_class]", "labels: {max_delay: 1d}")
    assert "known at once, so there is nothing to wait for; remove it" in own(tmp_path, QUERY, *wait)[0]
    late = QUERY.replace(" AS class", " AS class, 'good' AS fast_class")
    assert own(tmp_path, late, *wait) == []


def test_a_stratum_of_a_query_needs_its_column(tmp_path: Path) -> None:
    by = ("[task_class]", "[stratum.tier]")
    assert "no 'stratum.tier'" in own(tmp_path, QUERY, *by)[0]
    assert own(tmp_path, QUERY.replace("task_class,", "strata,"), *by) == []


@pytest.mark.parametrize("period", ["5d", "7d"])
def test_a_policy_that_looks_back_as_long_as_the_period_is_refused(period: str, tmp_path: Path) -> None:
    files = {**FILES, "condition": FILES["condition"].replace("60m", "7d")}
    week = files["slo"][files["slo"].index("    - duration") : files["slo"].index("  indicatorRef")]
    files["slo"] = files["slo"].replace(week, f"    - duration: {period}\n      isRolling: true\n")
    write(tmp_path, files)
    loaded = load_slos(tmp_path)
    assert loaded.slos == []
    (problem,) = loaded.problems
    assert problem.path == "spec.alertPolicies[0]"
    assert f"looks back 7d, and the window of the SLO is {period}" in problem.what


@pytest.mark.parametrize(
    ("by", "told"),
    [
        ("tier", "every metric has a label tier of its own; give it another name in the query, such as my_tier"),
        ("größe", "'größe' cannot be a label of a metric"),
        ("stratum.größe", "'stratum.größe' cannot be a label of a metric"),
        ("stratum.a-b, stratum.a_b", "'stratum.a_b' and 'stratum.a-b' would be one label of a metric, stratum_a_b"),
        ("task_class, task_class", "'task_class' stands twice"),
    ],
)
def test_a_stratum_that_would_spoil_the_metrics_is_refused(by: str, told: str, tmp_path: Path) -> None:
    """One label that Prometheus does not take, or has already, and it takes no metric and no rule at all."""
    query = "SELECT ended_at, task_class, 'a' AS tier, 'b' AS größe, strata, outcome AS class FROM runs"
    (problem,) = own(tmp_path, query, "[task_class]", f"[{by}]")
    assert told in problem
