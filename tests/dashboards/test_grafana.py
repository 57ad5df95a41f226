"""The dashboard: what Grafana gets is whole, fits its grid and asks Prometheus only for what Surefoot publishes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from support.reports import every_state
from surefoot.dashboards import gauges, metrics
from surefoot.dashboards.grafana import UID, build_dashboard
from surefoot.processors import status

BOARD: dict[str, Any] = json.loads(build_dashboard())
PANELS: list[dict[str, Any]] = BOARD["panels"]
SHOWN = [panel for panel in PANELS if panel["type"] != "row"]
TARGETS = [(panel["title"], target["expr"]) for panel in SHOWN for target in panel["targets"]]
VARIABLES = {"$__rate_interval": "1m", "$slo": "tickets"}

needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")


def substituted(expr: str, slo: str = "tickets") -> str:
    for name, value in {**VARIABLES, "$slo": slo}.items():
        expr = expr.replace(name, value)
    assert "$" not in expr, f"a variable is left in {expr}"
    return expr


def test_the_sdk_reads_back_what_it_wrote() -> None:
    register_default_plugins()
    text = build_dashboard()

    again = JSONEncoder(sort_keys=True, indent=2).encode(Dashboard.from_json(json.loads(text))) + "\n"

    assert again == text


def test_the_text_is_the_same_every_time_and_ordered() -> None:
    text = build_dashboard()

    assert text == build_dashboard()
    assert text == json.dumps(json.loads(text), sort_keys=True, indent=2) + "\n"
    assert BOARD["uid"] == UID == "surefoot-slo"


def test_every_panel_has_an_id_of_its_own() -> None:
    identities = [panel["id"] for panel in PANELS]

    assert all(isinstance(identity, int) and identity > 0 for identity in identities)
    assert len(set(identities)) == len(identities)


def test_panels_fit_the_grid_and_do_not_overlap() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in PANELS:
        at = panel["gridPos"]
        assert at["w"] > 0
        assert at["h"] > 0
        assert 0 <= at["x"] <= at["x"] + at["w"] <= 24, panel["title"]
        for cell in ((x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])):
            assert cell not in taken, f"{panel['title']} lies on {taken.get(cell)} at {cell}"
            taken[cell] = panel["title"]
    height = 1 + max(y for _, y in taken)
    assert len(taken) == 24 * height, "the grid has a hole"


def test_every_panel_says_what_it_shows_in_words() -> None:
    for panel in SHOWN:
        assert len(panel["description"].split()) >= 8, panel["title"]
        assert panel["title"]
    texts = [panel["description"] for panel in SHOWN]
    assert all(one != other for one, other in combinations(texts, 2))


def test_every_query_goes_to_the_chosen_data_source() -> None:
    sources = [target["datasource"] for panel in SHOWN for target in panel["targets"]]
    sources += [panel["datasource"] for panel in SHOWN]
    sources += [query["datasource"] for query in BOARD["annotations"]["list"]]
    sources += [variable["datasource"] for variable in BOARD["templating"]["list"] if variable["type"] == "query"]

    assert {json.dumps(source, sort_keys=True) for source in sources} == {
        '{"type": "prometheus", "uid": "${datasource}"}'
    }
    assert [(item["name"], item["type"]) for item in BOARD["templating"]["list"]] == [
        ("datasource", "datasource"),
        ("slo", "query"),
    ]


@pytest.mark.parametrize(("title", "expr"), TARGETS)
def test_queries_name_only_published_metrics(title: str, expr: str) -> None:
    named = set(re.findall(r"\b(?:surefoot|ALERTS)\w*", expr))

    assert named, f"{title} asks for nothing of ours"
    assert named <= set(metrics.METRICS)


def test_the_slo_variable_and_the_annotation_name_what_exists() -> None:
    query = next(item["query"] for item in BOARD["templating"]["list"] if item["name"] == "slo")
    assert query == "label_values(surefoot_slo_objective_ratio, slo)"
    assert "surefoot_slo_objective_ratio" in metrics.METRICS
    assert [item["expr"].partition("{")[0] for item in BOARD["annotations"]["list"]] == ["ALERTS"]


def test_queries_of_one_panel_have_different_reference_letters() -> None:
    for panel in SHOWN:
        letters = [target["refId"] for target in panel["targets"]]
        assert len(set(letters)) == len(letters), panel["title"]


def test_the_states_are_those_that_the_metric_has() -> None:
    found = []
    for panel in SHOWN:
        found += panel.get("fieldConfig", {}).get("defaults", {}).get("mappings", [])
        for override in panel.get("fieldConfig", {}).get("overrides", []):
            found += [m for item in override["properties"] if item["id"] == "mappings" for m in item["value"]]

    of_state = [mapping for mapping in found if "2" in mapping["options"] and "-1" in mapping["options"]]
    assert len(of_state) == 2
    for mapping in of_state:
        assert set(mapping["options"]) == {str(value) for value in gauges.STATES.values()}


def test_exemplars_are_asked_for_where_a_counter_has_them() -> None:
    with_exemplars = [t["expr"] for panel in SHOWN for t in panel["targets"] if t.get("exemplar")]

    assert len(with_exemplars) == 1
    assert "surefoot_runs_ended_total" in with_exemplars[0]


@needs_promtool
def test_promtool_accepts_every_query(tmp_path: Path) -> None:
    exprs = [*(expr for _, expr in TARGETS), *(item["expr"] for item in BOARD["annotations"]["list"])]
    rules = [{"record": f"check:{number}", "expr": substituted(expr)} for number, expr in enumerate(exprs)]
    path = tmp_path / "rules.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))

    ended = subprocess.run(["promtool", "check", "rules", str(path)], capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"SUCCESS: {len(exprs)} rules found" in ended.stdout


@pytest.fixture
def series(tmp_path: Path) -> list[dict[str, str]]:
    """What the endpoint shows, as promtool's input: gauges stay, counters grow by one every 15 s."""
    folder = tmp_path / "status"
    count = {"signal": "traces", "transport": "grpc", "name": "accepted_items", "total": 5}
    counter = {"service_name": "desk", "outcome": "error", "runs": 7, "exemplar_trace_id": "ab" * 16}
    status.publish(folder, "slo", every_state(0.0).to_json())
    status.publish(folder, "jobs", {"cycle_at": 0.0, "counters": [counter]})
    status.publish(folder, "writer", {"at": 0.0, "totals": {"spans": 9}, "duplicates_total": 3, "lag_seconds": 1.5})
    collector = {"at": 0.0, "state": "ok", "reason": None, "backlog_bytes": 42, "quarantined": [], "counts": [count]}
    status.publish(folder, "collector", collector)
    found = []
    for sample in (sample for family in metrics.registry(folder).collect() for sample in family.samples):
        labels = ",".join(f'{name}="{value}"' for name, value in sample.labels.items() if value)
        growth = 1 if sample.name.endswith("_total") else 0
        found.append({"series": f"{sample.name}{{{labels}}}", "values": f"{sample.value}+{growth}x40"})
    return found


