"""Published files import to the figures that were published of them. They are read where they are, never copied."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.evaluation.importers import Options, read_results
from surefoot.evaluation.importers.tally import Tally
from surefoot.evaluation.records import Attempt
from surefoot.processors.evidence.groups import GroupTable
from surefoot.processors.evidence.repeated import outcome_yield, pass_at_k, pass_hat_k

DATA = Path(__file__).parents[4] / "shared" / "data"
TAU = DATA / "taubench" / "gpt-4o-airline.json"
TERMINAL = DATA / "terminal-bench" / "orchestrator_claude-4-sonnet_results.json"


def imported(form: str, path: Path, options: Options | None = None) -> tuple[list[Attempt], GroupTable]:
    if not path.exists():
        pytest.skip(f"{path.name} may not enter the project and is not beside it")
    tally = Tally()
    attempts = list(read_results(form, [path], options))
    for attempt in attempts:
        tally.add(attempt)
    (variant,) = tally.variants
    return attempts, tally.table(variant)


def test_tau_bench() -> None:
    attempts, groups = imported("tau-bench", TAU)
    assert (len(groups), len(attempts)) == (50, 200)
    found = [pass_hat_k(groups, k).value for k in (1, 2, 3, 4)]
    assert [round(value, 3) for value in found if value is not None] == [0.420, 0.273, 0.220, 0.200]
    assert [round(pass_at_k(groups, k).value or 0, 6) for k in (2, 3, 4)] == [0.566667, 0.66, 0.72]
    assert sum(len(attempt.actions or ()) for attempt in attempts) > 0


def test_terminal_bench() -> None:
    attempts, groups = imported("terminal-bench", TERMINAL)
    results = read_results("terminal-bench", [TERMINAL])
    list(results)
    (file,) = results.provenance()["files"]
    assert (len(groups), len(attempts)) == (80, 400)
    assert outcome_yield(groups).value == file["says"]["accuracy"] == 0.36
    ours = {k: pass_at_k(groups, int(k)).value for k in file["says"]["pass_at_k"]}
    assert ours == pytest.approx(file["says"]["pass_at_k"])
    assert round(pass_hat_k(groups, 5).value or 0, 4) == 0.15


def test_terminal_bench_without_the_trials_that_have_no_result() -> None:
    _, groups = imported("terminal-bench", TERMINAL, Options(no_verdict="missing"))
    assert (groups.n.sum(), groups.missing.sum()) == (371, 29)


def test_inspect() -> None:
    beside = DATA / "inspect" / "demo.json"
    _, groups = imported("inspect-ai", beside)
    assert outcome_yield(groups).value == pytest.approx(0.55)
    assert pass_at_k(groups, 3).value == pytest.approx(0.725)
    assert pass_hat_k(groups, 3).value == pytest.approx(0.35)
