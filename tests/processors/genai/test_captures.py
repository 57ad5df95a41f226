"""What real instrumentations emitted becomes what their programs did."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from support.captures import RECEIVED, capture, names
from support.deriving import Result, derive_tables

Row = dict[str, Any]

# Instrumentations whose spans never have to be taken back: see the test of every prefix.
STEADY = (
    "pydantic-ai-2.68.0__native-v5",
    "pydantic-ai-2.68.0__native-v6",
    "langgraph-1.2.24__otel-genai-langchain",
    "openai-3.57.0__otel-genai-openai-",
    "openai-agents-0.24.0__otel-genai-openai-agents",
)
CAPTURES = [name for name in names() if name.startswith(STEADY)]

# Cells that are known to be wrong, each with its reason.
WRONG: set[tuple[str, str]] = set()


def derived(name: str, spans: pa.Table | None = None, later: float = 5000.0) -> Result:
    """All traces of a capture together, or of a part of its spans."""
    taken = capture(name)
    return derive_tables(taken.spans if spans is None else spans, taken.logs, RECEIVED + later)


def test_the_captures_are_there() -> None:
    assert len(names()) >= 131
    assert len(CAPTURES) >= 27


@cache
def cells(name: str) -> dict[str, tuple[Any, Any]]:
    """What was derived and what is true, of each cell that could be observed."""
    taken, found = capture(name), derived(name)
    truth, observable = taken.truth, taken.truth["observable"]
    by_id = {row["run_id"]: row["agent_name"] for row in found.runs}
    runs = [(row["agent_name"] or "", row["outcome"], by_id.get(row["parent_run_id"]) or "") for row in found.runs]
    calls = [(row["tool_name"], row["outcome"]) for row in found.tool_calls]
    failed = sum(row["outcome"] == "error" for row in found.model_calls)
    compared = {
        "runs": (
            sorted(runs),
            sorted((run["agent"] or "", run["outcome"], run["parent"] or "") for run in truth["runs"]),
        ),
        "tools": (sorted(calls), sorted((call["name"], call["outcome"]) for call in truth["tool_calls"])),
        "llm": ((len(found.model_calls), failed), (truth["llm_calls"], truth["llm_errors"])),
    }
    compared = {cell: both for cell, both in compared.items() if observable[cell]}
    if observable["tokens"]:
        embedded = taken.spans.filter(pc.equal(taken.spans["operation"], "embeddings"))
        for kind in ("input_tokens", "output_tokens"):
            told = sum(row[kind] or 0 for row in found.runs or found.model_calls)
            if truth[kind] is not None:
                compared[kind] = (told + (pc.sum(embedded[kind]).as_py() or 0), truth[kind])
    return compared


@pytest.mark.xdist_group("captures")
@pytest.mark.parametrize("name", names())
def test_the_rows_say_what_the_program_did(name: str) -> None:
    for cell, (said, true) in cells(name).items():
        if (name, cell) in WRONG:
            assert said != true, f"{cell} is right now: take it out of WRONG"
        else:
            assert said == true, cell


@pytest.mark.xdist_group("captures")
def test_the_score(capsys: pytest.CaptureFixture[str]) -> None:
    """How many of the observable cells are right, by instrumentation; printed whatever pytest captures."""
    score: dict[str, Counter[str]] = {}
    for name in names():
        counts = score.setdefault(name.rpartition(".json")[0].rpartition(".")[0], Counter())
        for cell, (said, true) in cells(name).items():
            counts[f"{cell} seen"] += 1
            counts[f"{cell} right"] += said == true
    kinds = ("runs", "tools", "llm", "input_tokens", "output_tokens")
    lines = [f"{'right of observable cells':58}" + "".join(f"{kind:>15}" for kind in kinds)]
    for label, counts in [*sorted(score.items()), ("all", sum(score.values(), Counter[str]()))]:
        told = [f"{counts[f'{kind} right']}/{counts[f'{kind} seen']}" for kind in kinds]
        lines.append(f"{label:58}" + "".join(f"{text:>15}" for text in told))
    with capsys.disabled():
        print("", *lines, sep="\n")
    assert sum(counts[f"{kind} seen"] - counts[f"{kind} right"] for counts in score.values() for kind in kinds) == len(
        WRONG
    )


@pytest.mark.parametrize("name", CAPTURES)
def test_at_every_prefix_of_the_export_no_run_or_call_is_there_that_will_vanish(name: str) -> None:
    """These export children first. Nothing is counted before it is known, so nothing has to be taken back."""
    spans, whole = capture(name).spans, derived(name)
    for length in range(1, spans.num_rows):
        part = derived(name, spans.slice(0, length), later=1.0)
        for rows, of_whole in (
            ([row for row in part.runs if row["outcome"] != "running"], whole.runs),
            (part.tool_calls, whole.tool_calls),
            (part.model_calls, whole.model_calls),
        ):
            final = {row["span_id"]: row for row in of_whole}
            assert {row["span_id"] for row in rows} <= final.keys()
            assert all(row["outcome"] == final[row["span_id"]]["outcome"] for row in rows)
            assert all(row.get("run_id") in (None, final[row["span_id"]]["run_id"]) for row in rows)


@pytest.mark.parametrize("name", [name for name in CAPTURES if name.startswith("pydantic-ai")])
def test_an_agent_that_died_before_its_root_was_exported_is_one_unknown_run(name: str) -> None:
    spans = capture(name).spans
    is_root = spans["parent_span_id"].is_null()
    (root,) = spans.filter(is_root)["span_id"].to_pylist()
    found = derived(name, spans.filter(pc.invert(is_root)))
    assert [(row["span_id"], row["outcome"]) for row in found.runs if row["parent_run_id"] is None][:1] == [
        (root, "unknown")
    ]
    assert sum(row["outcome"] == "unknown" for row in found.runs) == 1
    assert all(row["run_id"] is not None for row in (*found.tool_calls, *found.model_calls))


def test_util_genai_by_hand() -> None:
    found = derived("util-genai-1.3b0__manual.ok.json")
    assert [
        (row["agent_name"], row["outcome"], row["tool_calls"], row["model_calls"], row["input_tokens"])
        for row in found.runs
    ] == [("weather_agent", "ok", 1, 1, 11), ("remote", "ok", 0, 0, 5)]
    assert {row["conversation_id"] for row in found.runs} == {"conv-1"}
    broken = derived("util-genai-1.3b0__manual.error.json")
    assert [(row["agent_name"], row["outcome"], row["error_type"]) for row in broken.runs] == [
        ("weather_agent", "error", "TimeoutError")
    ]
    assert [(row["tool_name"], row["error_type"]) for row in broken.tool_calls] == [("flaky", "ValueError")]


def test_online_evaluations_of_pydantic_evals() -> None:
    rows = derived("pydantic-evals-2.62.0.online.json").verdicts
    assert {row["name"]: (row["verdict"], row["score"], row["label"]) for row in rows} == {
        "relevance": ("unresolved", 0.8, None),
        "label": ("pass", None, "good"),
        "ok": ("pass", 1.0, "pass"),
        "Boom": ("unresolved", None, None),
    }
