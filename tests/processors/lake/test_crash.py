"""kill -9 at random instants: what was acknowledged is in the table once, and nothing is there twice."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from surefoot.processors.lake import Lake

# Commits version after version, two files each, and says so on stdout after each; goes on where the table stands.
WRITER = """
import sys
from datetime import date
from pathlib import Path
import pyarrow as pa
from surefoot.processors.lake import Lake
from surefoot.processors.lake.schema import TABLES

lake = Lake.open(Path(sys.argv[1]))
last = lake.transaction_version("runs", "receiver")
version = 0 if last is None else last + 1
print("ready", flush=True)
while True:
    rows = [{"trace_id": str(version), "date": date(2026, 11, 29 + n)} for n in range(2)]
    table = pa.Table.from_pylist(rows, schema=TABLES["runs"])
    if len(sys.argv) > 2 and sys.argv[2] == "replace":
        from surefoot.processors.lake import replace_traces
        # The trace before settles, this one is open: one row of each trace and date at any time.
        before = pa.Table.from_pylist([{**row, "trace_id": str(version - 1)} for row in rows], schema=TABLES["runs"])
        settled = before if version else None
        replace_traces(lake, "runs", [str(version - 1), str(version)], table, settled, "receiver", version)
    else:
        lake.commit("runs", table, app_id="receiver", app_version=version)
    print(version, flush=True)
    version += 1
"""


def _run_and_kill(path: Path, way: str, delay: float) -> int:
    """Let a writer work for ``delay`` seconds after it is ready, then kill it; returns the last version it told of."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), way], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        assert writer.stderr is not None
        assert writer.stdout.readline() == "ready\n", writer.stderr.read()
        try:
            writer.wait(delay)
        except subprocess.TimeoutExpired:
            writer.kill()
        told = [int(line) for line in writer.stdout.read().split("\n")[:-1]]
        assert writer.wait() == -9, writer.stderr.read()
    return max(told, default=-1)


def _check(path: Path, way: str, kills: int) -> None:
    dice = random.Random(f"{way} {kills}")
    acknowledged = -1
    for _ in range(kills):
        acknowledged = max(acknowledged, _run_and_kill(path, way, dice.uniform(0.05, 0.8)))
        lake = Lake.open(path)
        held = Counter(lake.read("runs", ["trace_id"])["trace_id"].to_pylist())
        last = lake.transaction_version("runs", "receiver")
        committed = -1 if last is None else last
        assert acknowledged <= committed
        assert held == {str(version): 2 for version in range(committed + 1)}
        assert lake.repairs == ()
    assert acknowledged > 0


@pytest.mark.parametrize("way", ["append", "replace"])
def test_kill_at_random_instants(tmp_path: Path, way: str) -> None:
    _check(tmp_path / "lake", way, kills=3)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("way", ["append", "replace"])
def test_kill_a_hundred_times(tmp_path: Path, way: str) -> None:
    _check(tmp_path / "lake", way, kills=100)
