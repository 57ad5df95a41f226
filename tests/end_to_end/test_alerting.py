"""(c) Real Prometheus and Alertmanager, with the shipped rules and routes, their waits cut to seconds.

First a live incident, with windows scaled by 1/60 (the 1 h window is one minute of event time): it pages a webhook once
and resolves later. Then what the engine says is given, to the real web process: a page holds back a ticket, and silence
is told.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import textwrap
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from support.reports import slo
from support.serving import DESK_AVAILABILITY, eventually, serving
from surefoot.dashboards.rules import build_rules
from surefoot.processors import status
from surefoot.processors.settings import Settings
from surefoot.processors.slo import Slo
from surefoot.processors.slo.report import Counts, StatusReport

# Works until the file named "incident" appears, fails while it is there.
DEPLOY = Path(__file__).parents[2] / "deploy"

AGENT = textwrap.dedent(
    """
    import pathlib, sys, time
    from surefoot.instrumentation import agent_run, flush, init
    folder = pathlib.Path(sys.argv[1])
    init(service_name="desk")
    while not (folder / "stop").exists():
        for _ in range(5):
            try:
                with agent_run("clerk", task_class="refund"):
                    if (folder / "incident").exists():
                        raise TimeoutError("payments")
            except TimeoutError:
                pass
        flush()
        time.sleep(0.2)
    """
)


class Webhook:
    """A receiver for Alertmanager; keeps what it was sent."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.calls.append({**body, "path": self.path})
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def alerts(self, path: str, status: str) -> list[dict[str, Any]]:
        return [a for call in self.calls if call["path"] == path for a in call["alerts"] if a["status"] == status]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def program(log: Path, *command: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out, **options) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)


@contextlib.contextmanager
def alertmanager(folder: Path, webhook: Webhook, ticket_wait: str = "1s") -> Iterator[int]:
    port, hook = free_port(), f"http://127.0.0.1:{webhook.server.server_port}"
    config = yaml.safe_load((DEPLOY / "alertmanager.yml").read_text())
    config["route"] |= {"group_wait": ticket_wait, "group_interval": "1s"}
    for route in config["route"]["routes"]:
        route |= {"group_wait": "0s", "group_interval": "1s"}
    for receiver in config["receivers"]:
        receiver["webhook_configs"][0]["url"] = f"{hook}/{receiver['name']}"
    (folder / "alertmanager.yml").write_text(yaml.safe_dump(config))
    command = (
        "prometheus-alertmanager",
        f"--config.file={folder / 'alertmanager.yml'}",
        f"--storage.path={folder / 'alertmanager'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
    )
    with program(folder / "alertmanager.log", *command):
        yield port


@contextlib.contextmanager
def prometheus(folder: Path, rules: Path, scraped: str, alerting: int) -> Iterator[None]:
    port = free_port()
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s", "scrape_timeout": "1s"},
        "rule_files": [str(rules)],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{alerting}"]}]}]},
        "scrape_configs": [
            {"job_name": "surefoot", "static_configs": [{"targets": [scraped.removeprefix("http://")]}]}
        ],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    command = (
        "prometheus",
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'prometheus'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--enable-feature=exemplar-storage",
        "--rules.alert.resend-delay=1s",  # what fired before Alertmanager was found would be sent again after a minute
    )
    with program(folder / "prometheus.log", *command):
        yield


def fast_rules(path: Path) -> None:
    """The shipped rules, with all their waits cut to seconds as the windows are."""
    content = yaml.safe_load(path.read_text())
    for group in content["groups"]:
        for rule in group["rules"]:
            rule |= {wait: "2s" for wait in ("for", "keep_firing_for") if wait in rule}
    path.write_text(yaml.safe_dump(content))


