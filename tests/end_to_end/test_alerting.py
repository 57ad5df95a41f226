"""(c) Real Prometheus and Alertmanager: a live incident pages a webhook once, and later resolves.

Windows are scaled by 1/60 (the 1 h window is one minute of event time), rules and labels are those of production.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from support.serving import DESK_AVAILABILITY, eventually, serving

# Works until the file named "incident" appears, fails while it is there.
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
def alertmanager(folder: Path, webhook: Webhook) -> Iterator[int]:
    port, hook = free_port(), f"http://127.0.0.1:{webhook.server.server_port}"
    config = {
        "route": {
            "receiver": "ticket",
            "group_by": ["alertname", "slo"],
            "group_wait": "1s",
            "group_interval": "1s",
            "repeat_interval": "4h",
            "routes": [{"matchers": ['severity="page"'], "receiver": "page", "group_wait": "0s"}],
        },
        "receivers": [
            {"name": name, "webhook_configs": [{"url": f"{hook}/{name}", "send_resolved": True}]}
            for name in ("page", "ticket")
        ],
    }
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
    )
    with program(folder / "prometheus.log", *command):
        yield


def fast_rules(path: Path) -> None:
    """The shipped rules, with the time that an alert keeps firing cut to seconds as the windows are."""
    content = yaml.safe_load(path.read_text())
    for group in content["groups"]:
        group.pop("interval", None)
        for rule in group["rules"]:
            if "keep_firing_for" in rule:
                rule["keep_firing_for"] = "1s"
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
