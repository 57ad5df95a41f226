"""Bug reports of other SLO tools that alerts, metrics and pages must not repeat, each named by what it prevents.

Rules are run by promtool over what the metrics endpoint really shows.
"""

from __future__ import annotations

import math
import re
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.reports import every_state, slo, stratum
from support.slo_events import Row, Tables
from surefoot.dashboards.metrics import registry
from surefoot.dashboards.page import text
from surefoot.dashboards.page.pages import Pages
from surefoot.dashboards.rules import build_rules
from surefoot.processors import status
from surefoot.processors.lake import Lake
from surefoot.processors.settings import Settings
from surefoot.processors.slo import Slo, SloEngine, load_slos
from surefoot.processors.slo.report import Counts, SloReport, StatusReport

NOW = 1_773_144_000.0  # 2026-03-10 12:00:00 UTC
PAGE, TICKET = "SurefootSloBurnRatePage", "SurefootSloBurnRateTicket"
ANSWERS = """\
apiVersion: openslo/v1
kind: SLO
metadata: {name: answers}
spec:
  service: desk
  budgetingMethod: Occurrences
  timeWindow: [{duration: 28d, isRolling: true}]
  indicator:
    metadata: {name: answers}
    spec:
      ratioMetric:
        rawType: success
        raw: {metricSource: {type: surefoot, spec: {indicator: availability, where: {service_name: desk}}}}
  objectives: [{target: 0.99}]
"""
SLO = Slo("answers", "desk", "availability", 0.99, "28d", 28 * 86_400)


def endpoint(folder: Path, *reports: SloReport, at: float = NOW) -> list[tuple[str, dict[str, str], float]]:
    """The samples that the endpoint shows for these reports."""
    status.publish(folder, "slo", StatusReport(at, list(reports), []).to_json())
    status.publish(folder, "jobs", {"cycle_at": at, "cycle_seconds": 0.1})
    families = registry(folder).collect()
    return [(sample.name, sample.labels, sample.value) for family in families for sample in family.samples]


def series(
    samples: list[tuple[str, dict[str, str], float]], values: str = "{}x60", **more: str
) -> list[dict[str, str]]:
    """The samples as promtool's input."""
    found = []
    for name, labels, value in samples:
        written = ",".join(f'{key}="{part}"' for key, part in {**labels, **more}.items() if part)
        found.append({"series": f"{name}{{{written}}}", "values": values.format(value)})
    return found


