"""Evaluations to verdicts: words, identity, meanings, joining, precedence."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.deriving import derive_rows, derive_tables
from support.traces import T0, TRACE, agent, chat, evaluation, logs_table, sid, spans_table, tool
from surefoot.instrumentation import semconv
from surefoot.processors.genai import evaluations
from surefoot.processors.genai.records import to_table

Row = dict[str, Any]


def verdicts(*rows: Row, now: float = 100.0) -> list[Row]:
    return derive_rows(rows, now).verdicts


def test_an_evaluation_of_any_span_of_a_run_judges_the_run() -> None:
    told = {
        "name": "Policy-Compliance",
        "score.value": "0.0",
        "score.label": "violated",
        "explanation": "refund above the limit",
        semconv.EVALUATOR_NAME: "rules",
        semconv.EVALUATOR_VERSION: "3",
        semconv.EVALUATOR_KIND: "executable",
    }
    (row,) = verdicts(agent("a"), tool("t", "a"), evaluation("t", 20, received=21, attributes=told))
    assert (
        row
        | {
            "run_id": f"{TRACE}-{sid('a')}",
            "trace_id": TRACE,
            "span_id": sid("t"),
            "name": "Policy-Compliance",
            "kind": "process",
            "verdict": "fail",
            "score": 0.0,
            "label": "violated",
            "finality": "final",
            "grader_name": "rules",
            "grader_version": "3",
            "grader_kind": "executable",
            "explanation": "refund above the limit",
            "occurred_at": int((T0 + 20) * 1e6),
            "received_at": int((T0 + 21) * 1e6),
            "supersedes": None,
        }
        == row
    )


def test_explicit_attributes_win_over_the_table_of_meanings() -> None:
    told = {
        "name": "user feedback",
        "score.value": "1",
        semconv.EVALUATION_KIND: "PROCESS",
        semconv.EVALUATION_SEVERITY: "minor",
        semconv.EVALUATION_FINALITY: "final",
    }
    (explicit,) = verdicts(agent("a"), evaluation("a", attributes=told))
    assert (explicit["kind"], explicit["severity"], explicit["finality"]) == ("process", "minor", "final")
    (table,) = verdicts(agent("a"), evaluation("a", attributes={"name": "user feedback"}))
    assert (table["kind"], table["severity"], table["finality"]) == ("outcome", None, "provisional")
    nonsense = {"name": "fluency", semconv.EVALUATION_KIND: "sideways", semconv.EVALUATOR_KIND: "ghost"}
    (other,) = verdicts(agent("a"), evaluation("a", attributes=nonsense))
    assert (other["kind"], other["grader_kind"]) == ("other", None)


@pytest.mark.parametrize(
    ("label", "score", "expected"),
    [
        ("pass", None, "pass"),
        ("PASSED", None, "pass"),
        ("True", None, "pass"),
        ("1.0", None, "pass"),
        ("Satisfied", None, "pass"),
        ("compliant", None, "pass"),
        ("acceptable", None, "pass"),
        ("success", None, "pass"),
        ("Yes", None, "pass"),
        ("good", None, "pass"),
        ("wrong", None, "fail"),
        ("positive", None, "unresolved"),
        ("fail", 1.0, "fail"),
        ("false", None, "fail"),
        ("0", None, "fail"),
        ("non-compliant", None, "fail"),
        ("not acceptable", None, "fail"),
        ("Not Satisfied", None, "fail"),
        ("mostly fine", 1.0, "unresolved"),
        ("not passed", None, "unresolved"),
        ("0.9", None, "unresolved"),
        ("passable", None, "unresolved"),
        ("", 1.0, "pass"),
        (None, 1.0, "pass"),
        (None, 0.0, "fail"),
        (None, 0.99, "unresolved"),
        (None, 7.0, "unresolved"),
        (None, None, "unresolved"),
    ],
)
def test_words_and_scores(label: str | None, score: float | None, expected: str) -> None:
    assert evaluations.verdict(label, score, None) == expected


def test_a_threshold_of_the_table_decides_a_score() -> None:
    assert [evaluations.verdict(None, score, 0.7) for score in (0.69, 0.7, 1.0)] == ["fail", "pass", "pass"]


@given(st.text())
def test_no_unknown_word_is_a_pass(word: str) -> None:
    if evaluations.verdict(word, None, None) == "pass":
        known = {evaluations.plain(known) for known in (*evaluations.PASS_WORDS, *evaluations.YES)}
        assert evaluations.plain(word) in known or float(word) == 1.0


@pytest.mark.parametrize("score", ["nan", "inf", "x", ""])
def test_a_score_that_is_no_number_is_absent(score: str) -> None:
    (row,) = verdicts(agent("a"), evaluation("a", attributes={"score.value": score}))
    assert (row["score"], row["verdict"]) == (None, "unresolved")


def test_a_failed_evaluator_says_nothing() -> None:
    (row,) = verdicts(agent("a"), evaluation("a", attributes={"score.label": "pass", "error.type": "Timeout"}))
    assert row["verdict"] == "unresolved"


def test_the_same_evaluation_sent_twice_is_one_verdict_and_another_one_is_another() -> None:
    first = evaluation("a", 5, received=6, attributes={"score.label": "pass"})
    again = evaluation("a", 5, received=60, attributes={"score.label": "pass"})
    assert verdicts(agent("a"), first) == verdicts(agent("a"), again, first, first)
    later = evaluation("a", 7, attributes={"score.label": "pass"})
    changed = evaluation("a", 5, attributes={"score.label": "fail"})
    corrected = evaluation("a", 5, attributes={"score.label": "pass", semconv.EVALUATION_SUPERSEDES: "abc"})
    rows = verdicts(agent("a"), first, later, changed, corrected)
    assert len({row["verdict_id"] for row in rows}) == len(rows) == 4


def test_a_verdict_finds_its_run_by_span_then_by_trace_then_by_response() -> None:
    def joined(*rows: Row) -> str | None:
        (row,) = verdicts(*rows)
        return str(row["run_id"]).partition("-")[2] if row["run_id"] else None

    one = [agent("a"), agent("sub", "a", 1, 2), chat("c", "sub", 1, response_id="r1")]
    two = [*one, agent("b", at=20)]
    assert joined(*one, evaluation("c")) == sid("sub")
    assert joined(*one, evaluation("nowhere")) == sid("a")
    assert joined(*one, evaluation(None, attributes={semconv.RESPONSE_ID: "r1"})) == sid("a")
    assert joined(*two, evaluation(None, attributes={semconv.RESPONSE_ID: "r1"})) == sid("sub")
    assert joined(*two, evaluation(None)) is None
    twice = [*two, chat("c2", "b", 21, response_id="r1")]
    assert joined(*twice, evaluation(None, attributes={semconv.RESPONSE_ID: "r1"})) is None


def test_a_fact_of_the_table_stays_when_its_event_is_out_of_reach_and_finds_its_run_anew() -> None:
    early = evaluation("t", 2, attributes={"score.label": "pass"})
    (waiting,) = verdicts(tool("t", "a"), early)
    assert waiting["run_id"] is None
    spans = spans_table([agent("a"), tool("t", "a")])
    (kept,) = derive_tables(spans, logs_table([]), T0 + 100, kept=[waiting]).verdicts
    assert kept == waiting | {"run_id": f"{TRACE}-{sid('a')}"}


def test_precedence() -> None:
    def told(at: float, label: str, grader: str | None, finality: str, **more: str) -> Row:
        attributes = {"score.label": label, semconv.EVALUATION_FINALITY: finality}
        if grader is not None:
            attributes[semconv.EVALUATOR_KIND] = grader
        return evaluation("a", at, attributes={**attributes, **more})

    ranked = [
        told(1, "fail", "human", "final"),
        told(2, "pass", "executable", "final"),
        told(4, "pass", "model", "final"),
        told(3, "fail", "model", "final"),
        told(9, "pass", None, "final"),
        told(8, "fail", "human", "provisional"),
        told(7, "mixed", "model", "provisional"),
    ]
    superseding = evaluation("a", 0, attributes={"name": "correction", semconv.EVALUATION_KIND: "other"})
    rows = verdicts(agent("a"), *reversed(ranked), superseding)
    assert _ranking(rows) == [row["time_unix_nano"] // 1000 for row in ranked]
    best = next(row["verdict_id"] for row in rows if row["grader_kind"] == "human" and row["finality"] == "final")
    superseding["attributes"].append((semconv.EVALUATION_SUPERSEDES, best))
    rows = verdicts(agent("a"), *ranked, superseding)
    assert _ranking(rows) == [row["time_unix_nano"] // 1000 for row in ranked[1:]]


def _ranking(rows: list[Row]) -> list[int]:
    query = files("surefoot.processors.genai").joinpath("sql/verdict_precedence.sql").read_text()
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    con.register("verdicts", to_table("verdicts", rows))
    ranked = con.execute(
        f"SELECT epoch_us(occurred_at) FROM ({query}) WHERE kind = 'outcome' ORDER BY place_in_kind"
    ).fetchall()
    return [moment for (moment,) in ranked]
