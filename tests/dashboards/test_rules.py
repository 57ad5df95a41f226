"""The Prometheus rules, run by promtool over series as the metrics endpoint shows them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from surefoot.dashboards.metrics import METRICS
from surefoot.dashboards.rules import build_rules
from surefoot.processors.lake import Lake
from surefoot.processors.slo import Slo

DAY = 86_400
SLO = Slo("desk-availability", "desk", "availability", 0.99, "28d", 28 * DAY, by=("task_class",))
LATE = Slo("desk-outcome", "desk", "acceptable_outcome", 0.95, "28d", 28 * DAY)
LABELS = {"slo": "desk-availability", "service": "desk", "view": "fast"}
PAGE = {**LABELS, "severity": "page"}
TICKET = {**LABELS, "severity": "ticket"}
BURN_PAGE, BURN_TICKET = "SurefootSloBurnRatePage", "SurefootSloBurnRateTicket"
TIERS = {
    "page_fast": ("page", "1h", "5m"),
    "page_slow": ("page", "6h", "30m"),
    "ticket_fast": ("ticket", "1d", "2h"),
    "ticket_slow": ("ticket", "3d", "6h"),
}


def series(name: str, values: str, **labels: str) -> dict[str, str]:
    """One input series; ``values`` in promtool's notation, a sample a minute."""
    written = ",".join(f'{key}="{value}"' for key, value in labels.items())
    return {"series": f"surefoot_{name}{{{written}}}", "values": values}


def tier(name: str, burning: str = "0x600", frozen: str = "0x600", **labels: str) -> list[dict[str, str]]:
    severity, long_window, short_window = TIERS[name]
    which = {**LABELS, "job": "surefoot", "instance": "127.0.0.1:4380", **labels, "tier": name, "severity": severity}
    which |= {"long_window": long_window, "short_window": short_window}
    return [series("slo_tier_burning", burning, **which), series("slo_tier_frozen", frozen, **which)]


def alive(published: str = "0+60x600", objective: str = "0.99x600") -> list[dict[str, str]]:
    return [
        series("slo_last_run_timestamp_seconds", "0+60x600", **LABELS),
        series("slo_objective_ratio", objective, **LABELS),
        series("process_published_timestamp_seconds", published, process="jobs"),
    ]


def firing(at: str, name: str, *expected: dict[str, str]) -> dict[str, Any]:
    """Which alerts of a name fire, with all their labels; it does not depend on the text of annotations."""
    samples = [
        {"labels": _series({"alertname": name, "alertstate": "firing", **labels}), "value": 1} for labels in expected
    ]
    return {"expr": f'ALERTS{{alertname="{name}",alertstate="firing"}}', "eval_time": at, "exp_samples": samples}


def fired_alerts(at: str, name: str, count: int, over: str = "10h") -> dict[str, Any]:
    """How many alerts of a name, told apart by their labels, have fired until ``at``."""
    query = f'count(count_over_time(ALERTS{{alertname="{name}",alertstate="firing"}}[{over}]))'
    samples = [{"labels": "{}", "value": count}] if count else []
    return {"expr": query, "eval_time": at, "exp_samples": samples}


def _series(labels: dict[str, str]) -> str:
    return "ALERTS{" + ", ".join(f'{key}="{value}"' for key, value in labels.items()) + "}"


