"""What docs/slo-files.md says is true."""

from __future__ import annotations

import re
from pathlib import Path

from surefoot.processors.slo import load_slos
from surefoot.processors.slo.definition import Alerting, Calendar, Labels, TierSpec
from surefoot.processors.slo.openslo import _OWN
from surefoot.processors.slo.openslo_documents import KINDS
from surefoot.processors.slo.openslo_source import AlertingPart, LabelsPart, Selection

PAGE = (Path(__file__).parents[3] / "docs" / "slo-files.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_files_on_the_page_are_valid_together(tmp_path: Path) -> None:
    for number, text in enumerate(blocks("yaml")):
        (tmp_path / f"{number}.yaml").write_text(text)
    loaded = load_slos(tmp_path)
    assert loaded.problems == []
    cost, outcome = loaded.slos
    assert outcome.calendar == Calendar("2026-01-01 00:00:00", "Europe/Berlin", 1, "M")
    assert outcome.alerting.tiers == (TierSpec("page-at-ten", "page", "1h", "5m", 10.0),)
    assert (cost.threshold, cost.slice_seconds, cost.slice_target, cost.objective) == (0.25, 3600, 0.9, 0.995)


def test_the_messages_on_the_page_are_those_that_are_given(tmp_path: Path) -> None:
    sli, slo, policy, _ = blocks("yaml")
    (tmp_path / "all.yaml").write_text(sli)
    (tmp_path / "policies.yaml").write_text(policy.replace("op: gt", "op: lt"))
    (tmp_path / "outcome.yaml").write_text(slo.replace("indicatorRef: desk-outcome", "indicatorRef: desk-outcom"))
    told = [f"slos/{str(problem).removeprefix(f'{tmp_path}/')}\n" for problem in load_slos(tmp_path).problems]
    assert blocks("text") == ["".join(told)]


def test_the_page_names_every_kind_and_every_field_with_its_default() -> None:
    kinds = re.findall(r"^\| ([A-Z][A-Za-z, ]+) \|", PAGE, re.MULTILINE)
    assert {kind for cell in kinds for kind in cell.split(", ")} == {*KINDS, *_OWN}
    section = PAGE.partition("## The metric source\n")[2].partition("\n## ")[0]
    fields = {
        name: default.strip() for name, default in re.findall(r"^\| `([a-z_.]+)` \|.*\|(.*)\|$", section, re.MULTILINE)
    }
    expected = {name for name in Selection.model_fields if name not in {"labels", "alerting"}}
    expected |= {f"labels.{name}" for name in LabelsPart.model_fields}
    expected |= {f"alerting.{name}" for name in AlertingPart.model_fields}
    assert set(fields) == expected
    labels, alerting = Labels(), Alerting()
    assert float(fields["labels.quantile"]) == labels.quantile
    assert fields["labels.max_delay"] == f"{labels.max_delay_seconds // 86_400}d"
    assert int(fields["labels.min_labelled"]) == labels.min_labelled
    for name in ("alpha", "reach", "min_bad_events", "correlation"):
        assert float(fields[f"alerting.{name}"]) == getattr(alerting, name)
