"""What docs/slos.md and demo/surefoot/demo/slos say is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from surefoot.processors.slo import INDICATORS, load_slos, tiers_for

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "slos.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_files_on_the_page_are_valid(tmp_path: Path) -> None:
    for number, text in enumerate(blocks("yaml")):
        (tmp_path / f"{number}.yaml").write_text(text)
    loaded = load_slos(tmp_path)
    assert loaded.problems == []
    assert {slo.name: slo.objective for slo in loaded.slos} == {
        "support-desk-availability": 0.99,
        "support-desk-latency": 0.95,
    }


def test_the_code_on_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks("python")
    exec(compile(code, "docs/slos.md", "exec"), {"SLOS": ROOT / "demo" / "surefoot" / "demo" / "slos"})
    assert "support-desk-availability 0.99 [13.44, 5.6, 2.8, " in capsys.readouterr().out


def test_the_tables_on_the_page_name_every_indicator_and_tier() -> None:
    section = PAGE.partition("## Indicators\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"`(\w+)`", section)) == set(INDICATORS)
    tiers = re.findall(r"^\| `(\w+)` \| (\w+) \| (\w+) and (\w+) \| [\d ]+% \| ([\d.]+) \|", PAGE, re.MULTILINE)
    assert tiers == [
        (tier.name, tier.severity, tier.long_window, tier.short_window, str(round(tier.factor, 4)))
        for tier in tiers_for("28d", 0.99)
    ]


def test_the_examples_are_valid() -> None:
    loaded = load_slos(ROOT / "demo" / "surefoot" / "demo" / "slos")
    assert loaded.problems == []
    assert {slo.name: (slo.indicator, slo.objective, slo.by) for slo in loaded.slos} == {
        "support-desk-availability": ("availability", 0.99, ()),
        "support-desk-acceptable-outcome": ("acceptable_outcome", 0.95, ("task_class",)),
        "support-desk-policy-compliance": ("policy_compliance", 0.99, ()),
        "support-desk-tool-success": ("tool_success", 0.97, ()),
        "support-desk-latency": ("latency", 0.95, ()),
    }
