"""The collector dies or is refused by the disk at each named point: what it acknowledged reaches the lake exactly once.

The sender does as exporters do: it sends a request again until it is acknowledged, so a request that was stored and not
acknowledged comes twice, and the lake must still hold it once.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import faults
from support.otlp_clients import PROTOBUF
from support.segments import traces
from surefoot.collector.spool import Spool
from surefoot.processors.lake import Lake
from surefoot.processors.settings import Settings
from surefoot.processors.writer import run as write

SPANS = 5  # per request
KILLS = {
    "segment-number": ["kill", "kill-after"],
    "segment-write": ["kill", "torn", "kill-after"],
    "segment-sync": ["kill", "kill-after"],
    "segment-seal": ["kill", "kill-after"],
    "sealed-folder-sync": ["kill"],
}
REFUSALS = {
    "segment-number": ["enospc", "erofs"],
    "segment-write": ["enospc", "eio"],
    "segment-sync": ["eio"],
    "segment-seal": ["erofs"],
    "sealed-folder-sync": ["eio"],
}


class World:
    """A spool, collectors that meet faults, and a sender that remembers what it could not deliver yet."""

    def __init__(self, home: Path) -> None:
        self.settings = Settings(home=home)
        self._happened = home / "happened"
        self._spans = 0
        self._waiting: list[bytes] = []
        self.acknowledged = 0

    @contextlib.contextmanager
    def collector(self, **fault: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
        module = ["support.faults", "surefoot.collector"] if fault else ["surefoot.collector"]
        flags = ["--spool", str(self.settings.spool_path), "--port-grpc", "0", "--port-http", "0"]
        command = [sys.executable, "-m", *module, *flags, "--segment-seconds", "0.1", "--segment-bytes", "2000"]
        environment = os.environ | {"PYTHONPATH": str(Path(faults.__file__).parents[1])} | fault
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            yield process, json.loads(line)["http"] if line else ""
            process.terminate()

    def send(self, url: str) -> bool:
        """Deliver the oldest request, or a new one; False if it was not acknowledged and must be sent again."""
        if not self._waiting:
            numbers = range(self._spans, self._spans + SPANS)
            self._spans += SPANS
            self._waiting.append(traces(numbers).body)
        request = urllib.request.Request(f"{url}/v1/traces", self._waiting[0], {"Content-Type": PROTOBUF})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                assert answer.status == 200
        except urllib.error.HTTPError as error:
            if error.code != 503:
                pytest.fail(f"{error.code}: {error.read()!r}")
            return False
        except OSError:
            return False  # it died
        self._waiting.pop(0)
        self.acknowledged += 1
        return True

    def meet(self, point: str, action: str, *, nth: int = 1) -> None:
        """Send until the fault has happened: then the collector is dead, or takes requests again by itself."""
        self._happened.unlink(missing_ok=True)
        with self.collector(**faults.environment(point, action, self._happened, nth=nth)) as (process, url):
            assert url or action not in faults.ERRORS
            while process.poll() is None and not self._happened.exists():
                self.send(url)
            if action in faults.ERRORS:
                while not self.send(url):
                    assert process.poll() is None
            else:
                assert process.wait(30) == -9
        assert self._happened.exists()

    def finish_and_check(self) -> None:
        with self.collector() as (_, url):
            while not self.send(url):
                pass
        spool = Spool(self.settings.spool_path)
        assert spool.unsealed() == []
        write(self.settings, threading.Event(), once=True)
        assert spool.sealed() == []
        assert spool.quarantined() == []
        names = Lake.open(self.settings.lake_path).read("spans", ["name"])["name"].to_pylist()
        assert sorted(names) == sorted(f"span {number}" for number in range(self._spans))
        assert self.acknowledged * SPANS == self._spans


@pytest.mark.parametrize("point", KILLS)
def test_a_collector_killed_at(point: str, tmp_path: Path) -> None:
    world = World(tmp_path)
    for action in KILLS[point]:
        world.meet(point, action)
        world.meet(point, action, nth=2)
    world.finish_and_check()


@pytest.mark.parametrize("point", REFUSALS)
def test_a_collector_refused_by_the_disk_at(point: str, tmp_path: Path) -> None:
    world = World(tmp_path)
    for action in REFUSALS[point]:
        world.meet(point, action, nth=2)
    world.finish_and_check()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_a_collector_killed_at_random_points(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    world = World(tmp_path)
    for _ in range(20):
        point = dice.choice(list(KILLS))
        world.meet(point, dice.choice(KILLS[point]), nth=dice.randint(1, 10))
    world.finish_and_check()
