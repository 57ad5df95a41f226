"""Comparing two sets of attempts: hand-computed figures, other libraries as oracles, and the command."""

from __future__ import annotations

import contextlib
import io
import json
import random
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest import mock
from xml.etree import ElementTree as ET

import pytest
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from surefoot.cli.main import main
from surefoot.evaluation.compare import compare
from surefoot.evaluation.compare_rules import check_rules, parse_rules
from surefoot.evaluation.compare_sides import CompareError, Side, read_side
from surefoot.evaluation.compare_tests import fisher_doubled, holm, mcnemar_exact
from surefoot.evaluation.errors import RecordsError
from surefoot.evaluation.junit import to_junit
from surefoot.evaluation.markdown import to_markdown
from surefoot.evaluation.records import Attempt, Failure, Verdict, to_json


def attempt(task: str, repetition: int, good: bool | None, variant: str = "v", seed: int | None = None) -> Attempt:
    word = {True: "pass", False: "fail", None: "unresolved"}[good]
    return Attempt(
        attempt_id=f"{variant}/{task}/{repetition}",
        suite="s",
        variant=variant,
        task_id=task,
        repetition=repetition,
        outcome="ok",
        seed=seed,
        acceptable=good,
        verdicts=(Verdict("exact", "outcome", word, "expected 1, found 2"),),  # type: ignore[arg-type]  # of the three
    )


def side(name: str, counts: dict[str, tuple[int, int]]) -> Side:
    """A side of (acceptable, runs) by task; the acceptable runs come last."""
    attempts = [
        attempt(task, place, place >= runs - good, name)
        for task, (good, runs) in counts.items()
        for place in range(runs)
    ]
    return Side(name, tuple(attempts))


def seed_example() -> tuple[Side, Side]:
    """20 tasks of 10 runs: means .82 and .85, and 12 and 9 tasks all of whose runs are acceptable."""
    before = [10] * 12 + [6, 6, 6, 6, 5, 5, 5, 5]
    after = [10] * 9 + [8, 8, 8, 7, 7, 7, 7, 7, 7, 7, 7]
    assert (sum(before), sum(after)) == (164, 170)
    sides = [{f"t{place:02}": (good, 10) for place, good in enumerate(counts)} for counts in (before, after)]
    return side("before", sides[0]), side("after", sides[1])


def test_mcnemar_is_that_of_the_binomial_by_hand_and_of_statsmodels() -> None:
    assert mcnemar_exact(1, 5) == pytest.approx(2 * (1 + 6) / 64)  # 2 (C(6,0) + C(6,1)) / 2^6
    assert mcnemar_exact(0, 4) == pytest.approx(2 / 16)
    assert mcnemar_exact(0, 0) == mcnemar_exact(3, 3) == 1
    for fell, rose in ((2, 9), (12, 3), (1, 0), (40, 60)):
        assert mcnemar_exact(fell, rose) == pytest.approx(mcnemar([[5, fell], [rose, 7]], exact=True).pvalue)


def test_holm_is_that_of_statsmodels() -> None:
    drawn = random.Random(7)
    for size in (1, 2, 30):
        values = [drawn.random() ** 3 for _ in range(size)]
        assert holm(values) == pytest.approx(list(multipletests(values, method="holm")[1]))
    assert holm([]) == []


def test_fisher_doubles_the_smaller_tail() -> None:
    # 5 of 5 against 0 of 5: one table of C(10,5) = 252 is as far out.
    assert fisher_doubled(5, 5, 0, 5) == pytest.approx(2 / 252)
    assert fisher_doubled(3, 10, 3, 10) == 1


def test_a_mean_that_rises_while_pass_hat_k_falls_is_a_warning() -> None:
    found = compare(*seed_example())
    assert (found.mean.baseline, found.mean.candidate) == (0.82, 0.85)
    assert (found.pass_hat_k.baseline, found.pass_hat_k.candidate) == (0.60, 0.45)
    assert found.trade
    assert found.k == 10
    # Clopper-Pearson for 12 of 20, from the published tables.
    own = found.pass_hat_k.baseline_interval
    assert own.low == pytest.approx(0.3605, abs=1e-4)
    assert own.high == pytest.approx(0.8088, abs=1e-4)
    text = to_markdown(found, [])
    assert "the mean rises from 0.820 to 0.850 while Pass^10 falls from 0.600 to 0.450" in text
    assert [finding.broken for finding in check_rules(found, parse_rules(["trade", "pass-hat-k:0.2", "mean"]))] == [
        True,
        False,
        False,
    ]


