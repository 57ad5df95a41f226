"""kill -9 at random moments: every acknowledged request is in the segments, whole and byte for byte."""

from __future__ import annotations

import os
import random
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest

from support.otlp_clients import METHODS, PROTOBUF
from surefoot.collector.segment import Signal, read_segment
from surefoot.collector.spool import Spool
from surefoot.collector.testing import RunningCollector, collector_process, trace_request


@dataclass
class Sender:
    """Sends one fresh request after another to a collector until it is gone; remembers what was acknowledged."""

    collector: RunningCollector
    transport: str
    dice: random.Random
    killed: threading.Event  # set just before the kill: errors are expected from then on
    acknowledged: list[bytes] = field(default_factory=list)

    def run(self) -> None:
        send = self._grpc if self.transport == "grpc" else self._http
        while True:
            size = self.dice.choice([10, 1_000, 100_000, 1_000_000])
            body = trace_request(2, os.urandom(size // 2).hex()).SerializeToString()
            try:
                send(body)
            except (grpc.RpcError, urllib.error.URLError, OSError):
                assert self.killed.is_set(), "refused before the kill"
                return
            self.acknowledged.append(body)

    def _grpc(self, body: bytes) -> None:
        with grpc.insecure_channel(self.collector.grpc, options=[("grpc.enable_retries", 0)]) as channel:
            channel.unary_unary(METHODS[Signal.TRACES])(body, timeout=30)

    def _http(self, body: bytes) -> None:
        request = urllib.request.Request(f"{self.collector.http}/v1/traces", body, {"Content-Type": PROTOBUF})
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.status == 200


def a_life(spool: Path, dice: random.Random) -> list[bytes]:
    """A collector from its start to a kill at a random moment; returns what it acknowledged."""
    with collector_process(spool, "--segment-seconds", "0.2", "--segment-bytes", "3000000") as collector:
        killed = threading.Event()
        senders = [Sender(collector, transport, dice, killed) for transport in ("grpc", "http", "grpc", "http")]
        threads = [threading.Thread(target=sender.run) for sender in senders]
        for thread in threads:
            thread.start()
        time.sleep(dice.uniform(0.02, 0.6))
        killed.set()
        collector.kill()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        return [body for sender in senders for body in sender.acknowledged]


def attack(spool: Path, kills: int, seed: int) -> None:
    dice = random.Random(seed)
    acknowledged = [body for _ in range(kills) for body in a_life(spool, dice)]
    with collector_process(spool):
        pass  # recovers what the last one left open
    assert Spool(spool).unsealed() == []
    segments = [read_segment(path) for path in Spool(spool).sealed()]
    assert [segment.damage for segment in segments if segment.damage] == []
    assert len({segment.receiver_id for segment in segments}) == 1
    sequences = [segment.sequence for segment in segments]
    assert sequences == sorted(set(sequences))
    kept = Counter(record.body for segment in segments for record in segment.records)
    assert len(acknowledged) > kills
    assert [len(body) for body in acknowledged if kept[body] != 1] == []


def test_kill_nine_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    attack(tmp_path / "spool", kills=5, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 12))
def test_kill_nine_two_hundred_times(tmp_path: Path, seed: int) -> None:
    attack(tmp_path / "spool", kills=20, seed=seed)
