"""The examples of docs/replay.md do what the page says."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from support.serving import SUREFOOT

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "replay.md").read_text()


def test_the_python_examples(tmp_path: Path) -> None:
    programs = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(programs) == 2
    for program in programs:
        subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=120)


def test_the_suite(tmp_path: Path) -> None:
    commands = re.findall(r"^\$ (SUREFOOT_REPLAY=record )?surefoot (repeat .*)$", PAGE, re.MULTILINE)
    assert len(commands) == 2
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SUREFOOT_", "OTEL_"))}
    for recording, command in commands:
        mode = {"SUREFOOT_REPLAY": "record"} if recording else {}
        arguments = shlex.split(command.replace("examples/", f"{ROOT}/examples/"))
        environment = {**clean, **mode, "SUREFOOT_HOME": str(tmp_path)}
        subprocess.run([*SUREFOOT, *arguments], cwd=tmp_path, check=True, timeout=200, env=environment)
    files = [tmp_path / run / "attempts.jsonl" for run in ("recorded", "replayed")]
    lines = [line for file in files for line in file.read_text().splitlines()]
    ended = [event for event in map(json.loads, lines) if event["event"] == "finished"]
    assert len(ended) == 11
    assert len({event["output"] for event in ended}) == 1
    assert [event["extra"]["notes"]["cassette"]["mode"] for event in ended] == ["record"] + ["replay"] * 10
