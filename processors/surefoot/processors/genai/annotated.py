"""Evaluations that the evaluated spans carry themselves: span events, annotations, attributes, cases of experiments.

Contract: :func:`from_spans` reads rows with the columns that derivation reads, and gives what they tell as events in
the convention's attributes. Spans that *are* evaluators are left out, they judge another span
(:mod:`~surefoot.processors.genai.evaluators`). Every span comes by here, so all that looks at every span is done on
columns, and only what is about an evaluation becomes an object.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from surefoot.instrumentation import semconv
from surefoot.processors.genai.arrays import Bools, any_true, bools, one_array
from surefoot.processors.genai.events import ATTRIBUTES, EVALUATIONS, EVALUATORS, SPAN_EVENT, Event, records, texts

_PREFIX: Final = "gen_ai.evaluation."
FIRST: Final = ("annotations.", "evaluations.", "trace.", "session.")
_ANNOTATION: Final = re.compile(
    r"(trace\.|session\.)?(?:annotations|evaluations)\.(\d+)\.(?:annotation|evaluation)\.(\w+)"
)
_FIELDS: Final = {
    "name": semconv.EVALUATION_NAME,
    "score": semconv.EVALUATION_SCORE,
    "label": semconv.EVALUATION_LABEL,
    "explanation": semconv.EVALUATION_EXPLANATION,
    "annotator_kind": semconv.EVALUATOR_KIND,
    "identifier": semconv.EVALUATOR_NAME,
}
_EXPERIMENTS: Final = "pydantic-evals"
RESULTS: Final = ("assertions", "scores", "labels")  # of a case, each a JSON object by name


def from_spans(spans: pa.Table) -> list[Event]:
    """Evaluations among spans with the columns of ``traces.COLUMNS``."""
    others = bools(pc.invert(pc.is_in(spans["operation"], pa.array(EVALUATORS))))
    carriers = (_with_events(spans) | _with_attributes(spans)) & others
    return [event for row in _rows(spans, carriers) for event in told_by(row)]


def _with_events(spans: pa.Table) -> Bools:
    events = one_array(spans["events"])
    named = pc.is_in(events.flatten().field("name"), pa.array(EVALUATIONS))
    found = np.zeros(spans.num_rows, np.bool_)
    if any_true(named):
        found[pc.list_parent_indices(events).filter(named).to_numpy(zero_copy_only=False)] = True
    return found


def _with_attributes(spans: pa.Table) -> Bools:
    """Spans that have an attribute of an evaluation; annotations are looked for where OpenInference wrote."""
    found = bools(pc.equal(spans["scope_name"], _EXPERIMENTS))
    maps = one_array(spans["attributes"])
    offsets = np.asarray(maps.offsets)
    keys = maps.keys.slice(offsets[0], offsets[-1] - offsets[0])
    annotating = bools(pc.equal(spans["dialect"], "openinference"))
    wanted = pc.starts_with(keys, _PREFIX)
    for word in FIRST if annotating.any() else ():
        wanted = pc.or_(wanted, pc.starts_with(keys, word))
    if not any_true(wanted):
        return found
    at = np.flatnonzero(bools(wanted))
    rows = np.searchsorted(offsets, at + offsets[0], side="right") - 1
    names = keys.take(pa.array(at))
    convention = bools(pc.starts_with(names, _PREFIX))
    annotation = bools(pc.match_substring_regex(names, "^" + _ANNOTATION.pattern)) & annotating[rows]
    found[rows[convention | annotation]] = True
    return found


def _rows(spans: pa.Table, chosen: Bools) -> list[dict[str, Any]]:
    if not chosen.any():
        return []
    names = ["trace_id", "span_id", "end_unix_nano", "service_name", "environment", "scope_name", "attributes"]
    rows = spans.select([*names, "events", "received_at", "source"]).take(pa.array(np.flatnonzero(chosen)))
    return records(rows)


def told_by(row: Mapping[str, Any]) -> Iterator[Event]:
    """What a span tells, about itself; ``row`` has times as integers."""
    own = dict(row["attributes"] or ())
    response = {semconv.RESPONSE_ID: own[semconv.RESPONSE_ID]} if own.get(semconv.RESPONSE_ID) else {}

    def event(attributes: Mapping[str, str], via: int, time: int, span_id: str | None) -> Event:
        return Event(
            row["trace_id"] or None,
            span_id,
            semconv.EVALUATION_EVENT,
            time,
            row["service_name"],
            row["environment"],
            attributes,
            row["received_at"],
            row["source"],
            via,
        )

    for told in row["events"] or ():
        if told["name"] in EVALUATIONS:
            yield event(response | dict(told["attributes"] or ()), SPAN_EVENT, told["time_unix_nano"], row["span_id"])
    for of_span, attributes in [*_annotations(own), *_plain(own), *_case(own, row["scope_name"])]:
        yield event(response | attributes, ATTRIBUTES, row["end_unix_nano"], row["span_id"] if of_span else None)


def _annotations(own: Mapping[str, str]) -> Iterator[tuple[bool, dict[str, str]]]:
    """Annotations, and whether they are of the span; others are of its trace, or of its session, which is no run."""
    found: defaultdict[tuple[str, int, str], dict[str, str]] = defaultdict(dict)
    for key, value in own.items():
        match = _ANNOTATION.fullmatch(key)
        if match and match[3] in _FIELDS:
            found[match[1] or "", int(match[2]), key.removeprefix(match[1] or "")[:4]][_FIELDS[match[3]]] = value
    for (scope, _, _), attributes in sorted(found.items()):
        if scope == "session.":
            attributes[semconv.EVALUATION_KIND] = "other"
        yield not scope, attributes


def _plain(own: Mapping[str, str]) -> Iterator[tuple[bool, dict[str, str]]]:
    told = {key: value for key, value in own.items() if key.startswith((_PREFIX, "surefoot.evaluat"))}
    if semconv.EVALUATION_NAME in told and len(told) > 1:
        yield True, told


def _case(own: Mapping[str, str], scope: str | None) -> Iterator[tuple[bool, dict[str, str]]]:
    """The results of a case of an experiment of pydantic-evals."""
    if scope != _EXPERIMENTS:
        return
    for kind in RESULTS:
        try:
            results = json.loads(own.get(kind) or "{}")
        except ValueError:
            continue
        for name, one in results.items() if isinstance(results, dict) else ():
            if isinstance(one, dict) and one.get("value") is not None:
                yield True, case_result(str(name), one)


def case_result(name: str, one: Mapping[str, Any]) -> dict[str, str]:
    """A result of pydantic-evals as its own log event would tell it."""
    source = one.get("source")
    return texts(
        {
            semconv.EVALUATION_NAME: name,
            semconv.EVALUATION_EXPLANATION: one.get("reason"),
            semconv.EVALUATOR_NAME: source.get("name") if isinstance(source, dict) else None,
            semconv.EVALUATOR_VERSION: one.get("evaluator_version"),
            **result_of(one["value"]),
        }
    )


def result_of(value: Any) -> dict[str, Any]:
    """Score and label of a plain result: a boolean is both, a number a score, a word a label."""
    if isinstance(value, bool):
        return {semconv.EVALUATION_SCORE: float(value), semconv.EVALUATION_LABEL: "pass" if value else "fail"}
    if isinstance(value, int | float):
        return {semconv.EVALUATION_SCORE: value}
    return {semconv.EVALUATION_LABEL: value} if isinstance(value, str) and value.strip() else {}
