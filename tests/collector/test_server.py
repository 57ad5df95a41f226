"""The process: ready line, refusals to start, draining, what it says about itself."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import grpc
import pytest

from support.otlp_clients import JSON, call, post, refusal
from support.serving import eventually
from surefoot.collector.segment import Signal, read_segment
from surefoot.collector.spool import Spool
from surefoot.collector.testing import (
    RunningCollector,
    collector_process,
    kept_records,
    log_request,
    metric_request,
    trace_request,
)


def start(spool: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """A collector that must refuse to start."""
    command = [sys.executable, "-m", "surefoot.collector", "--spool", str(spool), *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("flag", ["--port-grpc", "--port-http"])
def test_a_taken_port_is_named_with_who_to_ask_and_what_to_do(tmp_path: Path, flag: str) -> None:
    other = {"--port-grpc": "--port-http", "--port-http": "--port-grpc"}[flag]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = start(tmp_path / "spool", flag, str(port), other, "0")
    assert ended.returncode == 3
    assert f"Cannot listen on 127.0.0.1:{port}" in ended.stderr
    assert f"ss -ltnp 'sport = :{port}'" in ended.stderr
    assert f"choose another with {flag}, 0 for any free one" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""


def test_a_second_collector_on_the_same_spool_is_refused(tmp_path: Path) -> None:
    with collector_process(tmp_path / "spool") as collector:
        ended = start(tmp_path / "spool", "--port-grpc", "0", "--port-http", "0")
        assert ended.returncode == 2
        assert f"is used by another collector (process {collector.process.pid})" in ended.stderr
        assert "Traceback" not in ended.stderr
        call(collector, Signal.TRACES, trace_request().SerializeToString())  # the first one is unharmed


def test_a_spool_that_cannot_be_used_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    ended = start(tmp_path / "file" / "spool")
    assert (ended.returncode, "Traceback" in ended.stderr) == (2, False)
    assert "Cannot use" in ended.stderr


def test_it_listens_on_loopback_only(tmp_path: Path) -> None:
    with collector_process(tmp_path / "spool") as collector:
        assert collector.grpc.startswith("127.0.0.1:")
        assert collector.http.startswith("http://127.0.0.1:")
        ports = {f"{int(collector.grpc.split(':')[1]):04X}", f"{int(collector.http.split(':')[2]):04X}"}
        lines = Path("/proc/net/tcp").read_text().splitlines() + Path("/proc/net/tcp6").read_text().splitlines()
        local = [line.split()[1].split(":") for line in lines[1:] if line.split()[3] == "0A"]
        ours = [(address, port) for address, port in local if port in ports]
        assert {port for _, port in ours} == ports
        assert {address for address, _ in ours} <= {"0100007F", "0000000000000000FFFF00000100007F"}  # 127.0.0.1


def test_sigterm_drains_every_acknowledged_request_is_sealed(tmp_path: Path) -> None:
    acknowledged: list[bytes] = []

    def send(collector: RunningCollector, transport: str) -> None:
        while True:
            body = trace_request(1, os.urandom(500).hex()).SerializeToString()
            try:
                if transport == "grpc":
                    call(collector, Signal.TRACES, body)
                elif post(collector, "/v1/traces", body).code != 200:
                    return
            except (grpc.RpcError, OSError):
                return  # the listener is gone
            acknowledged.append(body)

    with collector_process(tmp_path / "spool") as collector:
        threads = [threading.Thread(target=send, args=(collector, transport)) for transport in ("grpc", "http") * 2]
        for thread in threads:
            thread.start()
        eventually("some requests", lambda: len(acknowledged) > 30)
        assert collector.stop() == 0
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
    spool = Spool(tmp_path / "spool")
    assert spool.unsealed() == []
    kept = [record.body for path in spool.sealed() for record in read_segment(path).records]
    assert set(acknowledged) <= set(kept)


def counts(status: dict[str, Any]) -> dict[tuple[str, str, str], int]:
    return {(c["signal"], c["transport"], c["name"]): c["total"] for c in status["counts"]}


def test_the_status_counts_what_happened(tmp_path: Path) -> None:
    half_bad = trace_request(5)
    half_bad.resource_spans[0].scope_spans[0].spans[0].trace_id = b""
    with collector_process(tmp_path / "spool", "--segment-seconds", "0.1") as collector:
        call(collector, Signal.TRACES, trace_request(7).SerializeToString())
        call(collector, Signal.TRACES, half_bad.SerializeToString())
        call(collector, Signal.METRICS, metric_request(3).SerializeToString())
        post(collector, "/v1/logs", log_request(2).SerializeToString())
        post(collector, "/v1/logs", b"{}", JSON)
        post(collector, "/v1/logs", b"{", JSON)
        post(collector, "/v1/logs", b"x", "text/plain")
        post(collector, "/v1/logs", b"x", Content_Encoding="gzip")
        refusal(lambda: call(collector, Signal.LOGS, b"junk"))
        eventually(
            "sealed", lambda: collector.status["sealed_segments"] >= 1 and collector.status["open_segments"] == 0
        )
        status = collector.status
    assert counts(status) == {
        ("traces", "grpc", "accepted_requests"): 2,
        ("traces", "grpc", "accepted_items"): 11,
        ("traces", "grpc", "rejected_items"): 1,
        ("metrics", "grpc", "accepted_requests"): 1,
        ("metrics", "grpc", "accepted_items"): 3,
        ("metrics", "grpc", "rejected_items"): 0,
        ("logs", "http", "accepted_requests"): 2,
        ("logs", "http", "accepted_items"): 2,
        ("logs", "http", "rejected_items"): 0,
        ("logs", "http", "refused_requests"): 3,
        ("logs", "grpc", "refused_requests"): 1,
    }
    assert (status["state"], status["reason"], status["quarantined"], status["recovered"]) == ("ok", None, [], [])
    assert status["backlog_bytes"] >= status["bytes_total"] > 0
    assert status["started"] <= status["at"]
    assert 1 <= status["syncs_total"] <= 4
    assert status["sealed_total"] == status["sealed_segments"]


def test_a_backlog_refuses_and_ends_when_the_writer_catches_up(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    flags = ("--segment-seconds", "0.1", "--max-backlog-bytes", "5000")
    with collector_process(spool.path, *flags) as collector:
        body = trace_request(50).SerializeToString()
        assert post(collector, "/v1/traces", body).code == 200
        eventually("the limit", lambda: post(collector, "/v1/traces", body).code == 503)
        assert refusal(lambda: call(collector, Signal.TRACES, body))[0] is grpc.StatusCode.UNAVAILABLE
        status = eventually("the state", lambda: (now := collector.status)["state"] == "backlogged" and now)
        assert "see the writer" in status["reason"]
        eventually("a sealed segment", lambda: spool.unsealed() == [])
        for path in spool.sealed():
            spool.remove(path)  # what the writer does
        eventually("the end of it", lambda: collector.status["state"] == "ok")  # without a request
        assert post(collector, "/v1/traces", body).code == 200


def test_what_was_recovered_is_said(tmp_path: Path) -> None:
    with collector_process(tmp_path / "spool", "--segment-seconds", "3600") as collector:
        for _ in range(2):
            call(collector, Signal.TRACES, trace_request().SerializeToString())
        collector.kill()
    (path,) = Spool(tmp_path / "spool").unsealed()
    path.write_bytes(path.read_bytes()[:-7])
    with collector_process(tmp_path / "spool") as collector:
        (sentence,) = eventually("a status", lambda: collector.status["recovered"])
    assert sentence.startswith(f"{path.name}: cut ")
    assert len(kept_records(tmp_path / "spool")) == 1


def test_bytes_in_the_name_of_an_import_that_are_no_text_cost_no_request(tmp_path: Path) -> None:
    body = trace_request().SerializeToString()
    with collector_process(tmp_path / "spool") as collector:
        host, port = collector.http.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            head = f"POST /v1/traces HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n"
            connection.sendall(
                head.encode() + b"Content-Type: application/x-protobuf\r\nSurefoot-Import: a\xff\r\n\r\n" + body
            )
            assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")
    assert [record.source for record in kept_records(tmp_path / "spool")] == ["import:a?"]
