"""Each format in small: what becomes of its rows, and which of them are dropped with a remedy."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import read_eval_log, write_eval_log

from surefoot.evaluation.importers import Options, Results, ResultsError, read_results
from surefoot.evaluation.records import Attempt

DEMO = Path(__file__).parent / "inspect_demo.json"


def read(form: str, path: Path, data: Any, **options: Any) -> tuple[list[Attempt], Results]:
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    results = read_results(form, [path], Options(**options))
    return list(results), results


def tau_run(task: int, trial: int, reward: float, **more: Any) -> dict[str, Any]:
    call = {"id": "1", "type": "function", "function": {"name": "get_user", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "name": "get_user", "content": "{}"},
        {"role": "assistant", "content": "done"},
    ]
    parts = {"reward": reward, "info": {"r_actions": reward, "gt_data_hash": "x"}, "actions": []}
    info = {"task": {}, "user_cost": 0.01, "reward_info": parts}
    return {"task_id": task, "trial": trial, "reward": reward, "info": info, "traj": messages, **more}


def test_tau_bench(tmp_path: Path) -> None:
    broken = {"task_id": 1, "trial": 1, "reward": 0.0, "info": {"error": "boom", "traceback": "..."}, "traj": []}
    runs = [tau_run(0, 0, 1.0), {"task_id": 7}, tau_run(0, 1, 0.0), tau_run(1, 0, 1 - 1e-9), broken]
    attempts, results = read("tau-bench", tmp_path / "gpt.json", runs)
    assert [(a.task_id, a.repetition, a.acceptable, a.outcome) for a in attempts] == [
        ("0", 0, True, "ok"),
        ("0", 1, False, "ok"),
        ("1", 0, True, "ok"),
        ("1", 1, False, "error"),  # its reward is 0, and so it is published
    ]
    assert {(a.suite, a.variant) for a in attempts} == {("tau-bench", "gpt")}
    first = attempts[0]
    assert (first.actions, first.output, first.started_at, first.cost_usd) == (("get_user",), "done", None, None)
    assert first.extra == {"r_actions": 1.0, "user_cost": 0.01, "repetition": 0, "file": "gpt.json"}
    assert [(row.place, row.reason.split(";")[0]) for row in results.dropped] == [("run 1", "no reward")]
    assert any(said.startswith("times: tau-bench") for said in results.cannot_tell())


def test_terminal_bench(tmp_path: Path) -> None:
    trials = [
        {"task_id": "t", "trial_name": "t.1", "is_resolved": True, "failure_mode": "agent_timeout",
         "parser_results": {"a": "passed"}, "total_input_tokens": 7,
         "agent_started_at": "2026-01-01T00:00:00+00:00", "agent_ended_at": "2026-01-01T00:01:00+00:00"},
        {"task_id": "t", "trial_name": "t.2", "is_resolved": False, "failure_mode": "unset",
         "parser_results": {"a": "failed", "b": "passed"}},
        {"task_id": "t", "trial_name": "t.3", "is_resolved": None, "failure_mode": "parse_error"},
        {"trial_name": "t.4"},
    ]  # fmt: skip
    file = tmp_path / "results.json"
    (tmp_path / "run_metadata.json").write_text(json.dumps({"agent_name": "terminus", "model_name": "m/1"}))
    attempts, results = read("terminal-bench", file, {"results": trials, "pass_at_k": {"2": 0.5}, "accuracy": 0.3})
    assert [(a.acceptable, a.outcome, a.seconds) for a in attempts] == [
        (True, "timeout", 60.0),
        (False, "ok", None),
        (False, "ok", None),
    ]
    assert attempts[0].variant == "terminus/m/1"
    assert attempts[1].verdicts[0].explanation == "failed: a"
    assert "counts as not resolved" in (attempts[2].verdicts[0].explanation or "")
    assert results.dropped_count == 1
    (said,) = results.provenance()["files"]
    assert said["says"]["pass_at_k"] == {"2": 0.5}
    missing, _ = read("terminal-bench", file, {"results": trials}, no_verdict="missing")
    assert [a.acceptable for a in missing] == [True, False, None]


def report(**lists: list[Any]) -> dict[str, Any]:
    return {"total_instances": 4, "schema_version": 2, **lists}


def test_swe_bench_runs_are_repetitions(tmp_path: Path) -> None:
    one, two = tmp_path / "gpt-4.1.run1.json", tmp_path / "gpt-4.1.run2.json"
    one.write_text(json.dumps(report(resolved_ids=["a"], unresolved_ids=["b"], error_ids=["c"], empty_patch_ids=["d"])))
    two.write_text(json.dumps(report(resolved_ids=["a", "b"], unresolved_ids=["a", 7], incomplete_ids=["c", "d"])))
    results = read_results("swe-bench", [one, two])
    attempts = {(a.task_id, a.repetition): (a.acceptable, a.outcome) for a in results}
    assert attempts == {
        ("a", 0): (True, "ok"),
        ("b", 0): (False, "ok"),
        ("d", 0): (False, "ok"),
        ("c", 0): (False, "error"),
        ("a", 1): (True, "ok"),
        ("b", 1): (True, "ok"),
        ("c", 1): (False, "error"),
        ("d", 1): (False, "error"),
    }
    assert [row.place for row in results.dropped] == ["unresolved_ids[0]", "unresolved_ids[1]"]
    missing = read_results("swe-bench", [one], Options(no_verdict="missing"))
    assert {a.task_id: a.acceptable for a in missing} == {"a": True, "b": False, "c": None, "d": False}
    assert {a.variant for a in read_results("swe-bench", [one])} == {"gpt-4.1"}


def test_swe_bench_by_instance(tmp_path: Path) -> None:
    reports = {"a": {"resolved": True}, "b": {"resolved": False}, "c": {}}
    attempts, results = read("swe-bench", tmp_path / "report.json", reports)
    assert [(a.task_id, a.acceptable) for a in attempts] == [("a", True), ("b", False)]
    assert results.dropped_count == 1
    with pytest.raises(ResultsError, match="schema 2"):
        read("swe-bench", tmp_path / "other.json", {"x": 1})


@pytest.mark.parametrize("ending", [".json", ".eval"])
def test_inspect(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"log{ending}"
    log = read_eval_log(str(DEMO))
    samples = log.samples or []
    scores = samples[0].scores or {}
    scores["match"].value = "P"
    samples[1].scores = None
    write_eval_log(log, str(path))
    results = read_results("inspect-ai", [path])
    attempts = {(a.task_id, a.repetition): a for a in results}
    assert len(attempts) == 20
    found = [attempts[str(sample.id), sample.epoch - 1] for sample in samples[:3]]
    assert [a.acceptable for a in found] == [False, None, True]  # half right is not right; not scored is missing
    assert [a.signature for a in found] == ["[('match', 'yes')]", None, "[('match', 'yes')]"]
    assert found[0].variant == "mockllm/model"
    assert found[0].suite == "demo"
    assert 0 < (found[0].seconds or 0) < 5
    with pytest.raises(ResultsError, match="no scorer 'x'"):
        list(read_results("inspect-ai", [path], Options(scorer="x")))
    lenient = {a.attempt_id: a.acceptable for a in read_results("inspect-ai", [path], Options(accept_from=0.5))}
    assert lenient[found[0].attempt_id] is True


def test_inspect_without_its_reader() -> None:
    program = (
        "import sys; sys.modules['inspect_ai'] = None\n"
        "from pathlib import Path; from surefoot.evaluation.importers import read_results\n"
        f"read_results('inspect-ai', [Path({str(DEMO)!r})])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'surefoot[inspect]'" in done.stderr


def test_what_is_no_log(tmp_path: Path) -> None:
    for form in ("inspect-ai", "tau-bench", "terminal-bench", "swe-bench"):
        with pytest.raises(ResultsError, match=r"x\.json"):
            read(form, tmp_path / "x.json", '{"a": ')


JSONL = """\ufeff{"task_id": "a", "acceptable": true, "variant": "v1", "started_at": "2026-01-01T00:00:00", \
"ended_at": 1767225660, "actions": ["look", "pay"], "cost_usd": 0.5, "team": "x"}

