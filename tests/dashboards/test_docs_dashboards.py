"""docs/dashboards.md: its example runs, its table has every metric and its labels."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from support.reports import every_state
from surefoot.cli.main import app
from surefoot.dashboards import metrics
from surefoot.dashboards.grafana import build_dashboard
from surefoot.processors import status

PAGE = (Path(__file__).parents[2] / "docs/dashboards.md").read_text()
ROWS = {
    name: set(re.findall(r"`(\w+)`", labels))
    for name, labels in re.findall(r"^\| `(surefoot_\w+)` \|([^|]*)\|", PAGE, re.MULTILINE)
}


def test_the_example_builds_the_dashboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    (line,) = block.splitlines()
    monkeypatch.chdir(tmp_path)

    ended = CliRunner().invoke(app, shlex.split(line.removeprefix("$ surefoot ")))

    assert ended.exit_code == 0, ended.output
    assert (tmp_path / "surefoot-slo.json").read_text() == build_dashboard()


def test_the_table_has_every_metric_once() -> None:
    names = re.findall(r"^\| `(surefoot_\w+)` ", PAGE, re.MULTILINE)

    assert len(names) == len(set(names))
    assert set(names) == set(metrics.METRICS)


def test_the_table_names_the_labels_that_the_endpoint_shows(tmp_path: Path) -> None:
    counter = {"service_name": "desk", "outcome": "ok", "runs": 1, "exemplar_trace_id": "ab" * 16}
    unpriced = {"service_name": "desk", "calls": 1}
    counts = [
        {"signal": "logs", "transport": "http", "name": f"accepted_{what}", "total": 1}
        for what in ("items", "requests")
    ]
    refusal = {"signal": "logs", "transport": "http", "what": "requests", "reason": "rate", "total": 1}
    collector = {"at": 0.0, "state": "ok", "reason": None, "backlog_bytes": 0, "quarantined": [], "counts": counts}
    collector |= {"refusals": [refusal], "oldest_sealed_seconds": 0.0}
    writer = {"at": 0.0, "totals": {"logs": 1}, "duplicates_total": 0, "lag_seconds": 0.0}
    status.publish(tmp_path, "slo", every_state(0.0).to_json())
    status.publish(tmp_path, "jobs", {"cycle_at": 0.0, "counters": [counter], "unpriced": [unpriced]})
    status.publish(tmp_path, "collector", collector)
    status.publish(tmp_path, "writer", writer)
    status.publish(tmp_path, "supervisor", {"processes": {"web": {"restarts": 0}}})
    common = {"slo", "service", "view", "task_class"}
    shown = {}
    for family in metrics.registry(tmp_path).collect():
        for sample in family.samples:
            shown[sample.name] = set(sample.labels) - (common if sample.name.startswith("surefoot_slo_") else set())

    assert shown == ROWS