def test_no_warning_where_both_move_the_same_way() -> None:
    before, after = seed_example()
    assert not compare(before, before).trade
    assert not compare(side("a", {"t": (1, 5), "u": (5, 5)}), side("b", {"t": (5, 5), "u": (5, 5)})).trade
    assert not compare(after, before).trade


def test_the_worst_regression_comes_first_and_offsetting_changes_are_not_hidden() -> None:
    before = side("a", {"fixed": (0, 10), "broken": (10, 10), "worse": (8, 10), "same": (9, 10)})
    after = side("b", {"fixed": (10, 10), "broken": (0, 10), "worse": (6, 10), "same": (9, 10)})
    found = compare(before, after)
    assert [task.task_id for task in found.tasks] == ["broken", "worse", "same", "fixed"]
    assert found.tasks[0].candidate.first_failure == "repetition 0: exact: expected 1, found 2"
    assert found.tasks[0].p == pytest.approx(2 / 184_756)  # 2 / C(20,10)
    assert found.tasks[0].p_holm == pytest.approx(4 * 2 / 184_756)
    assert [task.task_id for task in found.fallen] == ["broken"]
    (proved,) = check_rules(found, parse_rules(["proved"]))
    assert proved.broken
    assert proved.tasks == ("broken",)


def test_a_fall_that_noise_explains_is_described_and_not_claimed() -> None:
    found = compare(side("a", {"t": (10, 10)}), side("b", {"t": (8, 10)}))
    proved, task, small = check_rules(found, parse_rules(["proved", "task", "task:0.3"]))
    assert (proved.broken, task.broken, small.broken) == (False, True, False)


def test_unequal_runs_are_compared_at_the_k_that_all_reach() -> None:
    found = compare(side("a", {"t": (4, 5), "u": (10, 10)}), side("b", {"t": (9, 10), "u": (4, 4)}))
    assert found.k == 4
    assert found.pass_hat_k.baseline == pytest.approx((1 / 5 + 1) / 2)  # C(4,4)/C(5,4)
    assert found.pass_hat_k.candidate == pytest.approx((126 / 210 + 1) / 2)  # C(9,4)/C(10,4)
    assert any("4 to 10 judged runs" in text for text in found.warnings)
    with pytest.raises(CompareError, match="use --k 4"):
        compare(side("a", {"t": (4, 5)}), side("b", {"t": (4, 4)}), k=11)


def test_a_k_that_some_tasks_do_not_reach_leaves_them_out_and_says_so() -> None:
    found = compare(side("a", {"t": (5, 5), "u": (2, 2)}), side("b", {"t": (0, 5), "u": (2, 2)}), k=5)
    assert found.pass_hat_k.candidate == 0
    assert found.tests[0].pairs == 1
    assert found.tests[0].reason == "1 tasks left out: fewer than 5 judged runs"
    assert any("1 tasks have fewer than 5 judged runs" in text for text in found.warnings)


def test_tasks_of_one_side_are_listed_and_missing_ones_fail() -> None:
    found = compare(side("a", {"t": (1, 1), "gone": (1, 1)}), side("b", {"t": (1, 1), "new": (0, 1)}))
    assert (found.only_baseline, found.only_candidate) == (("gone",), ("new",))
    assert [finding.broken for finding in check_rules(found, parse_rules([]))] == [False, True]
    assert check_rules(found, parse_rules(["none"])) == []


