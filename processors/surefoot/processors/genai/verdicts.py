"""Evaluations to verdicts, and verdicts to the runs that they judge.

Contract: a verdict is a fact taken from one evaluation alone, named by a hash of what it says, so the same one sent
twice is one verdict. One that is told in several places (a log event, a span event, attributes, a metric) is one
verdict too: the place that :mod:`~surefoot.processors.genai.events` names first counts. Only the ``run_id`` depends on
anything else; it is found anew whenever the trace or the evaluated response changes.
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
from surefoot.processors.genai import evaluations, events
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
# What a row tells of its own, for evaluations that are read once, when they arrive: their id has no time, because a
# metric is exported again and again, and can be recomputed from the row, which says so where such a row came from.
_TIMELESS: Final = ("trace_id", *_MEANING[1:], "kind", "verdict", "severity", "finality")
_READ_ONCE: Final = (events.EVALUATOR, events.METRIC, events.SCORE_METRIC)
# Other names of what an evaluation tells: of the open proposal for the convention, and of pydantic-evals.
PASSED: Final = "gen_ai.evaluation.passed"
_ALSO: Final = {
    semconv.EVALUATOR_NAME: ("gen_ai.evaluation.evaluator.name", "gen_ai.evaluation.evaluator.id"),
    semconv.EVALUATOR_VERSION: ("gen_ai.evaluation.evaluator.version",),
    semconv.EVALUATOR_KIND: ("gen_ai.evaluation.evaluator.type",),
    semconv.EVALUATION_SCORE: ("gen_ai.evaluation.score",),
    semconv.EVALUATION_LABEL: ("gen_ai.evaluation.label",),
}
_SOURCE: Final = "gen_ai.evaluation.evaluator.source"  # JSON with the grader's name
# Where both tell one of these and they differ, two results are not one.
_AGREEING: Final = ("score", "label", "grader_name", "explanation", "response_id")
_GRADER_KINDS: Final = {
    **{word: word for word in ("human", "executable", "model")},
    "llm": "model",
    "code": "executable",
    "user": "human",
}
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


def facts(told: Iterable[Event], kept: Iterable[Row] = ()) -> list[Row]:
    """A verdict row without ``run_id`` and ``settled`` per distinct evaluation; the first arrival of each counts.

    ``kept`` are rows of the table: a fact stays when its event is out of reach.
    """
    found: dict[str, tuple[int, Row]] = {}
    for event in told:
        row, via = _fact(event), event.via
        if row["verdict_id"] in found:
            known_via, known = found[row["verdict_id"]]
            row, via = (known if known["received_at"] <= row["received_at"] else row), min(via, known_via)
        found[row["verdict_id"]] = (via, row)
    for row in kept:
        known_via, known = found.get(row["verdict_id"]) or (_via(row), row)
        found[row["verdict_id"]] = (known_via, row if row["received_at"] < known["received_at"] else known)
    return _told_once(found.values())


def _via(row: Row) -> int:
    """Where a row of the table was told; that of an event if nothing else."""
    return next((via for via in _READ_ONCE if _timeless_id(row, via) == row["verdict_id"]), events.LOG)


def _timeless_id(row: Row, via: int) -> str:
    return _hash([via, *(row[name] for name in _TIMELESS)])


def _told_once(found: Iterable[tuple[int, Row]]) -> list[Row]:
    """Without those that say what another one says that was told in a better place."""
    by_target: defaultdict[tuple[str | None, str], list[tuple[int, Row]]] = defaultdict(list)
    for via, row in found:
        by_target[row["span_id"], evaluations.plain(row["name"])].append((via, row))
    rows = []
    for told in by_target.values():
        told.sort(key=lambda one: (one[0], one[1]["occurred_at"], one[1]["verdict_id"]))
        taken: set[tuple[int, int]] = set()  # each result stands for one of every other place
        kept: list[tuple[int, Row]] = []
        for via, row in told:
            same = next(
                (
                    place
                    for place, (better, other) in enumerate(kept)
                    if better < via and (place, via) not in taken and _agree(row, other)
                ),
                None,
            )
            if same is None:
                kept.append((via, row))
            else:
                taken.add((same, via))
        rows += [row for _, row in kept]
    return rows


def _agree(one: Row, other: Row) -> bool:
    """Whether both are a result, or both none, and are the same in whatever both tell."""
    if _is_result(one) != _is_result(other):
        return False
    if evaluations.UNRESOLVED not in {one["verdict"], other["verdict"]} and one["verdict"] != other["verdict"]:
        return False
    pairs = ((one[name], other[name]) for name in _AGREEING)
    return all(
        a is None
        or b is None
        or (math.isclose(a, b) if isinstance(a, float) else evaluations.plain(a) == evaluations.plain(b))
        for a, b in pairs
    )


def _is_result(row: Row) -> bool:
    return row["verdict"] != evaluations.UNRESOLVED or row["score"] is not None or row["label"] is not None


def _fact(event: Event) -> Row:
    told = _canonical(event.attributes)
    name = told.get(semconv.EVALUATION_NAME) or ""
    meaning = evaluations.meaning(name)
    label, score = told.get(semconv.EVALUATION_LABEL), _number(told.get(semconv.EVALUATION_SCORE))
    passed = told.get(PASSED)
    failed = semconv.ERROR_TYPE in told  # the evaluator failed, so it says nothing about the run
    decided = evaluations.verdict(label, score, meaning.threshold, passed=passed, adverse=meaning.adverse)
    row: Row = {
        "supersedes": told.get(semconv.EVALUATION_SUPERSEDES),
        "trace_id": event.trace_id,
        "span_id": event.span_id,
        "response_id": told.get(semconv.RESPONSE_ID),
        "service_name": event.service_name,
        "name": name,
        "kind": _one_of(_KINDS, told.get(semconv.EVALUATION_KIND)) or meaning.kind,
        "verdict": evaluations.UNRESOLVED if failed else decided,
        "score": score,
        "label": label,
        "severity": told.get(semconv.EVALUATION_SEVERITY) or meaning.severity,
        "finality": _one_of(_FINALITIES, told.get(semconv.EVALUATION_FINALITY)) or meaning.finality,
        "grader_name": told.get(semconv.EVALUATOR_NAME),
        "grader_version": told.get(semconv.EVALUATOR_VERSION),
        "grader_kind": _GRADER_KINDS.get(_word(told.get(semconv.EVALUATOR_KIND))),
        "explanation": told.get(semconv.EVALUATION_EXPLANATION) or (told[semconv.ERROR_TYPE] if failed else None),
        "occurred_at": event.time_unix_nano // 1000,
        "received_at": event.received_us,
        "source": event.source,
        "date": event.time_unix_nano // 1000 // _MICROS_A_DAY,
    }
    said = [event.time_unix_nano, *(row[name] for name in _MEANING), *(told.get(key) for key in _EXPLICIT)]
    if passed is not None:
        said.append(passed)
    row["trace_id"] = home_of(event)
    row["verdict_id"] = _timeless_id(row, event.via) if event.via in _READ_ONCE else _hash(said)
    return row


def _hash(said: list[object]) -> str:
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def _canonical(told: Mapping[str, str]) -> Mapping[str, str]:
    """With the convention's names and ours for what was told by others."""
    more = {
        name: told[other]
        for name, others in _ALSO.items()
        if name not in told
        for other in reversed(others)
        if other in told
    }
    if _SOURCE in told and semconv.EVALUATOR_NAME not in {**more, **told}:
        try:
            name = json.loads(told[_SOURCE])["name"]
        except (ValueError, TypeError, KeyError):
            name = None
        more |= {semconv.EVALUATOR_NAME: name} if isinstance(name, str) else {}
    return {**told, **more} if more else told


def _word(told: str | None) -> str:
    return (told or "").strip().lower()


def _one_of(allowed: frozenset[str], told: str | None) -> str | None:
    word = _word(told)
    return word if word in allowed else None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def judged(evaluations_of: Iterable[Event], index: RunIndex, settled: bool, kept: Iterable[Row] = ()) -> list[Row]:
    """The verdicts of a trace as rows of the table, each with its run if there is one; in order of ``verdict_id``."""
    rows = sorted(facts(evaluations_of, kept), key=lambda row: str(row["verdict_id"]))
    return [{**row, "run_id": index.find(row), "settled": settled} for row in rows]


def unique_responses(models: Iterable[Row]) -> dict[str, str]:
    """Run ids by response id, without those that stand for more than one run (scripted models repeat their ids)."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for row in models:
        if row["response_id"] and row["run_id"]:
            found[row["response_id"]].add(row["run_id"])
    return {response_id: next(iter(ids)) for response_id, ids in found.items() if len(ids) == 1}
