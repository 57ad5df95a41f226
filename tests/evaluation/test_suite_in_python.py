"""A suite in Python is held to what YAML is held to where a slip would be run, and not be what was meant."""

from __future__ import annotations

from typing import Any

import pytest

from surefoot.evaluation import Checker, Protocol, Suite, SuiteError, Task, Variant
from surefoot.evaluation.loading import load_suite

SUITE: dict[str, Any] = {"name": "s", "agent": str, "protocol": Protocol(k=1, effects="none")}
TASK = Task(id="a", input="x")


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Protocol(k=1, effects="Real"), "'Real' is not one of none, fixture"),  # type: ignore[arg-type]  # the slip
        (lambda: Protocol(k=1, effects="none", isolation="proces"), "'proces' is not one"),  # type: ignore[arg-type]  # it
        (lambda: Protocol(k=1, effects="none", concurrency=0), "let no attempt run"),
        (lambda: Checker(type="exakt"), "'exakt' is not one"),  # type: ignore[arg-type]  # the slip
        (lambda: Suite(tasks=(TASK, Task(id="a", input="y")), **SUITE), "two tasks are called 'a'"),
        (lambda: Suite(tasks=(TASK,), variants=(Variant(name="v"),) * 2, **SUITE), "two variants are called 'v'"),
        (lambda: Suite(tasks=(TASK,), variants=(Variant(name="../v"),), **SUITE), "'../v' is no name"),
        (lambda: Suite(tasks=(TASK,), **{**SUITE, "name": "../../s"}), "is no name"),
    ],
)
def test_a_slip_is_refused(make: Any, told: str) -> None:
    with pytest.raises(SuiteError, match=told):
        make()


def test_a_file_says_it_once(tmp_path: Any) -> None:
    file = tmp_path / "slipped.py"
    file.write_text(
        "from surefoot.evaluation import *\nsuite = Suite(name='s', agent=str, tasks=(), "
        "protocol=Protocol(k=1, effects='rael'))\n"
    )
    with pytest.raises(SuiteError, match=r"slipped.py: protocol.effects: 'rael' .* write one of them\.$"):
        load_suite(str(file))