{"task_id": "a", "acceptable": "fail", "signature": "s1", "error": "boom"}
{"task_id": "b", "acceptable": null, "confidence": 80}
{"task_id": "b", "acceptable": 0.5}
{"task_id": "b", "acceptable": "maybe"}
{"task_id": "b"}
{"acceptable": true}
{"task_id": "b", "acceptable": true, "confidence": 800}
{"task_id": "b", "acceptable": true, "outcome": "crashed"}
{"task_id": "b", "acceptable": true, "started_at": "yesterday"}
[1]
{"task_id":
{"task_id": "c", "acceptable": 1, "outcome": "infrastructure"}
"""


def test_jsonl_keeps_good_rows_and_counts_the_others(tmp_path: Path) -> None:
    attempts, results = read("jsonl", tmp_path / "mine.jsonl", JSONL)
    assert [(a.task_id, a.variant, a.acceptable, a.outcome) for a in attempts] == [
        ("a", "v1", True, "ok"),
        ("a", "mine", False, "error"),
        ("b", "mine", None, "ok"),
        ("b", "mine", False, "ok"),
        ("c", "mine", True, "infrastructure"),
    ]
    assert attempts[0].seconds == 60.0  # a time without a zone is UTC
    assert attempts[0].actions == ("look", "pay")
    assert attempts[0].extra == {"team": "x", "file": "mine.jsonl"}
    assert attempts[2].confidence == 80
    assert [row.place for row in results.dropped] == [f"line {n}" for n in (6, 7, 8, 9, 10, 11, 12, 13)]
    assert all("write" in row.reason or "needs" in row.reason or "correct" in row.reason for row in results.dropped)
    assert "times: only in 1 of 5 attempts" in results.cannot_tell()


def test_jsonl_by_other_names(tmp_path: Path) -> None:
    rows = '{"question": 7, "success": true, "agent": "droid"}\n{"question": 7, "success": false, "agent": "ob1"}\n'
    columns = {"task_id": "question", "acceptable": "success", "variant": "agent"}
    attempts, _ = read("jsonl", tmp_path / "x.jsonl", rows, columns=columns)
    assert [(a.task_id, a.variant, a.acceptable) for a in attempts] == [("7", "droid", True), ("7", "ob1", False)]


def test_csv(tmp_path: Path) -> None:
    rows = 'task_id,acceptable,output,actions\na,pass,"two\nlines",look|pay\nb,,x,\nc,true\nd,perhaps,,\ne,0,,\n'
    attempts, results = read("csv", tmp_path / "x.csv", rows)
    assert [(a.task_id, a.acceptable, a.output) for a in attempts] == [
        ("a", True, "two\nlines"),
        ("b", None, "x"),
        ("e", False, None),
    ]
    assert attempts[0].actions == ("look", "pay")
    assert [row.place for row in results.dropped] == ["line 5", "line 6"]
    with pytest.raises(ResultsError, match="--map acceptable=COLUMN"):
        read("csv", tmp_path / "y.csv", "task_id,ok\na,1\n")


def test_nothing_and_the_same_twice(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="no attempt was found"):
        read("jsonl", tmp_path / "x.jsonl", "")
    path = tmp_path / "y.jsonl"
    path.write_text('{"task_id": "a", "acceptable": true}')
    with pytest.raises(ResultsError, match="twice"):
        read_results("jsonl", [path, path])
    with pytest.raises(ResultsError, match="there are tau-bench"):
        read_results("xml", [path])
    other = tmp_path / "other" / "y.jsonl"
    other.parent.mkdir()
    other.write_text('{"task_id": "a", "acceptable": false}')
    with pytest.raises(ResultsError, match="--variant"):
        read_results("jsonl", [path, other])
    both = read_results("jsonl", [path, other], Options(variant="v"))
    assert [(a.repetition, a.acceptable) for a in both] == [(0, True), (1, False)]
