"""deploy/: the tools that will read these files accept them, and generated files are what the builders write."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from surefoot.dashboards.grafana import build_dashboard
from surefoot.dashboards.rules import build_rules
from surefoot.processors.settings import Settings
from surefoot.processors.slo import load_slos

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
ALERTMANAGER = DEPLOY / "alertmanager.yml"

needs_amtool = pytest.mark.skipif(shutil.which("amtool") is None, reason="amtool is not installed")


def read(name: str) -> Any:
    return yaml.safe_load((DEPLOY / name).read_text())


def run(*command: str) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def port(address: str) -> int:
    return int(address.rpartition(":")[2])


def test_the_dashboard_is_what_the_builder_writes() -> None:
    written = (DEPLOY / "grafana/dashboards/surefoot-slo.json").read_text()

    assert written == build_dashboard(), (
        "run `surefoot dashboards build --out deploy/grafana/dashboards/surefoot-slo.json`"
    )


def test_the_rules_are_what_the_builder_writes_for_the_examples() -> None:
    loaded = load_slos(ROOT / "demo/surefoot/demo/slos")
    assert loaded.problems == []

    written = (DEPLOY / "rules/surefoot.yml").read_text()

    assert written == build_rules(loaded.slos), (
        "run `surefoot rules build demo/surefoot/demo/slos --out deploy/rules/surefoot.yml`"
    )


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_accepts_the_configuration_with_its_rules() -> None:
    said = run("promtool", "check", "config", str(DEPLOY / "prometheus.yml"))

    assert "1 rule files found" in said
    assert re.search(r"SUCCESS: [1-9]\d* rules found", said)


@needs_amtool
def test_amtool_accepts_the_configuration() -> None:
    assert "SUCCESS" in run("amtool", "check-config", str(ALERTMANAGER))


@needs_amtool
@pytest.mark.parametrize("severity", ["page", "ticket"])
@pytest.mark.parametrize("labels", [["slo=x", "service=y", "task_class=refund"], []])
def test_an_alert_goes_to_the_receiver_of_its_severity(severity: str, labels: list[str]) -> None:
    said = run("amtool", "config", "routes", "test", f"--config.file={ALERTMANAGER}", f"severity={severity}", *labels)

    assert said.split() == [severity]


def test_a_ticket_waits_for_the_page_that_inhibits_it() -> None:
    config = read("alertmanager.yml")
    ticket = config["route"]
    _, page = ticket["routes"]

    assert (ticket["receiver"], ticket["group_wait"]) == ("ticket", "30m")
    assert (page["receiver"], page["group_wait"]) == ("page", "10s")
    assert config["inhibit_rules"][0]["equal"] == ["slo"]


@needs_amtool
def test_the_watchdog_goes_to_the_heartbeat_and_to_nobody_else() -> None:
    watchdog = ["alertname=SurefootWatchdog", "severity=none"]
    said = run("amtool", "config", "routes", "test", f"--config.file={ALERTMANAGER}", *watchdog)

    assert said.split() == ["heartbeat"]
    (beat, _) = read("alertmanager.yml")["route"]["routes"]
    assert beat["repeat_interval"] == "1m"


def test_inhibitions_name_alerts_that_the_rules_have_and_hold_back_tickets_only() -> None:
    alerts = {
        (item["alert"], item["labels"]["severity"])
        for group in read("rules/surefoot.yml")["groups"]
        for item in group["rules"]
    }

    for rule in read("alertmanager.yml")["inhibit_rules"]:
        (sources,) = re.findall(r'alertname=~?"([\w|]+)"', rule["source_matchers"][0])
        (target,) = re.findall(r'alertname="(\w+)"', rule["target_matchers"][0])
        assert set(sources.split("|")) <= {name for name, _ in alerts}
        assert (target, "ticket") in alerts


@pytest.fixture
def alertmanager(tmp_path: Path) -> Iterator[httpx.Client]:
    """A real Alertmanager with our configuration; nothing listens where it sends to."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    command = [
        *("prometheus-alertmanager", f"--config.file={ALERTMANAGER}", f"--storage.path={tmp_path}"),
        *(f"--web.listen-address={address}", "--cluster.listen-address="),
    ]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            with httpx.Client(base_url=f"http://{address}/api/v2", transport=httpx.HTTPTransport(retries=8)) as client:
                yield client
        finally:
            process.terminate()


