"""The page about security says what is so: its commands run, its settings exist, with the defaults it names."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from support.serving import eventually
from surefoot.collector.config import Config
from surefoot.processors.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
ENVIRONMENT = {
    **{
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SUREFOOT_", "OTEL_")) and name not in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
    },
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "SUREFOOT_SEGMENT_SECONDS": "0.2",
}


def bash(commands: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-euc", commands],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextlib.contextmanager
def serving(command: str, folder: Path) -> Iterator[str]:
    """The page's own command, on loopback and free ports; gives the HTTP address."""
    assert "--host 0.0.0.0" in command
    command = command.replace("--host 0.0.0.0", "--host 127.0.0.1") + " --ready-json"
    command += " --port-grpc 0 --port-http 0 --port-web 0"
    with subprocess.Popen(
        ["bash", "-c", f"exec {command}"], cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["http"]
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0


def test_the_commands_of_the_page_run_one_after_another(tmp_path: Path) -> None:
    server, sender = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    (agent,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "agent.py").write_text(agent)
    *prepare, serve = server.replace("\\\n", "").strip().splitlines()
    bash("\n".join(prepare), tmp_path)
    with serving(serve, tmp_path) as http:
        bash(sender.replace("https://localhost:4318", http.replace("127.0.0.1", "localhost")), tmp_path)
        command, *expected = re.findall(r"```console\n\$ (.*?)```", PAGE, re.DOTALL)[0].splitlines()
        eventually("the row", lambda: bash(f"{command} || true", tmp_path).splitlines() == expected)


def test_the_server_refuses_to_open_without_them(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from surefoot.cli.main import main; main()", "serve", "--home", str(tmp_path)]
    done = subprocess.run(
        [*command, "--host", "0.0.0.0", "--port-grpc", "0", "--port-http", "0", "--port-web", "0"],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert "is not opened to the network on 0.0.0.0 without a TLS certificate" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_setting_that_the_page_names_exists() -> None:
    named = set(re.findall(r"SUREFOOT_(\w+)", PAGE))
    assert {name.lower() for name in named} <= set(Settings.model_fields)
    table = PAGE[PAGE.index("## What a sender may cost") : PAGE.index("## Pages in a browser")]
    listed = {name.lower() for name in re.findall(r"SUREFOOT_(\w+)", table)}
    limits = {field.name for field in dataclasses.fields(Config) if field.name.startswith("max_")}
    assert limits - listed == {"max_backlog_bytes"}
