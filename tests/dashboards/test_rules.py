"""The Prometheus rules, run by promtool over series as the metrics endpoint shows them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from surefoot.dashboards.metrics import METRICS
from surefoot.dashboards.rules import OVER_THRESHOLD, build_rules
from surefoot.processors.slo import Slo

DAY = 86_400
SLO = Slo("desk-availability", "desk", "availability", 0.99, "28d", 28 * DAY, display_name="Desk answers")
BASE = 'slo="desk-availability",service="desk",view="fast"'
LABELS = {"slo": "desk-availability", "service": "desk", "view": "fast"}
LOW = Slo("desk-outcome", "desk", "acceptable_outcome", 0.80, "28d", 28 * DAY)


def promtool(folder: Path, tests: list[dict[str, Any]], *slos: Slo) -> subprocess.CompletedProcess[str]:
    (folder / "rules.yml").write_text(build_rules(slos or [SLO]))
    content = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": tests}
    (folder / "test.yml").write_text(yaml.safe_dump(content, sort_keys=False))
    command = ["promtool", "test", "rules", "test.yml"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def burns(**windows: str) -> list[dict[str, str]]:
    series = [
        {"series": f'surefoot_slo_burn_rate{{{BASE},window="{name.removeprefix("w")}"}}', "values": values}
        for name, values in windows.items()
    ]
    return [*series, {"series": f"surefoot_slo_objective_ratio{{{BASE}}}", "values": "0.99x600"}, *alive()]


def alive() -> list[dict[str, str]]:
    return [
        {"series": f"surefoot_slo_last_run_timestamp_seconds{{{BASE}}}", "values": "0+60x600"},
        {"series": 'surefoot_process_published_timestamp_seconds{process="jobs"}', "values": "0+60x600"},
    ]


def firing(at: str, name: str, *expected: dict[str, str]) -> dict[str, Any]:
    """A count of firing alerts, which does not depend on the text of annotations."""
    query = f'ALERTS{{alertname="{name}",alertstate="firing"}}'
    return {
        "expr": query,
        "eval_time": at,
        "exp_samples": [
            {"labels": _series({"__name__": "ALERTS", "alertname": name, "alertstate": "firing", **labels}), "value": 1}
            for labels in expected
        ],
    }


def _series(labels: dict[str, str]) -> str:
    name = labels.pop("__name__")
    return f"{name}{{{', '.join(f'{k}={v!r}' for k, v in labels.items())}}}".replace("'", '"')


def check(folder: Path, series: list[dict[str, str]], *tests: dict[str, Any], slos: tuple[Slo, ...] = ()) -> None:
    done = promtool(folder, [{"interval": "1m", "input_series": series, "promql_expr_test": list(tests)}], *slos)
    assert done.returncode == 0, done.stdout + done.stderr


PAGE = {**LABELS, "severity": "page"}
TICKET = {**LABELS, "severity": "ticket"}


def test_promtool_accepts_the_rules_of_several_slos(tmp_path: Path) -> None:
    path = tmp_path / "rules.yml"
    path.write_text(build_rules([SLO, LOW]))
    done = subprocess.run(["promtool", "check", "rules", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "duplicate" not in done.stdout + done.stderr


def test_a_fast_burn_pages_and_resolves_when_the_short_window_is_quiet(tmp_path: Path) -> None:
    series = burns(w5m="0x10 20x20 0x60", w1h="0x10 20x80")
    check(
        tmp_path,
        series,
        firing("9m", "SurefootSloBurnRatePage"),
        firing("15m", "SurefootSloBurnRatePage", PAGE),
        firing("30m", "SurefootSloBurnRatePage", PAGE),
        firing("45m", "SurefootSloBurnRatePage"),
    )


def test_one_window_alone_is_no_page(tmp_path: Path) -> None:
    check(tmp_path, burns(w5m="99x60"), firing("30m", "SurefootSloBurnRatePage"))
    check(tmp_path, burns(w5m="99x60", w1h="13.4x60"), firing("30m", "SurefootSloBurnRatePage"))
    check(tmp_path, burns(w1h="99x60"), firing("30m", "SurefootSloBurnRatePage"))


def test_the_alert_keeps_its_identity_when_the_tier_changes(tmp_path: Path) -> None:
    series = burns(w5m="20x20 1x60", w1h="20x20 1x60", w30m="1x15 8x60", w6h="1x15 8x60")
    identities = f'count(count_over_time(ALERTS{{alertname="SurefootSloBurnRatePage",alertstate="firing",{BASE}}}[1h]))'
    check(
        tmp_path,
        series,
        firing("10m", "SurefootSloBurnRatePage", PAGE),
        firing("50m", "SurefootSloBurnRatePage", PAGE),
        {"expr": identities, "eval_time": "50m", "exp_samples": [{"labels": "{}", "value": 1}]},
    )


def test_a_slow_burn_opens_a_ticket_and_pages_nobody(tmp_path: Path) -> None:
    series = burns(w2h="3x60", w1d="3x60", w5m="3x60", w1h="3x60", w6h="3x60", w30m="3x60", w3d="0.5x60")
    check(
        tmp_path, series, firing("30m", "SurefootSloBurnRatePage"), firing("30m", "SurefootSloBurnRateTicket", TICKET)
    )


def test_a_total_outage_pages_at_an_objective_whose_usual_factor_is_out_of_reach(tmp_path: Path) -> None:
    base = BASE.replace("desk-availability", "desk-outcome")
    series = [
        {"series": f'surefoot_slo_burn_rate{{{base},window="{name}"}}', "values": "5x60"} for name in ("5m", "1h")
    ]
    expected = {**PAGE, "slo": "desk-outcome"}
    check(tmp_path, [*series, *alive()], firing("30m", "SurefootSloBurnRatePage", expected), slos=(LOW,))


def test_strata_page_by_themselves_and_say_which(tmp_path: Path) -> None:
    series = [
        {"series": f'surefoot_slo_burn_rate{{{BASE},task_class="refund",window="{name}"}}', "values": "20x60"}
        for name in ("5m", "1h")
    ]
    check(
        tmp_path,
        [*burns(w5m="1x60", w1h="1x60"), *series],
        firing("30m", "SurefootSloBurnRatePage", {**PAGE, "task_class": "refund"}),
    )


def test_a_gap_in_the_scrapes_does_not_resolve_a_page(tmp_path: Path) -> None:
    series = burns(w5m="20x10 _x8 20x60", w1h="20x10 _x8 20x60")
    check(tmp_path, series, *(firing(f"{m}m", "SurefootSloBurnRatePage", PAGE) for m in (9, 15, 18, 20)))


def test_no_data_is_no_burn_but_staleness_and_absence_are_told(tmp_path: Path) -> None:
    stopped = [{"series": f"surefoot_slo_last_run_timestamp_seconds{{{BASE}}}", "values": "0x60"}]
    check(
        tmp_path,
        stopped,
        firing("30m", "SurefootSloBurnRatePage"),
        firing("4m", "SurefootSloEvaluationStale"),
        firing("30m", "SurefootSloEvaluationStale", {"severity": "page"}),
        firing("30m", "SurefootSloAbsent", {"slo": "desk-availability", "service": "desk", "severity": "ticket"}),
        firing("30m", "SurefootMetricsAbsent", {"severity": "page"}),
    )


def test_a_spent_budget_opens_a_ticket_after_ten_minutes(tmp_path: Path) -> None:
    left = {"series": f"surefoot_slo_error_budget_remaining_ratio{{{BASE}}}", "values": "-0.2x60"}
    check(
        tmp_path,
        [*burns(), left],
        firing("9m", "SurefootSloBudgetExhausted"),
        firing("11m", "SurefootSloBudgetExhausted", TICKET),
    )


@pytest.mark.parametrize(
    ("series", "fine", "trouble", "alert", "labels"),
    [
        (
            'surefoot_collector_accepting{reason="the disk is full"}',
            1,
            0,
            "SurefootCollectorRefusing",
            {"reason": "the disk is full"},
        ),
        ("surefoot_quarantined_files", 0, 1, "SurefootQuarantine", {}),
        ("surefoot_writer_lag_seconds", 300, 301, "SurefootWriterBehind", {}),
    ],
)
def test_trouble_of_the_pipeline_is_a_ticket(
    tmp_path: Path, series: str, fine: int, trouble: int, alert: str, labels: dict[str, str]
) -> None:
    found = {"series": series, "values": f"{fine}x10 {trouble}x50"}
    expected = {"severity": "ticket", **labels}
    check(tmp_path, [*alive(), found], firing("10m", alert), firing("20m", alert, expected))


def test_a_process_that_says_nothing_is_named(tmp_path: Path) -> None:
    silent = {"series": 'surefoot_process_published_timestamp_seconds{process="writer"}', "values": "0x60"}
    expected = {"severity": "ticket", "process": "writer"}
    check(
        tmp_path,
        [*alive(), silent],
        firing("5m", "SurefootProcessSilent"),
        firing("6m", "SurefootProcessSilent", expected),
    )


def test_rules_name_only_metrics_that_exist() -> None:
    named = set(re.findall(r"surefoot_[a-z_]+", " ".join(_expressions())))
    assert named <= set(METRICS)


def test_every_alert_has_a_paragraph_in_the_docs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "alerts.md").read_text()
    alerts = {rule["alert"] for group in _groups() for rule in group["rules"] if "alert" in rule}
    assert {name for name in alerts if f"## {name}" not in text} == set()
    assert OVER_THRESHOLD in text


def _groups() -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = yaml.safe_load(build_rules([SLO]))["groups"]
    return groups


def _expressions() -> list[str]:
    return [rule["expr"] for group in _groups() for rule in group["rules"]]
