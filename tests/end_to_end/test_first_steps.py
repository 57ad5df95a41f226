"""What the README promises a newcomer: the demo, the examples, one's own agent."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.serving import SUREFOOT, Server, eventually
from surefoot.processors.lake.console import query

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_demo_pages_and_ends_well(tmp_path: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SUREFOOT_", "OTEL_"))}
    home = tmp_path / "demo"
    command = [*SUREFOOT, "demo", "--days", "1", "--home", str(home)]
    done = subprocess.run(command, capture_output=True, text=True, env=clean, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "support-desk-availability" in done.stdout
    assert "burning page" in done.stdout
    assert "http://127.0.0.1:" in done.stdout
    questions = [line for line in done.stdout.splitlines() if " sql --lake " in line]
    assert len(questions) == 3
    for question in questions:  # they work as they are printed
        assert query(home / "lake", question.partition('"')[2].removesuffix('"')).rows
    counted = query(home / "lake", "SELECT count(*), count(DISTINCT run_id) FROM runs").rows[0]
    assert counted[0] == counted[1] > 100
    again = subprocess.run([*command[:-1], str(tmp_path)], capture_output=True, text=True, env=clean, check=False)
    assert again.returncode == 1
    assert "not a demo" in again.stderr


def run_example(server: Server, *command: str) -> str:
    environment = {**server.environment, "OTEL_EXPORTER_OTLP_ENDPOINT": server.http}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_examples_run_and_their_runs_are_seen(server: Server) -> None:
    plain = run_example(server, sys.executable, str(EXAMPLES / "plain_agent.py"))
    assert plain == "A apple costs 0.50.\nA pear costs 0.75.\n"
    framework = run_example(server, *SUREFOOT, "run", sys.executable, str(EXAMPLES / "pydantic_ai_agent.py"))
    assert framework == "It is raining there.\n"
    question = "SELECT agent_name, outcome, tool_calls FROM runs WHERE outcome <> 'running' ORDER BY started_at"
    rows = eventually("three runs", lambda: (found := server.rows(question)) and len(found) == 3 and found)
    assert [(row["agent_name"], row["outcome"], row["tool_calls"]) for row in rows] == [
        ("clerk", "ok", 1),
        ("clerk", "ok", 1),
        ("forecaster", "ok", 1),
    ]
    verdicts = "SELECT v.name, v.verdict FROM verdicts v JOIN runs r ON r.run_id = v.run_id"
    joined = eventually("two verdicts", lambda: (found := server.rows(verdicts)) and len(found) == 2 and found)
    assert joined == [{"name": "right_price", "verdict": "pass"}] * 2
