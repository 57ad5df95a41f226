"""Files that are damaged, mistyped or odd: a row is dropped with its place, a file refused with the remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from surefoot.evaluation.importers import Options, Results, ResultsError, read_results, write_folder
from surefoot.evaluation.records import Attempt


def read(form: str, path: Path, data: str | bytes | Any, **options: Any) -> tuple[list[Attempt], Results]:
    if not isinstance(data, bytes):
        data = (data if isinstance(data, str) else json.dumps(data)).encode()
    path.write_bytes(data)
    results = read_results(form, [path], Options(**options))
    return list(results), results


def tau(**more: Any) -> dict[str, Any]:
    return {"task_id": 3, "trial": 1, "reward": 1.0, "info": {}, "traj": [], **more}


TAU: list[dict[str, Any]] = [
    {"trial": "one"},
    {"trial": None},
    {"info": ["x"]},
    {"traj": "text"},
    {"traj": [{"role": "assistant", "tool_calls": [{}]}]},
    {"task_id": None},
]


@pytest.mark.parametrize("odd", TAU)
def test_tau_bench_drops_what_is_mistyped(tmp_path: Path, odd: dict[str, Any]) -> None:
    attempts, results = read("tau-bench", tmp_path / "a.json", [tau(**odd), tau()])
    assert len(attempts) == 1
    assert [row.place for row in results.dropped] == ["run 0"]


def test_a_trial_that_stands_twice_counts_once(tmp_path: Path) -> None:
    attempts, results = read("tau-bench", tmp_path / "a.json", [tau(), tau(reward=0.0), tau(trial=2)])
    assert [attempt.acceptable for attempt in attempts] == [True, True]
    assert "trial 1 of task 3 is run 0 already" in results.dropped[0].reason
    trials = {"results": [trial(uuid="1"), trial(uuid="1", is_resolved=False), trial(uuid="2")]}
    attempts, results = read("terminal-bench", tmp_path / "b.json", trials)
    assert [attempt.acceptable for attempt in attempts] == [True, True]
    assert "it is trial 0 again (id 1)" in results.dropped[0].reason


def trial(**more: Any) -> dict[str, Any]:
    return {"task_id": "a", "is_resolved": True, "failure_mode": "unset", "parser_results": {}, **more}


TRIALS: list[dict[str, Any]] = [
    {"is_resolved": "false"},
    {"is_resolved": 1},
    {"trial_started_at": "yesterday"},
    {"trial_started_at": 5},
    {"parser_results": ["a"]},
    {"total_input_tokens": "many"},
    {"failure_mode": ["x"]},
]


@pytest.mark.parametrize("odd", TRIALS)
def test_terminal_bench_drops_what_is_mistyped(tmp_path: Path, odd: dict[str, Any]) -> None:
    attempts, results = read("terminal-bench", tmp_path / "a.json", {"results": [trial(**odd), trial()]})
    assert len(attempts) == 1
    assert [row.place for row in results.dropped] == ["trial 0"]


@pytest.mark.parametrize("text", ["{oops", "[1]"])
def test_terminal_benchs_metadata_may_be_broken(tmp_path: Path, text: str) -> None:
    (tmp_path / "run_metadata.json").write_text(text)
    with pytest.raises(ResultsError, match=r"run_metadata\.json"):
        read("terminal-bench", tmp_path / "results.json", {"results": [trial()]})


ROWS: list[dict[str, Any]] = [
    {"acceptable": float("nan")},
    {"acceptable": float("inf")},
    {"cost_usd": float("nan")},
    {"cost_usd": -1},
    {"input_tokens": -5},
    {"started_at": "nan", "ended_at": 1},
    {"started_at": float("inf")},
    {"started_at": 10, "ended_at": 5},
]


@pytest.mark.parametrize("odd", ROWS)
def test_no_figure_is_made_of_what_is_no_number(tmp_path: Path, odd: dict[str, Any]) -> None:
    rows = [{"task_id": "a", "acceptable": True, **odd}, {"task_id": "b", "acceptable": True}]
    attempts, results = read("jsonl", tmp_path / "a.jsonl", "\n".join(json.dumps(row) for row in rows))
    assert [attempt.task_id for attempt in attempts] == ["b"]
    assert [row.place for row in results.dropped] == ["line 1"]


def test_a_line_that_is_nested_without_end_is_dropped(tmp_path: Path) -> None:
    attempts, results = read("jsonl", tmp_path / "a.jsonl", "[" * 100_000 + '\n{"task_id": 1, "acceptable": 1}')
    assert (len(attempts), results.dropped_count) == (1, 1)


def test_a_table_writes_nan_where_nobody_judged(tmp_path: Path) -> None:
    attempts, results = read("csv", tmp_path / "a.csv", "task_id,acceptable\na,nan\nb,NaN\nc,true\n")
    assert [(attempt.task_id, attempt.acceptable) for attempt in attempts] == [("c", True)]
    assert results.dropped_count == 2


def test_one_of_five_is_no_yes_where_four_are_asked_for(tmp_path: Path) -> None:
    attempts, _ = read("csv", tmp_path / "a.csv", "task_id,acceptable\na,1\nb,0\nc,4\nd,yes\n", accept_from=4.0)
    assert [attempt.acceptable for attempt in attempts] == [False, False, True, True]


def test_letters_that_cannot_be_read_do_not_make_one_task_of_two(tmp_path: Path) -> None:
    text = "task_id,acceptable\nb\u00e9,1\nb\u00e8,0\nc,1\n".encode("latin-1")
    attempts, results = read("csv", tmp_path / "a.csv", text)
    assert [attempt.task_id for attempt in attempts] == ["c"]
    assert "UTF-8" in results.dropped[0].reason
    with pytest.raises(ResultsError, match="Save the file as UTF-8"):
        read("csv", tmp_path / "a.csv", "task_id,acceptable\na,1\n".encode("utf-16"))


def test_a_column_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="acceptable stands twice"):
        read("csv", tmp_path / "a.csv", "task_id,acceptable,acceptable\na,1,0\n")


def test_each_variant_has_a_file_of_its_own(tmp_path: Path) -> None:
    names = ["x y", "x-y", "v" * 5000, "../../up"]
    rows = "\n".join(json.dumps({"task_id": "a", "acceptable": True, "variant": name}) for name in names)
    (tmp_path / "a.jsonl").write_text(rows)
    write_folder(read_results("jsonl", [tmp_path / "a.jsonl"]), tmp_path / "run")
    assert len(list((tmp_path / "run").glob("published-*.yaml"))) == 4
