"""Audit samples: seeded, by task class and verdict, blind, and spread over task groups."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import pytest

from surefoot.processors.evidence.grading.reading import GradedRun, Said
from surefoot.processors.evidence.grading.sampling import draw, needed, shuffled
from surefoot.processors.evidence.grading.worksheet import WorksheetError, fill, read, write
from surefoot.processors.evidence.intervals import share_interval
from surefoot.processors.evidence.types import EvidenceInputError


def said(verdict: str, grader: str = "judge", kind: str = "model", effective: bool = True) -> Said:
    return Said(f"{grader}-{verdict}", verdict, grader, "1", kind, None, effective)


def run(name: str, verdict: str, group: str, task_class: str = "refund", audit: Said | None = None) -> GradedRun:
    return GradedRun(name, f"t-{name}", f"s-{name}", "desk", task_class, group, group, (said(verdict),), audit)


def many(groups: int, each: int, verdict: str, task_class: str = "refund") -> list[GradedRun]:
    return [
        run(f"{task_class}-{verdict}-{group}-{number}", verdict, f"{task_class}-{group}", task_class)
        for group in range(groups)
        for number in range(each)
    ]


def test_each_class_and_verdict_gets_its_part_and_groups_come_before_runs() -> None:
    runs = [*many(40, 5, "pass"), *many(4, 2, "fail"), *many(30, 1, "pass", "billing"), run("u", "unresolved", "x")]
    drawn = draw(runs, 30)
    assert [(one.task_class, one.verdict, one.graded, len(one.runs)) for one in drawn] == [
        ("billing", "pass", 30, 30),
        ("refund", "fail", 8, 8),
        ("refund", "pass", 200, 30),
    ]
    assert max(Counter(one.group for one in drawn[2].runs).values()) == 1
    assert max(Counter(one.group for one in draw(runs, 60)[2].runs).values()) == 2


def test_equal_seeds_draw_equal_samples_in_whatever_order_the_runs_come() -> None:
    runs = many(50, 3, "pass")
    first = [one.run_id for one in shuffled(draw(runs, 20, seed=5), 5)]
    assert [one.run_id for one in shuffled(draw(runs[::-1], 20, seed=5), 5)] == first
    assert [one.run_id for one in shuffled(draw(runs, 20, seed=6), 6)] != first


def test_audited_runs_are_not_drawn_again_and_their_groups_come_last() -> None:
    audited = [run(f"a{group}", "pass", f"g{group}", audit=said("pass", "ann", "human")) for group in range(5)]
    others = [run(f"b{group}", "pass", f"g{group}") for group in range(10)]
    (drawn,) = draw([*audited, *others], 5)
    assert (drawn.graded, drawn.audited) == (15, 5)
    assert {one.group for one in drawn.runs} == {f"g{group}" for group in range(5, 10)}


def test_the_order_says_nothing_about_the_verdict() -> None:
    runs = shuffled(draw([*many(50, 1, "pass"), *many(50, 1, "fail")], 50))
    switches = sum(a.verdicts[0].verdict != b.verdicts[0].verdict for a, b in itertools.pairwise(runs))
    assert 30 <= switches <= 70  # 49.5 expected, 4.97 standard deviation; 1 if sorted


def test_how_many_are_needed() -> None:
    for precision, wrong in ((0.05, 0.0), (0.02, 0.0), (0.05, 0.1)):
        runs = needed(precision, wrong)
        high = share_interval(round(wrong * runs), runs, sides="two").high
        assert high is not None
        assert high <= wrong + precision
    assert needed(0.05) == 72
    with pytest.raises(EvidenceInputError):
        needed(0)


@pytest.mark.parametrize("name", ["sheet.csv", "sheet.jsonl"])
def test_a_worksheet_is_blind_and_reads_as_it_was_filled(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    runs = [run("r1", "pass", "g1"), run("r2", "fail", "g2"), run("r3", "pass", "g3")]
    write(path, runs)
    assert "pass" not in path.read_text()
    assert "fail" not in path.read_text()
    fill(path, {"r1": "y", "r2": "u"})
    lines, bad = read(path)
    assert [(line.run_id, line.verdict) for line in lines] == [("r1", "pass"), ("r2", "unresolved"), ("r3", None)]
    assert bad == []
    write(path, runs, show=True)
    assert "fail" in path.read_text()


def test_bad_lines_are_told_and_the_good_ones_kept(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text(
        "run_id;verdict;comment\nr1;Y;\nr2;maybe;\n;y;\nr3;no;wrong account\n"
        "r3;n;\nr4;y;\nr4;n;\nr5;;later\nr6;passed;\n"
    )
    lines, bad = read(path)
    assert [(line.run_id, line.verdict, line.comment) for line in lines] == [
        ("r1", "pass", None),
        ("r3", "fail", "wrong account"),
        ("r5", None, "later"),
        ("r6", "pass", None),
    ]
    assert [(one.number, one.why.split(";")[0]) for one in bad] == [
        (3, "'maybe' is no verdict: write y (acceptable), n (not) or u (cannot tell)"),
        (4, "there is no run_id"),
        (6, "run r3 stands on line 5, too"),
        (7, "run r4 is answered more than once: pass on line 7, fail on line 8"),
    ]


def test_files_that_are_no_worksheets(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    with pytest.raises(WorksheetError, match="Cannot read"):
        read(path)
    path.write_text("id,answer\n1,y\n")
    with pytest.raises(WorksheetError, match="no column run_id and no verdict"):
        read(path)
    other = tmp_path / "sheet.jsonl"
    other.write_text('{"run_id": "a", "verdict": "y"}\n{"run_id": \n')
    with pytest.raises(WorksheetError, match="line 2"):
        read(other)
