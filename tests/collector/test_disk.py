"""A disk that runs full under a real collector: nothing acknowledged is lost, and it recovers by itself."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo

from support.otlp_clients import call, detail, post, refusal
from support.serving import eventually
from surefoot.collector.segment import Signal
from surefoot.collector.testing import RunningCollector, collector_process, kept_records, trace_request


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    path = tmp_path / "disk"
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(path)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("mounting a small file system needs root; test_a_limit_on_file_sizes covers the rest")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def body(size: int) -> bytes:
    return trace_request(1, os.urandom(size // 2).hex()).SerializeToString()


def fill(ballast: Path) -> None:
    """Write until nothing fits."""
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


def assert_refused_for_now(collector: RunningCollector, request: bytes, words: str) -> None:
    code, status = refusal(lambda: call(collector, Signal.TRACES, request))
    assert code is grpc.StatusCode.UNAVAILABLE
    assert words in status.message
    assert isinstance(detail(status, RetryInfo), RetryInfo)
    answer = post(collector, "/v1/traces", request)
    assert (answer.code, int(answer.headers["retry-after"]) >= 1) == (503, True)
    assert words in answer.status.message


def test_a_full_disk_stops_acknowledgements_and_says_so_until_there_is_room(small_disk: Path) -> None:
    spool = small_disk / "spool"  # and its status beside it, on the disk that runs full
    with collector_process(spool) as collector:
        kept = [body(1000) for _ in range(3)]
        for request in kept:
            call(collector, Signal.TRACES, request)
        eventually("a status", (small_disk / "status" / "collector.json").exists)
        ballast = small_disk / "ballast"
        fill(ballast)
        assert_refused_for_now(collector, body(50_000), "the disk is full")
        said = eventually("the disk in the status", lambda: collector.status["state"] == "disk" and collector.status)
        assert said["reason"] == "the disk is full"
        deferred = [c for c in said["counts"] if c["name"] == "deferred_requests"]
        assert sum(count["total"] for count in deferred) == 2

        ballast.unlink()
        eventually("recovery without a request", lambda: collector.status["state"] == "ok")
        kept.append(body(50_000))
        call(collector, Signal.TRACES, kept[-1])
        kept.append(body(50_000))
        assert post(collector, "/v1/traces", kept[-1]).code == 200
    assert [record.body for record in kept_records(spool)] == kept


def test_a_limit_on_file_sizes_refuses_what_does_not_fit_and_keeps_the_rest(tmp_path: Path) -> None:
    # Needs no root: the kernel refuses to let a file grow, in the middle of a write.
    with collector_process(tmp_path / "spool") as collector:
        kept = [body(1000)]
        call(collector, Signal.TRACES, kept[0])
        before = resource.prlimit(collector.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(collector.process.pid, resource.RLIMIT_FSIZE, (64_000, before[1]))
        assert_refused_for_now(collector, body(200_000), "a file may not grow any more")
        kept.append(body(2000))
        call(collector, Signal.TRACES, kept[1])
        resource.prlimit(collector.process.pid, resource.RLIMIT_FSIZE, before)
        kept.append(body(200_000))
        call(collector, Signal.TRACES, kept[2])
    assert [record.body for record in kept_records(tmp_path / "spool")] == kept
