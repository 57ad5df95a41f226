"""Evaluations from every source that sends them: what each becomes, whose run it judges, and that it counts once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import count, permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.captures import capture
from support.deriving import derive_rows
from support.traces import T0, TRACE, agent, chat, evaluation, event, put, sid, span
from surefoot.instrumentation import semconv
from surefoot.processors.genai import evaluations, events, verdicts
from surefoot.processors.genai.derive import Deriver
from surefoot.processors.genai.evaluators import from_evaluator
from surefoot.processors.lake import Lake
from surefoot.processors.lake.schema import CONTENTS, METRIC_POINTS
from surefoot.processors.settings import Settings

Row = dict[str, Any]

OTHER = "11" * 16
PAGE = Path(__file__).parents[3] / "docs" / "verdicts.md"

_commits = count(1)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.open(Settings(home=tmp_path).lake_path)


def derived(lake: Lake, now: float = 100.0) -> list[Row]:
    """The table of verdicts after a step of a deriver that knows only the lake."""
    Deriver(lake, Settings(home=lake.path.parent)).step(T0 + now)
    return sorted(lake.read("verdicts").to_pylist(), key=lambda row: (row["name"], row["occurred_at"]))


def brief(rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    return [(row["name"], row["verdict"], row["score"], row["label"], row["run_id"]) for row in rows]


def run_of(name: str, trace: str = TRACE) -> str:
    return f"{trace}-{sid(name)}"


def span_event(told: dict[str, str], name: str = semconv.EVALUATION_EVENT, at: float = 1.0) -> Row:
    attributes = {
        semconv.EVALUATION_NAME: "outcome",
        **{f"gen_ai.evaluation.{key}": said for key, said in told.items()},
    }
    return {"name": name, "time_unix_nano": int((T0 + at) * 1e6) * 1000, "attributes": list(attributes.items())}


def point(metric: str, value: float, at: float = 5.0, **columns: Any) -> Row:
    attributes = {"trace_id": TRACE, "span_id": sid("a"), semconv.EVALUATION_NAME: "outcome"}
    attributes |= columns.pop("attributes", {})
    base = evaluation(None, at)
    row: Row = dict.fromkeys(METRIC_POINTS.names) | {
        name: base[name] for name in ("time", "time_unix_nano", "service_name", "received_at", "source", "date")
    }
    row |= {"metric_name": metric, "metric_type": "histogram", "temporality": "cumulative", "resource_attributes": []}
    row |= {
        "value": value if columns.get("metric_type") == "gauge" else None,
        "count": 1,
        "sum": value,
        "min": value,
        "max": value,
        "start_unix_nano": base["time_unix_nano"],
    }
    chosen = [(key, said) for key, said in attributes.items() if said is not None]
    return {**row, "attributes": chosen, **columns}


def put_points(lake: Lake, *rows: Row) -> None:
    table = pa.Table.from_pylist(list(rows), schema=METRIC_POINTS)
    lake.commit("metric_points", table, app_id="test", app_version=next(_commits))


def judge(name: str, parent: str | None = None, *, links: Iterable[tuple[str, str]] = (), **columns: Any) -> Row:
    linked = [{"trace_id": trace, "span_id": sid(target), "attributes": []} for trace, target in links]
    return span(name, parent, 20, operation="evaluate", links=linked, **columns)


# --- events


@pytest.mark.parametrize("name", sorted(events.EVALUATIONS))
def test_events_of_logs_and_of_spans_by_every_name(name: str) -> None:
    on_log = event(name, "a", 2, attributes={semconv.EVALUATION_NAME: "outcome", semconv.EVALUATION_LABEL: "yes"})
    (row,) = derive_rows([agent("a"), on_log]).verdicts
    assert (row["kind"], row["verdict"], row["run_id"]) == ("outcome", "pass", run_of("a"))
    on_span = span_event({"score.label": "no"}, name)
    (row,) = derive_rows([agent("a"), chat("c", "a", events=[on_span], response_id="r")]).verdicts
    assert (row["kind"], row["verdict"], row["run_id"], row["span_id"]) == ("outcome", "fail", run_of("a"), sid("c"))


def test_a_list_of_results_in_one_event() -> None:
    results = [
        {
            "gen_ai.evaluation.name": "bias",
            "gen_ai.evaluation.score.value": 0.1,
            "gen_ai.evaluation.score.label": "Not Biased",
        },
        {"gen_ai.evaluation.name": "outcome", "gen_ai.evaluation.score.value": 0.4, "gen_ai.evaluation.passed": False},
        "nonsense",
    ]
    told = event("gen_ai.evaluation.results", "a", 2) | {"body": json.dumps({"gen_ai.evaluations": results})}
    rows = derive_rows([agent("a"), told]).verdicts
    assert sorted(brief(rows)) == [
        ("bias", "pass", 0.1, "Not Biased", run_of("a")),
        ("outcome", "fail", 0.4, None, run_of("a")),
    ]
    broken = event("gen_ai.evaluation.results", "a", 2) | {"body": '{"gen_ai.evaluations": [1'}
    assert [row["verdict"] for row in derive_rows([agent("a"), broken]).verdicts] == ["unresolved"]


def test_one_evaluation_told_in_several_places_is_one_verdict_in_any_order() -> None:
    said = {"score.label": "pass", "score.value": "1.0"}
    on_log = evaluation("c", 3, attributes={**said, "explanation": "fine"})
    old = event("gen_ai.evaluation", "c", 3.5, attributes=dict(on_log["attributes"]))
    carrier = chat(
        "c",
        "a",
        events=[span_event(said, at=2)],
        attributes={f"gen_ai.evaluation.{k}": v for k, v in said.items()} | {semconv.EVALUATION_NAME: "Outcome"},
    )
    (alone,) = derive_rows([agent("a"), chat("c", "a"), on_log]).verdicts
    for order in permutations([on_log, old, carrier]):
        assert derive_rows([agent("a"), *order]).verdicts == [alone]
    later = evaluation("c", 4, attributes=said)
    assert len(derive_rows([agent("a"), carrier, on_log, later]).verdicts) == 2
    other = chat("c", "a", events=[span_event({**said, "score.label": "fail"}, at=2)])
    assert {row["verdict"] for row in derive_rows([agent("a"), other, on_log]).verdicts} == {"pass", "fail"}


def test_what_the_better_place_tells_later_replaces_what_the_other_told(lake: Lake) -> None:
    put(lake, agent("a", events=[span_event({"score.label": "pass"}, at=2)]))
    put_points(lake, point("gen_ai.evaluation.passed", 1.0))
    (first,) = derived(lake, 20)
    put(lake, evaluation("a", 30, attributes={"score.label": "pass", semconv.EVALUATOR_KIND: "human"}))
    (second,) = derived(lake, 40)
    assert (first["grader_kind"], second["grader_kind"]) == (None, "human")
    assert [row["verdict_id"] for row in derived(lake, 2000)] == [second["verdict_id"]]


# --- annotations and attributes


def test_annotations_of_openinference() -> None:
    told = {
        "annotations.0.annotation.name": "correctness",
        "annotations.0.annotation.score": "1",
        "annotations.0.annotation.label": "correct",
        "annotations.0.annotation.explanation": "as expected",
        "annotations.0.annotation.annotator_kind": "HUMAN",
        "annotations.0.annotation.identifier": "anna",
        "annotations.1.annotation.name": "fluency",
        "annotations.1.annotation.score": "0.5",
        "evaluations.0.evaluation.name": "hallucination",
        "evaluations.0.evaluation.label": "true",
        "evaluations.0.evaluation.annotator_kind": "LLM",
        "trace.annotations.0.annotation.name": "goal achieved",
        "trace.annotations.0.annotation.label": "no",
        "session.annotations.0.annotation.name": "user feedback",
        "session.annotations.0.annotation.label": "thumbs up",
        "session.id": "s",
    }
    rows = derive_rows([agent("a"), agent("sub", "a", 1, 2, dialect="openinference", attributes=told)]).verdicts
    found = {row["name"]: (row["kind"], row["verdict"], row["grader_kind"], row["run_id"]) for row in rows}
    assert found == {
        "correctness": ("outcome", "pass", "human", run_of("sub")),
        "fluency": ("other", "unresolved", None, run_of("sub")),
        "hallucination": ("other", "unresolved", "model", run_of("sub")),
        "goal achieved": ("outcome", "fail", None, run_of("a")),
        "user feedback": ("other", "pass", None, run_of("a")),  # a session is no run
    }
    (correct,) = [row for row in rows if row["name"] == "correctness"]
    assert (correct["grader_name"], correct["explanation"], correct["score"]) == ("anna", "as expected", 1.0)


def test_attributes_of_the_convention_on_the_evaluated_span() -> None:
    told = {"gen_ai.evaluation.name": "outcome", "gen_ai.evaluation.passed": "false"}
    (row,) = derive_rows([agent("a", attributes=told)]).verdicts
    assert brief([row]) == [("outcome", "fail", None, None, run_of("a"))]
    assert derive_rows([agent("a", attributes={"gen_ai.evaluation.name": "outcome"})]).verdicts == []


def test_cases_of_an_experiment_of_pydantic_evals(lake: Lake) -> None:
    found = capture("pydantic-evals-2.62.0.offline.json")
    lake.commit("spans", found.spans, app_id="test", app_version=next(_commits))
    rows = {row["name"]: row for row in derived(lake, 10_000_000)}
    assert {name: (row["verdict"], row["score"], row["label"]) for name, row in rows.items()} == {
        "ok": ("pass", 1.0, "pass"),
        "EqualsExpected": ("pass", 1.0, "pass"),
        "relevance": ("unresolved", 0.8, None),
        "label": ("pass", None, "good"),
        "Boom": ("unresolved", None, None),
    }
    assert {name: row["grader_name"] for name, row in rows.items()} == {
        **dict.fromkeys(("ok", "relevance", "label"), "Score"),
        "EqualsExpected": "EqualsExpected",
        "Boom": "Boom",
    }
    assert rows["Boom"]["explanation"] == "RuntimeError: judge down"


def test_online_evaluations_count_once_although_their_evaluators_are_spans(lake: Lake) -> None:
    found = capture("pydantic-evals-2.62.0.online.json")
    lake.commit("spans", found.spans, app_id="test", app_version=next(_commits))
    alone = derived(lake, 10_000_000)
    assert [(row["name"], row["explanation"]) for row in alone] == [("Boom", "RuntimeError: judge down")]
    lake.commit("logs", found.logs, app_id="test", app_version=next(_commits))
    rows = derived(lake, 10_000_001)
    assert sorted(row["name"] for row in rows) == ["Boom", "label", "ok", "relevance"]
    assert {row["grader_name"] for row in rows} == {"Score", "Boom"}


# --- evaluators


def test_an_evaluator_judges_what_it_links_to_in_whatever_trace(lake: Lake) -> None:
    said = {"evaluations.0.evaluation.label": "incorrect", "evaluations.0.evaluation.name": "correctness"}
    put(lake, judge("judge", links=[(OTHER, "far")], trace=TRACE, dialect="openinference", attributes=said))
    (early,) = derived(lake)
    assert (early["trace_id"], early["span_id"], early["run_id"]) == (OTHER, sid("far"), None)
    put(lake, agent("far", trace=OTHER))
    (joined,) = derived(lake)
    assert brief([joined]) == [("correctness", "fail", None, "incorrect", run_of("far", OTHER))]
    assert joined["verdict_id"] == early["verdict_id"]
    assert derived(lake, 5000) == [joined | {"settled": True}]


def test_an_evaluator_without_a_link_judges_the_span_above_it(lake: Lake) -> None:
    said = {"gen_ai.evaluation.score.label": "pass"}
    put(lake, agent("a"), agent("sub", "a", 1, 2), judge("task completion", "sub", attributes=said))
    assert brief(derived(lake)) == [("task completion", "pass", None, "pass", run_of("sub"))]


def test_an_evaluator_that_failed_says_nothing_and_one_without_a_result_is_no_verdict(lake: Lake) -> None:
    put(lake, agent("a"), judge("silent", "a"), judge("down", "a", status="error", error_type="Timeout"))
    (row,) = derived(lake)
    assert (row["name"], row["verdict"], row["explanation"]) == ("down", "unresolved", "Timeout")


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("0.9", [("judge", "unresolved", 0.9, None)]),
        ("true", [("judge", "pass", 1.0, "pass")]),
        ("satisfied", [("judge", "pass", None, "satisfied")]),
        ('{"score": 0.2, "label": "bad", "reason": "rude"}', [("judge", "fail", 0.2, "bad")]),
        ('{"passed": true, "score": 0.7}', [("judge", "pass", 0.7, None)]),
        ('{"value": false}', [("judge", "fail", 0.0, "fail")]),
        (
            '[{"name": "x", "label": "pass"}, {"name": "y", "label": "?"}]',
            [("x", "pass", None, "pass"), ("y", "unresolved", None, "?")],
        ),
        ("The answer is fine, I would say, although one might argue about its tone.", []),
        ('{"text": "fine"}', []),
        ("null", []),
        ('{"score": "NaN"', [("judge", "unresolved", None, '{"score": "NaN"')]),
    ],
)
def test_what_an_evaluator_gave_back(output: str, expected: list[tuple[Any, ...]]) -> None:
    row = judge("judge", "a") | {"received_at": 0}
    told = [event._replace(trace_id=TRACE) for event in from_evaluator(row, output)]
    rows = verdicts.facts(told)
    assert [(row["name"], row["verdict"], row["score"], row["label"]) for row in rows] == expected


def test_what_an_evaluator_gave_back_is_there_where_contents_are_captured(lake: Lake) -> None:
    row = judge("judge", "a", dialect="langfuse")
    content = {name: row[name] for name in ("trace_id", "span_id", "start_time", "received_at", "source", "date")}
    content |= {"name": "langfuse.observation.output", "content": '{"score": 0.2, "label": "bad", "reason": "rude"}'}
    lake.commit("contents", pa.Table.from_pylist([content], CONTENTS), app_id="test", app_version=next(_commits))
    put(lake, agent("a"), row)
    (found,) = derived(lake)
    assert brief([found]) == [("judge", "fail", 0.2, "bad", run_of("a"))]
    assert (found["explanation"], found["grader_name"]) == ("rude", "judge")


# --- metrics


def test_data_points_that_name_their_span_are_verdicts_and_others_are_not(lake: Lake) -> None:
    put(lake, agent("a"))
    put_points(
        lake,
        point(
            "gen_ai.evaluation.score",
            0.9,
            attributes={semconv.EVALUATION_LABEL: "Relevant", semconv.EVALUATION_NAME: "relevance"},
        ),
        point("gen_ai.evaluation.toxicity", 0.0, attributes={semconv.EVALUATION_NAME: None}),
        point("gen_ai.evaluation.passed", 0.0),
        point("gen_ai.evaluation.score", 1.0, attributes={"trace_id": None}),
        point("gen_ai.evaluation.client.operation.duration", 1.0),
        point("gen_ai.evaluation.mean", 0.5, count=2, sum=1.0, min=0.0, max=1.0),
        point("gen_ai.client.token.usage", 1.0),
    )
    assert brief(derived(lake)) == [
        ("outcome", "fail", None, None, run_of("a")),
        ("relevance", "pass", 0.9, "Relevant", run_of("a")),
        ("toxicity", "unresolved", 0.0, None, run_of("a")),
    ]


def test_a_point_that_is_exported_again_and_again_is_one_verdict(lake: Lake) -> None:
    put(lake, agent("a"))
    again = {"metric_type": "gauge", "temporality": "unspecified", "start_unix_nano": 0, "count": None}
    for at in (5.0, 65.0):
        put_points(lake, point("gen_ai.evaluation.score", 1.0, at, **again))
    for at in (70.0, 130.0):
        put_points(lake, point("gen_ai.evaluation.score", 1.0, at, **again))
        rows = derived(lake, at + 1)
    assert brief(rows) == [("outcome", "pass", 1.0, None, run_of("a"))]


def test_a_score_and_whether_it_was_enough_are_one_evaluation_in_any_order(lake: Lake) -> None:
    put(lake, agent("a"))
    score = point("gen_ai.evaluation.score", 0.9, 5.0)
    passed = point("gen_ai.evaluation.passed", 1.0, 4.0)
    put_points(lake, score)
    assert [row["verdict"] for row in derived(lake, 20)] == ["unresolved"]
    put_points(lake, passed)
    assert [row["verdict"] for row in derived(lake, 21)] == ["pass"]
    put_points(lake, {**score, "time_unix_nano": score["time_unix_nano"] + 10})
    assert [row["verdict"] for row in derived(lake, 22)] == ["pass"]


def test_a_point_by_response_finds_the_run_of_the_response(lake: Lake) -> None:
    by_response = {"trace_id": None, "span_id": None, semconv.RESPONSE_ID: "r1"}
    put_points(lake, point("gen_ai.evaluation.passed", 1.0, attributes=by_response))
    assert [row["run_id"] for row in derived(lake)] == [None]
    put(lake, agent("a"), chat("c", "a", response_id="r1"))
    assert brief(derived(lake)) == [("outcome", "pass", None, None, run_of("a"))]


# --- the table of meanings


def test_names_of_something_bad_need_a_clear_word() -> None:
    for told in ({"score.value": "1"}, {"score.value": "0"}, {"score.label": "true"}, {"score.label": "no"}):
        (row,) = derive_rows([agent("a"), evaluation("a", attributes={"name": "Hallucination", **told})]).verdicts
        assert row["verdict"] == "unresolved", told
    for told, expected in (({"score.label": "Not Hallucinated"}, "pass"), ({"passed": "false"}, "fail")):
        (row,) = derive_rows([agent("a"), evaluation("a", attributes={"name": "hallucination", **told})]).verdicts
        assert row["verdict"] == expected, told


def test_words_do_not_contradict_each_other() -> None:
    passes, fails = (
        {evaluations.plain(word) for word in words} for words in (evaluations.PASS_WORDS, evaluations.FAIL_WORDS)
    )
    assert not passes & fails
    assert not (passes | fails) & {*evaluations.YES, *evaluations.NO}
    assert len({evaluations.plain(name) for name in evaluations.MEANINGS}) == len(evaluations.MEANINGS)


def test_the_page_shows_the_table_of_meanings() -> None:
    page = PAGE.read_text()
    shown: dict[str, tuple[str, str, str, bool]] = {}
    rows = re.findall(
        r"^\| ([^|]+) \| (outcome|process|other) \| (\w*) \| (final|provisional) \| (yes|no) \|$", page, re.MULTILINE
    )
    for names, kind, severity, finality, adverse in rows:
        shown |= dict.fromkeys(names.strip().split(", "), (kind, severity, finality, adverse == "yes"))
    assert shown == {
        name: (told.kind, told.severity or "", told.finality, told.adverse)
        for name, told in evaluations.MEANINGS.items()
    }
    words = [set(line.split(", ")) for line in re.findall(r"^- \w+: (.+)\.$", page, re.MULTILINE)]
    assert words == [
        set(evaluations.PASS_WORDS),
        set(evaluations.FAIL_WORDS),
        set(evaluations.YES),
        set(evaluations.NO),
    ]


def test_the_query_of_the_page(lake: Lake) -> None:
    put(lake, agent("a"), evaluation("a", 20, attributes={"score.label": "pass"}))
    derived(lake)
    (query,) = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    con = lake.connect()
    assert con.execute(query).fetchall() == [("a", "outcome", "outcome", "pass", 1)]
