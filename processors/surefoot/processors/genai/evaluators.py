"""Evaluations that stand beside what they judge: spans of evaluators, and data points of metrics.

Contract: these are read once, when they arrive, and given as events under the trace that they judge, which may be
another one than the evaluator's. The row of ``verdicts`` is what is kept of them. Rule: what does not say which span,
trace or response it judges is no verdict on a run and is left where it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from surefoot.instrumentation import semconv
from surefoot.processors.genai.annotated import result_of, told_by
from surefoot.processors.genai.events import EVALUATOR, EVALUATORS, METRIC, SCORE_METRIC, Event, texts
from surefoot.processors.genai.verdicts import PASSED

SPAN_COLUMNS: Final = (
    *("trace_id", "span_id", "parent_span_id", "name", "end_unix_nano", "status", "status_message", "error_type"),
    *("service_name", "environment", "scope_name", "attributes", "events", "links", "received_at", "source", "date"),
)
SPANS_WHERE: Final = f"operation IN {EVALUATORS}"
POINT_COLUMNS: Final = (
    *("metric_name", "temporality", "time_unix_nano", "start_unix_nano", "value", "count", "sum", "min", "max"),
    *("service_name", "environment", "attributes", "received_at", "source", "date"),
)
POINTS_WHERE: Final = "starts_with(metric_name, 'gen_ai.evaluation.')"
# Contents in which dialects keep what an evaluator gave back.
OUTPUTS: Final = ("output.value", "langfuse.observation.output", "mlflow.spanOutputs")

_PREFIX: Final = "gen_ai.evaluation."
_VALUES: Final = ("score", "passed")  # the metric's last word if not the evaluation's name
_TRACE: Final = ("trace_id", "trace.id")
_SPAN: Final = ("span_id", "span.id")
# Names under which graders give back what the convention has names for.
_GIVEN: Final = {
    semconv.EVALUATION_NAME: ("name", "metric"),
    semconv.EVALUATION_LABEL: ("label", "verdict"),
    semconv.EVALUATION_SCORE: ("score",),
    semconv.EVALUATION_EXPLANATION: ("explanation", "reason", "comment"),
    PASSED: ("passed", "pass", "success"),
}
_LONGEST_LABEL: Final = 64  # a longer text is an answer in prose


def from_evaluator(row: Mapping[str, Any], output: str | None) -> Iterator[Event]:
    """What a span of an evaluator says of the span that it links to, or else of the one that it stands under."""
    own = dict(row["attributes"] or ())
    name = own.get(semconv.EVALUATION_NAME) or own.get("evaluator_name") or row["name"] or ""
    link = next((link for link in row["links"] or () if link["trace_id"] and link["span_id"]), None)
    trace_id, span_id = (link["trace_id"], link["span_id"]) if link else (row["trace_id"], row["parent_span_id"])
    named = {semconv.EVALUATION_NAME: name, semconv.EVALUATOR_NAME: name}
    told = list(told_by({**row, "attributes": {**own, semconv.EVALUATION_NAME: name}}))
    own_response = own.get(semconv.RESPONSE_ID)
    results = [event.attributes for event in told] or _outputs(output)
    if not results and row["status"] == "error":
        why = row["status_message"] or row["error_type"]
        results = [texts({semconv.ERROR_TYPE: row["error_type"] or "_OTHER", semconv.EVALUATION_EXPLANATION: why})]
    for attributes in results:
        said = {**named, **attributes}
        if own_response and said.get(semconv.RESPONSE_ID) == own_response:
            del said[semconv.RESPONSE_ID]  # of the judge's own model
        yield _event(row, trace_id, span_id, row["end_unix_nano"], said, EVALUATOR)


def _event(
    row: Mapping[str, Any], trace_id: str | None, span_id: str | None, time: int, told: Mapping[str, str], via: int
) -> Event:
    return Event(
        trace_id,
        span_id,
        semconv.EVALUATION_EVENT,
        time,
        row["service_name"],
        row["environment"],
        told,
        row["received_at"],
        row["source"],
        via,
    )


def _outputs(output: str | None) -> list[dict[str, str]]:
    """What an evaluator gave back: a number, a boolean, a word, an object of them, or a list of objects."""
    if not output:
        return []
    try:
        value = json.loads(output)
    except ValueError:
        value = output
    found = [_output(one) for one in (value if isinstance(value, list) else [value])]
    return [one for one in found if one]


def _output(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        word = value.strip() if isinstance(value, str) else value
        return {} if isinstance(word, str) and len(word) > _LONGEST_LABEL else texts(result_of(word))
    told = {
        name: value[key]
        for name, keys in _GIVEN.items()
        for key in reversed(keys)
        if isinstance(value.get(key), str | int | float)
    }
    plain = {semconv.EVALUATION_LABEL, semconv.EVALUATION_SCORE, PASSED} & told.keys()
    for key in ("value", "result"):
        if not plain and key in value:
            told |= result_of(value[key])
            plain = {semconv.EVALUATION_LABEL, semconv.EVALUATION_SCORE} & told.keys()
    return texts(told) if plain else {}


def from_point(row: Mapping[str, Any]) -> Iterator[Event]:
    """What a data point of ``gen_ai.evaluation.score``, ``.passed`` or ``.<name>`` says."""
    own = dict(row["attributes"] or ())
    word = row["metric_name"].removeprefix(_PREFIX)
    trace_id, span_id = (next((own[key] for key in keys if own.get(key)), None) for keys in (_TRACE, _SPAN))
    name = own.get(semconv.EVALUATION_NAME) or (word if word not in _VALUES else None)
    value = _single(row)
    tied = trace_id or own.get(semconv.RESPONSE_ID)
    if not tied or not name or "." in word or value is None:
        return
    told = {PASSED: json.dumps(value)} if word == "passed" else {semconv.EVALUATION_SCORE: json.dumps(value)}
    # A cumulative point is exported again and again; it began when it was first recorded.
    began = row["start_unix_nano"] if row["temporality"] == "cumulative" else 0
    said = {semconv.EVALUATION_NAME: name, **own, **told}
    via = METRIC if word == "passed" else SCORE_METRIC
    yield _event(row, trace_id, span_id, began or row["time_unix_nano"], said, via)


def _single(row: Mapping[str, Any]) -> float | None:
    """The value of a point; of a histogram only if all that it counted was the same."""
    if row["value"] is not None:
        return float(row["value"])
    if not row["count"] or row["sum"] is None:
        return None
    alike = row["count"] == 1 or (row["min"] is not None and row["min"] == row["max"])
    return float(row["sum"]) / int(row["count"]) if alike else None