def test_runs_pair_by_seed_and_tasks_by_their_first_k_runs() -> None:
    before = [attempt("t", n, n < 6, "a", seed=n) for n in range(8)] + [attempt("u", n, True, "a") for n in range(8)]
    after = [attempt("t", n, n < 1, "b", seed=n) for n in range(8)] + [attempt("u", n, True, "b") for n in range(8)]
    tasks, runs = compare(Side("a", tuple(before)), Side("b", tuple(after))).tests
    assert (runs.pairs, runs.fell, runs.rose) == (8, 5, 0)  # the runs of u have no seed
    assert runs.p == pytest.approx(2 / 32)
    assert (tasks.pairs, tasks.fell, tasks.rose) == (2, 0, 0)
    none = compare(side("a", {"t": (1, 2)}), side("b", {"t": (1, 2)})).tests[1]
    assert none.p is None
    assert "do not pair" in none.reason


def test_what_was_not_judged_is_no_failure() -> None:
    lost = Attempt(attempt_id="x", suite="s", variant="b", task_id="t", repetition=2, outcome="infrastructure")
    crash = Attempt(
        attempt_id="y",
        suite="s",
        variant="b",
        task_id="t",
        repetition=3,
        outcome="error",
        acceptable=False,
        error=Failure("ValueError", "no\nsuch order"),
    )
    after = Side("b", (attempt("t", 0, True), attempt("t", 1, None), lost, crash), lost=2)
    found = compare(side("a", {"t": (4, 4)}), after)
    (task,) = found.tasks
    assert (task.candidate.n, task.candidate.c, task.candidate.strip) == (2, 1, "●··○")
    assert task.candidate.first_failure == "repetition 3: ValueError: no such order"
    said = (
        "b has attempts that count nowhere: 1 that nobody judged, 1 that the infrastructure ended, 2 that never ended"
    )
    assert said in found.warnings


def test_intervals_are_of_differences_resampled_with_both_sides() -> None:
    # Every task falls by the same share: resampling finds nothing that varies, betting still knows how few there are.
    found = compare(
        side("a", {str(n): (n % 2 + 1, 4) for n in range(6)}), side("b", {str(n): (n % 2, 4) for n in range(6)})
    )
    bootstrap, betting = found.mean.change_intervals
    assert (bootstrap.low, bootstrap.high) == pytest.approx((-0.25, -0.25))
    assert betting.low is not None
    assert betting.high is not None
    assert betting.low < -0.25 < betting.high
    assert not bootstrap.gate
    assert betting.gate


def test_the_bootstrap_of_differences_is_that_of_sampling() -> None:
    changes = [-0.5, -0.25, 0, 0, 0.25, -0.75, 0.5, -0.25, -0.25, 0]
    before = side(
        "a",
        {
            str(n): (2, 4) if change < 0.5 and change > -0.75 else (3 if change < 0 else 2, 4)
            for n, change in enumerate(changes)
        },
    )
    after = side(
        "b",
        {
            str(n): (round(4 * change) + sum(a.acceptable is True for a in before.attempts if a.task_id == str(n)), 4)
            for n, change in enumerate(changes)
        },
    )
    found = compare(before, after).mean
    assert found.change == pytest.approx(sum(changes) / 10)
    drawn = random.Random(3)
    means = sorted(sum(drawn.choices(changes, k=10)) / 10 for _ in range(20_000))
    interval = found.change_intervals[0]
    assert interval.low == pytest.approx(means[500], abs=0.02)
    assert interval.high == pytest.approx(means[-500], abs=0.02)


def write(folder: Path, sides: Sequence[Side], provenance: dict[str, object] | None = None) -> str:
    # Not by RecordsWriter, whose fsync per attempt would be most of these tests' time.
    folder.mkdir()
    lines = [json.dumps({"event": "finished", **to_json(made)}) for each in sides for made in each.attempts]
    (folder / "attempts.jsonl").write_text("\n".join(lines) + "\n")
    if provenance is not None:
        (folder / "manifest.json").write_text(json.dumps(provenance))
    return str(folder)


