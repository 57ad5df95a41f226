"""Perturbed variants of a suite, run by the harness in child processes: what is recorded and what comes out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from surefoot.evaluation.perturb.dose import doses
from surefoot.evaluation.records import Attempt, read_attempts

SUITE = Path(__file__).parents[1] / "agents" / "disturbed.py"
HARNESS = [sys.executable, "-c", "from surefoot.cli.main import main; main()", "repeat"]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, list[Attempt]], dict[str, Any]]:
    folder = tmp_path_factory.mktemp("run")
    done = subprocess.run(
        [*HARNESS, str(SUITE), "--folder", str(folder), "--json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder.parent,
    )
    assert done.returncode in {0, 1}, done.stderr
    found: dict[str, list[Attempt]] = {}
    for attempt in read_attempts(folder):
        found.setdefault(attempt.variant, []).append(attempt)
    return found, json.loads(done.stdout)


def test_every_variant_ran_and_says_what_disturbed_it(ran: tuple[dict[str, list[Attempt]], Any]) -> None:
    found, _ = ran
    assert {name: len(attempts) for name, attempts in found.items()} == dict.fromkeys(found, 20)
    notes = {name: attempts[0].extra.get("notes", {}) for name, attempts in found.items()}
    assert "faults" in notes["faults"]
    assert notes["renamed"]["environment"] == {"varied": 1, "unchanged": 0}
    assert notes["words"]["prompts"]["paraphrase"] in {0, 1}
    assert notes["sold"]["concurrent_update"]["done"] is True
    assert notes["cut off"]["interrupt"] == {"after_call": 1, "done": True}


def test_the_dose_is_what_was_asked_for_and_no_fault_is_infrastructure(
    ran: tuple[dict[str, list[Attempt]], Any],
) -> None:
    found, _ = ran
    (dose,) = doses(found["faults"]).values()
    assert dose.as_asked
    assert dose.delivered > 0
    assert {attempt.outcome for attempt in found["faults"]} == {"ok", "error"}


def test_ratios_stand_beside_both_yields(ran: tuple[dict[str, list[Attempt]], Any]) -> None:
    found, said = ran
    lines = {line["variant"]: line for line in said["robustness"]}
    values = {name: line["robustness"]["ratio"]["value"] for name, line in lines.items()}
    good = sum(bool(attempt.acceptable) for attempt in found["faults"])
    assert values == {"faults": good / 20, "renamed": 0.0, "words": 1.0, "sold": 0.0, "cut off": 1.0}
    assert 0 < good < 20
    assert lines["faults"]["dose"]["asked"] == 0.2
    assert lines["words"]["robustness"]["ratio"]["says"] == "baseline 1.0000 (n = 20), perturbed 1.0000 (n = 20)"
