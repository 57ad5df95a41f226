"""Some traces at once: load them whole, derive, and say what replaces what.

Contract: :func:`derive_batch` reads the lake and changes nothing. Its result holds, for each derived table, all rows
that these traces have from now on. Rule: what cannot be seen any more is not derived again. When a row that was derived
before comes from a span or event that is out of reach (beyond the look-back, or past its retention), the trace keeps
its runs and calls as they are, and only its verdicts are looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from surefoot.processors.genai.load import Arrival, Found, Reader, group, reach
from surefoot.processors.genai.rows import TraceRows, derive_trace, evaluate_trace, unique_responses
from surefoot.processors.genai.trace import Life, Trace, build, micros
from surefoot.processors.genai.verdicts import Row, RunIndex
from surefoot.processors.lake.schema import TRACE_TABLES

# A trace of more spans is derived when it first appears and when it is due, not each time something comes: deriving one
# of 100 k spans every 5 s for a day would take 72 minutes of processor time.
LARGE: Final = 20_000

# Tables whose rows count in the minute that they ended in.
_TIMED: Final = ("runs", "tool_calls", "model_calls")


@dataclass(frozen=True, slots=True)
class OpenTrace:
    """A trace that is not settled: when to look at it again (unix us), and its size."""

    due_us: int
    spans: int


@dataclass(frozen=True, slots=True)
class Batch:
    """What a set of traces amounts to now, and what the tables hold of them."""

    trace_ids: frozenset[str]
    before: Mapping[str, list[Row]]  # by table; only of verdicts whole rows
    after: dict[str, list[Row]] = field(default_factory=lambda: {table: [] for table in TRACE_TABLES})
    open: dict[str, OpenTrace] = field(default_factory=dict)
    joined_dates: set[int] = field(default_factory=set)  # of runs of other traces that got a verdict, days

    def dates(self) -> set[int]:
        """Days (since 1970) on which a row ended, before or after."""
        ended = {
            row["date"]
            for tables in (self.before, self.after)
            for table in _TIMED
            for row in tables[table]
            if row["ended_at"] is not None
        }
        return ended | self.joined_dates


def derive_batch(
    reader: Reader, arrivals: Mapping[str, Arrival | None], now: float, settle_seconds: float, lookback_days: int
) -> Batch:
    """Derive the traces of ``arrivals``; None stands for a trace of which nothing came, but whose time is up."""
    batch = Batch(frozenset(arrivals), reader.derived(arrivals))
    before = group(batch.before)
    today, lookback = datetime.fromtimestamp(now, UTC).date(), timedelta(days=lookback_days)
    since = min(
        reach(arrival, (row for rows in before[trace_id].values() for row in rows), lookback, today)
        for trace_id, arrival in arrivals.items()
    )
    found = reader.traces(arrivals, since)
    for trace_id, arrival in arrivals.items():
        seen = found.get(trace_id) or Found()
        if arrival is not None:
            seen.events += arrival.homeless
        # A verdict's event may be out of reach; that it arrived counts all the same.
        latest, sign_us, arrival_us = seen.other_logs or Life(0, 0, 0)
        arrival_us = max([arrival_us, *(row["received_at"] for row in before[trace_id]["verdicts"])])
        trace = build(
            trace_id,
            seen.spans,
            seen.events,
            now=now,
            settle_seconds=settle_seconds,
            other_logs=Life(latest, sign_us, arrival_us),
        )
        _derive_one(reader, batch, trace, seen, before[trace_id], now)
    _join_elsewhere(reader, batch)
    return batch


def _derive_one(
    reader: Reader, batch: Batch, trace: Trace, found: Found, before: Mapping[str, list[Row]], now: float
) -> None:
    settle_us = micros(trace.settle_seconds)
    if _out_of_reach(found, before):
        arrival_us = max(trace.life.arrival_us, *(row["received_at"] for row in before["runs"] or _calls(before)))
        due_us = arrival_us + settle_us
        settled = due_us <= micros(now)
        derived = _frozen(reader, trace.trace_id, arrival_us, settled, settle_us)
    else:
        due_us = settle_us + (trace.life.arrival_us if trace.quiet else trace.life.sign_us)
        settled = trace.settled
        derived = derive_trace(trace)
    after = {
        "runs": derived.runs,
        "tool_calls": derived.tool_calls,
        "model_calls": derived.model_calls,
        "verdicts": evaluate_trace(trace, derived.index, settled, before["verdicts"]),
    }
    for table, rows in after.items():
        batch.after[table] += rows
    if not settled and (any(after.values()) or len(found.spans) > LARGE):
        batch.open[trace.trace_id] = OpenTrace(due_us, len(found.spans))


def _calls(rows: Mapping[str, list[Row]]) -> list[Row]:
    return rows["tool_calls"] + rows["model_calls"]


def _out_of_reach(found: Found, before: Mapping[str, list[Row]]) -> bool:
    """Whether a row comes from something that was not found. An unknown run has the id of a parent that never came."""
    known = {span.span_id for span in found.spans} | {span.parent_span_id for span in found.spans}
    known |= {event.span_id for event in found.events}
    return any(row["span_id"] not in known for table in _TIMED for row in before[table])


def _frozen(reader: Reader, trace_id: str, arrival_us: int, settled: bool, settle_us: int) -> TraceRows:
    """The rows as they are but for what time changes: a run that is still running when all is settled is abandoned."""
    runs, tools, models = (reader.whole(table, [trace_id]) for table in _TIMED)
    for row in (*runs, *tools, *models):
        row["settled"] = settled
    for row in runs:
        if row["outcome"] == "running" and settled:
            _abandon(row, row["received_at"] + settle_us)
        row["received_at"] = arrival_us
    by_span = {row["span_id"]: row["run_id"] for row in (*models, *tools, *runs) if row["run_id"]}
    top = [row["run_id"] for row in runs if row["parent_run_id"] is None]
    index = RunIndex(by_span, unique_responses(models), top[0] if len(top) == 1 else None)
    return TraceRows(runs, tools, models, index)


def _abandon(row: Row, ended_us: int) -> None:
    row["outcome"] = "abandoned"
    row["ended_at"], row["ended_unix_nano"] = ended_us, ended_us * 1000
    row["duration_ns"] = row["ended_unix_nano"] - row["started_unix_nano"]
    row["date"] = ended_us // 86_400_000_000


def _join_elsewhere(reader: Reader, batch: Batch) -> None:
    """Give verdicts without a run the run of the evaluated response, if exactly one run in another trace gave it."""
    orphans = [row for row in batch.after["verdicts"] if row["run_id"] is None and row["response_id"]]
    if not orphans:
        return
    here = {row["run_id"]: row for row in batch.after["runs"]}
    wanted = {row["response_id"] for row in orphans}
    calls: list[dict[str, Any]] = [
        {**row, "date": here[row["run_id"]]["date"], "ended_at": here[row["run_id"]]["ended_at"]}
        for row in batch.after["model_calls"]
        if row["response_id"] in wanted and row["run_id"]
    ]
    calls += reader.responses(wanted, batch.trace_ids)
    runs = unique_responses(calls)
    places = {row["run_id"]: row for row in calls}
    for row in orphans:
        row["run_id"] = runs.get(row["response_id"])
        if row["run_id"] is not None and places[row["run_id"]]["ended_at"] is not None:
            batch.joined_dates.add(places[row["run_id"]]["date"])


def next_traces(reader: Reader, batch: Batch) -> Collection[str]:
    """Other traces whose verdicts have to find their runs anew. Call after the commit."""
    responses = {row["response_id"] for row in batch.after["model_calls"] if row["response_id"]}
    return reader.waiting(responses, batch.trace_ids)