def surefoot(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["surefoot", *arguments]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return int(ended.value.code or 0), out.getvalue(), err.getvalue()


@pytest.fixture
def folders(tmp_path: Path) -> tuple[str, str]:
    before, after = seed_example()
    return (
        write(tmp_path / "a", [before], {"commit": "111", "packages": {"openai": "2.1"}, "started_at": 1}),
        write(tmp_path / "b", [after], {"commit": "222", "packages": {"openai": "2.1"}, "started_at": 2}),
    )


def test_the_command_tells_tasks_figures_warning_and_versions(folders: tuple[str, str]) -> None:
    code, out, err = surefoot("compare", *folders)
    assert (code, err) == (0, "")
    assert "warning  the mean rises from 0.820 to 0.850 while Pass^10 falls from 0.600 to 0.450" in out
    assert "versions that differ: commit 111 → 222" in out
    assert "openai" not in out
    assert out.index("t09") < out.index("t12")  # 10 to 8 before 6 to 7
    assert "no regression, by the rules proved, missing" in out


@pytest.mark.parametrize(("rule", "code"), [("pass-hat-k:0.1", 1), ("pass-hat-k:0.2", 0), ("trade", 1), ("none", 0)])
def test_exit_codes_follow_the_rules(folders: tuple[str, str], rule: str, code: int) -> None:
    assert surefoot("compare", *folders, "--fail-on", rule)[0] == code


def test_bad_input_ends_with_two_and_says_what_to_do(folders: tuple[str, str], tmp_path: Path) -> None:
    both = write(tmp_path / "both", seed_example())
    for arguments, said in (
        ((folders[0], str(tmp_path / "nowhere")), "nowhere"),
        ((folders[0], folders[1], "--fail-on", "pass-hat-k:2"), "there are proved"),
        ((folders[0], folders[1], "--fail-on", "worse"), "there are proved"),
        ((folders[0], folders[1], "--k", "11"), "use --k 10"),
        ((folders[0], folders[1], "--alpha", "5"), "between 0 and 1"),
        ((both, folders[1]), f"name one: {both}@after"),
        ((f"{both}@none", folders[1]), "it has after, before"),
        ((str(tmp_path), folders[1]), "name a run folder"),
        ((write(tmp_path / "other", [side("x", {"q": (1, 1)})]), folders[1]), "Run the same suite"),
    ):
        code, _, err = surefoot("compare", *arguments)
        assert (code, said in err) == (2, True), err


def test_variants_of_one_folder_are_compared_by_name(tmp_path: Path) -> None:
    both = write(tmp_path / "both", seed_example())
    code, out, _ = surefoot("compare", f"{both}@before", f"{both}@after", "--json", "--fail-on", "trade")
    data = json.loads(out)
    assert code == 1
    assert data["baseline"] == "both@before"
    assert data["pass_hat_k"]["candidate"] == 0.45
    assert data["findings"][0]["broken"]
    assert read_side(f"{both}/attempts.jsonl@before").name == "attempts@before"


def test_the_manifest_of_a_run_tells_versions_and_changed_questions(tmp_path: Path) -> None:
    def manifest(commit: str, openai: str, expected: str) -> dict[str, object]:
        conditions = {
            "id": commit,
            "commit": commit,
            "packages": [f"openai=={openai}", "rich==14.0"],
            "versions": {"v": {"prompt": commit}, "other": {"prompt": "x"}},
        }
        suite = {"tasks": [{"id": "t", "expected": expected}, {"id": "u"}], "protocol": {"k": 3, "seed": 1}}
        return {"suite": suite, "started_at": 1.0, "provenances": {commit: conditions}}

    sides = [side("v", {"t": (2, 2), "u": (2, 2)})]
    folders = [
        write(tmp_path / "a", sides, manifest("111", "2.1", "yes")),
        write(tmp_path / "b", sides, manifest("222", "2.2", "no")),
    ]
    found = compare(*map(read_side, folders))
    told = [(each.what, each.baseline, each.candidate) for each in found.versions]
    assert told == [
        ("commit", "111", "222"),
        ("packages.openai", "2.1", "2.2"),
        ("versions.prompt", "111", "222"),
    ]
    assert found.warnings == ("the question changed, not only the answer: t are defined differently",)


def test_junit_fails_what_a_rule_named_and_survives_any_text(tmp_path: Path) -> None:
    nasty = Attempt(
        attempt_id="1",
        suite="s",
        variant="b",
        task_id="t\x00|<b>",
        repetition=0,
        outcome="error",
        acceptable=False,
        error=Failure("E", "\x1b[31m ]]> & \ud800"),
    )
    before = Side("a", tuple(attempt("t\x00|<b>", n, True) for n in range(9)))
    found = compare(Side("a", before.attempts), Side("b", (nasty,)))
    findings = check_rules(found, parse_rules(["task"]))
    root = ET.fromstring(to_junit(found, findings).split("\n", 1)[1])
    assert (root.get("tests"), root.get("failures")) == ("2", "2")
    assert "<b>" not in to_markdown(found, findings)
    file = tmp_path / "out.xml"
    folders = (
        write(tmp_path / "a", [side("a", {"t": (9, 9), "gone": (1, 1)})]),
        write(tmp_path / "b", [side("b", {"t": (0, 9)})]),
    )
    code, _, _ = surefoot("compare", *folders, "--junit", str(file), "--markdown", str(tmp_path / "out.md"))
    assert code == 1
    cases = {case.get("name"): case.find("failure") is not None for case in ET.parse(file).iter("testcase")}
    assert cases == {"proved": True, "missing": True, "t": True, "gone": True}
    text = (tmp_path / "out.md").read_text()
    assert text.startswith("### Surefoot: regression, by the rules proved, missing\n")
    assert "| t | 9/9 | ●●●●●●●●● | 0/9 | ○○○○○○○○○ | -1.00 |" in text


EVIL = "\x1b[31mred\u202e \ud800 | <b> [l](x) @octocat #12 https://a.example www.b.example ~~s~~"


def written(folder: Path, rows: list[Attempt]) -> str:
    folder.mkdir()
    lines = [json.dumps({"event": "finished", **to_json(row)}) for row in rows]
    (folder / "attempts.jsonl").write_text("\n".join(lines) + "\n")
    return str(folder)


def test_what_agents_wrote_commands_no_terminal_and_mentions_nobody(tmp_path: Path) -> None:
    before = written(tmp_path / "before", [attempt(EVIL, place, True) for place in range(5)])
    failure = Failure("Error", EVIL)
    bad = [replace(attempt(EVIL, place, False), outcome="error", error=failure, verdicts=()) for place in range(5)]
    after = written(tmp_path / "after", bad)
    command = [sys.executable, "-c", "from surefoot.cli.main import main; main()", "compare", before, after]
    comment, report = tmp_path / "comment.md", tmp_path / "report.xml"
    done = subprocess.run(
        [*command, "--markdown", str(comment), "--junit", str(report)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "regression" in done.stdout
    ET.parse(report)
    for text in (done.stdout, comment.read_text()):
        assert not {"\x1b", "\u202e", "\ud800"} & set(text)
    assert not re.search(r"@octocat|#12|https://|www\.b|~~s|<b>|[^\\]\[l\]", comment.read_text())


BROKEN = {
    "event": {"event": "ended"},
    "task_id": {"task_id": 5},
    "repetition": {"repetition": "first"},
    "acceptable": {"acceptable": "yes"},
    "acceptable ": {"acceptable": 1},
    "error": {"error": "boom"},
}


@pytest.mark.parametrize("edit", BROKEN.values(), ids=BROKEN.keys())
def test_a_file_that_was_written_by_hand_gives_no_wrong_figures(tmp_path: Path, edit: dict[str, object]) -> None:
    row = {"event": "finished", **to_json(attempt("t", 0, True)), **edit}
    (tmp_path / "attempts.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(RecordsError, match=r"attempts.jsonl:1: not an attempt's event"):
        read_side(str(tmp_path))


@pytest.mark.parametrize("manifest", [{"suite": 5, "provenances": [1]}, {"suite": {"tasks": [5]}, "provenances": {}}])
def test_a_manifest_of_another_shape_is_told(tmp_path: Path, manifest: object) -> None:
    folder = written(tmp_path / "run", [attempt("t", 0, True)])
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(CompareError, match="not as a run leaves it"):
        read_side(folder)


def test_attempts_that_are_there_twice_are_told() -> None:
    once = side("before", {"t": (5, 5)})
    again = [replace(each, attempt_id=f"{each.attempt_id}again") for each in once.attempts]
    found = compare(once, Side("after", (*once.attempts, *again)))
    assert "after has 5 attempts of a task and repetition that are there already; all count" in found.warnings
