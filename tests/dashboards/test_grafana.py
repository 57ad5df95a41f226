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

from surefoot.dashboards import metrics
from surefoot.dashboards.grafana import UID, build_dashboard

BOARD: dict[str, Any] = json.loads(build_dashboard())
PANELS: list[dict[str, Any]] = BOARD["panels"]
SHOWN = [panel for panel in PANELS if panel["type"] != "row"]
TARGETS = [(panel["title"], target["expr"]) for panel in SHOWN for target in panel["targets"]]
VARIABLES = {"$__rate_interval": "1m", "$slo": "support-desk-availability"}


def substituted(expr: str) -> str:
    for name, value in VARIABLES.items():
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

    assert len(found) == 2
    for mapping in found:
        assert set(mapping["options"]) == {str(value) for value in metrics.STATES.values()}


def test_exemplars_are_asked_for_where_a_counter_has_them() -> None:
    with_exemplars = [t["expr"] for panel in SHOWN for t in panel["targets"] if t.get("exemplar")]

    assert len(with_exemplars) == 1
    assert "surefoot_runs_ended_total" in with_exemplars[0]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_accepts_every_query(tmp_path: Path) -> None:
    exprs = [*(expr for _, expr in TARGETS), *(item["expr"] for item in BOARD["annotations"]["list"])]
    rules = [{"record": f"check:{number}", "expr": substituted(expr)} for number, expr in enumerate(exprs)]
    path = tmp_path / "rules.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))

    ended = subprocess.run(["promtool", "check", "rules", str(path)], capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"SUCCESS: {len(exprs)} rules found" in ended.stdout
