"""The examples of docs/repeat.md run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "repeat.md").read_text()
SHELL = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
QUIET = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")} | {
    "SUREFOOT_PORT_HTTP": "1"
}


@pytest.mark.parametrize(("example", "code", "shown"), [(SHELL[0], 0, "Pass^10"), (SHELL[1], 1, "")])
def test_the_examples_print_what_the_page_says(tmp_path: Path, example: str, code: int, shown: str) -> None:
    command, _, printed = example.removeprefix("$ surefoot ").partition("\n")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    surefoot = [sys.executable, "-c", "from surefoot.cli.main import main; main()"]
    done = subprocess.run(
        [*surefoot, *command.split()], cwd=tmp_path, env=QUIET, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    said = [" ".join(line.split()) for line in done.stdout.splitlines()]
    promised = [" ".join(line.split()).split("…")[0] for line in printed.splitlines()]
    assert len(said) == len(promised)
    for line, promise in zip(said, promised, strict=True):
        assert line.startswith(promise)
    assert shown in done.stderr


def test_the_python_examples_run(tmp_path: Path) -> None:
    (tmp_path / "shouting.py").write_text(PYTHON[0])
    done = subprocess.run(
        [sys.executable, "-c", PYTHON[1]], cwd=tmp_path, env=QUIET, capture_output=True, text=True, check=True
    )
    assert done.stdout == "complete 1.0\n"
