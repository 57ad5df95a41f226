"""The page "from a function to a gated pull request": its commands are run in order, and say what it says."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import yaml

from support.serving import SUREFOOT, Server, eventually, serving

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "from-function-to-gate.md").read_text(encoding="utf-8")
ENDS_WITH_ONE = ("surefoot compare", "surefoot boundary check")
PROGRAMS = {"surefoot": SUREFOOT, "pytest": [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]}


def steps() -> list[tuple[str, list[str]]]:
    """The page's commands and what it shows of their output."""
    lines = [line for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def run(command: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    program, *arguments = shlex.split(command)
    return subprocess.run(
        [*PROGRAMS[program], *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def arrived(server: Server) -> bool:
    rows = server.rows("SELECT count(*) AS n FROM verdicts WHERE kind = 'outcome'")
    return bool(rows) and rows[0]["n"] == 100


def flat(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@pytest.mark.timeout(900)  # twelve processes one after the other; on a busy machine each takes a while to start
def test_the_commands_of_the_page_do_what_it_says(tmp_path: Path) -> None:
    folder = tmp_path / "gate"
    shutil.copytree(ROOT / "examples" / "gate", folder, ignore=shutil.ignore_patterns("runs", "__pycache__"))
    environment = {"SUREFOOT_HOME": str(tmp_path / "home"), "SUREFOOT_PORT_HTTP": "9"}  # nobody takes OTLP there
    with contextlib.ExitStack() as stack:
        for command, shown in steps():
            if command.startswith("pip "):
                continue
            if command == "surefoot serve":
                server = stack.enter_context(serving(tmp_path / "home"))
                environment = {**server.environment, "SUREFOOT_PORT_HTTP": server.http.rpartition(":")[2]}
                continue
            if command.startswith("surefoot profile"):
                eventually("all verdicts", partial(arrived, server))
            done = run(command, folder, environment)
            expected = 1 if command.startswith(ENDS_WITH_ONE) else 0
            assert done.returncode == expected, f"{command}\n{done.stdout}\n{done.stderr}"
            for line in shown:
                assert flat(line) in flat(done.stdout), f"{command}\n{done.stdout}"
    assert (folder / "comment.md").read_text().startswith("### Surefoot: regression, by the rules proved, trade")


def test_the_pipeline_runs_what_the_page_ran() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    run = [step["run"] for step in yaml.safe_load(text)["jobs"]["repeat"]["steps"] if "run" in step]
    ran = {command for command, _ in steps()}
    own = [command for command in run if command.startswith(("surefoot", "pytest"))]
    assert len(own) == 3
    assert set(own) <= ran
