"""The writer dies or is refused by the disk at each named point: every span of every segment is held exactly once."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from support import faults
from support.segments import held, logs, once, points, seal, traces
from surefoot.collector.spool import Spool
from surefoot.processors.lake import Lake
from surefoot.processors.settings import Settings

SPANS = 40  # per segment
KILLS = {
    "attempt-noted": ["kill", "kill-after"],
    "data-sync": ["kill", "kill-after"],
    "data-placed": ["kill", "kill-after"],
    "data-folder-sync": ["kill"],
    "log-entry": ["kill", "kill-after", "torn"],
    "log-entry-sync": ["kill"],
    "log-folder-sync": ["kill"],
    "files-published": ["kill", "kill-after"],
    "segment-removed": ["kill", "kill-after"],
}
REFUSALS = {
    "attempt-noted": ["enospc", "erofs"],
    "data-sync": ["eio", "enospc"],
    "data-placed": ["enospc", "erofs"],
    "data-folder-sync": ["eio"],
    "log-entry": ["enospc"],
    "log-entry-sync": ["eio"],
    "files-published": ["enospc"],
    "segment-removed": ["erofs"],
}


class World:
    """A spool into which segments arrive, and writers that work on it."""

    def __init__(self, home: Path) -> None:
        self.settings = Settings(home=home)
        self.spool = Spool(self.settings.spool_path)
        Lake.open(self.settings.lake_path)  # so that the first passage of a point is a commit's
        self._happened = home / "happened"
        self._segments = 0

    def arrive(self) -> None:
        """One more segment; its first spans repeat the last ones of the segment before."""
        numbers = range(self._segments * SPANS, (self._segments + 1) * SPANS)
        again = range(max(0, numbers[0] - 5), numbers[0])
        seal(self.spool, [traces([*again, *numbers[:10]]), logs(numbers), traces(numbers[10:]), points(numbers)])
        self._segments += 1

    def write(self, point: str, action: str, *, nth: int = 1) -> subprocess.CompletedProcess[str]:
        """Let a writer meet a fault; it must have happened."""
        self._happened.unlink(missing_ok=True)
        command = [sys.executable, "-m", "support.faults", "surefoot.processors.writer", "--once"]
        fault = faults.environment(point, action, self._happened, nth=nth)
        environment = os.environ | self.settings.to_environment() | fault
        environment["PYTHONPATH"] = str(Path(faults.__file__).parents[1])
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert self._happened.exists(), f"{point} was not passed {nth} times:\n{done.stderr}"
        return done

    def finish_and_check(self) -> None:
        command = [sys.executable, "-m", "surefoot.processors.writer", "--once"]
        environment = os.environ | self.settings.to_environment()
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        assert self.spool.sealed() == []
        assert self.spool.quarantined() == []
        assert held(Lake.open(self.settings.lake_path)) == once(range(self._segments * SPANS))


@pytest.mark.parametrize("point", KILLS)
def test_a_writer_killed_at(point: str, tmp_path: Path) -> None:
    world = World(tmp_path)
    for action in KILLS[point]:
        world.arrive()
        world.arrive()
        assert world.write(point, action).returncode == -9
    world.finish_and_check()


@pytest.mark.parametrize("point", REFUSALS)
def test_a_writer_refused_by_the_disk_at(point: str, tmp_path: Path) -> None:
    """Nobody has to help: the same process or the next one goes on once the disk works again."""
    world = World(tmp_path)
    for action in REFUSALS[point]:
        world.arrive()
        assert world.write(point, action).returncode >= 0
    world.finish_and_check()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_a_writer_killed_at_random_points(seed: int, tmp_path: Path) -> None:
    """Twenty kills a seed, each at a later passage of a point than the first."""
    dice = random.Random(seed)
    world = World(tmp_path)
    for _ in range(20):
        world.arrive()
        point = dice.choice(list(KILLS))
        most = 4 if point == "log-entry" or point.startswith("data") else 1
        assert world.write(point, dice.choice(KILLS[point]), nth=dice.randint(1, most)).returncode == -9
        if dice.random() < 0.5:
            world.finish_and_check()
    world.finish_and_check()
