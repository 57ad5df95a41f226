from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from surefoot.collector import log as log_module
from surefoot.collector.errors import UnavailableError
from surefoot.collector.log import DurableLog
from surefoot.collector.segment import Encoding, Record, Signal, read_segment
from surefoot.collector.spool import Spool
from surefoot.collector.testing import kept_records

FOREVER = 3600.0


def record(body: bytes) -> Record:
    return Record(Signal.TRACES, Encoding.PROTOBUF, 1, "grpc", body)


def wait_until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Disk:
    """The real calls, which can be told to fail or to wait."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.failures: dict[str, int] = {}
        self.gate = threading.Event()
        self.gate.set()
        self.syncs = 0
        monkeypatch.setattr(log_module, "_PROBE_SECONDS", 0.05)
        for name in ("write", "fdatasync", "ftruncate", "replace"):
            monkeypatch.setattr(os, name, self._guarded(name, getattr(os, name)))

    def _guarded(self, name: str, real: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object) -> object:
            if name == "fdatasync":
                self.syncs += 1
                assert self.gate.wait(20)
            if name in self.failures:
                if name == "write":  # as on a disk that runs full: some of it still fits
                    real(arguments[0], bytes(arguments[1])[:20])  # type: ignore[call-overload] # a buffer
                number = self.failures[name]
                raise OSError(number, os.strerror(number))
            return real(*arguments)

        return call


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path)


@pytest.fixture
def log(spool: Spool) -> Iterator[DurableLog]:
    log = DurableLog(spool, segment_bytes=1 << 20, segment_seconds=FOREVER)
    yield log
    log.close()


def refused(future: Future[None]) -> UnavailableError:
    error = future.exception(20)
    assert isinstance(error, UnavailableError)
    return error


def test_nothing_is_acknowledged_before_it_is_synced_and_those_who_wait_share_a_sync(
    disk: Disk, log: DurableLog, spool: Spool
) -> None:
    disk.gate.clear()
    first = log.append(record(b"first"))
    wait_until(lambda: disk.syncs == 1)
    others = [log.append(record(b"%d" % number)) for number in range(50)]
    assert not first.done()
    assert not any(future.done() for future in others)
    disk.gate.set()
    for future in (first, *others):
        future.result(20)
    assert disk.syncs == 2
    assert [kept.body for kept in kept_records(spool.path)] == [b"first", *(b"%d" % number for number in range(50))]


def test_a_segment_is_sealed_at_its_size(spool: Spool) -> None:
    log = DurableLog(spool, segment_bytes=1000, segment_seconds=FOREVER)
    for number in range(5):
        log.append(record(b"%d" % number * 400)).result(20)
    wait_until(lambda: log.sealed_total == 1)
    assert len(spool.sealed()) == 1
    assert len(read_segment(spool.sealed()[0]).records) == 3
    log.close()
    assert [read_segment(path).sequence for path in spool.sealed()] == [1, 2]


def test_a_segment_is_sealed_at_its_age_though_nothing_more_arrives(spool: Spool) -> None:
    log = DurableLog(spool, segment_bytes=1 << 20, segment_seconds=0.1)
    log.append(record(b"alone")).result(20)
    wait_until(lambda: len(spool.sealed()) == 1)
    assert spool.unsealed() == []
    log.close()


def test_closing_writes_what_waits_and_seals(disk: Disk, spool: Spool) -> None:
    log = DurableLog(spool, segment_bytes=1 << 20, segment_seconds=FOREVER)
    disk.gate.clear()
    futures = [log.append(record(b"%d" % number)) for number in range(20)]
    threading.Timer(0.05, disk.gate.set).start()
    log.close()
    assert all(future.done() and future.exception() is None for future in futures)
    assert len(kept_records(spool.path)) == 20
    assert spool.unsealed() == []


@pytest.mark.parametrize(
    ("call", "number", "reason"),
    [
        ("write", errno.ENOSPC, "the disk is full"),
        ("write", errno.EROFS, "the disk is read-only"),
        ("fdatasync", errno.EIO, "the disk reports an error"),
        ("fdatasync", errno.ENOSPC, "the disk is full"),
        ("write", errno.EPERM, "writing failed: [Errno 1] Operation not permitted"),
    ],
)
def test_a_failing_disk_refuses_keeps_what_was_acknowledged_and_recovers(
    disk: Disk, log: DurableLog, spool: Spool, call: str, number: int, reason: str
) -> None:
    log.append(record(b"before")).result(20)
    disk.failures[call] = number
    error = refused(log.append(record(b"refused" * 20)))
    assert reason in str(error)
    assert error.retry_seconds > 0
    assert log.trouble == reason
    refused(log.append(record(b"refused too")))

    disk.failures.clear()
    wait_until(lambda: log.trouble is None)  # by itself, without a request
    log.append(record(b"after")).result(20)
    paths = spool.sealed() + spool.unsealed()
    assert [damage for path in paths for damage in read_segment(path).damage] == []
    assert [kept.body for kept in kept_records(spool.path)] == [b"before", b"after"]


def test_a_tail_that_cannot_be_cut_stays_and_nothing_is_written_after_it(
    disk: Disk, log: DurableLog, spool: Spool
) -> None:
    log.append(record(b"before")).result(20)
    disk.failures.update(write=errno.EIO, ftruncate=errno.EIO)
    refused(log.append(record(b"refused" * 20)))
    disk.failures.clear()
    log.append(record(b"after")).result(20)
    first = read_segment(spool.sealed()[0])
    assert [kept.body for kept in first.records] == [b"before"]
    assert [damage.torn for damage in first.damage] == [True]
    assert [kept.body for kept in kept_records(spool.path)] == [b"before", b"after"]


def test_no_segment_is_begun_before_the_one_before_it_is_sealed(disk: Disk, spool: Spool) -> None:
    # The writer counts every number below its highest as done: a segment sealed out of order would never be read.
    log = DurableLog(spool, segment_bytes=1, segment_seconds=FOREVER)
    disk.gate.clear()
    first = log.append(record(b"1"))
    wait_until(lambda: disk.syncs == 1)
    disk.failures["replace"] = errno.EIO
    disk.gate.set()
    first.result(20)
    wait_until(lambda: log.trouble is not None)  # it could not be sealed
    refused(log.append(record(b"2")))
    assert spool.sealed() == []
    assert [kept.body for kept in kept_records(spool.path)] == [b"1"]
    disk.failures.clear()
    wait_until(lambda: len(spool.sealed()) == 1)  # made up for without a request
    log.append(record(b"2")).result(20)
    log.close()
    assert [kept.body for path in spool.sealed() for kept in read_segment(path).records] == [b"1", b"2"]


def test_failures_leave_no_litter(disk: Disk, log: DurableLog, spool: Spool) -> None:
    disk.failures["write"] = errno.ENOSPC
    for number in range(20):
        refused(log.append(record(b"%d" % number)))
    assert spool.unsealed() == spool.sealed() == []


def test_a_caller_that_gives_up_does_not_take_the_group_with_it(disk: Disk, log: DurableLog) -> None:
    disk.gate.clear()
    first = log.append(record(b"1"))
    assert not first.cancel()
    disk.gate.set()
    log.append(record(b"2")).result(20)
    assert first.result(20) is None
