"""What a span costs from the lake to its rows of runs, calls and verdicts, told apart by stage, beside decoding it.

Traces of an agent, its model calls and its tool calls are committed to a lake as the writer commits them; then each
round takes a batch of them through the stages of :class:`~surefoot.processors.genai.derive.Deriver`: find and load the
whole traces, put them together, derive, commit the rows of all tables, and settle them later. A small batch goes
before, so that what is done once per process is left out. What is measured is processor time of all threads of the
process. Decoding is measured in the same rounds, on the same spans.

    python benchmarks/understand.py [--rounds 9] [--traces 5000]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from decode import SPANS_PER_TRACE, requests

from surefoot.processors.genai.batch import evaluations_of, put_together
from surefoot.processors.genai.columns import canonical_spans
from surefoot.processors.genai.derive import Deriver
from surefoot.processors.genai.load import Reader
from surefoot.processors.genai.rows import derive
from surefoot.processors.lake import Lake
from surefoot.processors.otlp import decode_spans
from surefoot.processors.settings import Settings


class Clock:
    """Processor seconds by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}

    def measure(self, stage: str, work: Callable[[], Any]) -> Any:
        """Do the work once and note what it took."""
        began = time.process_time()
        result = work()
        self.seconds.setdefault(stage, []).append(time.process_time() - began)
        return result


def one_round(clock: Clock, folder: Path, traces: int) -> None:
    """A fresh lake with these spans, and all stages on them."""
    settings = Settings(home=folder)
    lake = Lake.open(settings.lake_path)
    deriver, now = Deriver(lake, settings), time.time()
    lake.commit("spans", canonical_spans(decode_spans(requests(20)))[0], app_id="warm", app_version=1)
    deriver.step(now)
    records = requests(traces)
    raw = clock.measure("decode", lambda: decode_spans(records))
    spans, _ = clock.measure("canonical columns", lambda: canonical_spans(raw))
    lake.commit("spans", spans, app_id="benchmark", app_version=1)
    reader = Reader(lake)
    ids = sorted(spans["trace_id"].unique().to_pylist())
    clock.measure("look for earlier rows", lambda: reader.derived(ids))
    found = clock.measure("load spans", lambda: reader.traces(ids, datetime.now(UTC).date()))
    told = evaluations_of(found, {})
    none = lake.read("verdicts").slice(0, 0)
    together = clock.measure("put together", lambda: put_together(ids, found, told, none, now, 900.0))
    clock.measure("derive rows", lambda: derive(together))
    derived = clock.measure("a whole step, with commits", lambda: deriver.step(now))
    assert derived.rows["runs"] == traces, derived.rows
    settled = clock.measure("settle", lambda: deriver.step(now + settings.settle_seconds + 60.0))
    assert settled.rows["runs"] >= traces, settled.rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--traces", type=int, default=5000)
    options = parser.parse_args(arguments)
    pa.set_cpu_count(1)
    clock = Clock()
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            one_round(clock, Path(folder), options.traces)
    spans = options.traces * SPANS_PER_TRACE
    print(f"{spans:,} spans in {options.traces:,} traces, one core, {options.rounds} rounds; processor time")
    for stage, times in clock.seconds.items():
        low, middle, high = statistics.quantiles(times, n=4) if len(times) > 1 else (times[0],) * 3
        rate = f"{spans / middle:,.0f} spans/s (quartiles {spans / high:,.0f} to {spans / low:,.0f})"
        print(f"{stage:<28} {middle / spans * 1e6:6.2f} us a span, {rate}")


if __name__ == "__main__":
    main()
