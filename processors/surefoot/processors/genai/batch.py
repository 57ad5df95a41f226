"""Some traces at once: load them whole, derive, and say what replaces what.

Contract: :func:`derive_batch` reads the lake and changes nothing. Its result holds, for each derived table, all rows
that these traces have from now on. Rule: what cannot be seen any more is not derived again. When a row that was derived
before comes from a span or event that is out of reach (beyond the look-back, or past its retention), the trace keeps
its runs and calls as they are, and only its verdicts are looked at.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from surefoot.instrumentation import semconv
from surefoot.processors.genai import annotated, events
from surefoot.processors.genai.arrays import NONE, Bools, Ints, bools, ints, one_array
from surefoot.processors.genai.events import Event
from surefoot.processors.genai.frozen import freeze
from surefoot.processors.genai.judging import run_indexes
from surefoot.processors.genai.load import Arrival, Found, Reader, reach
from surefoot.processors.genai.records import Row, from_table, to_table
from surefoot.processors.genai.rows import Derived, derive
from surefoot.processors.genai.traces import MODEL, SPAN, TOOL, Life, Traces, build, micros
from surefoot.processors.genai.verdicts import judged, unique_responses

# A trace of more spans is derived when it first appears and when it is due, not each time something comes: deriving one
# of 100 k spans every 5 s for a day would take minutes of processor time.
LARGE: Final = 20_000

# Sources of rows that `surefoot import` took from a file: nothing more is to come of them.
IMPORTED: Final = "import:"

MICROS_AN_HOUR: Final = 3_600_000_000

# Tables whose rows count in the minute that they ended in.
TIMED: Final = ("runs", "tool_calls", "model_calls")


@dataclass(frozen=True, slots=True)
class OpenTrace:
    """A trace that is not settled: when to look at it again (unix us), and its size."""

    due_us: int
    spans: int
    rests: bool = False  # nothing but ``settled`` will change in its rows if nothing comes


@dataclass(frozen=True, slots=True)
class Batch:
    """What a set of traces amounts to now, and what the tables hold of them."""

    trace_ids: Sequence[str]
    before: Mapping[str, pa.Table]  # by table; only of verdicts whole rows
    after: Mapping[str, pa.Table]
    open: Mapping[str, OpenTrace]
    resting: Collection[str] = ()  # open traces of which nothing is awaited but their time
    joined_hours: set[int] = field(default_factory=set)  # in which runs of other traces ended that got a verdict

    def hours(self) -> set[int]:
        """Hours (since 1970) in which a row ended, before or after."""
        found = set(self.joined_hours)
        for tables in (self.before, self.after):
            for name in TIMED:
                found |= hours_of(tables[name])
        return found


def hours_of(rows: pa.Table) -> set[int]:
    """Hours (since 1970) in which these runs or calls ended."""
    ended = rows["ended_at"].drop_null().cast(pa.int64()).to_numpy()
    return set(np.unique(ended // MICROS_AN_HOUR).tolist())


def derive_batch(
    reader: Reader, arrivals: Mapping[str, Arrival | None], now: float, settle_seconds: float, lookback_days: int
) -> Batch:
    """Derive the traces of ``arrivals``; None stands for a trace of which nothing came, but whose time is up."""
    ids = sorted(arrivals)
    before = reader.derived(ids)
    today, lookback = datetime.fromtimestamp(now, UTC).date(), timedelta(days=lookback_days)
    found = reader.traces(ids, reach(arrivals.values(), before, lookback, today))
    evaluations = evaluations_of(found, arrivals)
    traces = put_together(ids, found, evaluations, before["verdicts"], now, settle_seconds)
    derived = derive(traces)
    after = dict(derived.tables)
    settled, due_us = traces.settled, _due(traces)
    kept: defaultdict[str, list[Row]] = defaultdict(list)
    for row in from_table(before["verdicts"]):
        kept[row["trace_id"]].append(row)
    indexes = run_indexes(derived, evaluations.keys() | kept.keys())
    lost = _out_of_reach(traces, found, before)
    if lost.any():
        frozen = freeze(reader, traces, lost, now)
        of_lost = pa.array([ids[trace] for trace in np.flatnonzero(lost)])
        for name in TIMED:
            others = after[name].filter(pc.invert(pc.is_in(after[name]["trace_id"], of_lost)))
            after[name] = pa.concat_tables([others, to_table(name, frozen.rows[name])])
        settled, due_us = np.where(lost, frozen.settled, settled), np.where(lost, frozen.due_us, due_us)
        indexes |= frozen.indexes
    verdicts = [
        row
        for trace_id in sorted(evaluations.keys() | kept.keys())
        for row in judged(
            evaluations[trace_id], indexes[trace_id], bool(settled[bisect_left(ids, trace_id)]), kept[trace_id]
        )
    ]
    joined = _join_elsewhere(reader, ids, after, verdicts)
    after["verdicts"] = to_table("verdicts", verdicts)
    awaited = lost | _awaited(derived)
    awaited[ints(pc.index_in(after["verdicts"]["trace_id"].unique(), pa.array(ids, pa.string())))] = True
    opened = _open(ids, found, after, settled, due_us, awaited)
    return Batch(ids, before, after, opened, [trace_id for trace_id, one in opened.items() if one.rests], joined)


def _awaited(derived: Derived) -> Bools:
    """Traces whose rows time alone may change: a run goes on, or calls may yet tell of an unknown run."""
    traces, runs = derived.traces, derived.runs
    awaited = np.zeros(len(traces.ids), np.bool_)
    awaited[traces.trace[runs.node[traces.kind[runs.node] != SPAN]]] = True
    loose = (runs.owner == NONE) & ((traces.operation == TOOL) | (traces.operation == MODEL))
    awaited[traces.trace[loose]] = True
    return awaited


def evaluations_of(found: Found, arrivals: Mapping[str, Arrival | None]) -> defaultdict[str, list[Event]]:
    """Evaluations by the trace that they are kept under."""
    by_trace: defaultdict[str, list[Event]] = defaultdict(list)
    for event in (*events.read_events(found.events), *annotated.from_spans(found.spans)):
        by_trace[event.trace_id or ""].append(event)
    for trace_id, arrival in arrivals.items():
        if arrival is not None and arrival.homeless:
            by_trace[trace_id] += arrival.homeless
    return by_trace


def put_together(
    ids: list[str],
    found: Found,
    evaluations: Mapping[str, list[Event]],
    verdicts: pa.Table,
    now: float,
    settle_seconds: float,
) -> Traces:
    """The traces ``ids`` (in order, all that ``found`` tells of), of which the lake holds ``verdicts``."""
    return build(
        ids,
        found.spans,
        events.read_starts(found.events),
        now=now,
        settle_seconds=settle_seconds,
        life=_life(ids, found, verdicts, evaluations),
        imported=_imported(ids, found, evaluations),
    )


def _imported(ids: list[str], found: Found, evaluations: Mapping[str, list[Event]]) -> Bools:
    """Traces of which every row came from a file."""
    known = pa.array(ids, pa.string())
    there, elsewhere = np.zeros(len(ids), np.bool_), np.zeros(len(ids), np.bool_)
    for rows in (found.spans, found.events):
        place = ints(pc.index_in(rows["trace_id"], known))
        there[place] = True
        elsewhere[place[~bools(pc.starts_with(rows["source"], IMPORTED))]] = True
    for trace_id, told in evaluations.items():
        at = bisect_left(ids, trace_id)
        there[at] = True
        elsewhere[at] |= not all((event.source or "").startswith(IMPORTED) for event in told)
    return there & ~elsewhere


def _life(ids: list[str], found: Found, verdicts: pa.Table, evaluations: Mapping[str, list[Event]]) -> Life:
    """When logs happened and arrived, and verdicts. A verdict's event may be out of reach; that it arrived counts."""
    life = Life.none(len(ids))
    known = pa.array(ids, pa.string())
    starts = found.events.filter(pc.equal(found.events["event_name"], semconv.RUN_STARTED_EVENT))
    for rows, times, received in (
        (starts, events.times_of(starts), ints(starts["received_at"])),
        (found.other_logs, ints(found.other_logs["latest"]), ints(found.other_logs["received"])),
    ):
        place = ints(pc.index_in(rows["trace_id"], known))
        np.maximum.at(life.event_unix_nano, place, times)
        np.maximum.at(life.sign_us, place, received)
    judged_at = ints(pc.index_in(verdicts["trace_id"], known))
    np.maximum.at(life.arrival_us, judged_at, ints(verdicts["received_at"]))
    for trace_id, told in evaluations.items():
        at = bisect_left(ids, trace_id)
        life.arrival_us[at] = max(int(life.arrival_us[at]), *(event.received_us for event in told))
    return life


