"""How fast spans are taken, kept and derived, beside rotel, Arize Phoenix and MLflow, in one run on one machine.

The client runs on the same cores as the servers, so every rate includes it. Ours acknowledges after an fsync; rotel's
``blackhole`` exporter drops what it takes, so it stands for what a receiver in Rust reaches without keeping anything.

    python benchmarks/ingest.py [--rounds 3] [--seconds 6] [--only accepted,sustained,derived,killed,size,share,peers]

- accepted: acknowledged spans a second, ours (collector alone) and rotel in turn, so many rounds; their ratios
- sustained: spans a second from the first request until the last is in the table ``spans``, writer included
- derived: the same until every run is in the table ``runs``, jobs included
- killed: collector and writer end by ``kill -9`` under load, again and again; every acknowledged span is there once
- size: bytes on disk per span against raw protobuf, with and without message content
- share: processor time of the writer's path against that of ptars decoding the same bodies and nothing else
- peers: what Phoenix and MLflow have in their databases per second of load

After each of ours, every acknowledged request is looked up in the lake: all of its spans, each once.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from otlp_load import servers
from otlp_load.bodies import SPANS_PER_TRACE, Bodies
from otlp_load.senders import Sent, send_grpc, send_http
from otlp_load.servers import Ours, Server
from ptars import HandlerPool

from surefoot.collector.segment import Encoding, Record, Signal
from surefoot.processors.genai.columns import canonical_spans
from surefoot.processors.lake import Lake
from surefoot.processors.otlp import decode_spans

SIZES = (10, 100, 500)
SHARE_SPANS = 40_000


def say(*cells: object) -> None:
    """One row of a table."""
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def heading(*cells: str) -> None:
    """The head of a table."""
    print()
    say(*cells)
    say(*("---" for _ in cells))


def send(server: Server, transport: str, bodies: Bodies, seconds: float, in_flight: int = 32) -> Sent:
    """Load one server."""
    if transport == "grpc":
        return send_grpc(server.grpc, bodies, seconds, in_flight)
    return send_http(server.http, bodies, seconds, in_flight, server.headers)


def accepted(folder: Path, rounds: int, seconds: float) -> None:
    """Ours and rotel in turn."""
    heading("transport", "spans a request", "ours, spans/s", "p50 / p99 ms", "rotel, spans/s", "ours / rotel", "rounds")
    with servers.rotel(folder) as peer:
        for transport in ("grpc", "http"):
            for size in SIZES:
                mine, theirs = [], []
                for number in range(rounds):
                    with servers.ours(folder / f"accepted-{transport}-{size}-{number}", "collector") as made:
                        mine.append(send(made.server, transport, Bodies(size), seconds))
                    theirs.append(send(peer, transport, Bodies(size), seconds))
                _say_accepted(transport, size, mine, theirs)
        print(f"\nrotel afterwards: {peer.resident()} MB resident")


def _say_accepted(transport: str, size: int, mine: Sequence[Sent], theirs: Sequence[Sent]) -> None:
    ratios = [a.rate / b.rate for a, b in zip(mine, theirs, strict=True)]
    middle = sorted(mine, key=lambda sent: sent.rate)[len(mine) // 2]
    refused = sum((sent.refusals for sent in mine), start=type(middle.refusals)())
    say(
        transport,
        size,
        f"{statistics.median(sent.rate for sent in mine):,.0f}",
        f"{middle.percentile(50):.1f} / {middle.percentile(99):.1f}",
        f"{statistics.median(sent.rate for sent in theirs):,.0f}",
        f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
        f"{len(ratios)}{f', refused {dict(refused)}' if refused else ''}",
    )


def sustained(folder: Path, rounds: int, seconds: float) -> None:
    """Until the spans are in the table."""
    heading("transport", "spans a request", "acknowledged", "sustained into spans, spans/s", "resident MB", "check")
    for transport in ("http", "grpc"):
        for number in range(rounds):
            with servers.ours(folder / f"sustained-{transport}-{number}", "collector", "writer") as made:
                began = time.perf_counter()
                sent = send(made.server, transport, Bodies(100), seconds)
                wait(made.drained, "the spool is empty")
                took = time.perf_counter() - began
                say(
                    transport,
                    100,
                    f"{sent.rate:,.0f}",
                    f"{sent.spans / took:,.0f}",
                    made.server.resident(),
                    check(made, [sent]),
                )


def derived(folder: Path, rounds: int, seconds: float) -> None:
    """Until the runs are in the table."""
    heading("transport", "spans a request", "acknowledged", "sustained into runs, spans/s", "resident MB", "check")
    for number in range(rounds):
        with servers.ours(folder / f"derived-{number}", "collector", "writer", "jobs") as made:
            began = time.perf_counter()
            sent = send(made.server, "http", Bodies(100), seconds)
            runs = sent.spans // SPANS_PER_TRACE
            wait(lambda: count(made, "runs") >= runs, f"{runs} runs", 600)  # noqa: B023 - waited for right here
            took = time.perf_counter() - began
            found = count(made, "runs")
            checked = f"{check(made, [sent])}; {found:,} runs of {runs:,}"
            say("http", 100, f"{sent.rate:,.0f}", f"{sent.spans / took:,.0f}", made.server.resident(), checked)


def killed(folder: Path, rounds: int, seconds: float) -> None:
    """Under load, kill -9 in turn."""
    heading("transport", "kills", "check")
    for transport in ("http", "grpc"):
        with servers.ours(folder / f"killed-{transport}", "collector", "writer", segment_bytes=4 << 20) as made:
            bodies = Bodies(100)
            all_sent = [_send_and_kill(made, transport, bodies, seconds / 2) for _ in range(rounds)]
            wait(made.drained, "the spool is empty")
            say(transport, f"{rounds} of each", check(made, all_sent, may_hold_more=True))


def _send_and_kill(made: Ours, transport: str, bodies: Bodies, seconds: float) -> Sent:
    def kill() -> None:
        for name in ("writer", "collector"):
            made.kill(name)

    timer = threading.Timer(seconds * 0.7, kill)
    timer.start()
    sent = send(made.server, transport, bodies, seconds)
    timer.join()
    for name in ("collector", "writer"):
        made.start(name)
    return sent


def check(made: Ours, all_sent: Sequence[Sent], *, may_hold_more: bool = False) -> str:
    """Every acknowledged request is in the table, all of its spans, each once."""
    lake = Lake.open(made.lake, create=False)
    found = dict(
        lake.connect()
        .sql(
            "SELECT salt, CASE WHEN count(*) = count(DISTINCT (trace_id, span_id)) THEN count(*) ELSE -1 END "
            "FROM (SELECT left(trace_id, 16) AS salt, trace_id, span_id FROM spans) GROUP BY salt"
        )
        .fetchall()
    )
    wanted = {salt: sent.spans_per_request for sent in all_sent for salt in sent.salts}
    lost = [salt for salt, spans in wanted.items() if found.get(salt) != spans]
    more = found.keys() - wanted.keys()
    doubled = sum(spans < 0 for spans in found.values())
    if lost or doubled or (more and not may_hold_more):
        raise AssertionError(f"{len(lost)} of {len(wanted)} requests are not there once, {doubled} doubled, {more=}")
    total = sum(wanted.values())
    return f"{total:,} acknowledged, each there once" + (f"; {len(more)} unacknowledged requests too" if more else "")


def count(made: Ours, table: str) -> int:
    """Rows of a table now."""
    lake = Lake.open(made.lake, create=False)
    return int(sum(file.rows for file in lake.table(table).files().values()))


def wait(condition: Callable[[], bool], what: str, seconds: float = 300) -> None:
    """Poll ten times a second."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.1)