def promtool(
    folder: Path, given: list[dict[str, str]], counts: dict[str, int], slos: list[Slo], at: str = "30m"
) -> None:
    """Fails unless exactly so many alerts of each name are firing at a time."""
    (folder / "rules.yml").write_text(build_rules(slos))
    asked = [
        {
            "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}})',
            "eval_time": at,
            "exp_samples": [{"labels": "{}", "value": count}] if count else [],
        }
        for name, count in counts.items()
    ]
    tests: list[dict[str, Any]] = [{"interval": "1m", "input_series": given, "promql_expr_test": asked}]
    content = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": tests}
    (folder / "test.yml").write_text(yaml.safe_dump(content))
    command = ["promtool", "test", "rules", "test.yml"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def run(number: int, ago: float, outcome: str) -> Row:
    return {
        "run_id": f"r{number}",
        "trace_id": f"t{number}",
        "parent_run_id": None,
        "service_name": "desk",
        "task_class": "refund",
        "outcome": outcome,
        "ended_us": int((NOW - ago) * 1_000_000),
    }


def engine(tmp_path: Path, *runs: Row) -> tuple[StatusReport, list[Slo]]:
    (tmp_path / "slos").mkdir()
    (tmp_path / "slos/answers.yaml").write_text(ANSWERS)
    settings = Settings(home=tmp_path)
    lake = Lake.open(settings.lake_path)
    Tables(lake).hold(runs=list(runs))
    return SloEngine(lake, settings).step(NOW, set()), load_slos(settings.slos_path).slos


def test_sloth_440_no_failure_yet_is_a_zero_and_not_an_absent_series(tmp_path: Path) -> None:
    samples = endpoint(tmp_path, slo("answers", "ok", Counts(good=500)))
    bad = {value for name, labels, value in samples if name == "surefoot_slo_events" and labels["outcome"] == "bad"}
    assert bad == {0}
    for name in ("error_ratio", "burn_rate", "error_budget_remaining_ratio", "tier_burning", "tier_frozen"):
        assert [value for found, _, value in samples if found == f"surefoot_slo_{name}"], name
    assert not any(math.isnan(value) for _, _, value in samples)


def test_pyrra_1259_a_restart_is_no_absence(tmp_path: Path) -> None:
    """Surefoot was down for four minutes and comes back with a status file of an hour ago, until it has computed."""
    samples = endpoint(tmp_path, slo("answers", "ok", Counts(good=500)))
    restarted = [
        {**item, "values": "_x4 -3600x1 360+60x50"} if re.search("last_run|published", item["series"]) else item
        for item in series(samples, "_x4 {}x50")
    ]
    quiet = {"SurefootMetricsAbsent": 0, "SurefootSloAbsent": 0, "SurefootSloEvaluationStale": 0, PAGE: 0}
    for at in ("4m", "5m", "6m", "12m"):
        promtool(tmp_path, restarted, quiet, [SLO], at=at)


def test_pyrra_1925_a_single_failure_at_low_traffic_pages_nobody(tmp_path: Path) -> None:
    report, slos = engine(tmp_path, run(0, 60, "error"), run(1, 1_800, "ok"), run(2, 2_400, "ok"))
    samples = endpoint(tmp_path / "status", *report.slos)
    assert max(value for name, _, value in samples if name == "surefoot_slo_burn_rate") > 13.44
    promtool(tmp_path, series(samples), {PAGE: 0, TICKET: 0}, slos)


def test_slogen_41_what_the_engine_counts_is_what_fires(tmp_path: Path) -> None:
    """From events in the lake to the alert, with nothing made up in between."""
    outage = [run(number, 20 * number, "error" if number % 2 else "ok") for number in range(180)]
    report, slos = engine(tmp_path, *outage)
    promtool(tmp_path, series(endpoint(tmp_path / "status", *report.slos)), {PAGE: 1, TICKET: 1}, slos, at="45m")


def test_slogen_41_healthy_runs_fire_nothing(tmp_path: Path) -> None:
    report, slos = engine(tmp_path, *(run(number, 20 * number, "ok") for number in range(180)))
    nothing = {PAGE: 0, TICKET: 0, "SurefootSloBudgetExhausted": 0, "SurefootSloFrozen": 0}
    promtool(tmp_path, series(endpoint(tmp_path / "status", *report.slos)), nothing, slos)


def test_sloth_153_a_second_replica_or_another_label_breaks_no_join(tmp_path: Path) -> None:
    samples = endpoint(tmp_path, slo("answers", "burning_page", Counts(70, 30)))
    twice = [
        *series(samples, instance="127.0.0.1:4380", job="surefoot"),
        *series(samples, instance="127.0.0.1:4381", job="surefoot", replica="b"),
    ]
    promtool(tmp_path, twice, {PAGE: 1, "SurefootSloBudgetExhausted": 1}, [SLO])


def test_sloth_220_slos_with_different_strata_are_one_label_set_without_nan(tmp_path: Path) -> None:
    refunds = stratum("burning_page", Counts(80, 20), 0.99, "task_class=refund", {"task_class": "refund"})
    eu = stratum("ok", Counts(80, 0), 0.99, "stratum.region=eu", {"stratum.region": "eu"})
    reports = [
        slo("answers", "ok", Counts(500), extra=(refunds,)),
        slo("other", "ok", Counts(500), extra=(eu,)),
        slo("empty", "no_data", Counts()),
    ]
    samples = endpoint(tmp_path, *reports)
    by_name: dict[str, set[frozenset[str]]] = {}
    for name, labels, value in samples:
        assert math.isfinite(value), name
        by_name.setdefault(name, set()).add(frozenset(labels))
    assert {name for name, sets in by_name.items() if len(sets) > 1} == set()
    lines = [(name, tuple(sorted(labels.items()))) for name, labels, _ in samples]
    assert len(lines) == len(set(lines))
    promtool(tmp_path, series(samples), {PAGE: 1}, [replace(SLO, by=("task_class",))])


def test_an_alert_does_not_flip_its_identity_with_the_window_that_burns(tmp_path: Path) -> None:
    """Sloth needs max(...) without (sloth_window) for it; here neither window nor tier is ever a label of an alert."""
    burning = slo("answers", "burning_page", Counts(70, 30))
    moments = []
    for which in ("page_fast", "page_slow"):
        tiers = [replace(tier, burning=tier.name == which) for tier in burning.strata[0].tiers]
        moments.append(endpoint(tmp_path, replace(burning, strata=[replace(burning.strata[0], tiers=tiers)])))
    given = []
    for (name, labels, before), (_, _, after) in zip(*moments, strict=True):
        (one,) = series([(name, labels, before)], f"{before}x20 {after}x40")
        given.append(one)
    (tmp_path / "rules.yml").write_text(build_rules([SLO]))
    ever = f'count(count_over_time(ALERTS{{alertname="{PAGE}",alertstate="firing"}}[1h]))'
    asked = [{"expr": ever, "eval_time": "50m", "exp_samples": [{"labels": "{}", "value": 1}]}]
    tests = [{"interval": "1m", "input_series": given, "promql_expr_test": asked}]
    (tmp_path / "test.yml").write_text(
        yaml.safe_dump({"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": tests})
    )
    command = ["promtool", "test", "rules", "test.yml"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("objective", "shown"), [(0.999, "99.9 %"), (0.9999, "99.99 %"), (0.99999, "99.999 %"), (0.95, "95 %")]
)
def test_sloth_131_nines_are_shown_as_they_were_written(tmp_path: Path, objective: float, shown: str) -> None:
    settings = Settings(home=tmp_path)
    report = StatusReport(time.time(), [slo("answers", "ok", Counts(10_000, 1), objective)], [])
    status.publish(settings.status_path, "slo", report.to_json())
    assert text.objective(objective) == shown
    assert f"Objective {shown} over 28d" in (Pages(settings).detail("answers") or "")
    rules = build_rules([replace(SLO, objective=objective)])
    assert f"is {shown} over 28d" in rules
    assert "99.90000000000001" not in rules
    samples = endpoint(tmp_path / "again", *report.slos)
    assert {value for name, _, value in samples if name == "surefoot_slo_objective_ratio"} == {objective}


def test_sloth_517_a_budget_is_signed_exact_and_never_clamped(tmp_path: Path) -> None:
    spent = slo("answers", "exhausted", Counts(good=0, bad=100))
    (left,) = [
        value
        for name, _, value in endpoint(tmp_path / "a", spent)
        if name == "surefoot_slo_error_budget_remaining_ratio"
    ]
    assert left == pytest.approx(-99)
    settings = Settings(home=tmp_path)
    status.publish(settings.status_path, "slo", StatusReport(time.time(), [spent], []).to_json())
    page = Pages(settings).overview()
    assert '<div class="big bad">−9,900 %</div>' in page
    # A remainder of rounding is no overspent budget: neither its sign nor its colour may say so.
    nothing = replace(spent, strata=[replace(spent.strata[0], error_budget_remaining_ratio=0.0, state="ok")])
    status.publish(settings.status_path, "slo", StatusReport(time.time(), [nothing], []).to_json())
    assert '<div class="big">0.0 %</div>' in Pages(settings).overview()


def test_grafana_duckdb_38_a_page_shows_what_was_written_last_and_locks_nobody_out(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    lake = Lake.open(settings.lake_path)
    tables = Tables(lake)
    status.publish(settings.status_path, "slo", every_state(time.time()).to_json())
    pages, stop, shown = Pages(settings), threading.Event(), []

    def read() -> None:
        while not stop.is_set():
            shown.append(pages.overview())

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for number in range(5):  # a writer that a reader locks out raises here
            tables.hold(runs=[run(number, 60, "error") | {"started_at": int(NOW * 1e6) + number}])
    finally:
        stop.set()
        reader.join(60)
    assert len(shown) > 0
    assert ">t4<" in pages.overview()  # the same object, a lake that was rewritten meanwhile