def _due(traces: Traces) -> Ints:
    """When each trace is to be looked at again, unix us."""
    return np.where(traces.quiet, traces.life.arrival_us, traces.life.sign_us) + micros(traces.settle_seconds)


def _out_of_reach(traces: Traces, found: Found, before: Mapping[str, pa.Table]) -> Bools:
    """Of which traces a row comes from something that was not found.

    An unknown run has the id of a parent that never came.
    """
    lost = np.zeros(len(traces.ids), np.bool_)
    rows = pa.concat_tables([before[name].select(["trace_id", "span_id"]) for name in TIMED])
    if not rows.num_rows:
        return lost
    known = [found.spans.select(["trace_id", "span_id"]), found.events.select(["trace_id", "span_id"])]
    known.append(found.spans.select(["trace_id", "parent_span_id"]).rename_columns(["trace_id", "span_id"]))

    def identities(table: pa.Table) -> Any:
        return pc.binary_join_element_wise(table["trace_id"], table["span_id"], "-")

    absent = rows.filter(pc.invert(pc.is_in(identities(rows), identities(pa.concat_tables(known)).combine_chunks())))
    lost[ints(pc.index_in(absent["trace_id"], pa.array(traces.ids, pa.string())))] = True
    return lost


def _open(
    ids: list[str], found: Found, after: Mapping[str, pa.Table], settled: Bools, due_us: Ints, awaited: Bools
) -> dict[str, OpenTrace]:
    known = pa.array(ids, pa.string())
    sizes = np.bincount(ints(pc.index_in(found.spans["trace_id"], known)), minlength=len(ids))
    wanted = sizes > LARGE
    for rows in after.values():
        wanted[ints(pc.index_in(rows["trace_id"].unique(), known))] = True
    at = np.flatnonzero(wanted & ~settled)
    rests = ~awaited & (sizes <= LARGE)
    entries = zip(at.tolist(), due_us[at].tolist(), sizes[at].tolist(), rests[at].tolist(), strict=True)
    return {ids[trace]: OpenTrace(due, spans, rest) for trace, due, spans, rest in entries}