@pytest.mark.skipif(shutil.which("prometheus-alertmanager") is None, reason="Alertmanager is not installed")
def test_a_page_holds_back_the_tickets_that_say_the_same_and_no_other(alertmanager: httpx.Client) -> None:
    fired = [
        {"alertname": "SurefootSloBurnRatePage", "severity": "page", "slo": "a", "task_class": "refund"},
        {"alertname": "SurefootSloBurnRateTicket", "severity": "ticket", "slo": "a"},
        {"alertname": "SurefootSloBurnRateTicket", "severity": "ticket", "slo": "b"},
        {"alertname": "SurefootSloBudgetExhausted", "severity": "ticket", "slo": "a"},
        {"alertname": "SurefootSloAbsent", "severity": "ticket", "slo": "b"},
        {"alertname": "SurefootMetricsAbsent", "severity": "page"},
        {"alertname": "SurefootQuarantine", "severity": "ticket"},
        {"alertname": "SurefootWriterBehind", "severity": "ticket"},
        {"alertname": "SurefootAgentSilent", "severity": "ticket", "slo": "b"},
    ]
    expected = {("SurefootSloBurnRateTicket", "a"), ("SurefootSloAbsent", "b"), ("SurefootAgentSilent", "b")}

    alertmanager.post("/alerts", json=[{"labels": labels} for labels in fired]).raise_for_status()

    deadline = time.monotonic() + 30
    held: set[tuple[str, str | None]] = set()
    while len(held) < len(expected) and time.monotonic() < deadline:
        time.sleep(0.1)
        alerts = alertmanager.get("/alerts").raise_for_status().json()
        assert len(alerts) in (0, len(fired))
        held = {(a["labels"]["alertname"], a["labels"].get("slo")) for a in alerts if a["status"]["inhibitedBy"]}
    assert held == expected


def test_prometheus_looks_where_surefoot_and_alertmanager_are() -> None:
    config = read("prometheus.yml")
    compose = read("compose.yaml")["services"]
    (scrape,) = config["scrape_configs"]
    (target,) = scrape["static_configs"][0]["targets"]
    (alertmanager,) = config["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"]

    assert target == f"127.0.0.1:{Settings.model_fields['port_web'].default}"
    assert f"--web.listen-address={alertmanager}" in compose["alertmanager"]["command"]
    assert (DEPLOY / config["rule_files"][0]).is_file()


def test_compose_listens_on_loopback_only() -> None:
    services = read("compose.yaml")["services"]

    assert set(services) == {"prometheus", "alertmanager", "grafana"}
    for service in services.values():
        assert service["network_mode"] == "host"
        assert "ports" not in service
        for argument in service.get("command", []):
            if "listen-address" in argument:
                assert argument.partition("=")[2].rpartition(":")[0] in ("127.0.0.1", ""), argument
    assert "--web.listen-address=127.0.0.1:9090" in services["prometheus"]["command"]
    assert "--web.listen-address=127.0.0.1:9093" in services["alertmanager"]["command"]
    # Left out, Alertmanager's gossip listens on all addresses.
    assert "--cluster.listen-address=" in services["alertmanager"]["command"]
    assert services["grafana"]["environment"]["GF_SERVER_HTTP_ADDR"] == "127.0.0.1"


def test_compose_keeps_exemplars_and_pins_its_images() -> None:
    services = read("compose.yaml")["services"]

    assert "--enable-feature=exemplar-storage" in services["prometheus"]["command"]
    for service in services.values():
        assert re.fullmatch(r"[\w/-]+:v?\d+\.\d+\.\d+", service["image"])


def test_compose_mounts_what_exists_where_the_configuration_expects_it() -> None:
    compose = read("compose.yaml")
    mounts: dict[str, str] = {}
    for service in compose["services"].values():
        for volume in service["volumes"]:
            source, target = volume.split(":")[:2]
            if source.startswith("."):
                assert (DEPLOY / source).exists(), source
                assert volume.endswith(":ro")
                mounts[target] = source
            else:
                assert source in compose["volumes"]
    (provider,) = read("grafana/provisioning/dashboards/surefoot.yml")["providers"]

    assert mounts[provider["options"]["path"]] == "./grafana/dashboards"
    assert mounts["/etc/prometheus/rules"] == "./rules"


def test_grafana_is_told_of_prometheus_and_of_the_dashboard() -> None:
    sources = read("grafana/provisioning/datasources/surefoot.yml")
    (source,) = sources["datasources"]
    providers = read("grafana/provisioning/dashboards/surefoot.yml")
    (provider,) = providers["providers"]

    assert sources["apiVersion"] == providers["apiVersion"] == 1
    assert source["type"] == "prometheus"
    assert source["isDefault"] is True
    assert source["access"] == "proxy"
    assert port(source["url"]) == 9090
    assert source["jsonData"]["timeInterval"] == read("prometheus.yml")["global"]["scrape_interval"]
    assert provider["type"] == "file"
    assert provider["allowUiUpdates"] is False
