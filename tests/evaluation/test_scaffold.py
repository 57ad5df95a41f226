"""``surefoot init``: the suite that it writes can be repeated, and nothing is overwritten."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from surefoot.cli.main import main
from surefoot.evaluation.loading import load_suite

AGENT = '''
import dataclasses

def answer(question: str) -> str:
    """Answer questions.

    At length."""
    return "42"

async def Look_Up(order: dict[str, int], ctx): ...

def many(*inputs): ...

def needs(one, two, three): ...

def named(one, *, model): ...

def nothing(): ...

def parts(question):
    yield question

def été(question): ...

class Agent:
    def run(self, number: int): ...

desk = Agent()
'''


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "scaffolded.py").write_text(AGENT)
    with contextlib.chdir(tmp_path), mock.patch.object(sys, "path", [*sys.path]):
        sys.modules.pop("scaffolded", None)
        yield tmp_path
        sys.modules.pop("scaffolded", None)


def surefoot(*arguments: str) -> tuple[int, str]:
    said = io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["surefoot", *arguments]),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return int(ended.value.code or 0), said.getvalue()


@pytest.mark.parametrize(
    ("function", "name", "given"),
    [
        ("answer", "answer", "What is 6 times 7?"),
        ("Look_Up", "Look-Up", {"question": "What is 6 times 7?"}),
        ("many", "many", "What is 6 times 7?"),
        ("desk.run", "desk-run", 42),
        ("été", "t", "What is 6 times 7?"),
    ],
)
def test_the_suite_is_one_for_the_function(folder: Path, function: str, name: str, given: object) -> None:
    code, said = surefoot("init", f"scaffolded:{function}", "--effects", "none", "--k", "5")
    assert (code, "surefoot repeat suite.yaml" in said) == (0, True), said
    read = load_suite("suite.yaml")
    assert (read.name, read.agent, read.protocol.k, read.protocol.effects) == (
        name,
        f"scaffolded:{function}",
        5,
        "none",
    )
    assert read.tasks[0].input == given


def test_every_commented_part_is_right_when_it_is_uncommented(folder: Path) -> None:
    surefoot("init", "scaffolded:answer", "--effects", "fixture")
    text = (folder / "suite.yaml").read_text()
    for commented in (
        "  # freeze:",
        "    # versions:",
        "  # - {name: candidate",
        "    # class:",
        "    # consequence:",
        "      # - exact:",
        "      # - json_schema:",
        "      # - callable:",
        "      # - final_state:",
        "    # fixture:",
    ):
        assert commented in text
        text = text.replace(commented, commented.replace("# ", "", 1))
    head, _, templates = text.partition("# templates:")
    text = head + "templates:" + "\n".join(line.removeprefix("# ") for line in templates.splitlines())
    Path("whole.yaml").write_text(text)
    read = load_suite("whole.yaml")
    assert len(read.tasks) == 21
    assert len(read.tasks[0].checkers) == 5
    assert read.names == ("baseline", "candidate")


def test_nothing_is_overwritten(folder: Path) -> None:
    (folder / "suite.yaml").write_text("mine")
    code, said = surefoot("init", "scaffolded:answer")
    assert (code, "left as it is" in said) == (2, True)
    assert (folder / "suite.yaml").read_text() == "mine"
    assert surefoot("init", "scaffolded:answer", "other.yaml")[0] == 0


@pytest.mark.parametrize(
    ("agent", "says"),
    [
        ("scaffolded:nowhere", "has no 'nowhere'"),
        ("not_there_at_all:agent", "importing not_there_at_all failed"),
        ("scaffolded", "write module:function"),
        ("scaffolded:needs", "cannot be called with a task's input"),
        ("scaffolded:named", "cannot be called with a task's input"),
        ("scaffolded:nothing", "cannot be called with a task's input"),
        ("scaffolded:Agent", "not a function"),
        ("scaffolded:Agent.run", "cannot be called with a task's input"),
        ("scaffolded:parts", "gives its answer in parts"),
        ("scaffolded:desk", "not a function"),
    ],
)
def test_what_is_no_agent_is_refused_and_nothing_written(folder: Path, agent: str, says: str) -> None:
    code, said = surefoot("init", agent)
    assert (code, says in said) == (2, True), said
    assert not (folder / "suite.yaml").exists()


def test_until_told_otherwise_the_suite_is_not_repeated(folder: Path) -> None:
    code, said = surefoot("init", "scaffolded:answer")
    assert (code, "protocol.effects" in said) == (0, True)
    code, said = surefoot("repeat", "suite.yaml", "--k", "2")
    assert code == 2
    assert "effects" in said
    assert not (folder / "runs").exists()
