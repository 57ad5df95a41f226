"""What docs/slo-statistics.md promises, on a small scale; its tables and its example."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from surefoot.processors.slo.definition import Alerting
from surefoot.processors.slo.simulate import Traffic, false_pages, outages

ROOT = Path(__file__).parents[3]
BENCHMARK = ROOT / "benchmarks" / "slo_statistics.py"
PAGE = ROOT / "docs" / "slo-statistics.md"
TARGETS = (0.8, 0.9, 0.95, 0.99, 0.999)
PER_DAY = (3, 10, 30, 100, 300, 3_000, 30_000)


def run(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), *arguments], capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("target", TARGETS)
def test_a_total_outage_always_pages_and_pages_before_it_tickets(target: float) -> None:
    for per_day in PER_DAY:
        days = 20 if per_day <= 10 else 3 if per_day <= 100 else 1
        for found in outages(target, Traffic(per_day), error_ratio=1.0, count=8, days=days, seed=11):
            assert found.page is not None, per_day
            assert found.ticket is None or found.page <= found.ticket, (per_day, found)


def test_what_fails_as_often_as_its_budget_allows_does_not_page() -> None:
    """The cell in which an alpha of 1e-3 pages most, and it does: so many years can tell."""
    assert false_pages(0.99, Traffic(300), years=3, seed=5)["page"] <= 3
    assert false_pages(0.99, Traffic(300), years=3, seed=5, alerting=Alerting(alpha=1e-3))["page"] > 3 * 3


def test_strata_share_one_promise() -> None:
    found = false_pages(0.9, Traffic(100), years=2, strata=5, seed=5)
    assert found["page"] <= 2
    assert found["ticket"] <= 2


def test_a_stratum_in_which_nothing_runs_is_quiet() -> None:
    assert false_pages(0.9, Traffic(0.0), years=1) == {"page": 0, "ticket": 0}


def test_the_same_seed_gives_the_same_years() -> None:
    alerting = Alerting(alpha=1e-2)
    first, again, other = (
        outages(0.9, Traffic(30), error_ratio=1.0, count=5, alerting=alerting, seed=seed) for seed in (1, 1, 2)
    )
    assert first == again != other


def test_the_tables_on_the_page_are_the_measured_ones(tmp_path: Path) -> None:
    for name in ("slo-statistics.md", "slo-statistics.json"):
        shutil.copy(ROOT / "docs" / name, tmp_path)
    run("page", "--folder", str(tmp_path))
    assert (tmp_path / "slo-statistics.md").read_text() == PAGE.read_text()
    assert (tmp_path / "slo-statistics.svg").read_text().startswith("<svg")


def test_what_was_measured_keeps_the_promise() -> None:
    cells = json.loads((ROOT / "docs" / "slo-statistics.json").read_text())
    assert {(cell["target"], cell["per_day"]) for cell in cells} == {(t, float(n)) for t in TARGETS for n in PER_DAY}
    for cell in cells:
        for kind in ("alone", "strata", "office"):
            assert cell["false"][kind]["page"] <= cell["false"][kind]["years"], (cell["target"], cell["per_day"], kind)
        assert cell["full"]["paged"] == cell["full"]["n"]


def test_the_benchmark_measures_a_cell_and_does_not_measure_it_again(tmp_path: Path) -> None:
    arguments = ("measure", "--targets", ".9", "--per-day", "30", "--years", "1", "--outages", "4")
    assert run(*arguments, "--folder", str(tmp_path)).count("full outages paged") == 1
    assert run(*arguments, "--folder", str(tmp_path)) == ""


def test_the_code_on_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(code, "docs/slo-statistics.md", "exec"), {})
    strict, loose = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"alpha 1e-05: [0-3] false pages in 3 years; 50 of 50 outages paged", strict)
    assert re.fullmatch(r"alpha 0.01: \d{2,} false pages in 3 years; \d+ of 50 outages paged", loose)
