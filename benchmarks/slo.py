"""A hundred SLOs over millions of runs: counting them together, beside a scan of the whole period for each of them.

The runs, their tool calls and verdicts on a fifth of them are made in a process of their own and committed to a lake, a
day at a time. Then the SLOs (availability, latency, cost, tool success, coverage, outcome, compliance; of one of 25
services each, half of them by task class) are counted whole. The plain way asks DuckDB once per SLO for the counts by
minute of 28 days; it is run for some of the SLOs, with the same connection, and must give the same numbers.

Then the engine: its first step, and cycles in which a minute's rows were committed and a verdict came for a run of the
hour before, so two hours are dirty; also a cycle in which the whole date is. Engines whose SLOs have periods of 4, 7
and 28 days take the same cycles in turn, which tells what history costs.

    python benchmarks/slo.py [--million 10] [--plain 10] [--rounds 3] [--folder DIR]

Processor seconds are of all threads; what passed stands beside them.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import yaml
from ingest import heading, say

from surefoot.processors.lake import Lake
from surefoot.processors.lake.schema import TABLES
from surefoot.processors.otlp.arrays import hex_text
from surefoot.processors.settings import Settings
from surefoot.processors.slo import Slo, SloEngine, load_slos
from surefoot.processors.slo.count import count_many, events, views_of
from surefoot.processors.slo.cube import CLASSES

DAYS = 28
NOW = datetime(2026, 3, 28, 23, 59, 30, tzinfo=UTC)
FIRST = NOW.date() - timedelta(days=DAYS - 1)
LOOKBACK = 8
SERVICES = 25
THREADS = 2
SHAPES: tuple[tuple[str, float | None], ...] = (
    ("availability", None),
    ("latency", 30.0),
    ("acceptable_outcome", None),
    ("tool_success", None),
    ("latency", 60.0),
    ("policy_compliance", None),
    ("cost", 0.2),
    ("autonomous_coverage", None),
)


def fill(folder: Path, runs: int) -> None:
    """Commit a day's runs, tool calls and verdicts at a time."""
    lake = Lake.open(folder)
    made = np.random.default_rng(5)
    for day in range(DAYS):
        midnight = np.datetime64(FIRST + timedelta(days=day), "us")
        for name, rows in _rows(made, midnight, 86_400, runs // DAYS).items():
            lake.commit(name, rows, app_id="benchmark", app_version=day + 1)


def add_minute(lake: Lake, number: int, runs: int) -> None:
    """Commit one more minute's rows, the one before ``NOW``."""
    since = np.datetime64(NOW.replace(tzinfo=None) - timedelta(seconds=60), "us")
    for name, rows in _rows(np.random.default_rng(number), since, 60, max(10, runs // DAYS // 1440)).items():
        lake.commit(name, rows, app_id="benchmark", app_version=DAYS + number)


def _rows(made: np.random.Generator, since: np.datetime64, length: int, runs: int) -> dict[str, pa.Table]:
    """Rows of all tables: runs that ended in so many seconds of a day, and what belongs to them."""
    ended = since + np.sort(made.integers(0, length * 1_000_000, runs)).astype("timedelta64[us]")
    trace = hex_text(
        pa.Array.from_buffers(pa.binary(16), runs, [None, pa.py_buffer(made.bytes(16 * runs))]).cast(pa.binary())
    )
    common = {
        "trace_id": trace,
        "run_id": trace,
        "service_name": _words(made, runs, [f"service-{number}" for number in range(SERVICES)]),
        "task_class": _words(made, runs, ["refund", "query", "order", "other"]),
        "settled": np.ones(runs, bool),
    }
    outcomes = _words(made, runs, ["ok", "error", "abandoned", "cancelled"], [0.96, 0.02, 0.01, 0.01])
    of_run = {
        "ended_at": ended,
        "received_at": ended,
        "outcome": outcomes,
        "mode": _words(made, runs, ["autonomous", "human_approval"], [0.9, 0.1]),
        "duration_ns": made.integers(1, 90, runs) * 1_000_000_000,
        "cost_usd": made.exponential(0.05, runs),
    }
    call = {
        "span_id": trace,
        "ended_at": ended,
        "received_at": ended,
        "outcome": _words(made, runs, ["ok", "error", "retry"], [0.95, 0.03, 0.02]),
    }
    graded = np.flatnonzero(made.random(runs) < 0.2)
    late = (ended + made.exponential(1800e6, runs).astype("timedelta64[us]"))[graded]
    said = {
        "verdict_id": trace.take(pa.array(graded)),
        "run_id": trace.take(pa.array(graded)),
        "kind": _words(made, len(graded), ["outcome", "process"]),
        "verdict": _words(made, len(graded), ["pass", "fail"], [0.95, 0.05]),
        "finality": pa.repeat("final", len(graded)),
        "grader_kind": pa.repeat("model", len(graded)),
        "occurred_at": late,
        "received_at": late,
    }
    return {
        "runs": _table("runs", common | of_run, since),
        "tool_calls": _table("tool_calls", common | call, since),
        "verdicts": _table("verdicts", said, since),
    }


def _words(made: np.random.Generator, rows: int, words: list[str], shares: list[float] | None = None) -> pa.Array:
    codes = made.choice(len(words), rows, p=shares).astype(np.int32)
    return pa.DictionaryArray.from_arrays(codes, words).cast(pa.string())


def _table(name: str, columns: dict[str, Any], since: np.datetime64) -> pa.Table:
    schema, rows = TABLES[name], len(next(iter(columns.values())))
    said: dict[str, Any] = columns | {"date": pa.repeat(pa.scalar(since.astype("datetime64[D]").item()), rows)}
    arrays = [
        _array(said[field.name], field.type) if field.name in said else pa.nulls(rows, field.type) for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    array = values if isinstance(values, pa.Array) else pa.array(values)
    if pa.types.is_timestamp(kind) and array.type.tz is None:
        array = array.cast(pa.timestamp("us")).view(pa.int64()).view(pa.timestamp("us", "UTC"))
    return array.cast(kind)


def write_slos(folder: Path, number: int, days: int = DAYS) -> list[Slo]:
    """The SLO files, and what was read of them."""
    folder.mkdir(parents=True)
    (folder / "slos.yaml").write_text("---\n".join(yaml.safe_dump(_document(at, days)) for at in range(number)))
    loaded = load_slos(folder)
    assert not loaded.problems, [str(problem) for problem in loaded.problems]
    return loaded.slos


def _document(at: int, days: int) -> dict[str, Any]:
    indicator, value = SHAPES[at % len(SHAPES)]
    asked: dict[str, Any] = {"indicator": indicator, "where": {"service_name": f"service-{at % SERVICES}"}}
    if at % 2:
        asked["by"] = ["task_class"]
    source = {"metricSource": {"type": "surefoot", "spec": asked}}
    metric = {"ratioMetric": {"rawType": "success", "raw": source}} if value is None else {"thresholdMetric": source}
    objective: dict[str, Any] = {"target": 0.95} | ({} if value is None else {"op": "lte", "value": value})
    return {
        "apiVersion": "openslo/v1",
        "kind": "SLO",
        "metadata": {"name": f"slo-{at}"},
        "spec": {
            "service": f"service-{at % SERVICES}",
            "budgetingMethod": "Occurrences",
            "timeWindow": [{"duration": f"{days}d", "isRolling": True}],
            "indicator": {"metadata": {"name": f"indicator-{at}"}, "spec": metric},
            "objectives": [objective],
        },
    }


def plain(con: duckdb.DuckDBPyConnection, slo: Slo) -> dict[str, list[int]]:
    """The counts of an SLO over the period, from a query by minute of its own; by view."""
    text, values = events(slo, FIRST, NOW.date(), LOOKBACK)
    columns = {"fast": "fast_class", "matured": "class"}
    found = {}
    for view in views_of(slo):
        counts = ", ".join(f"count(*) FILTER (WHERE {columns[view]} = '{name}')" for name in CLASSES)
        query = f"SELECT date_trunc('minute', ended_at), stratum_key, {counts} FROM ({text}) GROUP BY ALL"
        rows = con.execute(query, values).fetchall()
        found[view] = [sum(row[2 + at] for row in rows) for at in range(len(CLASSES))]
    return found


def summed(counted: pa.Table, view: str) -> list[int]:
    """The counts of a view over all its buckets and strata."""
    rows = counted.filter(pa.compute.equal(counted["view"], view))
    return [pa.compute.sum(rows[name]).as_py() or 0 for name in CLASSES]


@dataclass(frozen=True, slots=True)
class Spent:
    """What a piece of work took."""

    passed: float  # seconds
    processor: float


def spent(work: Callable[[], Any]) -> Spent:
    """Do it once."""
    began, used = time.perf_counter(), time.process_time()
    work()
    return Spent(time.perf_counter() - began, time.process_time() - used)


def middle(all_spent: Sequence[Spent]) -> Spent:
    """The median of each."""
    return Spent(
        statistics.median(one.passed for one in all_spent), statistics.median(one.processor for one in all_spent)
    )


def memory() -> float:
    """The most that this process had so far, GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2


def run(home: Path, runs: int, slos: int, asked: int, rounds: int) -> None:
    """Measure in turn and print."""
    lake_path = home / "lake"
    child = multiprocessing.get_context("spawn").Process(target=fill, args=(lake_path, runs))
    child.start()
    child.join()
    assert child.exitcode == 0
    lake = Lake.open(lake_path)
    told = {"runs": runs, "slos": slos, "load": os.getloadavg()[0]}
    heading("", "processor s", "s that passed", "measured")
    told |= counting(lake, write_slos(home / "slos", slos), asked, rounds)
    told |= cycles(lake, home, runs, slos, rounds)
    print(json.dumps(told | {"load_after": os.getloadavg()[0]}))


def counting(lake: Lake, defined: list[Slo], asked: int, rounds: int) -> dict[str, Any]:
    """All SLOs together, and some by a scan each, which must find the same."""
    con = lake.connect()
    con.execute(f"SET threads = {THREADS}; SET memory_limit = '1GB'")
    days = [FIRST + timedelta(days=day) for day in range(DAYS)]
    counted: dict[str, pa.Table] = {}
    whole = middle([spent(lambda: counted.update(count_many(con, defined, days, 60, LOOKBACK))) for _ in range(rounds)])
    say_spent(f"{len(defined)} SLOs, {DAYS} days, together", whole, f"median of {rounds}")
    peak = memory()
    chosen = defined[:: max(1, len(defined) // asked)][:asked]
    alone: list[Spent] = []
    for slo in chosen:
        found: dict[str, list[int]] = {}
        alone.append(spent(lambda: found.update(plain(con, slo))))  # noqa: B023 - called at once
        assert found == {view: summed(counted[slo.name], view) for view in views_of(slo)}, slo.name
    each = Spent(statistics.mean(one.passed for one in alone), statistics.mean(one.processor for one in alone))
    all_alone = Spent(each.passed * len(defined), each.processor * len(defined))
    say_spent(f"{len(defined)} SLOs, a scan each", all_alone, f"{len(chosen)} of them")
    ratio = all_alone.processor / whole.processor
    say("a scan each / together", f"{ratio:.1f}", "", f"most memory {peak:.2f} GiB")
    con.close()
    return {"whole": asdict(whole), "plain_per_slo": asdict(each), "ratio": ratio, "peak_gib": peak}


def cycles(lake: Lake, home: Path, runs: int, slos: int, rounds: int) -> dict[str, Any]:
    """Steps of engines with more and less history."""
    hour = int(NOW.timestamp()) // 3600
    engines: dict[int, SloEngine] = {}
    told: dict[str, Any] = {}
    for days in (4, 7, DAYS):
        settings = Settings(home=home / f"period-{days}", lake=lake.path)
        write_slos(settings.slos_path, slos, days)
        engines[days] = SloEngine(lake, settings)
        told[f"first_{days}"] = spent(partial(engines[days].step, NOW.timestamp(), ()))
        say_spent(f"the engine's first step, {days} days", told[f"first_{days}"], "1")
    for name, dates, hours in (
        ("after a new minute", (), (hour, hour - 1)),
        ("after the date changed", (NOW.date(),), ()),
        ("after nothing", (), ()),
    ):
        steps: dict[int, list[Spent]] = {days: [] for days in engines}
        for number in range(rounds):
            if hours:
                add_minute(lake, number + 1, runs)
            for days, engine in engines.items():
                now = NOW.timestamp() + number / 10
                steps[days].append(spent(partial(engine.step, now, dates, hours)))
        for days, taken in steps.items():
            told[f"{name}_{days}"] = middle(taken)
            say_spent(f"a cycle {name}, {days} days", middle(taken), f"median of {rounds}")
    print(f"\nMost memory, with all three engines: {memory():.2f} GiB")
    return {name: asdict(value) for name, value in told.items()} | {"engines_peak_gib": memory(), "rounds": rounds}


def say_spent(what: str, found: Spent, measured: str) -> None:
    """A line of the table."""
    say(what, f"{found.processor:.2f}", f"{found.passed:.2f}", measured)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; the last line is JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--million", type=float, default=10.0, help="runs in the lake")
    parser.add_argument("--slos", type=int, default=100)
    parser.add_argument("--plain", type=int, default=10, help="SLOs that are also counted by a scan each")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="for the lake; default: a temporary one")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        run(Path(folder), round(options.million * 1e6), options.slos, options.plain, options.rounds)


if __name__ == "__main__":
    main()
