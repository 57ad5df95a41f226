"""The page about the collector says what is so: its examples run, its table of status keys is complete."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from support.serving import eventually
from surefoot.collector.testing import collector_process

PAGE = (Path(__file__).parents[2] / "docs" / "collector.md").read_text()


def run(code: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_examples_run_and_the_status_keys_are_described(tmp_path: Path) -> None:
    send, look = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    with collector_process(tmp_path / "spool") as collector:
        assert "http://127.0.0.1:4318" in send
        assert run(send.replace("http://127.0.0.1:4318", collector.http), tmp_path) == "b'{}'\n"
        status = eventually("a status", lambda: (now := collector.status)["counts"] and now)
    assert re.fullmatch(r"0{15}1-\w{8}\.segment TRACES http \d+ bytes\n", run(look, tmp_path))
    table = PAGE[PAGE.index("## What it says about itself") : PAGE.index("## Conformance")]
    described = set(re.findall(r"`(\w+)`", " ".join(line.split("|")[1] for line in table.splitlines() if "|" in line)))
    assert described - {"key"} == set(status)


def test_every_requirement_in_the_page_has_a_test_and_every_test_id_is_in_the_page() -> None:
    tests = "".join(path.read_text() for path in (Path(__file__).parents[1] / "conformance").glob("test_*.py"))
    tested = {number.upper() for name in re.findall(r"def test_((?:[tghje]\d_)+)", tests) for number in name.split("_")}
    listed: set[str] = set()
    for line in PAGE[PAGE.index("## Conformance") :].splitlines():
        cell = line.split("|")[1] if line.startswith("|") else ""
        for letter, first, last in re.findall(r"([TGHJE])(\d)(?: to [TGHJE](\d))?", cell):
            listed |= {f"{letter}{number}" for number in range(int(first), int(last or first) + 1)}
    assert tested - {""} == listed
