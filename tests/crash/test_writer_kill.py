"""kill -9 of the writer at random instants: every span of every sealed segment is in the lake exactly once."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.segments import held, logs, once, points, seal, traces
from surefoot.collector.spool import Spool
from surefoot.processors.lake import Lake
from surefoot.processors.settings import Settings

SPANS = 300  # per segment


def arrive(spool: Spool, segment: int) -> None:
    """One more segment; its first spans repeat the last ones of the segment before."""
    numbers = range(segment * SPANS, (segment + 1) * SPANS)
    again = range(max(0, numbers[0] - 20), numbers[0])
    seal(spool, [traces([*again, *numbers[:100]]), logs(numbers), traces(numbers[100:]), points(numbers)])


def writer(settings: Settings, *flags: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "surefoot.processors.writer", *flags]
    environment = os.environ | settings.to_environment()
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def kill_after(settings: Settings, delay: float, spool: Spool, *, progress: bool) -> None:
    """Start a writer and kill it ``delay`` seconds after it is ready; with ``progress``, after a segment is gone."""
    oldest = spool.sealed()[0]
    with writer(settings) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline(), process.stderr.read()
        deadline = time.monotonic() + 60
        while progress and oldest.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(delay)
        process.kill()
        assert process.wait() == -9


def check(home: Path, kills: int) -> None:
    dice = random.Random(kills)
    settings = Settings(home=home)
    spool = Spool(settings.spool_path)
    segments, interrupted, fruitless = 0, 0, 0
    for _ in range(kills):
        for _ in range(dice.randint(1, 3)):
            arrive(spool, segments)
            segments += 1
        before = spool.sealed()
        # Three kills while a segment goes alone set it aside, as they must; this test stays below: one by the kill
        # that came after progress, one more, and the third attempt is let through.
        kill_after(settings, dice.uniform(0.0, 0.25), spool, progress=fruitless == 1)
        after = spool.sealed()
        interrupted += bool(after)
        fruitless = fruitless + 1 if after == before else 0
    with writer(settings, "--once") as last:
        _, told = last.communicate(timeout=120)
        assert last.returncode == 0, told
    assert interrupted
    assert spool.sealed() == []
    assert spool.quarantined() == []
    assert held(Lake.open(settings.lake_path)) == once(range(segments * SPANS))


def test_a_killed_writer_loses_and_doubles_nothing(tmp_path: Path) -> None:
    check(tmp_path, kills=5)


@pytest.mark.long
def test_a_writer_killed_a_hundred_and_fifty_times_loses_and_doubles_nothing(tmp_path: Path) -> None:
    check(tmp_path, kills=150)
