"""Who may send: tokens, TLS, client certificates, and the refusal to open by accident."""

from __future__ import annotations

import contextlib
import http.client
import logging
import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
import pytest
from google.rpc.code_pb2 import UNAUTHENTICATED
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpans
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from support.certificates import Pair, self_signed
from support.otlp_clients import METHODS, PROTOBUF, Answer, call, post, refusal
from support.serving import eventually
from surefoot.collector.auth import Authenticator, add_token, read_tokens, revoke_token
from surefoot.collector.config import Config
from surefoot.collector.errors import ExposureError, UnauthenticatedError
from surefoot.collector.exposure import certificates, check_exposure, is_loopback
from surefoot.collector.segment import Signal
from surefoot.collector.testing import RunningCollector, collector_process, kept_records, trace_request


@pytest.fixture(autouse=True)
def _own_authorities(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # the HTTP exporter's library puts these above its argument
        monkeypatch.delenv(name, raising=False)


def one_span() -> list[ReadableSpan]:
    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    provider.get_tracer("shop").start_span("work").end()
    provider.shutdown()
    return list(memory.get_finished_spans())


@dataclass(frozen=True)
class Guarded:
    running: RunningCollector
    pair: Pair
    tokens: Path
    token: str


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A collector with TLS and one token, named laptop."""
    folder = tmp_path_factory.mktemp("guarded")
    pair, tokens = self_signed(folder), folder / "tokens"
    token = add_token(tokens, "laptop")
    flags = ["--tls-certificate", str(pair.chain), "--tls-key", str(pair.key), "--tokens", str(tokens)]
    with collector_process(folder / "spool", "--segment-seconds", "3600", *flags) as running:
        yield Guarded(running, pair, tokens, token)


def exporter(guarded: Guarded, transport: str, token: str) -> SpanExporter:
    headers = {"authorization": f"Bearer {token}"}
    if transport == "http":
        url = f"{guarded.running.http}/v1/traces"
        return HttpSpans(endpoint=url, certificate_file=str(guarded.pair.chain), headers=headers)
    credentials = grpc.ssl_channel_credentials(guarded.pair.chain.read_bytes())
    return GrpcSpans(endpoint=guarded.running.grpc, credentials=credentials, headers=headers)


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_the_real_exporters_send_over_tls_and_their_token_names_the_source(guarded: Guarded, transport: str) -> None:
    assert guarded.running.http.startswith("https://127.0.0.1:")
    before = len(kept_records(guarded.running.spool))
    sending = exporter(guarded, transport, guarded.token)
    assert sending.export(one_span()) is SpanExportResult.SUCCESS
    sending.shutdown()
    (kept,) = kept_records(guarded.running.spool)[before:]
    assert (kept.signal, kept.source) == (Signal.TRACES, "laptop")


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_the_real_exporters_with_another_token_fail(guarded: Guarded, transport: str) -> None:
    before = len(kept_records(guarded.running.spool))
    sending = exporter(guarded, transport, guarded.token[:-1])
    assert sending.export(one_span()) is SpanExportResult.FAILURE
    sending.shutdown()
    assert len(kept_records(guarded.running.spool)) == before


def over_tls(guarded: Guarded, path: str, body: bytes, **headers: str) -> Answer:
    context = ssl.create_default_context(cafile=str(guarded.pair.chain))
    connection = http.client.HTTPSConnection(urlsplit(guarded.running.http).netloc, timeout=30, context=context)
    with contextlib.closing(connection):
        connection.request("POST", path, body, {"Content-Type": PROTOBUF, **headers})
        response = connection.getresponse()
        return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic bGFwdG9wOng=", "Bearer sft_wrong", "sft_x"])
def test_without_a_known_token_http_is_401_with_a_status(guarded: Guarded, header: str | None) -> None:
    answer = over_tls(guarded, "/v1/traces", b"", **({} if header is None else {"Authorization": header}))
    assert (answer.code, answer.headers["content-type"]) == (401, PROTOBUF)
    assert answer.headers["www-authenticate"] == 'Bearer realm="surefoot"'
    assert answer.status.code == UNAUTHENTICATED
    assert "oken" in answer.status.message


def test_without_a_token_grpc_is_unauthenticated_before_the_request_is_read(guarded: Guarded) -> None:
    credentials = grpc.ssl_channel_credentials(guarded.pair.chain.read_bytes())
    with grpc.secure_channel(guarded.running.grpc, credentials) as channel:
        code, status = refusal(lambda: channel.unary_unary(METHODS[Signal.TRACES])(b"", timeout=30))
        assert (code, status.code) == (grpc.StatusCode.UNAUTHENTICATED, UNAUTHENTICATED)
        silent = channel.stream_unary(METHODS[Signal.TRACES])
        ended = threading.Event()

        def nothing() -> Iterator[bytes]:
            ended.wait(60)
            yield from ()

        assert refusal(lambda: silent(nothing(), timeout=30))[0] is grpc.StatusCode.UNAUTHENTICATED
        ended.set()
    refused = eventually("a count", lambda: [r for r in guarded.running.status["refusals"] if r["transport"] == "grpc"])
    assert {(r["what"], r["reason"]) for r in refused} == {("requests", "unauthenticated")}


def test_plain_text_gets_nowhere_on_a_tls_port(guarded: Guarded) -> None:
    plain = RunningCollector(
        guarded.running.grpc,
        guarded.running.http.replace("https", "http"),
        guarded.running.spool,
        guarded.running.process,
    )
    with pytest.raises((http.client.HTTPException, OSError)):
        post(plain, "/v1/traces", b"")
    with pytest.raises(grpc.RpcError):
        call(plain, Signal.TRACES, b"")


def test_tokens_are_added_and_revoked_while_it_runs(guarded: Guarded) -> None:
    second = add_token(guarded.tokens, "desk")
    body = trace_request().SerializeToString()

    def code() -> int:
        return over_tls(guarded, "/v1/traces", body, Authorization=f"Bearer {second}").code

    eventually("the new token is known", lambda: code() == 200)
    assert kept_records(guarded.running.spool)[-1].source == "desk"
    revoke_token(guarded.tokens, "desk")
    eventually("it is refused", lambda: code() == 401)


def test_a_client_authority_lets_in_only_whom_it_signed(tmp_path: Path) -> None:
    server, client, stranger = (self_signed(tmp_path, name) for name in ("server", "client", "stranger"))
    flags = ["--tls-certificate", str(server.chain), "--tls-key", str(server.key), "--tls-client-ca", str(client.chain)]
    with collector_process(tmp_path / "spool", *flags) as running:

        def grpc_as(who: Pair | None) -> SpanExportResult:
            mine = (who.key.read_bytes(), who.chain.read_bytes()) if who else (None, None)
            credentials = grpc.ssl_channel_credentials(server.chain.read_bytes(), *mine)
            sending = GrpcSpans(endpoint=running.grpc, credentials=credentials, timeout=2)
            try:
                return sending.export(one_span())
            finally:
                sending.shutdown()

        def http_as(who: Pair | None) -> SpanExportResult:
            mine: dict[str, Any] = (
                {"client_certificate_file": str(who.chain), "client_key_file": str(who.key)} if who else {}
            )
            url = f"{running.http}/v1/traces"
            sending = HttpSpans(endpoint=url, certificate_file=str(server.chain), timeout=2, **mine)
            try:
                return sending.export(one_span())
            finally:
                sending.shutdown()

        assert [send(client) for send in (grpc_as, http_as)] == [SpanExportResult.SUCCESS] * 2
        assert [send(stranger) for send in (grpc_as, http_as)] == [SpanExportResult.FAILURE] * 2
        assert [send(None) for send in (grpc_as, http_as)] == [SpanExportResult.FAILURE] * 2
        assert len(kept_records(running.spool)) == 2


def start(*flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "surefoot.collector", "--port-grpc", "0", "--port-http", "0", *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_it_does_not_open_to_the_network_by_accident(tmp_path: Path) -> None:
    ended = start("--spool", str(tmp_path / "spool"), "--host", "0.0.0.0")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "without a TLS certificate and its key" in ended.stderr
    assert "bearer tokens" in ended.stderr
    assert "--insecure-open" in ended.stderr
    assert not (tmp_path / "spool").exists()


def test_each_missing_half_is_named_and_both_together_are_enough(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spool, some = tmp_path / "spool", tmp_path / "some"
    with pytest.raises(ExposureError, match=r"without bearer tokens \("):
        check_exposure(Config(spool, host="::", tls_certificate=some, tls_key=some))
    with pytest.raises(ExposureError, match=r"without a TLS certificate and its key \(\w+, \w+\)\. Add"):
        check_exposure(Config(spool, host="collector.example", tokens=some))
    check_exposure(Config(spool, host="0.0.0.0", tls_certificate=some, tls_key=some, tokens=some))
    assert caplog.records == []
    check_exposure(Config(spool, host="0.0.0.0", insecure_open=True))
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "INSECURE" in caplog.text


def test_what_is_loopback() -> None:
    assert all(map(is_loopback, ["127.0.0.1", "127.3.2.1", "::1", "[::1]", "localhost"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "10.0.0.1", "192.168.1.4", "fe80::1", "example.org", ""]))


def test_certificates_that_cannot_be_used_are_a_sentence(tmp_path: Path) -> None:
    one, other = self_signed(tmp_path, "one"), self_signed(tmp_path, "other")
    spool = tmp_path / "spool"
    with pytest.raises(ExposureError, match="takes both"):
        certificates(Config(spool, tls_certificate=one.chain))
    with pytest.raises(ExposureError, match="for TLS"):
        certificates(Config(spool, tls_certificate=one.chain, tls_key=other.key))
    with pytest.raises(ExposureError, match="for TLS"):
        certificates(Config(spool, tls_certificate=tmp_path / "missing", tls_key=one.key))
    with pytest.raises(ExposureError, match="needs tls_certificate"):
        certificates(Config(spool, tls_client_ca=one.chain))
    ended = start("--spool", str(spool), "--tls-certificate", str(one.chain), "--tls-key", str(other.key))
    assert (ended.returncode, "Traceback" in ended.stderr) == (2, False)


def test_the_file_holds_hashes_and_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "tokens"
    tokens = {name: add_token(path, name) for name in ("laptop", "ci.main")}
    assert len(set(tokens.values())) == 2
    text = path.read_text()
    assert not any(token in text or token.removeprefix("sft_") in text for token in tokens.values())
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(read_tokens(path)) == ["ci.main", "laptop"]
    door = Authenticator(path)
    assert {name: door.source(f"bearer {token}") for name, token in tokens.items()} == {name: name for name in tokens}
    with pytest.raises(ExposureError, match="already"):
        add_token(path, "laptop")
    with pytest.raises(ExposureError, match="cannot name"):
        add_token(path, "a:b")
    with pytest.raises(ExposureError, match=r"it has ci\.main, laptop"):
        revoke_token(path, "phone")


def test_commands_at_one_time_bring_no_revoked_token_back(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    work = "import sys; from pathlib import Path; from surefoot.collector.auth import add_token, revoke_token; "
    work += "path = Path(sys.argv[1]); sys.stdin.read(); "
    work += "[(add_token(path, f'{sys.argv[2]}.{n}'), n % 2 and revoke_token(path, f'{sys.argv[2]}.{n}')) "
    work += "for n in range(20)]"
    commands = [
        subprocess.Popen([sys.executable, "-c", work, str(path), name], stdin=subprocess.PIPE) for name in ("a", "b")
    ]
    for command in commands:
        assert command.stdin is not None
        command.stdin.close()
    assert [command.wait(30) for command in commands] == [0, 0]
    assert sorted(read_tokens(path)) == sorted(f"{name}.{n}" for name in ("a", "b") for n in range(0, 20, 2))


@pytest.mark.parametrize(
    "text", ["laptop", "laptop:abc", "laptop:" + "0" * 63, "a b:" + "0" * 64, ":" + "0" * 64 + "\nx"]
)
def test_a_broken_line_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "tokens").write_text(f"# comment\n\n{text}\n")
    with pytest.raises(ExposureError, match=r"line [34]"):
        read_tokens(tmp_path / "tokens")


@pytest.mark.parametrize("harm", ["delete", "break"])
def test_a_file_that_goes_lets_nobody_in(tmp_path: Path, harm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surefoot.collector.auth._LOOK_SECONDS", 0.0)
    path = tmp_path / "tokens"
    token = add_token(path, "laptop")
    door = Authenticator(path)
    assert door.source(f"Bearer {token}") == "laptop"
    saved = path.read_text()
    if harm == "delete":
        path.unlink()
    else:
        path.write_text("nonsense")
    with pytest.raises(UnauthenticatedError):
        door.source(f"Bearer {token}")
    path.write_text(saved)
    os.utime(path, ns=(1, 1))
    assert door.source(f"Bearer {token}") == "laptop"