def promtool(folder: Path, tests: list[dict[str, Any]], *slos: Slo) -> subprocess.CompletedProcess[str]:
    (folder / "rules.yml").write_text(build_rules(slos or [SLO]))
    content = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": tests}
    (folder / "test.yml").write_text(yaml.safe_dump(content, sort_keys=False, width=10_000))
    command = ["promtool", "test", "rules", "test.yml"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def check(folder: Path, given: list[dict[str, str]], *tests: dict[str, Any], slos: tuple[Slo, ...] = ()) -> None:
    done = promtool(folder, [{"interval": "1m", "input_series": given, "promql_expr_test": list(tests)}], *slos)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_accepts_the_rules_of_several_slos(tmp_path: Path) -> None:
    path = tmp_path / "rules.yml"
    path.write_text(build_rules([SLO, LATE]))
    done = subprocess.run(["promtool", "check", "rules", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "duplicate" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "first", "second", "labels", "waits"),
    [(BURN_PAGE, "page_fast", "page_slow", PAGE, 0), (BURN_TICKET, "ticket_fast", "ticket_slow", TICKET, 35)],
)
def test_a_burn_fires_stays_one_alert_over_a_change_of_tier_and_resolves(
    tmp_path: Path, name: str, first: str, second: str, labels: dict[str, str], waits: int
) -> None:
    given = [*alive(), *tier(first, f"0x10 1x{20 + waits} 0x200"), *tier(second, f"0x{25 + waits} 1x30 0x200")]
    check(
        tmp_path,
        given,
        firing(f"{10 + waits}m", name),
        firing(f"{11 + waits}m", name, labels),
        *(firing(f"{waits + minute}m", name, labels) for minute in (26, 31, 32, 50)),
        fired_alerts("4h", name, 1),
        firing(f"{waits + 56}m", name, labels),  # against flapping it keeps firing for five minutes
        firing(f"{waits + 65}m", name),
    )


def test_a_ticket_waits_until_an_outage_would_have_paged(tmp_path: Path) -> None:
    """Where much runs, the slowest ticket is certain of a total outage some minutes before the page is."""
    given = [*alive(), *tier("ticket_slow", "0x10 1x100"), *tier("page_fast", "0x40 1x100")]
    check(
        tmp_path,
        given,
        firing("39m", BURN_PAGE),
        firing("41m", BURN_PAGE, PAGE),
        firing("44m", BURN_TICKET),
        firing("46m", BURN_TICKET, TICKET),
    )


def test_the_identity_of_an_alert_survives_another_process_that_is_scraped(tmp_path: Path) -> None:
    moved = tier("page_fast", "_x20 1x60", instance="127.0.0.1:9999", job="other")
    given = [*alive(), *tier("page_fast", "1x20 _x60"), *moved]
    same = [firing(at, BURN_PAGE, PAGE) for at in ("15m", "40m")]
    check(tmp_path, given, *same, fired_alerts("1h", BURN_PAGE, 1))


def test_two_replicas_are_one_alert(tmp_path: Path) -> None:
    given = [*alive(), *tier("page_fast", "1x60"), *tier("page_fast", "1x60", instance="127.0.0.1:9999")]
    check(tmp_path, given, firing("30m", BURN_PAGE, PAGE))


@pytest.mark.parametrize(
    ("name", "which", "labels", "waits"), [(BURN_PAGE, "page_fast", PAGE, 0), (BURN_TICKET, "ticket_slow", TICKET, 35)]
)
def test_frozen_neither_fires_nor_resolves(
    tmp_path: Path, name: str, which: str, labels: dict[str, str], waits: int
) -> None:
    was_firing = tier(which, f"0x9 1x{10 + waits} 0x580", f"0x{19 + waits} 1x180 0x400")
    was_quiet = tier(which, "0x600", f"0x{19 + waits} 1x180 0x400", task_class="refund")
    check(
        tmp_path,
        [*alive(), *was_firing, *was_quiet],
        firing(f"{waits + 15}m", name, labels),
        *(firing(f"{waits + minute}m", name, labels) for minute in (21, 60, 120, 198)),
        fired_alerts("5h", name, 1),
        firing(f"{waits + 215}m", name),
    )


def test_an_alert_that_was_frozen_and_burns_again_is_still_the_same(tmp_path: Path) -> None:
    given = [*alive(), *tier("page_fast", "1x20 0x60 1x20 0x100", "0x20 1x60 0x300")]
    check(
        tmp_path,
        given,
        *(firing(f"{minute}m", BURN_PAGE, PAGE) for minute in (10, 50, 90)),
        fired_alerts("3h", BURN_PAGE, 1),
        firing("120m", BURN_PAGE),
    )


def test_one_tier_that_is_frozen_does_not_hold_back_another_that_burns(tmp_path: Path) -> None:
    given = [*alive(), *tier("page_fast", "0x60", "1x60"), *tier("page_slow", "0x10 1x60")]
    check(tmp_path, given, firing("10m", BURN_PAGE), firing("15m", BURN_PAGE, PAGE))


def test_what_the_engine_calls_quiet_is_quiet_whatever_the_burn_rate(tmp_path: Path) -> None:
    """Low traffic: one of three failed. The statistics are the engine's, and no rule looks past them."""
    few = [series("slo_burn_rate", "33x600", **LABELS, window=name) for _, *pair in TIERS.values() for name in pair[:1]]
    given = [*alive(), *few, *(part for name in TIERS for part in tier(name))]
    check(tmp_path, given, *(fired_alerts("4h", name, 0) for name in (BURN_PAGE, BURN_TICKET)))


def test_strata_page_by_themselves_and_say_which(tmp_path: Path) -> None:
    given = [*alive(), *tier("page_fast"), *tier("page_fast", "1x60", task_class="refund")]
    check(tmp_path, given, firing("30m", BURN_PAGE, {**PAGE, "task_class": "refund"}))


def test_what_is_not_scraped_does_not_resolve_and_does_not_fire(tmp_path: Path) -> None:
    """A gauge goes stale at the first scrape that fails, in the middle of an incident."""
    gone = "1x10 stale _x120 0x100"
    objective = "0.99x10 stale _x120 0.99x100"
    given = [*alive(objective=objective), *tier("page_fast", gone, "0x10 stale _x120 0x100")]
    check(
        tmp_path,
        given,
        *(firing(f"{minute}m", BURN_PAGE, PAGE) for minute in (9, 11, 30, 120)),
        fired_alerts("3h", BURN_PAGE, 1),
        firing("145m", BURN_PAGE),
    )


QUOTED = r"re\"fund"  # as written in a series; the value has one quotation mark
BOUND = "slo_error_budget_remaining_bound_ratio"


def test_a_spent_budget_opens_a_ticket_after_ten_minutes_and_it_resolves(tmp_path: Path) -> None:
    name = "SurefootSloBudgetExhausted"
    left = [series(BOUND, "-0.2x60 0.1x60", **LABELS, bound=bound) for bound in ("low", "high")]
    check(
        tmp_path,
        [*alive(), *left],
        firing("9m", name),
        firing("11m", name, TICKET),
        firing("60m", name, TICKET),
        fired_alerts("2h", name, 1),
        firing("70m", name),
    )


def test_a_budget_that_missing_labels_decide_neither_fires_nor_resolves(tmp_path: Path) -> None:
    name = "SurefootSloBudgetExhausted"
    firm = [series(BOUND, "-0.5x300", **LABELS, bound="low"), series(BOUND, "-0.2x60 0.3x240", **LABELS, bound="high")]
    refund = {**LABELS, "task_class": "refund"}
    unsure = [series(BOUND, "-0.5x300", **refund, bound="low"), series(BOUND, "0.3x300", **refund, bound="high")]
    check(
        tmp_path,
        [*alive(), *firm, *unsure],
        *(firing(f"{minute}m", name, TICKET) for minute in (15, 59, 80, 250)),
        fired_alerts("4h", name, 1),
    )


def test_a_stale_watermark_holds_a_spent_budget_and_is_told_itself(tmp_path: Path) -> None:
    name, matured = "SurefootSloBudgetExhausted", {"slo": LATE.name, "service": "desk", "view": "matured"}
    stale = series("slo_watermark_stale", "0x30 1x100 0x100", **matured)
    left = [series(BOUND, "-0.2x60 0.1x300", **matured, bound=bound) for bound in ("low", "high")]
    here = [series("slo_objective_ratio", "0.95x300", **matured)]
    fast = series(BOUND, "-9x300", **{**matured, "view": "fast"}, bound="high")  # the budget is the matured view's
    ticket = {**matured, "severity": "ticket"}
    check(
        tmp_path,
        [*alive(), stale, *left, *here, fast],
        firing("20m", name, ticket),
        firing("125m", name, ticket),
        firing("150m", name),
        firing("40m", "SurefootSloWatermarkStuck"),
        firing("50m", "SurefootSloWatermarkStuck", ticket),
        fired_alerts("3h", "SurefootSloWatermarkStuck", 1),
        firing("140m", "SurefootSloWatermarkStuck"),
        slos=(LATE,),
    )


def test_six_hours_without_an_answer_are_a_ticket(tmp_path: Path) -> None:
    name = "SurefootSloFrozen"
    given = [*alive(), *tier("page_fast", "0x600", "1x420 0x180"), *tier("page_fast", task_class="refund")]
    check(
        tmp_path,
        given,
        firing("350m", name),
        firing("365m", name, TICKET),
        fired_alerts("10h", name, 1),
        firing("490m", name),
        firing("420m", BURN_PAGE),
    )


def test_an_agent_that_sends_no_runs_any_more_is_told_and_a_dead_jobs_process_is_not_taken_for_it(
    tmp_path: Path,
) -> None:
    name = "SurefootAgentSilent"
    limit = series("slo_silence_limit_seconds", "3600x600", **LABELS)
    stops = series("slo_last_event_timestamp_seconds", "0+60x60 3600x100 9660+60x300", **LABELS)
    check(
        tmp_path,
        [*alive(), limit, stops],
        firing("2h", name),
        firing("124m", name, TICKET),
        fired_alerts("5h", name, 1),
        firing("170m", name),
    )
    jobs_dead = series("slo_last_run_timestamp_seconds", "0+60x60 3600x600", **LABELS)
    never = series("slo_last_event_timestamp_seconds", "0+60x60 3600x600", **LABELS)
    objective = series("slo_objective_ratio", "0.99x600", **LABELS)
    check(
        tmp_path,
        [jobs_dead, limit, never, objective],
        fired_alerts("4h", name, 0),
        firing("5h", "SurefootSloEvaluationStale", {"severity": "page"}),
    )


def test_an_unknown_silence_limit_is_no_alert(tmp_path: Path) -> None:
    never = series("slo_last_event_timestamp_seconds", "0x600", **LABELS)
    check(tmp_path, [*alive(), never], fired_alerts("4h", "SurefootAgentSilent", 0))


def test_what_a_policy_demands_is_a_ticket_while_it_does(tmp_path: Path) -> None:
    action = {"policy": "desk", "action": "tighten_mode", "allowed_mode": "human_approval"}
    demand = series("slo_policy_action", "_x10 1x60 stale", **LABELS, **action)
    check(
        tmp_path,
        [*alive(), demand],
        firing("9m", "SurefootPolicyAction"),
        firing("15m", "SurefootPolicyAction", {**TICKET, **action}),
        firing("90m", "SurefootPolicyAction"),
        fired_alerts("2h", "SurefootPolicyAction", 1),
    )


def test_staleness_and_absence_are_told(tmp_path: Path) -> None:
    stopped = [series("slo_last_run_timestamp_seconds", "0x30 1800+60x60", **LABELS)]
    absent = {"slo": SLO.name, "service": "desk", "severity": "ticket"}
    check(
        tmp_path,
        stopped,
        firing("6m", "SurefootSloEvaluationStale"),
        firing("30m", "SurefootSloEvaluationStale", {"severity": "page"}),
        firing("40m", "SurefootSloEvaluationStale"),
        firing("9m", "SurefootSloAbsent"),
        firing("30m", "SurefootSloAbsent", absent),
        firing("4m", "SurefootMetricsAbsent"),
        firing("30m", "SurefootMetricsAbsent", {"severity": "page"}),
    )


def test_an_exporter_that_comes_back_resolves_its_page(tmp_path: Path) -> None:
    published = series("process_published_timestamp_seconds", "0+60x10 stale _x20 1860+60x60", process="jobs")
    name = "SurefootMetricsAbsent"
    check(
        tmp_path,
        [published],
        firing("14m", name),
        firing("20m", name, {"severity": "page"}),
        firing("40m", name),
        fired_alerts("1h", name, 1),
    )


def test_the_watchdog_always_fires(tmp_path: Path) -> None:
    check(tmp_path, [], *(firing(at, "SurefootWatchdog", {"severity": "none"}) for at in ("1m", "1h", "3h")))


@pytest.mark.parametrize(
    ("name", "labels", "fine", "trouble", "alert"),
    [
        ("collector_accepting", {"reason": "the disk is full"}, 1, 0, "SurefootCollectorRefusing"),
        ("quarantined_files", {}, 0, 1, "SurefootQuarantine"),
        ("writer_lag_seconds", {}, 300, 301, "SurefootWriterBehind"),
    ],
)
def test_trouble_of_the_pipeline_is_a_ticket(
    tmp_path: Path, name: str, labels: dict[str, str], fine: int, trouble: int, alert: str
) -> None:
    found = series(name, f"{fine}x10 {trouble}x50 {fine}x60", **labels)
    check(
        tmp_path,
        [*alive(), found],
        firing("10m", alert),
        firing("20m", alert, {"severity": "ticket"}),
        firing("70m", alert),
        fired_alerts("2h", alert, 1),
    )


def test_a_refusal_whose_reason_changes_is_one_alert(tmp_path: Path) -> None:
    reasons = [
        series("collector_accepting", "0x20 stale", reason="the disk is full"),
        series("collector_accepting", "_x21 0x60", reason="the writer is behind"),
    ]
    name = "SurefootCollectorRefusing"
    check(tmp_path, [*alive(), *reasons], firing("30m", name, {"severity": "ticket"}), fired_alerts("1h", name, 1))


def test_a_process_that_says_nothing_is_named(tmp_path: Path) -> None:
    silent = series("process_published_timestamp_seconds", "0x60 3660+60x60", process="writer")
    name, expected = "SurefootProcessSilent", {"severity": "ticket", "process": "writer"}
    check(tmp_path, [*alive(), silent], firing("7m", name), firing("8m", name, expected), firing("70m", name))


def test_an_alert_says_numbers_sample_size_and_a_query_in_plain_words(tmp_path: Path) -> None:
    line = {**LABELS, "task_class": QUOTED}
    counts = {"good": 70, "bad": 50, "unlabelled": 3}
    given = [
        *alive(),
        *tier("page_fast", "1x60", task_class=QUOTED),
        *(series("slo_events", f"{n}x60", **line, window="1h", outcome=outcome) for outcome, n in counts.items()),
        series("slo_burn_rate", "41.67x60", **line, window="1h"),
        series("slo_burn_rate", "60x60", **line, window="5m"),
        series("slo_burn_rate_threshold", "13.44x60", **line, tier="page_fast", severity="page"),
        series("slo_tier_p_value", "1.234e-60x60", **line, tier="page_fast", severity="page"),
    ]
    description = (
        "The objective of desk-availability is 99 % over 28d. In 1h 50 bad of n 120, burn rate 41.7; in 5m burn rate "
        "60; above 13.4 in both, or after enough bad events in a row where there are few, it pages (p 1.23e-60 that "
        "the budget's own rate does this). A burn rate of 1 spends the budget exactly within the period."
    )
    query = (
        'surefoot sql "SELECT minute, stratum_key, good, bad, unlabelled FROM slo_minutes WHERE slo = '
        "'desk-availability' AND view = 'fast' AND bad > 0 ORDER BY minute DESC LIMIT 20\"; surefoot slo explain "
        "desk-availability"
    )
    said = {
        "summary": 'desk-availability (task_class re"fund): the error budget is burning fast',
        "description": description,
        "query": query,
        "runbook": "docs/alerts.md#surefootsloburnratepage",
    }
    expected = [{"exp_labels": {**PAGE, "task_class": 're"fund'}, "exp_annotations": said}]
    asked = [{"eval_time": "30m", "alertname": BURN_PAGE, "exp_alerts": expected}]
    done = promtool(tmp_path, [{"interval": "1m", "input_series": given, "alert_rule_test": asked}])
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_query_to_paste_runs_on_a_lake(tmp_path: Path) -> None:
    (rule,) = [item for item in _groups()[0]["rules"] if item["alert"] == BURN_PAGE]
    (sql,) = re.findall(r'surefoot sql "([^"]+)"', rule["annotations"]["query"])
    lake = Lake.open(tmp_path / "lake")
    with lake.connect() as con:
        found = con.execute(sql.replace("{{ $labels.view }}", "fast"))
        assert [name for name, *_ in found.description or []] == ["minute", "stratum_key", "good", "bad", "unlabelled"]


def test_an_alert_that_is_held_says_so_and_a_missing_number_is_unknown(tmp_path: Path) -> None:
    given = [*alive(), *tier("page_fast", "1x20 0x60", "0x20 1x60"), *tier("ticket_fast", "1x60")]
    done = promtool(
        tmp_path,
        [
            {
                "interval": "1m",
                "input_series": given,
                "alert_rule_test": [
                    {"eval_time": "40m", "alertname": name, "exp_alerts": []} for name in (BURN_PAGE, BURN_TICKET)
                ],
            }
        ],
    )
    shown = done.stdout + done.stderr
    assert "Whether it still burns cannot be told now" in shown
    assert "In 1d unknown bad of n unknown" in shown
    assert "<no value>" not in shown


def test_rules_name_only_metrics_that_exist() -> None:
    named = set(re.findall(r"surefoot_[a-z_]+", " ".join(_expressions())))
    assert named <= set(METRICS)


def test_every_alert_has_a_paragraph_in_the_docs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "alerts.md").read_text()
    alerts = {rule["alert"] for group in _groups() for rule in group["rules"] if "alert" in rule}
    assert {name for name in alerts if f"## {name}" not in text} == set()


def _groups() -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = yaml.safe_load(build_rules([SLO, LATE]))["groups"]
    return groups


def _expressions() -> list[str]:
    return [rule["expr"] for group in _groups() for rule in group["rules"]]


def test_every_alert_is_tested_here_by_name() -> None:
    alerts = {rule["alert"] for group in _groups() for rule in group["rules"]}
    here = Path(__file__).read_text()
    assert {name for name in alerts if name not in here} == set()
