"""The collector's front against rude clients: too fast, too slow, too many; and browsers, and probes."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
import pytest
from google.rpc.code_pb2 import RESOURCE_EXHAUSTED, UNAVAILABLE
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from support.otlp_clients import JSON, METHODS, PROTOBUF, call, detail, post, refusal
from support.serving import eventually
from surefoot.collector.errors import SpoolError, ThrottledError
from surefoot.collector.mounts import file_system, mountinfo, refuse_network
from surefoot.collector.rate import Rate
from surefoot.collector.segment import Signal
from surefoot.collector.spool import Spool
from surefoot.collector.testing import RunningCollector, collector_process, kept_records, trace_request

BODY = trace_request().SerializeToString()


def reasons(collector: RunningCollector) -> dict[str, int]:
    return {f"{r['transport']} {r['reason']}": r["total"] for r in collector.status["refusals"]}


# --- rates


def test_a_bucket_holds_a_second_and_fills_again() -> None:
    now = 100.0
    rate = Rate(3, lambda: now)
    for _ in range(3):
        rate.take("a")
    with pytest.raises(ThrottledError) as caught:
        rate.take("a")
    assert caught.value.retry_seconds == 1
    rate.take("b")  # each source has its own
    now += 0.7
    rate.take("a")
    rate.take("a")
    with pytest.raises(ThrottledError):
        rate.take("a")
    now += 3600
    for _ in range(3):  # never more than a second's worth
        rate.take("a")
    with pytest.raises(ThrottledError):
        rate.take("a")


def test_a_rate_below_one_says_how_long_to_wait() -> None:
    rate = Rate(0.1, lambda: 0.0)
    rate.take("a")
    with pytest.raises(ThrottledError) as caught:
        rate.take("a")
    assert caught.value.retry_seconds == 10


def test_too_many_requests_are_asked_to_come_again_and_the_real_exporters_do(tmp_path: Path) -> None:
    with collector_process(tmp_path / "spool", "--max-requests-per-second", "0.5") as collector:
        assert post(collector, "/v1/traces", BODY).code == 200
        answer = post(collector, "/v1/traces", BODY)
        assert (answer.code, answer.status.code) == (429, RESOURCE_EXHAUSTED)
        assert 1 <= int(answer.headers["retry-after"]) <= 2
        assert isinstance(detail(answer.status, RetryInfo), RetryInfo)
        call(collector, Signal.TRACES, BODY)
        code, status = refusal(lambda: call(collector, Signal.TRACES, BODY))
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        info = detail(status, RetryInfo)
        assert isinstance(info, RetryInfo)
        assert 1 <= info.retry_delay.seconds <= 2
        before = len(kept_records(collector.spool))
        for exporter in (GrpcSpans(endpoint=collector.grpc, insecure=True), HttpSpans(f"{collector.http}/v1/traces")):
            provider = TracerProvider()
            provider.add_span_processor(BatchSpanProcessor(exporter))
            for _ in range(2):
                provider.get_tracer("shop").start_span("work").end()
                provider.force_flush()
            provider.shutdown()
        assert len(kept_records(collector.spool)) == before + 4
        assert eventually("counts", lambda: (r := reasons(collector)).keys() >= {"http rate", "grpc rate"} and r)


# --- slow clients


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCollector]:
    spool = tmp_path_factory.mktemp("impatient") / "spool"
    flags = ("--read-timeout-seconds", "0.5", "--max-connections", "8", "--segment-seconds", "3600")
    with collector_process(spool, *flags) as collector:
        yield collector


def connected(collector: RunningCollector) -> socket.socket:
    host, port = urlsplit(collector.http).netloc.split(":")
    return socket.create_connection((host, int(port)), timeout=20)


def until_closed(client: socket.socket) -> bytes:
    data = b""
    try:
        while part := client.recv(65536):
            data += part
    except ConnectionError:
        pass
    return data


HEAD = f"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: {PROTOBUF}\r\nContent-Length: 1000\r\n".encode()


@pytest.mark.parametrize("sent", [b"", b"POST /v1/tr", HEAD], ids=["nothing", "half a line", "half a head"])
def test_a_head_that_does_not_come_costs_its_connection(impatient: RunningCollector, sent: bytes) -> None:
    with connected(impatient) as client:
        client.sendall(sent)
        assert until_closed(client) == b""
    assert post(impatient, "/v1/traces", BODY).code == 200


def test_a_head_byte_by_byte_is_cut_off_all_the_same(impatient: RunningCollector) -> None:
    def trickle(client: socket.socket) -> None:
        client.sendall(HEAD)
        for _ in range(200):
            client.sendall(b"X-Slow: 1\r\n")
            time.sleep(0.05)

    with connected(impatient) as client, pytest.raises(ConnectionError):
        trickle(client)
    assert eventually("a count", lambda: reasons(impatient).get("http slow"))


def test_a_body_that_does_not_come_is_asked_for_again(impatient: RunningCollector) -> None:
    with connected(impatient) as client:
        client.sendall(HEAD + b"\r\nabc")
        head, _, body = until_closed(client).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nRetry-After: 5" in head
    assert Status.FromString(body).code == UNAVAILABLE
    assert b"did not arrive within 0.5 s" in body


def test_a_connection_that_is_kept_gets_time_for_its_next_request(impatient: RunningCollector) -> None:
    whole = HEAD.replace(b"1000", str(len(BODY)).encode()) + b"\r\n" + BODY
    with connected(impatient) as client:
        for _ in range(2):
            client.sendall(whole)
            assert client.recv(65536).startswith(b"HTTP/1.1 200 ")
            time.sleep(0.8)  # longer than a head may take


def test_connections_beyond_the_limit_are_told_to_come_again(impatient: RunningCollector) -> None:
    clients = [connected(impatient) for _ in range(8)]
    with connected(impatient) as late:
        answer = until_closed(late)
    for client in clients:
        client.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nRetry-After: 5" in head
    assert json.loads(body)["code"] == 14
    eventually("room again", lambda: post(impatient, "/v1/traces", BODY).code == 200)
    assert eventually("a count", lambda: reasons(impatient).get("http connections"))


def test_grpc_calls_whose_request_does_not_come_do_not_hold_the_threads(impatient: RunningCollector) -> None:
    ended = threading.Event()
    with grpc.insecure_channel(impatient.grpc) as channel:
        slow = channel.stream_unary(METHODS[Signal.TRACES])

        def nothing() -> Iterator[bytes]:
            ended.wait(60)
            yield from ()

        calls = [slow.future(nothing(), timeout=60) for _ in range(40)]  # there are 32 threads
        call(impatient, Signal.TRACES, BODY)
        codes = {waiting.exception(60).code() for waiting in calls}
        ended.set()
    assert codes == {grpc.StatusCode.CANCELLED}
    assert eventually("a count", lambda: reasons(impatient).get("grpc incomplete"))


def test_more_streams_than_allowed_on_one_connection_wait_and_none_is_lost(tmp_path: Path) -> None:
    with collector_process(tmp_path / "spool", "--max-concurrent-streams", "2") as collector:
        with grpc.insecure_channel(collector.grpc) as channel:
            export = channel.unary_unary(METHODS[Signal.TRACES])
            export(b"", timeout=60)  # the client learns the limit with its first answer

            def deliver(_: int) -> bytes:
                while True:  # a stream that begins while another one ends may be refused, and refused means not read
                    try:
                        answer: bytes = export(BODY, timeout=60)
                    except grpc.RpcError as error:
                        if error.code() is not grpc.StatusCode.UNAVAILABLE:
                            raise
                    else:
                        return answer

            with ThreadPoolExecutor(50) as senders:
                assert list(senders.map(deliver, range(50))) == [b""] * 50
        assert len(kept_records(collector.spool)) == 50


# --- browsers


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCollector]:
    flags = ["--cors-origins", "https://app.example, https://*.shop.example", "--cors-headers", "X-Page"]
    with collector_process(
        tmp_path_factory.mktemp("pages") / "spool", *flags, "--cors-max-age-seconds=60"
    ) as collector:
        yield collector


def preflight(collector: RunningCollector, origin: str) -> Any:
    asks = {"Origin": origin, "Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": "content-type"}
    return post(collector, "/v1/traces", b"", None, method="OPTIONS", **asks)


@pytest.mark.parametrize("origin", ["https://app.example", "https://eu.shop.example"])
def test_a_page_of_a_chosen_origin_may_send(pages: RunningCollector, origin: str) -> None:
    answer = preflight(pages, origin)
    assert answer.code == 204
    assert answer.headers["access-control-allow-origin"] == origin
    assert answer.headers["access-control-allow-methods"] == "POST"
    assert answer.headers["access-control-allow-headers"] == "Content-Type, Content-Encoding, Authorization, X-Page"
    assert answer.headers["access-control-max-age"] == "60"
    assert answer.headers["vary"] == "Origin"
    assert "access-control-allow-credentials" not in answer.headers
    for body, code in ((b"{}", 200), (b"{", 400)):  # a refusal must be readable for the page as well
        answer = post(pages, "/v1/traces", body, JSON, Origin=origin)
        assert (answer.code, answer.headers["access-control-allow-origin"]) == (code, origin)


@pytest.mark.parametrize("origin", ["https://evil.example", "http://app.example", "https://shop.example", "null", ""])
def test_a_page_of_another_origin_gets_no_header(pages: RunningCollector, origin: str) -> None:
    answer = preflight(pages, origin)
    assert answer.code == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_without_the_setting_there_is_no_cors(impatient: RunningCollector) -> None:
    answer = post(impatient, "/v1/traces", b"{}", JSON, Origin="https://app.example")
    assert (answer.code, [n for n in answer.headers if n.startswith("access-control") or n == "vary"]) == (200, [])
    assert preflight(impatient, "https://app.example").code == 405


# --- probes


def test_alive_and_ready_and_not_ready_while_backlogged(tmp_path: Path) -> None:
    flags = ("--segment-seconds", "0.1", "--max-backlog-bytes", "5000")
    with collector_process(tmp_path / "spool", *flags) as collector:
        for probe in ("/healthz", "/readyz"):
            answer = post(collector, probe, b"", None, method="GET")
            assert (answer.code, json.loads(answer.body)["state"]) == (200, "ok")
        body = trace_request(50).SerializeToString()
        assert post(collector, "/v1/traces", body).code == 200
        eventually("the limit", lambda: post(collector, "/v1/traces", body).code == 503)
        answer = post(collector, "/readyz", b"", None, method="GET")
        assert (answer.code, json.loads(answer.body)["state"]) == (503, "backlogged")
        assert "writer" in json.loads(answer.body)["reason"]
        assert post(collector, "/healthz", b"", None, method="GET").code == 200
        age = eventually("an age", lambda: collector.status["oldest_sealed_seconds"])
        eventually("an older one", lambda: collector.status["oldest_sealed_seconds"] > age)
        assert reasons(collector)["http backlog"] >= 1
        spool = Spool(tmp_path / "spool")
        for path in spool.sealed():
            spool.remove(path)  # what the writer does
        eventually("ready", lambda: post(collector, "/readyz", b"", None, method="GET").code == 200)
        eventually("no age", lambda: collector.status["oldest_sealed_seconds"] is None)


# --- network file systems

MOUNTS = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:40 / /mnt/share rw,relatime shared:1 - nfs4 server:/export rw,vers=4.2
31 30 0:41 / /mnt/share/local rw - xfs /dev/vdb rw
32 22 0:42 / /mnt/with\\040space rw - cifs //server/x rw
33 22 0:43 / /mnt/ssh rw - fuse.sshfs me@host:/ rw
34 22 0:44 / /mnt/twice rw - nfs server:/old rw
35 34 0:45 / /mnt/twice rw - btrfs /dev/vdc rw
broken line
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/spool", "ext4"),
        ("/mnt/share/spool", "nfs4"),
        ("/mnt/share", "nfs4"),
        ("/mnt/shared", "ext4"),
        ("/mnt/share/local/spool", "xfs"),
        ("/mnt/with space/spool", "cifs"),
        ("/mnt/ssh/a/b/c", "fuse.sshfs"),
        ("/mnt/twice/spool", "btrfs"),
    ],
)
def test_a_spool_on_a_network_file_system_is_refused(path: str, kind: str) -> None:
    assert file_system(Path(path), MOUNTS) == kind
    if kind in ("nfs4", "cifs", "fuse.sshfs"):
        with pytest.raises(SpoolError, match=rf"network file system \({kind}\)"):
            refuse_network(Path(path), MOUNTS)
    else:
        refuse_network(Path(path), MOUNTS)


def test_this_system_tells_its_mounts_and_one_that_tells_nothing_refuses_nothing(tmp_path: Path) -> None:
    assert file_system(Path("/proc/self"), mountinfo()) == "proc"
    assert file_system(tmp_path, mountinfo()) is not None
    refuse_network(tmp_path, "")
