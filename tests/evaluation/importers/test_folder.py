"""What an import leaves: a folder that everything else reads, the same groups, and bounded memory on the way."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.evaluation.compare_sides import read_side
from surefoot.evaluation.importers import ResultsError, read_results, write_folder
from surefoot.evaluation.importers.tally import Tally
from surefoot.evaluation.records import Attempt, read_attempts
from surefoot.evaluation.results import group_table
from surefoot.processors.evidence.build import build_published
from surefoot.processors.evidence.repeated import pass_hat_k
from surefoot.processors.evidence.template import Spec

ROWS = [("a", True, ""), ("a", True, ""), ("b", False, "s"), ("b", False, "s"), ("c", False, "s"), ("c", False, "t")]
FILES = {"attempts.jsonl", "manifest.json", "published-mine.yaml"}


def mine(folder: Path) -> Path:
    rows = [
        {"task_id": task, "acceptable": good, "signature": sign, "task_class": "refund", "grader_kind": "executable"}
        for task, good, sign in ROWS
    ]
    file = folder / "mine.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_a_folder_that_others_read(tmp_path: Path) -> None:
    results = read_results("jsonl", [mine(tmp_path)])
    tally = write_folder(results, tmp_path / "run")
    assert {path.name for path in (tmp_path / "run").iterdir()} == FILES
    attempts = read_attempts(tmp_path / "run")
    groups = group_table(attempts)
    assert groups.classes().tolist() == tally.table("mine").classes().tolist() == [0, 2, 3]
    assert read_side(str(tmp_path / "run")).attempts == tuple(attempts)
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    (provenance,) = manifest["provenances"].values()
    assert provenance["imported_as"] == "jsonl/1"
    assert len(provenance["files"][0]["sha256"]) == 64
    assert {attempt.provenance_id for attempt in attempts} == {provenance["id"]}
    with pytest.raises(ResultsError, match="another folder"):
        write_folder(results, tmp_path / "run")


def test_a_profile_is_built_from_its_counts(tmp_path: Path) -> None:
    write_folder(read_results("jsonl", [mine(tmp_path)]), tmp_path / "run")
    part = yaml.safe_load((tmp_path / "run" / "published-mine.yaml").read_text())
    written = {
        "profile_id": "p",
        "version": "1",
        "owner": "me",
        "review_date": "2099-12-31",
        "repeat_protocol": {"k": {"value": 2}},
    }
    profile = build_published(Spec.model_validate({**written, **part}), 1_800_000_000.0)
    assert profile.indicators.outcome_yield.value == pytest.approx(1 / 3)
    assert profile.indicators.consistent_wrong_rate.value == pytest.approx(1 / 3)
    assert profile.grader.decision_grade
    assert [stratum.task_class for stratum in profile.strata] == ["refund"]


def test_a_broken_file_leaves_no_attempts(tmp_path: Path) -> None:
    file = tmp_path / "cut.json"
    file.write_text('[{"task_id": 1, "reward": 1.0}, {"task_id": 2')
    with pytest.raises(ResultsError, match="no whole JSON"):
        write_folder(read_results("tau-bench", [file]), tmp_path / "run")
    assert list((tmp_path / "run").iterdir()) == []


attempt = st.builds(
    Attempt,
    attempt_id=st.uuids().map(str),
    suite=st.just("s"),
    variant=st.just("v"),
    task_id=st.sampled_from("abc"),
    repetition=st.integers(0, 9),
    outcome=st.sampled_from(["ok", "error", "infrastructure", "lost"]),
    acceptable=st.sampled_from([True, False, None]),
    signature=st.sampled_from(["x", "y", None]),
)


@settings(max_examples=50)
@given(attempts=st.lists(attempt, min_size=1, max_size=30))
def test_counting_on_the_way_gives_the_groups_of_all(attempts: list[Attempt]) -> None:
    tally = Tally()
    for one in attempts:
        tally.add(one)
    ours, theirs = tally.table("v"), group_table(attempts)
    for name in ("n", "c", "missing", "equivalent"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
    assert tally.infrastructure("v") == theirs.infrastructure.sum()
    assert pass_hat_k(ours, 2).value == pass_hat_k(theirs, 2).value


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Forty runs of half a megabyte: what is held at once is a few of them."""
    text = "x" * 500_000
    runs = [{"task_id": n, "reward": 1.0, "traj": [{"role": "assistant", "content": text}]} for n in range(40)]
    file = tmp_path / "large.json"
    file.write_text(json.dumps(runs))
    del runs
    tracemalloc.start()
    write_folder(read_results("tau-bench", [file]), tmp_path / "run")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert file.stat().st_size > 20_000_000
    assert peak < 8_000_000