def test_an_incident_pages_once_and_resolves(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "slos").mkdir(parents=True)
    (home / "slos" / "desk.yaml").write_text(DESK_AVAILABILITY)
    webhook = Webhook()
    rules = tmp_path / "rules.yml"
    with contextlib.ExitStack() as stack:
        stack.callback(webhook.close)
        server = stack.enter_context(serving(home, window_scale=str(1 / 60)))
        built = server.command("rules", "build", "--out", str(rules))
        assert built.returncode == 0, built.stderr
        subprocess.run(["promtool", "check", "rules", str(rules)], check=True, capture_output=True)
        fast_rules(rules)
        port = stack.enter_context(alertmanager(tmp_path, webhook))
        stack.enter_context(prometheus(tmp_path, rules, server.web, port))
        environment = {**server.environment, "OTEL_EXPORTER_OTLP_ENDPOINT": server.http}
        (tmp_path / "agent.py").write_text(AGENT)
        agent = (sys.executable, str(tmp_path / "agent.py"), str(tmp_path))
        stack.enter_context(program(tmp_path / "agent.log", *agent, env=environment))
        stack.callback((tmp_path / "stop").touch)
        eventually("healthy runs", lambda: len(server.rows("SELECT run_id FROM runs WHERE outcome = 'ok'")) > 20)
        assert webhook.alerts("/page", "firing") == []

        (tmp_path / "incident").touch()
        (page,) = eventually("the page", lambda: webhook.alerts("/page", "firing"), 90)[:1]
        assert page["labels"]["slo"] == "desk-availability"
        assert page["labels"]["severity"] == "page"
        assert "budget" in " ".join(page["annotations"].values())

        (tmp_path / "incident").unlink()
        resolved = eventually("the resolution", lambda: webhook.alerts("/page", "resolved"), 120)
        assert resolved[0]["fingerprint"] == page["fingerprint"]
        # One incident is one alert: every page that was sent is that same alert.
        assert {alert["fingerprint"] for alert in webhook.alerts("/page", "firing")} == {page["fingerprint"]}


@contextlib.contextmanager
def web(home: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The web process alone; what it shows is what the test publishes."""
    command = [sys.executable, "-m", "surefoot.dashboards.web"]
    environment = {**os.environ, "SUREFOOT_HOME": str(home), "SUREFOOT_PORT_WEB": "0"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["web"], process
        finally:
            process.terminate()
            process.wait(30)


def given(state: str, *severities: str) -> dict[str, Any]:
    """A report on the SLO in which the tiers of these severities burn."""
    shown = slo("desk-availability", state, Counts(70, 50))
    total = shown.strata[0]
    tiers = [replace(tier, burning=tier.severity in severities) for tier in total.tiers]
    return StatusReport(time.time(), [replace(shown, strata=[replace(total, tiers=tiers)])], []).to_json()


def test_a_page_holds_back_the_ticket_and_silence_is_told(tmp_path: Path) -> None:
    home, webhook, rules = tmp_path / "home", Webhook(), tmp_path / "rules.yml"
    folder = Settings(home=home).status_path
    folder.mkdir(parents=True)
    rules.write_text(build_rules([Slo("desk-availability", "desk", "availability", 0.99, "28d", 28 * 86_400)]))
    fast_rules(rules)

    def publish(state: str, *severities: str) -> None:
        status.publish(folder, "slo", given(state, *severities))
        status.publish(folder, "jobs", {"cycle_at": time.time(), "cycle_seconds": 0.1})

    def names(path: str, kind: str) -> set[str]:
        return {alert["labels"]["alertname"] for alert in webhook.alerts(path, kind)}

    with contextlib.ExitStack() as stack:
        stack.callback(webhook.close)
        address, process = stack.enter_context(web(home))
        port = stack.enter_context(alertmanager(tmp_path, webhook, ticket_wait="4s"))
        publish("burning_page", "page", "ticket")
        stack.enter_context(prometheus(tmp_path, rules, address, port))
        eventually("the page", lambda: webhook.alerts("/page", "firing"), 60)
        held = eventually("the ticket, held back", lambda: _inhibited(port), 60)
        assert held == {"SurefootSloBurnRateTicket"}
        time.sleep(6)  # longer than the ticket's own wait
        assert "SurefootSloBurnRateTicket" not in names("/ticket", "firing")

        publish("burning_ticket", "ticket")
        eventually("the page's end", lambda: "SurefootSloBurnRatePage" in names("/page", "resolved"), 60)
        eventually("the ticket", lambda: "SurefootSloBurnRateTicket" in names("/ticket", "firing"), 60)
        eventually("the heartbeat", lambda: "SurefootWatchdog" in names("/heartbeat", "firing"), 60)

        process.terminate()
        eventually("the dead man", lambda: "SurefootMetricsAbsent" in names("/page", "firing"), 60)
        # What cannot be seen any more has not ended, and one page says so for all SLOs.
        assert names("/ticket", "resolved") == set()
        assert "SurefootSloAbsent" not in names("/ticket", "firing")


def _inhibited(port: int) -> set[str]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v2/alerts") as answer:
        alerts = json.load(answer)
    return {alert["labels"]["alertname"] for alert in alerts if alert["status"]["inhibitedBy"]}
