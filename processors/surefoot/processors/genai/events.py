"""Events that derivation reads: evaluations, wherever they were told, and the start events of runs.

Evaluations are few and become objects; start events come with every run and stay columns: :class:`Started` has them as
rows of ``spans``, so that a run whose span has not come has its columns where all others have theirs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from surefoot.instrumentation import semconv
from surefoot.processors.genai.arrays import Ints, any_true, firsts, ints, one_array, places_of, take
from surefoot.processors.genai.values import as_float, as_int
from surefoot.processors.lake.schema import SPANS

COLUMNS: Final = (
    "trace_id",
    "span_id",
    "event_name",
    "time_unix_nano",
    "observed_unix_nano",
    "service_name",
    "environment",
    "attributes",
    "body",
    "received_at",
    "source",
)
# Where an evaluation was told. Of one that was told in several places, the first of these counts.
LOG: Final = 0
OLD_LOG: Final = 1
SPAN_EVENT: Final = 2
ATTRIBUTES: Final = 3
EVALUATOR: Final = 4
METRIC: Final = 5
SCORE_METRIC: Final = 6  # tells a score; whether it is enough, another metric tells
# The convention's name, an earlier one, and one with a list of results in its body.
EVALUATIONS: Final = {semconv.EVALUATION_EVENT: LOG, "gen_ai.evaluation": OLD_LOG, "gen_ai.evaluation.results": OLD_LOG}
EVALUATORS: Final = ("evaluate", "evaluation")  # operations of spans that are evaluators
NAMES: Final = (semconv.RUN_STARTED_EVENT, *EVALUATIONS)
_RESULTS: Final = "gen_ai.evaluations"  # in the body of such a list

# Columns of a span that a start event tells, with its attribute.
_TOLD: Final = {
    "agent_name": semconv.AGENT_NAME,
    "agent_version": semconv.AGENT_VERSION,
    "conversation_id": semconv.CONVERSATION_ID,
    "task_class": semconv.TASK_CLASS,
    "task_id": semconv.TASK_ID,
    "consequence_class": semconv.CONSEQUENCE_CLASS,
    "intent_id": semconv.INTENT_ID,
    "run_group": semconv.RUN_GROUP,
    "repetition": semconv.REPETITION,
    "variant": semconv.VARIANT,
    "boundary_id": semconv.BOUNDARY_ID,
    "mode": semconv.MODE,
    "sample_weight": semconv.SAMPLE_WEIGHT,
}


class Event(NamedTuple):
    """An evaluation, in the attributes of the convention. Times are unix nanoseconds, arrivals unix microseconds."""

    trace_id: str | None
    span_id: str | None
    event_name: str
    time_unix_nano: int
    service_name: str | None
    environment: str | None
    attributes: Mapping[str, str]
    received_us: int
    source: str | None
    via: int = LOG


@dataclass(frozen=True, slots=True)
class Started:
    """Start events as rows with the columns of ``spans``, and when each happened."""

    rows: pa.Table
    times: Ints

    @classmethod
    def none(cls) -> Started:
        """No event."""
        return cls(SPANS.empty_table(), np.empty(0, np.int64))


def times_of(rows: pa.Table) -> Ints:
    """When each event happened; without a time, when it was observed, else when it arrived."""
    told, observed = ints(rows["time_unix_nano"]), ints(rows["observed_unix_nano"])
    return np.where(told != 0, told, np.where(observed != 0, observed, ints(rows["received_at"]) * 1000))


def read_events(rows: pa.Table) -> list[Event]:
    """Evaluations among rows with (at least) :data:`COLUMNS`."""
    rows = rows.filter(pc.is_in(rows["event_name"], pa.array(EVALUATIONS)))
    received = ints(rows["received_at"]).tolist()
    columns = ["trace_id", "span_id", "event_name", "service_name", "environment", "attributes", "source", "body"]
    found = []
    for row, time, arrived in zip(rows.select(columns).to_pylist(), times_of(rows).tolist(), received, strict=True):
        attributes = dict(row["attributes"] or ())
        event = Event(
            row["trace_id"] or None,
            row["span_id"] or None,
            row["event_name"],
            time,
            row["service_name"],
            row["environment"],
            attributes,
            arrived,
            row["source"],
            EVALUATIONS[row["event_name"]],
        )
        listed = _listed(row["body"]) if semconv.EVALUATION_NAME not in attributes else []
        found += [event._replace(attributes={**attributes, **one}) for one in listed] or [event]
    return found


def _listed(body: str | None) -> list[dict[str, str]]:
    """The results in the body of an event that has several."""
    if not body or _RESULTS not in body:
        return []
    try:
        results = json.loads(body)[_RESULTS]
    except (ValueError, KeyError, TypeError):
        return []
    return [texts(one) for one in results if isinstance(one, dict)] if isinstance(results, list) else []


def texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Values of JSON as attributes are kept: text as it is, anything else as JSON; nulls left out."""
    return {
        str(key): value if isinstance(value, str) else json.dumps(value)
        for key, value in values.items()
        if value is not None
    }


def records(rows: pa.Table) -> list[dict[str, Any]]:
    """Rows as dicts, arrivals in unix microseconds."""
    arrived = rows["received_at"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    listed: list[dict[str, Any]] = rows.set_column(
        rows.column_names.index("received_at"), "received_at", arrived
    ).to_pylist()
    return listed


def read_starts(rows: pa.Table) -> Started:
    """Start events among rows with :data:`COLUMNS`; one without a span is none."""
    wanted = pc.and_(pc.equal(rows["event_name"], semconv.RUN_STARTED_EVENT), pc.not_equal(rows["span_id"], ""))
    rows = rows.filter(wanted)
    if not rows.num_rows:
        return Started.none()
    times = times_of(rows)
    maps = one_array(rows["attributes"])
    columns: dict[str, Any] = {name: rows[name] for name in ("trace_id", "span_id", "service_name", "environment")}
    columns |= {name: rows[name] for name in ("attributes", "received_at", "source")}
    columns |= {"start_unix_nano": pa.array(times), "status": pa.array(["unset"] * rows.num_rows)}
    for name, key in _TOLD.items():
        told = attribute(maps, key)
        told = pc.if_else(pc.equal(told, ""), None, told)
        kind = SPANS.field(name).type
        columns[name] = as_int(told) if pa.types.is_int64(kind) else as_float(told) if kind == pa.float64() else told
    absent = {field.name: pa.nulls(rows.num_rows, field.type) for field in SPANS if field.name not in columns}
    return Started(pa.table({**absent, **columns}).select(SPANS.names).cast(SPANS), times)


def attribute(maps: pa.MapArray, key: str) -> pa.StringArray:
    """The value that each map has for ``key``."""
    keys, values, rows = places_of(maps)
    found = pc.equal(keys, key)
    if not any_true(found):
        return pa.nulls(len(maps), pa.string())
    places = np.flatnonzero(found.to_numpy(zero_copy_only=False))
    return take(values, firsts(rows[places], len(maps), places))
