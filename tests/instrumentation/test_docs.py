"""The examples of docs/instrumentation.md run as they stand."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.collecting import Collector
from surefoot.instrumentation import semconv

Run = Callable[..., "subprocess.CompletedProcess[str]"]
PAGE = (Path(__file__).parents[2] / "docs" / "instrumentation.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_sdk_example_records_what_it_says(run: Run, collector: Collector) -> None:
    done = run(EXAMPLES[0])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "refunded 25.00 on order 1001\n"
    assert collector.span_names() == [
        "chat gpt-x",
        *["execute_tool issue_refund"] * 2,
        *["invoke_agent support-desk"] * 2,
    ]
    assert len(collector.events("gen_ai.evaluation.result")) == 1
    assert len(collector.events("surefoot.run.started")) == 2


@pytest.mark.parametrize("example", EXAMPLES[1:])
def test_the_other_examples_run(run: Run, example: str) -> None:
    done = run(example)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_name_of_our_own_is_explained() -> None:
    own = {value for name, value in vars(semconv).items() if name.isupper() and str(value).startswith("surefoot.")}
    later = {semconv.BOUNDARY_ID, semconv.MODE, semconv.SAMPLE_WEIGHT}  # written by nothing yet
    explained = {name for name in own if name.rstrip(".") in PAGE or f"`.{name.rpartition('.')[2]}`" in PAGE}
    assert own - later - explained == set()
