"""``surefoot import results`` as people call it, and the example of docs/import-results.md."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

from support.serving import SUREFOOT

PAGE = Path(__file__).parents[2] / "docs" / "import-results.md"


def call(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SUREFOOT, "import", "results", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


def test_the_example(tmp_path: Path) -> None:
    text = PAGE.read_text()
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    ((command, expected),) = re.findall(r"```console\n\$ surefoot import results (.*?)\n(.*?)```", text, re.DOTALL)
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    done = call(tmp_path, *shlex.split(command))
    assert (done.returncode, done.stdout) == (2, expected), done.stderr


def test_for_scripts_and_by_other_names(tmp_path: Path) -> None:
    rows = [{"q": 1, "won": True}, {"q": 1, "won": False}]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    names = ("--map", "task_id=q", "--map", "acceptable=won")
    done = call(tmp_path, "x.jsonl", "-f", "jsonl", "-o", "run", "--json", *names)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["variants"]["x"]["pass_hat_k"] == {"1": 0.5, "2": 0.0}
    assert said["provenance"]["imported_as"] == "jsonl/1"
    again = call(tmp_path, "x.jsonl", "-f", "jsonl", "-o", "run", *names)
    assert again.returncode == 2
    assert "another folder" in again.stderr


def test_wrong_options(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("{}")
    for more in (("--no-verdict", "pass"), ("--map", "q"), ("--map", "nothing=q")):
        done = call(tmp_path, "x.jsonl", "-f", "jsonl", "-o", "run", *more)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert call(tmp_path, "x.jsonl", "-f", "xml", "-o", "run").returncode == 2
