"""The table that opens gates: what it says, and that a small simulation still finds it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from surefoot.processors.evidence.eligibility import PROVED, TABLE, gate_note, least_groups

ROOT = Path(__file__).parents[3]
SIZES = (30, 100, 300, 1000, 3000)


def test_a_proof_is_never_contradicted_by_the_simulation() -> None:
    for method in PROVED:
        rows = [row for row in TABLE if row.method == method]
        assert {row.groups for row in rows} == set(SIZES)
        assert all(row.holds for row in rows), method
        assert least_groups(method) == 1


@pytest.mark.parametrize(
    "method", ["wilson", "jeffreys", "cluster_bootstrap_percentile", "cluster_bootstrap_percentile_exact"]
)
def test_what_undercovers_is_not_offered_and_says_by_how_much(method: str) -> None:
    for groups in (2, *SIZES):
        note = gate_note(method, groups, 0.95)
        assert note is not None
        assert re.search(r"at [\d,]+ groups it covered 0\.\d+ of a nominal 0\.950 \(.+\)", note)


def test_the_notes_of_the_bootstrap_are_the_measured_ones() -> None:
    row = next(
        row
        for row in TABLE
        if (row.method, row.groups) == ("cluster_bootstrap_percentile", 30) and row.confidence > 0.98
    )
    assert row.coverage < 0.7
    assert f"covered {row.coverage:.3f}" in (gate_note("cluster_bootstrap_percentile_exact", 30, row.confidence) or "")


def test_a_method_that_nobody_measured_opens_nothing() -> None:
    assert "never measured" in (gate_note("wald", 10**6, 0.95) or "")


def test_a_small_simulation_finds_the_table_again() -> None:
    """Other seeds and fewer replications: every lowest coverage lies within five standard errors of the table's."""
    command = [sys.executable, str(ROOT / "benchmarks" / "evidence_coverage.py")]
    command += ["--replications", "120", "--groups", "30,300", "--seed", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_s_example_prints_what_it_says() -> None:
    page = (ROOT / "docs" / "evidence-coverage.md").read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    told = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    done = subprocess.run([sys.executable, "-c", code[0]], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == told[0], done.stderr
