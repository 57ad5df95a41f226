"""Four queries on the lake while it takes spans and compacts, beside the same spans as one Parquet file.

The spans are the ingest benchmark's, decoded once; each batch gets fresh ids, so that the lake is filled through its
own commit at a few seconds a million. Then one thread goes on committing batches, another compacts whenever it can, and
the queries run in turn on the lake and on the one file. Both hold what was there at the beginning; of what comes
meanwhile every query must see whole batches: a count that is not, or that falls, or an error, ends the benchmark.

    python benchmarks/queries.py [--million 10] [--rounds 5] [--folder DIR]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from ingest import heading, say
from otlp_load.bodies import Bodies

from surefoot.collector.segment import Encoding, Record, Signal
from surefoot.processors.dictionaries import plain_type
from surefoot.processors.genai.columns import canonical_spans
from surefoot.processors.lake import Lake
from surefoot.processors.lake.compact import compact
from surefoot.processors.lake.parquet import write_parquet
from surefoot.processors.otlp import decode_spans
from surefoot.processors.otlp.arrays import hex_text

BATCH = 100_000
BUDGET = 128 << 20  # bytes that one merge may rewrite

QUERIES = {
    "SLI: runs and good runs a minute": (
        "SELECT date_trunc('minute', end_time) AS minute, count(*) AS n, count(*) FILTER (status <> 'error') AS good "
        "FROM {spans} WHERE operation = 'invoke_agent' GROUP BY minute ORDER BY minute"
    ),
    "a trace": "SELECT span_id, name, duration_ns FROM {spans} WHERE trace_id = '{trace}' ORDER BY start_unix_nano",
    "GROUP BY a promoted column": (
        "SELECT tool_name, count(*) AS n, avg(duration_ns) FROM {spans} GROUP BY tool_name ORDER BY tool_name"
    ),
    "GROUP BY a map key": (
        "SELECT attributes['gen_ai.usage.output_tokens'] AS tokens, count(*) AS n FROM {spans} GROUP BY tokens"
    ),
}


class Spans:
    """Batches of canonical spans, each with ids of its own."""

    def __init__(self) -> None:
        bodies = Bodies(100, distinct=BATCH // 100)
        now = time.time_ns()
        records = [
            Record(Signal.TRACES, Encoding.PROTOBUF, now, "grpc", bodies.fresh().body) for _ in range(BATCH // 100)
        ]
        self._rows, _ = canonical_spans(decode_spans(records))
        self._traces = self._rows["trace_id"].combine_chunks().dictionary_encode()

    def batch(self, number: int) -> pa.Table:
        """The rows of batch ``number``."""
        ids = np.random.default_rng(number)
        fresh = ids.bytes(16 * len(self._traces.dictionary))
        traces = hex_text(_binary(fresh, 16)).take(self._traces.indices)
        columns = {"trace_id": traces, "span_id": hex_text(_binary(ids.bytes(8 * BATCH), 8))}
        rows = self._rows
        for name, column in columns.items():
            rows = rows.set_column(rows.schema.get_field_index(name), name, column)
        return rows


def _binary(data: bytes, width: int) -> pa.Array:
    fixed = pa.Array.from_buffers(pa.binary(width), len(data) // width, [None, pa.py_buffer(data)])
    return fixed.cast(pa.binary())


class Busy:
    """Takes spans and compacts until told to stop. ``errors`` keeps what went wrong."""

    def __init__(self, folder: Path, spans: Spans, first: int) -> None:
        self.errors: list[Exception] = []
        self.committed = self.merged = 0
        self._stop = threading.Event()
        work = (self._ingest(folder, spans, first), self._compact(folder))
        self._threads = [threading.Thread(target=self._run, args=(steps,)) for steps in work]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Wait for both, and raise what went wrong."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self.errors:
            raise self.errors[0]

    def _run(self, steps: Iterator[None]) -> None:
        try:
            for _ in steps:
                if self._stop.wait(0.2):
                    return
        except Exception as error:  # noqa: BLE001 - told when the other thread ends
            self.errors.append(error)

    def _ingest(self, folder: Path, spans: Spans, first: int) -> Iterator[None]:
        lake = Lake.open(folder)
        while True:
            number = first + self.committed
            lake.commit("spans", spans.batch(number), app_id="queries", app_version=number)
            self.committed += 1
            yield

    def _compact(self, folder: Path) -> Iterator[None]:
        lake = Lake.open(folder)
        while True:
            self.merged += len(compact(lake.table("spans"), BUDGET, min_files=10).files)
            yield


def fill(folder: Path, spans: Spans, batches: int) -> tuple[Path, str]:
    """The lake and the one file, with the same rows; returns the file and a trace that is in both."""
    lake = Lake.open(folder)
    for number in range(1, batches + 1):
        lake.commit("spans", spans.batch(number), app_id="queries", app_version=number)
    single = folder.parent / "single.parquet"
    schema = pa.schema([(field.name, plain_type(field.type)) for field in spans.batch(1).schema])
    write_parquet((spans.batch(number).cast(schema) for number in range(1, batches + 1)), single)
    return single, spans.batch(batches // 2 + 1)["trace_id"][0].as_py()


def _counted(rows: Sequence[tuple[object, ...]], name: str) -> int:
    return len(rows) if name == "a trace" else sum(int(str(row[1])) for row in rows)


def _right(name: str, counted: int, started: int, least: int) -> bool:
    """Whether whole batches were seen, not fewer than before; ``started`` is what one batch counts."""
    return counted == started if name == "a trace" else counted % started == 0 and counted >= least


def run(folder: Path, batches: int, rounds: int) -> None:
    """Fill, query quietly, then query while the lake is busy."""
    spans = Spans()
    single, trace = fill(folder / "lake", spans, batches)
    one = duckdb.connect()
    one.execute("SET TimeZone = 'UTC'")
    lake = Lake.open(folder / "lake")
    con = lake.connect()
    texts = {name: text.replace("{trace}", trace) for name, text in QUERIES.items()}
    of_batch = {}
    for name, text in texts.items():
        of_file = one.sql(text.format(spans=f"read_parquet('{single}')")).fetchall()
        of_batch[name] = _counted(of_file, name) // (1 if name == "a trace" else batches)
        assert _counted(con.sql(text.format(spans="spans")).fetchall(), name) == _counted(of_file, name), name
    heading("query", "lake", "one file, ms", "lake, ms", "lake / one file", "rounds", "files, spans")
    for state in ("at rest", "during ingest and compaction"):
        busy = Busy(folder / "lake", spans, batches + 1) if state != "at rest" else None
        try:
            _measure(state, texts, of_batch, lake, con, one, single, rounds)
        finally:
            if busy is not None:
                busy.stop()
                print(f"\nmeanwhile {busy.committed} commits of {BATCH:,} spans, {busy.merged} files merged")


def _measure(
    state: str,
    texts: dict[str, str],
    of_batch: dict[str, int],
    lake: Lake,
    con: duckdb.DuckDBPyConnection,
    one: duckdb.DuckDBPyConnection,
    single: Path,
    rounds: int,
) -> None:
    for name, text in texts.items():
        mine, theirs, least = [], [], 0
        for _ in range(rounds):
            theirs.append(_milliseconds(lambda: one.sql(text.format(spans=f"read_parquet('{single}')")).fetchall())[0])  # noqa: B023
            lake.refresh(con)
            took, rows = _milliseconds(lambda: con.sql(text.format(spans="spans")).fetchall())  # noqa: B023
            mine.append(took)
            counted = _counted(rows, name)
            assert _right(name, counted, of_batch[name], least), (name, counted, of_batch[name], least)
            least = counted
        files = lake.table("spans").files().values()
        size = f"{len(files)}, {sum(file.rows for file in files):,}"
        ratio = statistics.median(a / b for a, b in zip(mine, theirs, strict=True))
        cells = [f"{statistics.median(times):,.0f}" for times in (theirs, mine)]
        say(name, state, *cells, f"{ratio:.2f}", len(mine), size)


def _milliseconds(work: Callable[[], list[tuple[object, ...]]]) -> tuple[float, list[tuple[object, ...]]]:
    began = time.perf_counter()
    rows = work()
    return (time.perf_counter() - began) * 1000, rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--million", type=float, default=10.0, help="spans in the lake at the beginning")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="for the lake; default: a temporary one")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        run(Path(folder), max(1, round(options.million * 1_000_000 / BATCH)), options.rounds)


if __name__ == "__main__":
    main()
