"""A pytest function as a checker: it asks for ``attempt`` and asserts.

It runs inside of the attempt's process, because the state that it looks at is there. ini files and plugins of the
project do not reach it, so that ``-n 4`` or a coverage of one's own cannot change a verdict.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import Any

from surefoot.evaluation.agent import AttemptContext
from surefoot.evaluation.errors import SuiteError

# pytest keeps state of its own per process.
_one_at_a_time = threading.Lock()


@dataclass(frozen=True, slots=True)
class Judged:
    """What the fixture ``attempt`` gives: what the agent answered, what it left, and what it was asked."""

    output: Any
    state: Any
    input: Any
    context: AttemptContext


def run_test(test: str, output: Any, context: AttemptContext) -> tuple[bool | None, str | None]:
    """Return whether "file.py::test" passes, and what it said; None where it could not be run or skipped itself."""
    try:
        import pytest
    except ModuleNotFoundError as error:
        raise SuiteError("a pytest checker needs pytest: pip install pytest") from error

    reports: list[Any] = []

    class Plugin:
        @pytest.fixture
        def attempt(self) -> Judged:
            return Judged(output, context.state, context.input, context)

        def pytest_runtest_logreport(self, report: Any) -> None:
            reports.append(report)

    arguments = [test, "-q", "-s", "-c", os.devnull, "--rootdir", ".", "-p", "no:cacheprovider", "--no-header"]
    # Plugins speak up about settings that they miss in the empty ini file.
    arguments += ["-W", "ignore::pytest.PytestWarning"]
    with _one_at_a_time:
        code = pytest.main([*arguments, "--import-mode=importlib", "--tb=short"], plugins=[Plugin()])
    failed = [report for report in reports if report.failed]
    if failed:
        # An error before or after the test itself says nothing about the agent.
        return (False if any(report.when == "call" for report in failed) else None), failed[0].longreprtext
    if code != 0 or any(report.skipped for report in reports):
        return None, f"{test} was not run: pytest ended with {int(code)}; name a test that exists and is not skipped"
    return True, None
