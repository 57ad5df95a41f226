"""Traces of which something was derived that cannot be seen any more: what they keep.

Their runs and calls stay as they are but for what time changes: a run that is still running when all is settled is
abandoned. These are rare, so they are handled row by row.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from surefoot.processors.genai.arrays import Bools, Ints
from surefoot.processors.genai.judging import index_of
from surefoot.processors.genai.load import Reader
from surefoot.processors.genai.records import Row
from surefoot.processors.genai.traces import Traces, micros
from surefoot.processors.genai.verdicts import RunIndex

_MICROS_A_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Frozen:
    """Rows by table, and of all traces of the batch whether they are settled and when they are due."""

    rows: dict[str, list[Row]]
    indexes: dict[str, RunIndex]
    settled: Bools
    due_us: Ints


def freeze(reader: Reader, traces: Traces, lost: Bools, now: float) -> Frozen:
    """The rows of the traces that are ``lost``, as of ``now``."""
    ids = [traces.ids[trace] for trace in np.flatnonzero(lost).tolist()]
    tables = {table: reader.whole(table, ids) for table in ("runs", "tool_calls", "model_calls")}
    by_trace: defaultdict[str, dict[str, list[Row]]] = defaultdict(lambda: {table: [] for table in tables})
    for table, rows in tables.items():
        for row in rows:
            by_trace[row["trace_id"]][table].append(row)
    settled, due_us = np.zeros(len(lost), np.bool_), np.zeros(len(lost), np.int64)
    settle_us = micros(traces.settle_seconds)
    indexes = {}
    for place, trace_id in zip(np.flatnonzero(lost).tolist(), ids, strict=True):
        found = by_trace[trace_id]
        calls = found["tool_calls"] + found["model_calls"]
        arrival = max(int(traces.life.arrival_us[place]), *(row["received_at"] for row in found["runs"] or calls))
        due_us[place] = arrival + settle_us
        settled[place] = due_us[place] <= micros(now)
        _age(found["runs"], calls, arrival, bool(settled[place]), settle_us)
        spans = ((row["span_id"], row["run_id"]) for row in (*calls, *found["runs"]) if row["run_id"])
        top = [row["run_id"] for row in found["runs"] if row["parent_run_id"] is None]
        indexes[trace_id] = index_of(spans, found["model_calls"], top)
    return Frozen(tables, indexes, settled, due_us)


def _age(runs: list[Row], calls: list[Row], arrival_us: int, settled: bool, settle_us: int) -> None:
    for row in (*runs, *calls):
        row["settled"] = settled
    for row in runs:
        if row["outcome"] == "running" and settled:
            ended_us = row["received_at"] + settle_us
            row["outcome"] = "abandoned"
            row["ended_at"], row["ended_unix_nano"] = ended_us, ended_us * 1000
            row["duration_ns"] = row["ended_unix_nano"] - row["started_unix_nano"]
            row["date"] = ended_us // _MICROS_A_DAY
        row["received_at"] = arrival_us
