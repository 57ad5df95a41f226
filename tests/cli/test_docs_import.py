"""The example of docs/import.md does what the page says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.serving import SUREFOOT

PAGE = Path(__file__).parents[2] / "docs" / "import.md"


def test_the_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = PAGE.read_text()
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (console,) = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    monkeypatch.setenv("SUREFOOT_HOME", str(tmp_path / "home"))
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    steps = re.findall(r"^\$ surefoot (.*)\n((?:[^$].*\n)*)", console, re.MULTILINE)
    assert len(steps) == 2
    for command, expected in steps:
        done = subprocess.run(
            [*SUREFOOT, *shlex.split(command)], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (0, expected), done.stderr
