"""Budget adjustments: who took which time out of a budget, and why; counted once where two overlap."""

from __future__ import annotations

import itertools
import random

import pytest

from surefoot.processors.documents import dotted, read_documents
from surefoot.processors.slo import adjustments
from surefoot.processors.slo.adjustments import BudgetAdjustment, exclusions

TEXT = """
apiVersion: surefoot/v1
kind: BudgetAdjustment
metadata: {name: migration}
spec:
  slo: answers
  from: 2026-12-24T18:00:00Z
  to: 2026-12-24T21:00:00+01:00
  author: Ada
  reason: the ledger moves
"""


def read(text: str = TEXT) -> BudgetAdjustment:
    (document,) = read_documents(text)
    found = adjustments.read(document, "slos/migration.yaml")
    assert isinstance(found, BudgetAdjustment), found
    return found


def test_times_are_instants_in_any_zone_quoted_or_not() -> None:
    found = read()
    assert found.end - found.start == 2 * 3_600
    quoted = TEXT.replace("2026-12-24T18:00:00Z", '"2026-12-24T13:00:00-05:00"')
    assert read(quoted) == found
    assert found.sentence == "2026-12-24 18:00 to 2026-12-24 20:00 UTC: the ledger moves (Ada)"


@pytest.mark.parametrize(
    ("right", "wrong", "path", "what"),
    [
        ("  author: Ada\n", "", "spec.author", "missing"),
        ("Ada", '" "', "spec.author", "empty"),
        ("  reason: the ledger moves\n", "", "spec.reason", "missing"),
        ("T18:00:00Z", "T18:00:00", "spec.from", "no zone"),
        ("T18:00:00Z", "T18:00:30Z", "spec.from", "whole minute"),
        ("2026-12-24T18:00:00Z", "2026-12-24", "spec.from", "a date without a time"),
        ("2026-12-24T18:00:00Z", "tomorrow", "spec.from", "not a time"),
        ("2026-12-24T21:00:00+01:00", "2026-12-24T19:00:00+01:00", "spec.to", "ends before it begins"),
        ("slo: answers", "slos: [answers]", "spec.slos", "unknown"),
    ],
)
def test_a_mistake_in_an_adjustment_is_named_by_place(right: str, wrong: str, path: str, what: str) -> None:
    assert right in TEXT
    (document,) = read_documents(TEXT.replace(right, wrong))
    found = adjustments.read(document, "x.yaml")
    assert isinstance(found, list), found
    assert path in [dotted(item.path) for item in found if what in item.what], found
    assert all(item.remedy for item in found)


def record(start: int, end: int, slo: str = "answers", **stratum: str) -> BudgetAdjustment:
    return BudgetAdjustment("n", slo, start, end, "Ada", "why", tuple(sorted(stratum.items())))


def test_adjustments_that_overlap_or_touch_are_one_time() -> None:
    found = exclusions([record(60, 180), record(0, 120), record(180, 240), record(600, 660)], "answers", "")
    assert found == [(0, 240), (600, 660)]


def test_a_minute_is_excluded_exactly_if_some_adjustment_covers_it() -> None:
    chance = random.Random(7)
    for _ in range(200):
        starts = [chance.randrange(50) for _ in range(chance.randrange(6))]
        records = [record(start, start + chance.randrange(1, 20)) for start in starts]
        merged = exclusions(records, "answers", "")
        covered = {at for item in records for at in range(int(item.start), int(item.end))}
        assert {at for start, end in merged for at in range(int(start), int(end))} == covered
        assert all(left[1] < right[0] for left, right in itertools.pairwise(merged))


def test_an_adjustment_of_a_stratum_is_about_the_strata_with_its_values() -> None:
    refunds = [record(0, 60, task_class="refund")]
    key = "task_class=refund,environment=production"
    assert exclusions(refunds, "answers", key) == [(0, 60)]
    for other in ("task_class=order", "other", ""):
        assert exclusions(refunds, "answers", other) == []
    assert exclusions(refunds, "latency", key) == []
    assert exclusions([record(0, 60)], "answers", "other") == [(0, 60)]
    assert record(0, 60, task_class="a,b").covers("task_class=a%2Cb")


def test_what_does_not_fit_the_slos_is_told() -> None:
    assert adjustments.check(record(0, 60, task_class="x"), {"answers": ("task_class",)}) == []
    (wrong,) = adjustments.check_names({"spec": {"slo": "answers"}}, ["answer"])
    assert "did you mean answer?" in wrong.remedy
    (wrong,) = adjustments.check(record(0, 60, taskclass="x"), {"answers": ("task_class",)})
    assert "did you mean task_class?" in wrong.remedy
    (wrong,) = adjustments.check(record(0, 60, task="x"), {"answers": ()})
    assert "no strata" in wrong.remedy


def test_a_time_that_nobody_can_mean_is_refused_and_not_shown_later() -> None:
    text = """\
apiVersion: surefoot/v1
kind: BudgetAdjustment
metadata: {name: all}
spec: {slo: answers, from: "0001-01-01T00:00:00+05:00", to: "9999-12-31T23:59:00-05:00", author: A, reason: b}
"""
    (document,) = read_documents(text)
    found = adjustments.read(document, "x.yaml")
    assert isinstance(found, list)
    assert [item.path for item in found] == [("spec", "from"), ("spec", "to")]
