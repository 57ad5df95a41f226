"""Evaluation events to verdicts, and verdicts to the runs that they judge.

Contract: a verdict is a fact taken from one event alone, named by a hash of what it says, so the same event sent twice
is one verdict. Only its ``run_id`` depends on anything else; it is found anew whenever the trace or the evaluated
response changes.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from surefoot.instrumentation import semconv
from surefoot.processors.genai import evaluations
from surefoot.processors.genai.events import Event
from surefoot.processors.genai.records import Row

# What a verdict says. Arrival, source and whatever the table of meanings adds are not part of its identity.
_MEANING: Final = (
    "trace_id",
    "span_id",
    "response_id",
    "name",
    "score",
    "label",
    "grader_name",
    "grader_version",
    "grader_kind",
    "explanation",
    "supersedes",
)
_EXPLICIT: Final = (
    semconv.EVALUATION_KIND,
    semconv.EVALUATION_FINALITY,
    semconv.EVALUATION_SEVERITY,
    semconv.ERROR_TYPE,
)
_GRADER_KINDS: Final = frozenset({"human", "executable", "model"})
_KINDS: Final = frozenset({evaluations.OUTCOME, evaluations.PROCESS, evaluations.OTHER})
_FINALITIES: Final = frozenset({evaluations.PROVISIONAL, evaluations.FINAL})
_MICROS_A_DAY: Final = 86_400_000_000


@dataclass(frozen=True, slots=True)
class RunIndex:
    """Where a verdict finds its run: run ids by span id and by response id, and the trace's only top-level run."""

    by_span: Mapping[str, str]
    by_response: Mapping[str, str]
    sole: str | None

    def find(self, fact: Row) -> str | None:
        """By span, else by trace, else by response id."""
        return self.by_span.get(fact["span_id"] or "") or self.sole or self.by_response.get(fact["response_id"] or "")


def home_of(event: Event) -> str:
    """The trace under which the event's verdict is kept.

    An evaluation without trace context gets an id made from its response id, or else from its content, so that it can
    be replaced by trace like everything else.
    """
    if event.trace_id:
        return event.trace_id
    handle = event.attributes.get(semconv.RESPONSE_ID) or json.dumps(
        [event.time_unix_nano, sorted(event.attributes.items())]
    )
    return hashlib.sha256(handle.encode()).hexdigest()[:32]


def facts(events: Iterable[Event]) -> list[Row]:
    """A verdict row without ``run_id`` and ``settled`` per distinct evaluation; the first arrival of each counts."""
    found: dict[str, Row] = {}
    for event in events:
        row = _fact(event)
        known = found.get(row["verdict_id"])
        if known is None or row["received_at"] < known["received_at"]:
            found[row["verdict_id"]] = row
    return list(found.values())


def _fact(event: Event) -> Row:
    told = event.attributes
    name = told.get(semconv.EVALUATION_NAME) or ""
    meaning = evaluations.meaning(name)
    label, score = told.get(semconv.EVALUATION_LABEL), _number(told.get(semconv.EVALUATION_SCORE))
    failed = semconv.ERROR_TYPE in told  # the evaluator failed, so it says nothing about the run
    row: Row = {
        "supersedes": told.get(semconv.EVALUATION_SUPERSEDES),
        "trace_id": event.trace_id,
        "span_id": event.span_id,
        "response_id": told.get(semconv.RESPONSE_ID),
        "service_name": event.service_name,
        "name": name,
        "kind": _one_of(_KINDS, told.get(semconv.EVALUATION_KIND), meaning.kind),
        "verdict": evaluations.UNRESOLVED if failed else evaluations.verdict(label, score, meaning.threshold),
        "score": score,
        "label": label,
        "severity": told.get(semconv.EVALUATION_SEVERITY) or meaning.severity,
        "finality": _one_of(_FINALITIES, told.get(semconv.EVALUATION_FINALITY), meaning.finality),
        "grader_name": told.get(semconv.EVALUATOR_NAME),
        "grader_version": told.get(semconv.EVALUATOR_VERSION),
        "grader_kind": _one_of(_GRADER_KINDS, told.get(semconv.EVALUATOR_KIND), None),
        "explanation": told.get(semconv.EVALUATION_EXPLANATION),
        "occurred_at": event.time_unix_nano // 1000,
        "received_at": event.received_us,
        "source": event.source,
        "date": event.time_unix_nano // 1000 // _MICROS_A_DAY,
    }
    said = [event.time_unix_nano, *(row[name] for name in _MEANING), *(told.get(key) for key in _EXPLICIT)]
    row["verdict_id"] = hashlib.sha256(json.dumps(said).encode()).hexdigest()
    row["trace_id"] = home_of(event)
    return row


def _one_of(allowed: frozenset[str], told: str | None, otherwise: str | None) -> str | None:
    word = (told or "").strip().lower()
    return word if word in allowed else otherwise


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def judged(evaluations_of: Iterable[Event], index: RunIndex, settled: bool, kept: Iterable[Row] = ()) -> list[Row]:
    """The verdicts of a trace as rows of the table, each with its run if there is one; in order of ``verdict_id``.

    ``kept`` are rows of the table: a fact stays when its event is out of reach.
    """
    found = {str(row["verdict_id"]): row for row in kept}
    for row in facts(evaluations_of):
        known = found.get(row["verdict_id"])
        if known is None or row["received_at"] <= known["received_at"]:
            found[row["verdict_id"]] = row
    return [{**row, "run_id": index.find(row), "settled": settled} for _, row in sorted(found.items())]


def unique_responses(models: Iterable[Row]) -> dict[str, str]:
    """Run ids by response id, without those that stand for more than one run (scripted models repeat their ids)."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for row in models:
        if row["response_id"] and row["run_id"]:
            found[row["response_id"]].add(row["run_id"])
    return {response_id: next(iter(ids)) for response_id, ids in found.items() if len(ids) == 1}
