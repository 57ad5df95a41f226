"""The metrics endpoint's text: names, labels, numbers, and no sample where there is no number."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from support.reports import every_state
from surefoot.dashboards import gauges
from surefoot.dashboards.gauges import slo_metrics
from surefoot.dashboards.metrics import METRICS, registry
from surefoot.processors import status

JOBS = {
    "cycle_at": 1_000.0,
    "cycle_seconds": 0.5,
    "counters": [{"service_name": "desk", "outcome": "error", "runs": 7, "exemplar_trace_id": "ab" * 16}],
    "unpriced": [{"service_name": "desk", "calls": 3}],
}
COLLECTOR = {
    "at": 1_000.0,
    "state": "disk",
    "reason": "the disk is full",
    "backlog_bytes": 42,
    "quarantined": ["x"],
    "oldest_sealed_seconds": 4.5,
    "refusals": [{"signal": "traces", "transport": "http", "what": "items", "reason": "ids", "total": 3}],
    "counts": [
        {"signal": "traces", "transport": "grpc", "name": "accepted_items", "total": 5},
        {"signal": "traces", "transport": "grpc", "name": "deferred_requests", "total": 2},
    ],
}
WRITER = {"at": 1_000.0, "totals": {"spans": 9, "segments": 2}, "duplicates_total": 3, "lag_seconds": 1.5}
SUPERVISOR = {"processes": {"writer": {"pid": 1, "restarts": 2, "last_exit": -9}}}


@pytest.fixture
def samples(tmp_path: Path) -> list[Sample]:
    contents = {"slo": every_state(1_000.0).to_json(), "jobs": JOBS, "collector": COLLECTOR, "writer": WRITER}
    for name, content in {**contents, "supervisor": SUPERVISOR}.items():
        status.publish(tmp_path, name, content)
    text = generate_latest(registry(tmp_path)).decode()
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


def of(samples: list[Sample], name: str, **labels: str) -> dict[tuple[tuple[str, str], ...], float]:
    return {
        tuple(sorted(sample.labels.items())): sample.value
        for sample in samples
        if sample.name == name and labels.items() <= sample.labels.items()
    }


def value(samples: list[Sample], name: str, **labels: str) -> float:
    (only,) = of(samples, name, **labels).values()
    return only


def test_every_metric_is_shown_and_no_other(samples: list[Sample]) -> None:
    assert {sample.name for sample in samples} == set(METRICS)


def test_numbers_are_those_of_the_report(samples: list[Sample]) -> None:
    rollup = {"slo": "pages", "service": "desk", "view": "fast", "task_class": ""}
    assert value(samples, "surefoot_slo_objective_ratio", **rollup) == 0.99
    assert value(samples, "surefoot_slo_events", window="1h", outcome="bad", **rollup) == 300
    assert value(samples, "surefoot_slo_events", window="1h", outcome="unlabelled", **rollup) == 0
    assert value(samples, "surefoot_slo_error_ratio", window="5m", **rollup) == 0.3
    assert value(samples, "surefoot_slo_burn_rate", window="28d", **rollup) == pytest.approx(30)
    assert value(samples, "surefoot_slo_burn_rate_threshold", tier="page_fast", severity="page", **rollup) == 13.44
    assert value(samples, "surefoot_slo_error_budget_remaining_ratio", **rollup) == pytest.approx(-29)
    assert value(samples, "surefoot_slo_last_run_timestamp_seconds", **rollup) == 1_000
    states = {
        slo: value(samples, "surefoot_slo_state", slo=slo, task_class="") for slo in ("silent", "fine", "tickets")
    }
    assert states == {"silent": -1, "fine": 0, "tickets": 1}


def test_a_stratum_has_its_dimension_as_a_label(samples: list[Sample]) -> None:
    assert (
        value(samples, "surefoot_slo_label_coverage_ratio", slo="tickets", task_class="refund", window="1h")
        == 100 / 103
    )


def test_an_undefined_number_is_no_sample_and_never_nan(samples: list[Sample]) -> None:
    for name in ("error_ratio", "burn_rate", "label_coverage_ratio", "error_budget_remaining_ratio"):
        assert of(samples, f"surefoot_slo_{name}", slo="silent") == {}
    assert value(samples, "surefoot_slo_events", slo="silent", window="1h", outcome="good") == 0
    assert not any(math.isnan(sample.value) for sample in samples)


def test_tiers_are_told_apart_and_the_engine_decides(samples: list[Sample]) -> None:
    rollup = {"slo": "pages", "view": "fast", "task_class": ""}
    fast = {"tier": "page_fast", "severity": "page", "long_window": "1h", "short_window": "5m"}
    assert value(samples, "surefoot_slo_tier_burning", **rollup, **fast) == 1
    assert value(samples, "surefoot_slo_tier_frozen", **rollup, **fast) == 0
    assert value(samples, "surefoot_slo_tier_p_value", **rollup, **fast) == 1e-9
    assert value(samples, "surefoot_slo_tier_burning", **rollup, tier="ticket_fast") == 0
    assert set(of(samples, "surefoot_slo_tier_frozen", slo="late", view="matured").values()) == {1}
    assert of(samples, "surefoot_slo_tier_p_value", slo="silent") == {}


def test_views_and_their_watermarks_stand_side_by_side(samples: list[Sample]) -> None:
    ends = {
        view: value(samples, "surefoot_slo_watermark_timestamp_seconds", slo="late", view=view)
        for view in ("fast", "matured")
    }
    assert ends == {"fast": 1_000, "matured": 1_000 - 21_600}
    assert value(samples, "surefoot_slo_label_delay_seconds", slo="late") == 21_600
    assert value(samples, "surefoot_slo_watermark_stale", slo="late", view="matured") == 1
    assert value(samples, "surefoot_slo_watermark_stale", slo="late", view="fast") == 0
    assert value(samples, "surefoot_slo_state", slo="late", view="matured") == -2
    action = {"policy": "desk-policy", "action": "tighten_mode", "allowed_mode": "human_approval"}
    assert value(samples, "surefoot_slo_policy_action", slo="late", **action) == 1


def test_the_bounds_of_a_budget_are_those_of_its_missing_labels(samples: list[Sample]) -> None:
    name = "surefoot_slo_error_budget_remaining_bound_ratio"
    late = {"slo": "late", "view": "matured"}
    assert value(samples, name, **late, bound="low") == pytest.approx(1 - 560 / 1_960 / 0.05)
    assert value(samples, name, **late, bound="high") == pytest.approx(1 - 60 / 1_960 / 0.05)
    exact = value(samples, "surefoot_slo_error_budget_remaining_ratio", slo="pages")
    assert {value(samples, name, slo="pages", bound=bound) for bound in ("low", "high")} == {exact}


def test_numbers_of_an_slo_stand_on_its_roll_up_only(samples: list[Sample]) -> None:
    for name in ("watermark_stale", "watermark_timestamp_seconds"):
        assert all(dict(key)["task_class"] == "" for key in of(samples, f"surefoot_slo_{name}"))


def test_what_is_not_finite_is_no_sample(tmp_path: Path) -> None:
    report = every_state(1_000.0)
    broken = replace(report.slos[0].strata[0], overdispersion=math.inf, time_to_exhaustion_seconds=math.nan)
    text = "\n".join(
        str(metric) for metric in slo_metrics(replace(report, slos=[replace(report.slos[0], strata=[broken])]))
    )
    assert "surefoot_slo_objective_ratio" in text
    assert not re.search(r"value=(inf|nan)", text)


def test_the_cardinality_of_a_line_is_what_is_promised(samples: list[Sample]) -> None:
    line = {"slo": "tickets", "task_class": "refund"}
    found = [sample for sample in samples if line.items() <= sample.labels.items()]
    (promised,) = re.findall(r"(\d+) with the usual eight windows", gauges.__doc__ or "")
    undefined = 2  # its budget is spent already, and too little is known of its silences
    assert len(found) == int(promised) - undefined


def test_counters_carry_what_can_never_be_taken_back(samples: list[Sample]) -> None:
    assert value(samples, "surefoot_runs_ended_total", service_name="desk", outcome="error") == 7
    (ended,) = [sample for sample in samples if sample.name == "surefoot_runs_ended_total"]
    assert ended.exemplar is not None
    assert ended.exemplar.labels == {"trace_id": "ab" * 16}
    assert value(samples, "surefoot_model_calls_unpriced_total", service_name="desk") == 3
    assert value(samples, "surefoot_collector_items_total", signal="traces", result="accepted") == 5
    assert value(samples, "surefoot_collector_requests_total", transport="grpc", result="deferred") == 2
    assert value(samples, "surefoot_writer_rows_total", table="spans") == 9
    assert value(samples, "surefoot_process_restarts_total", process="writer") == 2


def test_what_the_collector_did_not_take_is_counted_by_reason(samples: list[Sample]) -> None:
    labels = {"signal": "traces", "transport": "http", "what": "items", "reason": "ids"}
    assert value(samples, "surefoot_collector_refusals_total", **labels) == 3
    assert value(samples, "surefoot_collector_oldest_sealed_seconds") == 4.5


def test_a_collector_that_refuses_says_why(samples: list[Sample]) -> None:
    assert value(samples, "surefoot_collector_accepting", reason="the disk is full") == 0


def test_without_status_files_there_is_no_sample(tmp_path: Path) -> None:
    text = generate_latest(registry(tmp_path)).decode()
    assert [s for family in text_string_to_metric_families(text) for s in family.samples] == []


def test_what_the_endpoint_reads_is_plain_json(tmp_path: Path) -> None:
    status.publish(tmp_path, "slo", every_state(1.0).to_json())
    assert json.loads((tmp_path / "slo.json").read_text())["computed_at"] == 1.0
