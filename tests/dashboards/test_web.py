"""The web process: pages in a real browser, hosts and origins, what a newcomer sees."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient

from support.reports import every_state
from surefoot.dashboards.web import create_app
from surefoot.processors import status
from surefoot.processors.settings import Settings

CHROMIUM = [
    *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path)


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    with TestClient(create_app(settings), base_url="http://127.0.0.1:4380") as made:
        yield made


def publish(settings: Settings, computed_at: float | None = None) -> None:
    status.publish(settings.status_path, "slo", every_state(computed_at or time.time()).to_json())


def test_the_page_lists_every_slo_with_its_numbers_and_sizes(client: TestClient, settings: Settings) -> None:
    publish(settings)
    text = client.get("/").text
    for words in ("Paging", "Burning", "OK", "Budget spent", "No data", "n 1,000", "12 unlabelled", "−2,900 %"):
        assert words in text
    assert "Paging</span> in task_class=refund" in text  # a stratum that is worse off than the whole
    assert "The pages &amp; &lt;more&gt;" in text  # a display name is text and not markup
    assert "slos/broken.yaml:3" in text
    assert text.count("<svg") == 5  # the SLO without data has no chart


def test_old_numbers_are_said_to_be_old(client: TestClient, settings: Settings) -> None:
    publish(settings, time.time() - 600)
    assert "These numbers are old" in client.get("/").text
    publish(settings)
    assert "These numbers are old" not in client.get("/").text


def test_the_page_of_one_slo_shows_windows_tiers_and_strata(client: TestClient, settings: Settings) -> None:
    publish(settings)
    text = client.get("/slo/tickets").text
    assert "task_class=refund" in text
    assert "lowered from 13.44" in text
    assert "3.95 % to 5.14 %" in text  # 40 of 1,012 and 52 of 1,012
    assert text.count("n 100<") == 4  # each burn rate of the stratum beside its events
    assert client.get("/slo/nothing").status_code == 404


def test_an_empty_home_tells_a_newcomer_what_to_do(client: TestClient) -> None:
    text = client.get("/").text
    assert "No service level objective yet" in text
    assert "surefoot run python my_agent.py" in text
    assert client.get("/api/slo").status_code == 503
    assert client.get("/metrics").status_code == 200


def test_the_api_is_the_report(client: TestClient, settings: Settings) -> None:
    publish(settings, 1_000.0)
    assert client.get("/api/slo").json() == json.loads(json.dumps(every_state(1_000.0).to_json()))


def test_openmetrics_is_spoken_to_those_who_ask(client: TestClient, settings: Settings) -> None:
    publish(settings)
    asked = client.get("/metrics", headers={"Accept": "application/openmetrics-text;version=1.0.0"})
    assert asked.headers["content-type"].startswith("application/openmetrics-text")
    assert asked.text.endswith("# EOF\n")
    assert client.get("/metrics").headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:4380", "127.0.0.1.evil.example"])
def test_a_foreign_host_name_is_refused(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost:4380", "127.0.0.1:4380", "127.0.0.1"])
def test_this_machine_s_names_are_answered(client: TestClient, host: str) -> None:
    assert client.get("/healthz", headers={"Host": host}).status_code == 200


def test_a_named_host_is_answered_too(tmp_path: Path) -> None:
    app = create_app(Settings(home=tmp_path, web_hosts="sre.example, other.example"))
    with TestClient(app, base_url="http://sre.example") as client:
        assert client.get("/healthz").status_code == 200


def test_another_origin_may_not_do_more_than_read(client: TestClient) -> None:
    assert client.post("/api/slo", headers={"Origin": "http://evil.example"}).status_code == 403
    assert client.post("/api/slo", headers={"Origin": "http://127.0.0.1:4380"}).status_code == 405


def test_answers_forbid_content_from_elsewhere(client: TestClient, settings: Settings) -> None:
    publish(settings)
    answer = client.get("/")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    outside = re.findall(r'(?:src|href|url)\s*[=(]\s*["\']?(https?:)?//(?!www\.w3\.org)', answer.text)
    assert outside == []


def test_a_real_browser_draws_the_page_without_the_network(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home")
    publish(settings)
    environment = {**os.environ, "SUREFOOT_HOME": str(settings.home), "SUREFOOT_PORT_WEB": "0"}
    command = [sys.executable, "-m", "surefoot.dashboards.web"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["web"]
        assert httpx.get(f"{url}/healthz").text == "ok"
        browser = [*CHROMIUM, f"--user-data-dir={tmp_path / 'profile'}"]
        dom = subprocess.run([*browser, "--dump-dom", url], capture_output=True, text=True, timeout=120, check=True)
        picture = tmp_path / "page.png"
        shot = [*browser, f"--screenshot={picture}", "--window-size=1200,1400", url]
        subprocess.run(shot, capture_output=True, timeout=120, check=True)
        server.send_signal(signal.SIGTERM)
        assert server.wait(20) == 0
    assert dom.stdout.count('<section class="slo">') == 6
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000  # not an empty sheet


def test_a_signal_right_after_the_ready_line_is_not_lost(tmp_path: Path) -> None:
    environment = {**os.environ, "SUREFOOT_HOME": str(tmp_path), "SUREFOOT_PORT_WEB": "0"}
    command = [sys.executable, "-m", "surefoot.dashboards.web"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        server.stdout.readline()
        server.send_signal(signal.SIGTERM)
        assert server.wait(20) == 0


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        environment = {**os.environ, "SUREFOOT_HOME": str(tmp_path), "SUREFOOT_PORT_WEB": str(port)}
        command = [sys.executable, "-m", "surefoot.dashboards.web"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert done.returncode == 3
    assert str(port) in done.stderr
    assert "--port-web" in done.stderr