def _join_elsewhere(reader: Reader, ids: list[str], after: Mapping[str, pa.Table], verdicts: list[Row]) -> set[int]:
    """Give verdicts without a run the run of the evaluated response, if exactly one run in another trace gave it.

    Returns the hours in which those runs ended.
    """
    orphans = [row for row in verdicts if row["run_id"] is None and row["response_id"]]
    if not orphans:
        return set()
    wanted = sorted({row["response_id"] for row in orphans})
    models = after["model_calls"]
    answers = models.filter(pc.and_(pc.is_in(models["response_id"], pa.array(wanted)), models["run_id"].is_valid()))
    run_ids = answers["run_id"].combine_chunks()
    ended = after["runs"].filter(pc.is_in(after["runs"]["run_id"], run_ids)).select(["run_id", "date", "ended_at"])
    here = {row["run_id"]: row for row in from_table(ended)}
    calls = [{**here[row["run_id"]], **row} for row in answers.select(["response_id", "run_id"]).to_pylist()]
    calls += reader.responses(wanted, ids)
    runs = unique_responses(calls)
    places = {row["run_id"]: row for row in calls}
    joined = set()
    for row in orphans:
        row["run_id"] = runs.get(row["response_id"])
        if row["run_id"] is not None and places[row["run_id"]]["ended_at"] is not None:
            joined.add(places[row["run_id"]]["ended_at"] // MICROS_AN_HOUR)
    return joined


def next_traces(reader: Reader, batch: Batch) -> Collection[str]:
    """Other traces whose verdicts have to find their runs anew. Call after the commit."""
    reader.remember(batch.trace_ids, batch.after["verdicts"])
    responses = one_array(batch.after["model_calls"]["response_id"]).unique().drop_null()
    return reader.waiting(responses, batch.trace_ids)
