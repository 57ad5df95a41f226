"""What a run depends on, and attempts as run groups."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from surefoot.evaluation import Attempt, Checker, Protocol, Suite, Task, Verdict
from surefoot.evaluation.provenance import collect, version
from surefoot.evaluation.results import group_table, summaries

SUITE = Suite(
    name="s",
    agent=len,
    protocol=Protocol(k=2, effects="none"),
    tasks=(Task(id="t", input="x", checkers=(Checker(type="exact", expected=1),)),),
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "agent.py").write_text("x = 1\n")
    (tmp_path / "uv.lock").write_text("one\n")
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "first"],
    ):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    return tmp_path


def test_code_is_told_by_its_commit_and_by_what_differs_from_it(repository: Path) -> None:
    runs = repository / "runs"
    clean = collect(SUITE, repository, besides=runs)
    assert (len(clean["commit"]), clean["dirty"], clean["dirty_hash"]) == (40, False, None)
    assert version(clean) == clean["commit"][:12]
    runs.mkdir()
    (runs / "attempts.jsonl").write_text("{}\n")
    assert collect(SUITE, repository, besides=runs)["id"] == clean["id"]

    def hash_after(file: str, text: str) -> str:
        (repository / file).write_text(text)
        found = collect(SUITE, repository, besides=runs)
        assert found["dirty"]
        assert found["id"] != clean["id"]
        return str(found["dirty_hash"])

    changed = {hash_after("agent.py", "x = 2\n"), hash_after("agent.py", "x = 3\n"), hash_after("new.py", "y = 1\n")}
    changed.add(hash_after("new.py", "y = 2\n"))
    assert len(changed) == 4


def test_lock_file_and_what_is_given_are_in_it(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    inner = repository / "suites"
    inner.mkdir()
    one = collect(SUITE, inner, given={"image_digest": "sha256:1"})
    assert (one["lock_file"], one["image_digest"], one["retrieval_snapshot"]) == ("uv.lock", "sha256:1", None)
    (repository / "uv.lock").write_text("two\n")
    assert collect(SUITE, inner)["lock_hash"] != one["lock_hash"]
    assert any(package.startswith("surefoot==") for package in one["packages"])
    outside = collect(SUITE, tmp_path_factory.mktemp("outside"))
    assert (outside["commit"], outside["dirty"], outside["dirty_hash"]) == (None, None, None)


def test_values_of_variables_that_may_be_secrets_are_not_kept(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "s3cret-value")
    found = collect(SUITE, repository)
    assert "MY_API_KEY" in found["environment_names"]
    assert "s3cret-value" not in str(found)


def attempts() -> list[Attempt]:
    base = Attempt(attempt_id="", suite="s", variant="baseline", task_id="", repetition=0, outcome="ok")

    def made(task: str, number: int, **told: object) -> Attempt:
        ids = {"attempt_id": f"{task}{number}", "task_id": task, "repetition": number}
        return replace(base, **{**ids, **told})  # type: ignore[arg-type]  # a test's short form

    broke = (Verdict("rule", "process", "fail"),)
    return [
        made("good", 0, acceptable=True, cost_usd=0.5),
        made("good", 1, acceptable=True, verdicts=broke),
        made("wrong", 0, acceptable=False, signature="a"),
        made("wrong", 1, acceptable=False, signature="a", outcome="error"),
        made("spared", 0, acceptable=True),
        made("spared", 1, outcome="infrastructure"),
        made("unjudged", 0, acceptable=None),
        made("unjudged", 1, acceptable=False, signature="b"),
    ]


def test_attempts_make_groups_in_which_nothing_unknown_is_a_failure() -> None:
    groups = group_table(attempts())
    rows = {
        str(task): (int(n), int(c), int(missing), int(spared))
        for task, n, c, missing, spared in zip(
            groups.task_id, groups.n, groups.c, groups.missing, groups.infrastructure, strict=True
        )
    }
    assert rows == {"good": (2, 2, 0, 0), "wrong": (2, 0, 0, 0), "spared": (1, 1, 0, 1), "unjudged": (1, 0, 1, 0)}
    assert list(groups.group_id) == [f"baseline/{name}" for name in ("good", "spared", "unjudged", "wrong")]
    assert groups.runs is not None
    assert list(groups.runs.flags["compliant"][:2]) == [-1, 0]


def test_a_summary_counts_everything_and_begins_with_the_worst() -> None:
    (summary,) = summaries(attempts(), 2)
    assert (summary.judged, summary.missing, summary.infrastructure, summary.failed) == (6, 1, 1, 1)
    assert (summary.strict.value, summary.strict.groups) == (0.5, 2)
    assert summary.classes["consistent_wrong"] == 1
    assert (summary.cost_usd, summary.cost_unknown) == (0.5, 7)
    assert [one.task_id for one in summary.worst] == ["wrong", "unjudged", "good", "spared"]
    assert summary.worst[0].attempt is not None
    assert summary.worst[0].attempt.repetition == 0