def promtool_finds(folder: Path, series: list[dict[str, str]], expected: list[dict[str, Any]]) -> None:
    tests = [{"interval": "15s", "input_series": series, "promql_expr_test": expected}]
    path = folder / "test.yml"
    path.write_text(yaml.safe_dump({"rule_files": [], "evaluation_interval": "15s", "tests": tests}))

    ended = subprocess.run(["promtool", "test", "rules", str(path)], capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stdout + ended.stderr


@needs_promtool
def test_every_query_finds_something_in_what_the_endpoint_shows(tmp_path: Path, series: list[dict[str, str]]) -> None:
    one = [{"labels": "{}", "value": 1}]
    exprs = [f"count({substituted(expr)}) >= bool 1" for _, expr in TARGETS]

    promtool_finds(tmp_path, series, [{"expr": expr, "eval_time": "5m", "exp_samples": one} for expr in exprs])


@needs_promtool
def test_the_overview_shows_the_worst_line_of_each_slo(tmp_path: Path, series: list[dict[str, str]]) -> None:
    """``tickets`` burns slowly as a whole and its refunds page: 4 % and 20 % bad against 5 % allowed."""
    table = next(panel for panel in SHOWN if panel["type"] == "table")
    worst = {"A": 0.95, "B": -3, "C": 4, "D": 2, "E": 0}
    rounded = {target["refId"]: f"round(({target['expr']}), 0.01)" for target in table["targets"]}

    expected = [
        {
            "expr": f'{rounded[ref]} and on (slo) surefoot_slo_state{{slo="tickets"}}',
            "eval_time": "5m",
            "exp_samples": [{"labels": '{slo="tickets"}', "value": value}],
        }
        for ref, value in worst.items()
    ]

    promtool_finds(tmp_path, series, expected)


@needs_promtool
def test_a_frozen_tier_is_told_from_a_quiet_and_from_a_burning_one(
    tmp_path: Path, series: list[dict[str, str]]
) -> None:
    expr = next(panel for panel in SHOWN if panel["title"] == "Tiers")["targets"][0]["expr"]
    lines = {
        "late": [("matured", "ticket_fast", 1), ("matured", "ticket_slow", 1), ("fast", "page_fast", 2)],
        "pages": [("fast", "page_fast", 2), ("fast", "ticket_fast", 0)],
    }
    expected = [
        {
            "expr": f"({substituted(expr, slo)}) and on (view, tier) "
            f'surefoot_slo_tier_burning{{view="{view}",tier="{tier}"}}',
            "eval_time": "5m",
            "exp_samples": [{"labels": f'{{view="{view}", tier="{tier}"}}', "value": value}],
        }
        for slo, found in lines.items()
        for view, tier, value in found
    ]

    promtool_finds(tmp_path, series, expected)


@needs_promtool
def test_the_tiles_count_what_burns_and_do_not_say_zero_without_data(
    tmp_path: Path, series: list[dict[str, str]]
) -> None:
    burning = next(panel for panel in SHOWN if panel["title"] == "SLOs burning")["targets"][0]["expr"]
    found = {"expr": burning, "eval_time": "5m", "exp_samples": [{"labels": "{}", "value": 4}]}

    promtool_finds(tmp_path, series, [found])
    promtool_finds(tmp_path, [], [{"expr": burning, "eval_time": "5m", "exp_samples": []}])


@needs_promtool
def test_events_of_the_roll_up_are_not_counted_twice(tmp_path: Path, series: list[dict[str, str]]) -> None:
    expr = substituted(next(panel for panel in SHOWN if panel["title"].startswith("Events"))["targets"][0]["expr"])
    outcomes = {"good": 960, "bad": 40, "unlabelled": 12}

    expected = [
        {
            "expr": f'({expr}) and on (outcome) surefoot_slo_events{{outcome="{outcome}"}}',
            "eval_time": "5m",
            "exp_samples": [{"labels": f'{{view="fast", outcome="{outcome}"}}', "value": value}],
        }
        for outcome, value in outcomes.items()
    ]

    promtool_finds(tmp_path, series, expected)


@needs_promtool
def test_a_legend_tells_the_roll_up_from_its_strata(tmp_path: Path, series: list[dict[str, str]]) -> None:
    expr = substituted(next(panel for panel in SHOWN if panel["title"] == "State")["targets"][0]["expr"])
    lines = [
        {"labels": '{slo="tickets",view="fast"}', "value": 1},
        {"labels": '{slo="tickets",view="fast",task_class="refund"}', "value": 2},
    ]

    promtool_finds(tmp_path, series, [{"expr": expr, "eval_time": "5m", "exp_samples": lines}])
