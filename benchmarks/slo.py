"""A hundred SLOs over millions of runs: counting them together, beside a scan of the whole period for each of them.

The runs, their tool calls and verdicts on a fifth of them are made in a process of their own and committed to a lake, a
day at a time. Then the SLOs (availability, latency, cost, tool success, coverage, outcome, compliance; of one of 25
services each, half of them by task class) are counted whole and for today only, as the engine does it when it starts
and when a minute of data came, and the engine itself steps. The plain way asks DuckDB once per SLO for the counts by
minute of 28 days; it is run for some of the SLOs, with the same connection, and must give the same numbers.

    python benchmarks/slo.py [--million 10] [--plain 10] [--rounds 3] [--folder DIR]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
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
        for name, rows in _day(made, midnight, runs // DAYS).items():
            lake.commit(name, rows, app_id="benchmark", app_version=day + 1)


def _day(made: np.random.Generator, midnight: np.datetime64, runs: int) -> dict[str, pa.Table]:
    ended = midnight + np.sort(made.integers(0, 86_400_000_000, runs)).astype("timedelta64[us]")
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
        "runs": _table("runs", common | of_run, midnight),
        "tool_calls": _table("tool_calls", common | call, midnight),
        "verdicts": _table("verdicts", said, midnight),
    }


def _words(made: np.random.Generator, rows: int, words: list[str], shares: list[float] | None = None) -> pa.Array:
    codes = made.choice(len(words), rows, p=shares).astype(np.int32)
    return pa.DictionaryArray.from_arrays(codes, words).cast(pa.string())


def _table(name: str, columns: dict[str, Any], midnight: np.datetime64) -> pa.Table:
    schema, rows = TABLES[name], len(next(iter(columns.values())))
    said: dict[str, Any] = columns | {"date": pa.repeat(pa.scalar(midnight.astype("datetime64[D]").item()), rows)}
    arrays = [
        _array(said[field.name], field.type) if field.name in said else pa.nulls(rows, field.type) for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    array = values if isinstance(values, pa.Array) else pa.array(values)
    if pa.types.is_timestamp(kind) and array.type.tz is None:
        array = array.cast(pa.timestamp("us")).view(pa.int64()).view(pa.timestamp("us", "UTC"))
    return array.cast(kind)


def write_slos(folder: Path, number: int) -> list[Slo]:
    """The SLO files, and what was read of them."""
    folder.mkdir(parents=True)
    (folder / "slos.yaml").write_text("---\n".join(yaml.safe_dump(_document(at)) for at in range(number)))
    loaded = load_slos(folder)
    assert not loaded.problems, [str(problem) for problem in loaded.problems]
    return loaded.slos


def _document(at: int) -> dict[str, Any]:
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
            "timeWindow": [{"duration": f"{DAYS}d", "isRolling": True}],
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


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """What the work took, and what came out."""
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def run(home: Path, runs: int, slos: int, asked: int, rounds: int) -> dict[str, Any]:
    """Measure in turn; what was measured as plain data."""
    settings = Settings(home=home)
    child = multiprocessing.get_context("spawn").Process(target=fill, args=(settings.lake_path, runs))
    child.start()
    child.join()
    assert child.exitcode == 0
    defined = write_slos(settings.slos_path, slos)
    lake = Lake.open(settings.lake_path)
    con = lake.connect()
    con.execute(f"SET threads = {THREADS}; SET memory_limit = '1GB'")
    days = [FIRST + timedelta(days=day) for day in range(DAYS)]
    whole, one, cycle, alone = [], [], [], []
    chosen = defined[:: max(1, slos // asked)][:asked]
    counted: dict[str, pa.Table] = {}
    for _ in range(rounds):
        took, counted = seconds(lambda: count_many(con, defined, days, 60, LOOKBACK))
        whole.append(took)
        one.append(seconds(lambda: count_many(con, defined, days[-1:], 60, LOOKBACK))[0])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    engine = SloEngine(lake, settings)
    start = seconds(lambda: engine.step(NOW.timestamp(), days))[0]
    cycle += [seconds(lambda: engine.step(NOW.timestamp(), days[-1:]))[0] for _ in range(rounds)]
    engine_peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    for slo in chosen:
        took, found = seconds(lambda: plain(con, slo))  # noqa: B023 - called at once
        alone.append(took)
        assert found == {view: summed(counted[slo.name], view) for view in views_of(slo)}, slo.name
    told = {
        "runs": runs,
        "slos": slos,
        "whole_s": statistics.median(whole),
        "plain_s_per_slo": statistics.mean(alone),
        "ratio": statistics.mean(alone) * slos / statistics.median(whole),
        "day_s": statistics.median(one),
        "peak_gib": peak,
        "engine_start_s": start,
        "engine_cycle_s": statistics.median(cycle),
        "engine_peak_gib": engine_peak,
        "rounds": rounds,
        "plain_slos": len(chosen),
    }
    _print(told)
    return told


def _print(told: dict[str, Any]) -> None:
    heading("", "seconds", "measured")
    n = told["rounds"]
    say(f"{told['slos']} SLOs, {DAYS} days, together", f"{told['whole_s']:.1f}", f"median of {n}")
    say(
        f"{told['slos']} SLOs, a scan each",
        f"{told['plain_s_per_slo'] * told['slos']:.1f}",
        f"{told['plain_slos']} SLOs",
    )
    say(f"{told['slos']} SLOs, today only, together", f"{told['day_s']:.2f}", f"median of {n}")
    say("the engine's first step", f"{told['engine_start_s']:.1f}", "1")
    say("a step of the engine after today changed", f"{told['engine_cycle_s']:.2f}", f"median of {n}")
    print(
        f"\nplain / together: {told['ratio']:.1f}; most memory: counting {told['peak_gib']:.2f} GiB, "
        f"with the engine {told['engine_peak_gib']:.2f} GiB"
    )


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
        told = run(Path(folder), round(options.million * 1e6), options.slos, options.plain, options.rounds)
    print(json.dumps(told))


if __name__ == "__main__":
    main()
