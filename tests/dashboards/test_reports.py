"""The profile's page: self-contained, whole for every kind of evidence, and with the numbers of the profile."""

from __future__ import annotations

import re
from datetime import date
from html import unescape
from html.parser import HTMLParser
from typing import Any

import pytest

from support.profiles import boundary, count, profile
from surefoot.dashboards.reports import profile_page
from surefoot.dashboards.reports.series import class_shares, curve, dumbbells, strips
from surefoot.processors.boundary.check import check_boundary
from surefoot.processors.evidence.profile import ListedGroup, Profile, sealed

MANY = [count(3, 3, 40), count(3, 1, 5), count(3, 0, 2, True), count(3, 0, 1, False)]
EVIDENCE: dict[str, list[dict[str, Any]]] = {
    "many groups": MANY,
    "one task": [count(3, 2, 1)],
    "one run each": [count(1, 1, 5), count(1, 0, 1)],
    "all pass": [count(3, 3, 9)],
    "all fail": [count(3, 0, 9, True)],
    "no verdict": [count(0, 0, 4, missing=3)],
    "unequal n": [count(5, 5, 9), count(2, 1, 3), count(1, 0, 1)],
    "unknown equivalence": [count(3, 3, 9), count(3, 0, 2)],
    "two strata": [count(3, 3, 9), count(3, 0, 2, True, consequence_class="irreversible")],
    "a name that is markup": [{**count(3, 3, 9), "task_class": "<script>alert(1)</script>"}, count(3, 1, 2)],
}


class Balance(HTMLParser):
    """Tags that are opened and not closed, or closed and not opened."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in {"meta", "br", "link", "path", "rect", "line"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()
        elif tag not in {"path", "rect", "line"}:
            raise AssertionError(f"</{tag}> closes {self.open[-1:]}")


@pytest.mark.parametrize("what", EVIDENCE)
def test_every_kind_of_evidence_has_a_page(what: str) -> None:
    made = profile(EVIDENCE[what])
    page = profile_page(made, check_boundary(made, boundary(), date(2026, 10, 1)))
    balance = Balance()
    balance.feed(page)
    assert balance.open == []
    text = re.sub(r"<(style|svg).*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)
    assert not re.search(r"\b(None|nan|NaN|undefined)\b", re.sub(r": undefined|undefined ", "", text))
    assert "<script" not in page
    assert not re.search(r"(src|href)=[\"']?https?://|@import", page)
    assert made.content_hash in page


def test_the_curve_has_the_profile_s_own_numbers() -> None:
    made = profile(MANY)
    points = curve(made)
    (interval,) = made.indicators.confidence_intervals["strict_repeated_success_at_k"]
    assert [point.k for point in points] == [1, 2, 3]
    assert points[0].every == pytest.approx(made.indicators.outcome_yield.value)
    assert points[2].every == pytest.approx(made.indicators.strict_repeated_success_at_k.value)
    assert (points[2].low, points[2].high) == (interval.low, interval.high)
    assert all(point.every <= point.some for point in points)


def test_a_curve_says_how_many_groups_reach_each_k() -> None:
    assert [(point.k, point.groups) for point in curve(profile(EVIDENCE["unequal n"]))] == [
        (1, 13),
        (2, 12),
        (3, 9),
        (4, 9),
        (5, 9),
    ]


def test_classes_are_exhaustive() -> None:
    assert sum(class_shares(profile(EVIDENCE["unequal n"])).values()) == 13


def test_worst_first() -> None:
    assert [(strip.outcomes, strip.groups) for strip in strips(profile(MANY))] == [
        ("000", 2),
        ("000", 1),
        ("100", 5),
        ("111", 40),
    ]


def test_listed_groups_are_strips_of_their_own() -> None:
    made = profile(MANY)
    group = ListedGroup(group_id="g", task_id="t-9", stratum=0, outcomes="1?0-", run_ids=["a", "b", "c", "d"])
    parts = {name: getattr(made, name) for name in Profile.model_fields if name != "content_hash"}
    listed = sealed(parts | {"evidence": made.evidence.model_copy(update={"listed_groups": [group]})})
    (strip,) = strips(listed)
    assert (strip.name, strip.n, strip.c, strip.kind) == ("t-9", 2, 1, "mixed")
    assert profile_page(listed).count('<i class="u">') == 2


def test_strata_are_named_by_what_tells_them_apart() -> None:
    assert [bell.name for bell in dumbbells(profile(EVIDENCE["two strata"]))] == ["all", "irreversible", "reversible"]


def test_the_gates_are_shown_with_what_is_missing() -> None:
    made = profile([count(3, 3, 30)])
    gate = {"indicator": "outcome_yield", "comparison": ">=", "bound": 0.99, "name": "yield"}
    page = profile_page(made, check_boundary(made, boundary(gates=[gate]), date(2026, 10, 1)))
    assert "not cleared: ask a human" in page
    assert "more groups, if the rate stays" in page


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<(style|svg).*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)))


def test_all_that_the_template_asks_for_and_all_that_is_said_of_the_decision_is_there() -> None:
    protocol = {
        "k": {"value": 3, "why": "three posts a day"},
        "environment_reset": "restored before each run",
        "multiple_gate_adjustment": {"method": "bonferroni", "purpose": "all bounds hold"},
    }
    made = profile(MANY, repeat_protocol=protocol, published={"source": "a test", "grader_kind": "model"})
    decision = check_boundary(made, boundary(), date(2026, 10, 1))
    text = text_of(profile_page(made, decision))
    for said in (
        "value 3, why three posts a day",
        "restored before each run",
        "method bonferroni, purpose all bounds hold",
    ):
        assert said in text
    assert "clustering unit task group" in text
    assert "Not decision-grade: grader error not measured" in text
    assert all(reason.what in text for reason in decision.reasons)
    assert all(note in text for note in decision.notes)
    assert "Look first at 3 tasks" in text


def test_a_name_cannot_turn_the_direction_of_the_numbers_after_it() -> None:
    turned = "refund \u202e\u2066"
    made = profile([count(3, 3, 9, task_class=turned)], task_population={"task_class": turned})
    page = profile_page(made, check_boundary(made, boundary(), date(2026, 10, 1)))
    assert "\u202e" not in re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL)
    assert "refund \\u202e\\u2066" in page
    many = profile([count(3, 3, 9)], task_population={"task_class": [f"class-{number}" for number in range(100)]})
    assert "class-4 and 95 more" in profile_page(many)
