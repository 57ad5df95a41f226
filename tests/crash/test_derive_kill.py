"""kill -9 of a process that derives, at random instants: the next one carries on to what a first derivation gives."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.traces import T0, agent, chat, evaluation, logs_table, run_started, spans_table, tool
from surefoot.instrumentation import semconv
from surefoot.processors.genai.derive import Deriver
from surefoot.processors.lake import Lake
from surefoot.processors.lake.schema import TRACE_TABLES
from surefoot.processors.settings import Settings

Row = dict[str, Any]

STEP, SETTLE = 100.0, 250.0
ENOUGH = 12  # batches
SOURCES = ("spans", "logs")
CHILD = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from test_derive_kill import derive_for_ever
derive_for_ever(Path(sys.argv[1]))
"""


def batch(number: int) -> tuple[list[Row], list[Row]]:
    """What arrives in one step: children of a new trace, the root of an older one (or never), verdicts on old ones."""
    at = number * STEP
    trace, older = f"{number + 1:032x}", f"{number - 1:032x}"
    spans = [
        tool("look", "desk", at + 1, trace=trace, agent_name="desk"),
        chat("think", "desk", at + 2, trace=trace, agent_name="desk", response_id=f"r{number}", input_tokens=number),
    ]
    logs = [evaluation(None, at + 3, trace=None, attributes={"score.label": "pass", semconv.RESPONSE_ID: f"r{number}"})]
    if number % 2:
        logs.append(run_started("desk", at, trace=trace))
    if number >= 2 and number % 5:
        spans.append(agent("desk", None, at - 2 * STEP, STEP, trace=older, received=at))
    if number >= 4:
        logs.append(evaluation("look", at + 4, trace=f"{number - 3:032x}", attributes={"score.label": "fail"}))
    return spans, logs


def derive_for_ever(home: Path) -> None:
    """Commit batch after batch, once each, derive after each and say so; runs in a child, until that is killed."""
    settings = Settings(home=home, settle_seconds=SETTLE)
    lake = Lake.open(settings.lake_path)
    number = 1 + min(
        -1 if version is None else version for version in (lake.transaction_version(table, "kill") for table in SOURCES)
    )
    deriver = Deriver(lake, settings)
    print("ready", flush=True)
    while True:
        arrive(lake, number)
        deriver.step(T0 + number * STEP + 10)
        print(number, flush=True)
        number += 1


def arrive(lake: Lake, number: int) -> None:
    spans, logs = batch(number)
    lake.commit("spans", spans_table(spans), app_id="kill", app_version=number)
    lake.commit("logs", logs_table(logs), app_id="kill", app_version=number)


def kill_after(home: Path, delay: float) -> None:
    here = Path(__file__).parent
    command = [sys.executable, "-c", CHILD, str(home), str(here), str(here.parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline() == "ready\n", child.stderr.read()
        try:
            child.wait(delay)
        except subprocess.TimeoutExpired:
            child.kill()
        assert child.wait() == -9, child.stderr.read()


def tables(lake: Lake) -> dict[str, list[Row]]:
    return {
        table: sorted(lake.read(table).to_pylist(), key=lambda row: (row["trace_id"], row["span_id"] or "", str(row)))
        for table in TRACE_TABLES
    }


def check(home: Path, kills: int) -> None:
    dice = random.Random(kills)
    for _ in range(kills):
        kill_after(home, dice.uniform(0.0, 1.2))
    settings = Settings(home=home, settle_seconds=SETTLE)
    lake = Lake.open(settings.lake_path)
    last = max(lake.transaction_version(table, "kill") or 0 for table in SOURCES)
    # A busy machine may have come no further than a few batches; the story needs some ten to have every outcome.
    deriver = Deriver(lake, settings)
    for number in range(last, max(last + 1, ENOUGH)):
        arrive(lake, number)
        last, now = number, T0 + number * STEP + 10
        deriver.step(now)
    fresh = Lake.open(home / "fresh")
    for table in SOURCES:
        fresh.commit(table, lake.read(table), app_id="copy", app_version=1)
    Deriver(fresh, settings).step(now)
    found = tables(lake)
    assert found == tables(fresh)
    assert len(found["model_calls"]) == last + 1
    assert {row["outcome"] for row in found["runs"]} >= {"ok", "running", "abandoned"}


def test_a_killed_deriver_is_carried_on(tmp_path: Path) -> None:
    check(tmp_path, kills=5)


@pytest.mark.long
def test_a_deriver_killed_a_hundred_times_is_carried_on(tmp_path: Path) -> None:
    check(tmp_path, kills=100)