def size(folder: Path, rounds: int, seconds: float) -> None:
    """Bytes of the data files."""
    del rounds
    heading("bodies", "spans", "protobuf, bytes/span", "spans table", "contents table", "tables / protobuf")
    for content in (False, True):
        with servers.ours(folder / f"size-{content}", "collector", "writer") as made:
            sent = send(made.server, "http", Bodies(100, content=content, distinct=300), seconds / 2)
            wait(made.drained, "the spool is empty")
            raw = sent.bytes / sent.spans
            lake = Lake.open(made.lake, create=False)
            spans, contents = (
                sum(file.size for file in lake.table(name).files().values()) / sent.spans
                for name in ("spans", "contents")
            )
            name = "with message content" if content else "without"
            cells = [f"{number:.1f}" for number in (raw, spans, contents)]
            say(name, f"{sent.spans:,}", *cells, f"{(spans + contents) / raw:.3f}")


def share(folder: Path, rounds: int, seconds: float) -> None:
    """Processor time, in turn, of ptars alone and of what the writer does with the same bodies."""
    del seconds
    heading("step", "spans/s of processor time", "speed / that of ptars alone", "rounds")
    bodies = Bodies(100)
    records = [
        Record(Signal.TRACES, Encoding.PROTOBUF, time.time_ns(), "127.0.0.1", bodies.fresh().body)
        for _ in range(SHARE_SPANS // 100)
    ]
    descriptor = ExportTraceServiceRequest.DESCRIPTOR
    decoder = HandlerPool([descriptor.file]).get_for_message(descriptor)
    lake = Lake.open(folder / "share")
    ratios: dict[str, list[float]] = {}
    rates: dict[str, list[float]] = {}
    for number in range(3 * rounds):
        took = {"ptars": _cpu(lambda: decoder.list_to_record_batch([record.body for record in records]))}
        took["decode"] = _cpu(lambda: decode_spans(records))
        raw = decode_spans(records)
        took["canonical"] = _cpu(lambda: canonical_spans(raw))  # noqa: B023 - called right here
        rows, _ = canonical_spans(raw)
        version = number + 1
        took["commit"] = _cpu(lambda: lake.commit("spans", rows, app_id="share", app_version=version))  # noqa: B023
        path = took["decode"]
        steps = {"ptars alone": took["ptars"], "decode": path}
        steps["and canonical columns"] = path + took["canonical"]
        steps["and Parquet, fsync, commit"] = path + took["canonical"] + took["commit"]
        for name, seconds_taken in steps.items():
            ratios.setdefault(name, []).append(took["ptars"] / seconds_taken)
            rates.setdefault(name, []).append(SHARE_SPANS / seconds_taken)
    for name, values in ratios.items():
        spread = f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"
        say(name, f"{statistics.median(rates[name]):,.0f}", spread, len(values))


def _cpu(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def peers(folder: Path, rounds: int, seconds: float) -> None:
    """What is in the peers' databases per second of load and after it."""
    del rounds
    heading(
        "peer",
        "spans a request",
        "acknowledged, spans/s",
        "in its database, spans/s",
        "bytes/span on disk",
        "resident MB",
    )
    known: list[tuple[str, Callable[[Path], AbstractContextManager[Server]], str, str]] = [
        ("Arize Phoenix, gRPC", servers.phoenix, "grpc", "phoenix.db"),
        ("MLflow, HTTP", servers.mlflow, "http", "mlflow.db"),
    ]
    for name, start, transport, database in known:
        place = folder / database.partition(".")[0]
        place.mkdir(exist_ok=True)
        with start(place) as server:
            time.sleep(5)  # Phoenix answers before its first migration is done
            before, began = servers.rows(place / database), time.perf_counter()
            sent = send(server, transport, Bodies(100), seconds, in_flight=4)
            time.sleep(2 * seconds)
            kept = servers.rows(place / database) - before
            took = time.perf_counter() - began if kept < sent.spans else sent.seconds
            bytes_on_disk = sum(file.stat().st_size for file in place.glob(f"{database}*"))
            resident = server.resident()
        say(name, 100, f"{sent.rate:,.0f}", f"{kept / took:,.0f}", f"{bytes_on_disk / max(1, kept):,.0f}", resident)
        if sent.refusals:
            print(f"{name} refused {dict(sent.refusals)}")


PARTS = (accepted, sustained, derived, killed, size, share, peers)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6.0, help="of load, each time")
    parser.add_argument("--only", default=",".join(part.__name__ for part in PARTS))
    parser.add_argument("--folder", type=Path, help="for the servers' files; default: a temporary one")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for part in PARTS:
            if part.__name__ in options.only.split(","):
                part(Path(folder), options.rounds, options.seconds)


if __name__ == "__main__":
    main()
