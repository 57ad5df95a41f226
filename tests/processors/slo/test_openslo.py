"""What is wrong with a file is told by file, line, field and remedy, and never takes a good file down."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.processors.slo import Slo, load_slos

GOOD = """\
apiVersion: openslo/v1
kind: SLO
metadata:
  name: desk-availability
spec:
  service: desk
  budgetingMethod: Occurrences
  timeWindow:
    - duration: 28d
      isRolling: true
  indicator:
    metadata: {name: mine}
    spec:
      ratioMetric:
        rawType: success
        raw:
          metricSource:
            type: surefoot
            spec:
              indicator: availability
              where: {service_name: desk}
              by: [task_class]
  objectives:
    - target: 0.99
"""
LATENCY = (
    GOOD.replace("      ratioMetric:\n        rawType: success\n        raw:\n", "      thresholdMetric:\n")
    .replace("          metricSource:", "        metricSource:")
    .replace("availability\n   ", "latency\n   ")
    .replace("target: 0.99", "target: 0.99\n      op: lte\n      value: 30")
)

# What is replaced in GOOD, by what; then the line, the field, a part of what is wrong, and a part of the remedy.
WRONG = {
    "unknown field": (
        "  service: desk", "  sevice: desk", 6, "spec.sevice", "unknown", "did you mean service?",
    ),
    "unknown field far down": (
        "by: [task_class]", "group: [task_class]",
        22, "spec.indicator.spec.ratioMetric.raw.metricSource.spec.group", "unknown", "by, file, indicator, labels",
    ),
    "missing field": ("  service: desk\n", "", 5, "spec.service", "missing", "add service"),
    "target 1": (
        "target: 0.99", "target: 1", 24, "spec.objectives[0].target", "no error budget", "such as target: 0.99",
    ),
    "target that rounds to 1": (
        "target: 0.99", "target: 0.99999999999999999999",
        24, "spec.objectives[0].target", "no error budget", "less than 1",
    ),
    "target 0": ("target: 0.99", "target: 0", 24, "spec.objectives[0].target", "asks for nothing", "more than 0"),
    "target below 0": ("target: 0.99", "target: -0.5", 24, "spec.objectives[0].target", "-0.5", "more than 0"),
    "a percentage as target": (
        "target: 0.99", "target: 99.5", 24, "spec.objectives[0].target", "99.5", "targetPercent: 99.5",
    ),
    "target not a number": (
        "target: 0.99", "target: .nan", 24, "spec.objectives[0].target", "nan", "finite",
    ),
    "target as text": ("target: 0.99", "target: '0.99'", 24, "spec.objectives[0].target", "'0.99'", "without quotes"),
    "target yes": ("target: 0.99", "target: yes", 24, "spec.objectives[0].target", "a number, found True", "number"),
    "targetPercent 100": (
        "target: 0.99", "targetPercent: 100",
        24, "spec.objectives[0].targetPercent", "no error budget", "targetPercent: 99",
    ),
    "two targets": (
        "target: 0.99", "target: 0.99\n      targetPercent: 99", 24, "spec.objectives[0]", "both are there", "keep one",
    ),
    "no target": (
        "target: 0.99", "displayName: x", 24, "spec.objectives[0]", "neither is there", "target: 0.99",
    ),
    "two objectives": (
        "    - target: 0.99", "    - target: 0.99\n    - target: 0.9",
        23, "spec.objectives", "exactly one objective", "an SLO per objective",
    ),
    "two indicators": (
        "      ratioMetric:", "      thresholdMetric: {}\n      ratioMetric:",
        13, "spec.indicator.spec", "two indicators", "keep one",
    ),
    "an indicator by reference and in place": (
        "  indicator:\n", "  indicatorRef: other\n  indicator:\n", 5, "spec", "both are there", "keep one",
    ),
    "good and total": (
        "        rawType: success", "        good: {}\n        rawType: success",
        15, "spec.indicator.spec.ratioMetric.good", "not read", "rawType: success",
    ),
    "rawType failure": (
        "rawType: success", "rawType: failure",
        15, "spec.indicator.spec.ratioMetric.rawType", "'failure'", "rawType: success",
    ),
    "another source": (
        "type: surefoot", "type: prometheus",
        18, "spec.indicator.spec.ratioMetric.raw.metricSource.type", "'prometheus'", "type: surefoot",
    ),
    "unknown indicator": (
        "indicator: availability", "indicator: availabilty",
        20, "spec.indicator.spec.ratioMetric.raw.metricSource.spec.indicator", "availabilty",
        "did you mean availability?",
    ),
    "ratio for a duration": (
        "indicator: availability", "indicator: latency",
        14, "spec.indicator.spec.ratioMetric", "compares a duration", "thresholdMetric instead",
    ),
    "threshold of a ratio": (
        "target: 0.99", "target: 0.99\n      op: lte", 25, "spec.objectives[0].op", "no threshold", "remove it",
    ),
    "unknown column": (
        "where: {service_name: desk}", "where: {servicename: desk}",
        21, "spec.indicator.spec.ratioMetric.raw.metricSource.spec.where.servicename", "runs have no", "service_name?",
    ),
    "a column that decides": (
        "where: {service_name: desk}", "where: {outcome: ok}",
        21, "spec.indicator.spec.ratioMetric.raw.metricSource.spec.where.outcome", "runs have no", "known here",
    ),
    "SQL for a column": (
        "where: {service_name: desk}", "where: {\"1=1) --\": desk}",
        21, "spec.indicator.spec.ratioMetric.raw.metricSource.spec.where.1=1) --", "runs have no", "known here",
    ),
    "a number as value": (
        "where: {service_name: desk}", "where: {service_name: 7}",
        21, "spec.indicator.spec.ratioMetric.raw.metricSource.spec.where.service_name", "a list, found 7", "hyphen",
    ),
    "no value": (
        "where: {service_name: desk}", "where: {service_name: []}",
        21, "spec.indicator.spec.ratioMetric.raw.metricSource.spec.where.service_name", "matches nothing",
        "at least one",
    ),
    "unknown dimension": (
        "by: [task_class]", "by: [task_class, tool_name]",
        22, "spec.indicator.spec.ratioMetric.raw.metricSource.spec.by[1]", "'tool_name'", "known here",
    ),
    "a dimension twice": (
        "by: [task_class]", "by: [task_class, task_class]",
        22, "spec.indicator.spec.ratioMetric.raw.metricSource.spec.by[1]", "stands twice", "keep one",
    ),
    "a stratum without name": (
        "by: [task_class]", "by: [stratum.]",
        22, "spec.indicator.spec.ratioMetric.raw.metricSource.spec.by[0]", "'stratum.'", "stratum.<name>",
    ),
    "bad window": ("duration: 28d", "duration: 28 days", 9, "spec.timeWindow[0].duration", "'28 days'", "write 28d"),
    "month": ("duration: 28d", "duration: 1M", 9, "spec.timeWindow[0].duration", "no fixed length", "in days"),
    "too short": ("duration: 28d", "duration: 23h", 9, "spec.timeWindow[0].duration", "between 1d", "write 28d"),
    "too long": ("duration: 28d", "duration: 9999999w", 9, "spec.timeWindow[0].duration", "366d", "write 28d"),
    "a number as window": ("duration: 28d", "duration: 28", 9, "spec.timeWindow[0].duration", "found 28", "quotes"),
    "a calendar of a window that rolls": (
        "isRolling: true", "isRolling: true\n      calendar: {startTime: '2026-01-01 00:00:00', timeZone: UTC}",
        11, "spec.timeWindow[0].calendar", "no calendar", "isRolling: false",
    ),
    "neither rolling nor a calendar": (
        "isRolling: true", "isRolling: false", 10, "spec.timeWindow[0].isRolling", "needs a calendar", "startTime",
    ),
    "two windows": (
        "      isRolling: true", "      isRolling: true\n    - duration: 7d\n      isRolling: true",
        8, "spec.timeWindow", "exactly one time window", "an SLO per window",
    ),
    "no window": (
        "  timeWindow:\n    - duration: 28d\n      isRolling: true\n", "  timeWindow: []\n",
        8, "spec.timeWindow", "there are 0", "keep one",
    ),
    "time slices": (
        "Occurrences", "Timeslices", 24, "spec.objectives[0].timeSliceTarget", "Timeslices needs", "add timeSlice",
    ),
    "unknown budgeting": (
        "Occurrences", "occurrences", 7, "spec.budgetingMethod", "'occurrences'", "write Occurrences, Time",
    ),
    "time slice target": (
        "target: 0.99", "target: 0.99\n      timeSliceTarget: 0.9",
        25, "spec.objectives[0].timeSliceTarget", "no target for a slice", "Timeslices",
    ),
    "a name with capitals": (
        "name: desk-availability", "name: Desk_Availability", 4, "metadata.name", "RFC 1123", "write desk-availability",
    ),
    "a name that is too long": ("name: desk-availability", f"name: {'x' * 64}", 4, "metadata.name", "63", "write x"),
    "an empty description": (
        "  service: desk", "  description:\n  service: desk", 6, "spec.description", "nothing", "text",
    ),
    "a long description": (
        "  service: desk", f"  description: {'x' * 1051}\n  service: desk", 6, "spec.description", "1051", "shorten",
    ),
    "another version": (
        "openslo/v1", "openslo/v1alpha", 1, "apiVersion", "'openslo/v1alpha'", "apiVersion: openslo/v1",
    ),
    "unknown kind": ("kind: SLO", "kind: Slo", 2, "kind", "'Slo'", "did you mean SLO?"),
    "no kind": ("kind: SLO\n", "", 1, "kind", "missing", "kind: SLO"),
    "duplicate key": (
        "  service: desk", "  service: desk\n  service: shop", 7, "spec.service", "twice, first in line 6", "keep one",
    ),
    "duplicate key in flow style": (
        "{service_name: desk}", "{service_name: desk, service_name: shop}",
        21, "spec.indicator.spec.ratioMetric.raw.metricSource.spec.where.service_name", "twice", "keep one",
    ),
    "not a mapping": (GOOD, "- one\n- two\n", 1, "", "a list, not a mapping", "apiVersion: openslo/v1"),
    "text for a mapping": ("metadata:\n  name: desk-availability", "metadata: x", 3, "metadata", "'x'", "key: value"),
    "a tab": ("  service: desk", "\tservice: desk", 6, "", "not YAML", "spaces"),
    "a bracket left open": ("[task_class]", "[task_class", 23, "", "not YAML", "bracket"),
    "a control character": ("service: desk", "service: de\x07sk", 6, "", "does not allow", "remove it"),
    "an unknown tag": ("service: desk", "service: !!python/name:os.system desk", 6, "", "not YAML", "see the place"),
    "nested without end": ("service: desk", f"service: {'[' * 5000}", 1, "", "nested too deeply", "flat"),
    "an empty file": (GOOD, "", 1, "", "holds nothing", "write something"),
    "only a comment": (GOOD, "# soon\n---\n", 1, "", "holds nothing", "write something"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_is_told_by_file_line_field_and_remedy(case: str, tmp_path: Path) -> None:
    old, new, line, path, what, remedy = WRONG[case]
    assert old in GOOD
    (tmp_path / "bad.yaml").write_text(GOOD.replace(old, new, 1))
    (tmp_path / "good.yaml").write_text(GOOD.replace("desk-availability", "good"))
    loaded = load_slos(tmp_path)
    assert [slo.name for slo in loaded.slos] == ["good"]
    places = {(problem.line, problem.path): problem for problem in loaded.problems}
    assert (line, path) in places
    problem = places[line, path]
    assert what in problem.what
    assert remedy in problem.remedy
    assert str(problem).startswith(f"{tmp_path / 'bad.yaml'}:{line}: ")
    assert all(words in str(problem) for words in (problem.what, problem.remedy))


LATENCY_WRONG = {
    "no value": ("      value: 30\n", "", "spec.objectives[0].value", "needs op and value", "value: 30 (seconds)"),
    "no operator": ("      op: lte\n", "", "spec.objectives[0].op", "needs op and value", "op: lte"),
    "another operator": ("op: lte", "op: gte", "spec.objectives[0].op", "'gte'", "op: lte"),
    "an unknown operator": ("op: lte", "op: below", "spec.objectives[0].op", "not an operator", "known here: gt"),
    "milliseconds": ("value: 30", "value: 3000000", "spec.objectives[0].value", "up to a week", "30 (seconds)"),
    "no time at all": ("value: 30", "value: 0", "spec.objectives[0].value", "above 0", "30 (seconds)"),
    "a ratio": (
        "indicator: latency", "indicator: availability",
        "spec.indicator.spec.thresholdMetric", "is a ratio", "ratioMetric instead",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LATENCY_WRONG)
def test_a_threshold_is_checked(case: str, tmp_path: Path) -> None:
    old, new, path, what, remedy = LATENCY_WRONG[case]
    assert old in LATENCY
    (tmp_path / "bad.yaml").write_text(LATENCY.replace(old, new, 1))
    loaded = load_slos(tmp_path)
    assert loaded.slos == []
    assert loaded.problems[0].path == path
    assert what in loaded.problems[0].what
    assert remedy in loaded.problems[0].remedy


def test_several_mistakes_of_a_document_are_told_at_once(tmp_path: Path) -> None:
    text = GOOD.replace("target: 0.99", "target: 1").replace("28d", "1M").replace("service_name", "servce_name")
    (tmp_path / "bad.yaml").write_text(text)
    assert [problem.line for problem in load_slos(tmp_path).problems] == [9, 21, 24]


def test_what_a_file_says_is_what_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "latency.yaml").write_text(LATENCY.replace("target: 0.99", "targetPercent: 99.9"))
    (slo,) = load_slos(tmp_path / "latency.yaml").slos
    assert slo == Slo(
        name="desk-availability",
        service="desk",
        indicator="latency",
        objective=0.999,
        period="28d",
        period_seconds=28 * 86_400,
        where=(("service_name", ("desk",)),),
        by=("task_class",),
        threshold_ns=30_000_000_000,
    )
    assert (slo.file, slo.line) == (str(tmp_path / "latency.yaml"), 4)


def test_documents_of_one_file_stand_for_themselves(tmp_path: Path) -> None:
    service = "apiVersion: openslo/v1\nkind: Service\nmetadata: {name: shop}\nspec: {description: x}\n"
    broken = GOOD.replace("target: 0.99", "target: 1").replace("desk-availability", "broken")
    second = GOOD.replace("desk-availability", "second")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "all.yml").write_text("---\n".join([GOOD, service, broken, second]))
    loaded = load_slos(tmp_path)
    assert [slo.name for slo in loaded.slos] == ["desk-availability", "second"]
    assert [problem.line for problem in loaded.problems] == [25 + 5 + 24]
    assert [str(item).partition("all.yml:")[2] for item in loaded.unused] == [
        "28: nothing refers to the Service 'shop'"
    ]


def test_a_name_that_is_taken_names_the_place_of_the_first(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "b.yaml").write_text("# mine\n" + GOOD)
    loaded = load_slos(tmp_path)
    assert [slo.file for slo in loaded.slos] == [str(tmp_path / "a.yaml")]
    (problem,) = loaded.problems
    assert (problem.file, problem.line) == (str(tmp_path / "b.yaml"), 5)
    assert f"{tmp_path / 'a.yaml'}:4" in problem.what


def test_a_file_that_cannot_be_read_is_a_problem_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "gone.yaml").symlink_to(tmp_path / "nowhere")
    (tmp_path / "good.yaml").write_text(GOOD)
    loaded = load_slos(tmp_path)
    assert len(loaded.slos) == 1
    assert [Path(problem.file).name for problem in loaded.problems] == ["bytes.yaml"]
    assert load_slos(tmp_path / "missing").slos == []


def test_anchors_and_merges_are_read(tmp_path: Path) -> None:
    text = GOOD.replace("where: {service_name: desk}", "where: &desk {service_name: desk}").replace(
        "  - duration: 28d\n      isRolling: true", "  - {duration: 28d, isRolling: true}"
    )
    (tmp_path / "a.yaml").write_text(text)
    assert load_slos(tmp_path).problems == []


def test_a_definition_starts_a_new_generation_and_a_target_does_not(tmp_path: Path) -> None:
    def generation(old: str = "", new: str = "") -> str:
        (tmp_path / "a.yaml").write_text(GOOD.replace(old, new) if old else GOOD)
        (slo,) = load_slos(tmp_path).slos
        return slo.generation

    same = {generation(), generation("0.99", "0.9"), generation("  service: desk", "  service: shop")}
    others = {
        generation("service_name: desk", "service_name: shop"),
        generation("28d", "30d"),
        generation("[task_class]", "[]"),
        generation("indicator: availability", "indicator: policy_compliance"),
    }
    assert len(same) == 1
    assert len(others) == 4
    assert same.isdisjoint(others)
