"""Streams of events whose labels come late, twice, corrected or never: after each step all numbers are the reference's.

Around changes of clocks, on leap days, in zones that are not whole hours from UTC, with planned exclusions and with a
target that changes on the way. Only the dates that changed are counted again, as the engine does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from random import Random
from typing import Final

import pyarrow as pa
from hypothesis import Phase, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from support import slo_reference as reference
from support.slo_checks import check, strata_of
from surefoot.processors.slo import Slo
from surefoot.processors.slo.adjustments import BudgetAdjustment
from surefoot.processors.slo.count import views_of
from surefoot.processors.slo.cube import SCHEMA
from surefoot.processors.slo.definition import Calendar
from surefoot.processors.slo.minutes import Minutes

DAY: Final = 86_400
# Where clocks change, or a day is rare.
MOMENTS: Final = {
    "a week in March": datetime(2026, 3, 12, 9, 41, 7, tzinfo=UTC),
    "Berlin loses an hour": datetime(2026, 3, 29, 1, 20, tzinfo=UTC),
    "Berlin gains an hour": datetime(2026, 10, 25, 0, 40, tzinfo=UTC),
    "New York gains an hour": datetime(2026, 11, 1, 5, 59, tzinfo=UTC),
    "29 February ends": datetime(2028, 2, 29, 23, 55, tzinfo=UTC),
    "a year begins in Kolkata": datetime(2026, 12, 31, 18, 25, tzinfo=UTC),
}
CALENDARS: Final = [
    ("1M", Calendar("2025-12-31 00:00:00", "Europe/Berlin", 1, "M"), 31 * DAY + 3600),
    ("1w", Calendar("2026-03-01 00:00:00", "Europe/Berlin", 1, "w"), 7 * DAY + 3600),
    ("4d", Calendar("2026-02-28 00:00:00", "America/New_York", 4, "d"), 4 * DAY + 3600),
    ("1Q", Calendar("2026-01-01 00:00:00", "Asia/Kolkata", 1, "Q"), 92 * DAY),
    ("1Y", Calendar("2024-02-29 00:00:00", "UTC", 1, "Y"), 366 * DAY),
]


@st.composite
def slos(draw: st.DrawFn) -> Slo:
    slo = Slo(
        name="slo",
        service="desk",
        indicator=draw(st.sampled_from(["availability", "acceptable_outcome"])),
        objective=draw(st.sampled_from([0.5, 0.8, 0.95, 0.99, 0.999])),
        period="4d",
        period_seconds=4 * DAY,
        by=draw(st.sampled_from([(), ("task_class",)])),
    )
    if draw(st.booleans()):
        period, calendar, longest = draw(st.sampled_from(CALENDARS))
        slo = replace(slo, period=period, period_seconds=longest, calendar=calendar)
    method = draw(st.sampled_from(["Occurrences", "Occurrences", "Timeslices", "RatioTimeslices"]))
    if method != "Occurrences":
        target = draw(st.sampled_from([0.5, 0.9, 1.0])) if method == "Timeslices" else None
        slo = replace(slo, budgeting=method, slice_seconds=draw(st.sampled_from([300, 3600])), slice_target=target)
    return slo


@dataclass
class Happened:
    """An event, and what is said of it so far."""

    ended_us: int
    row: reference.Row
    known_bad: bool  # at once
    label: str | None = None  # good bad
    said: int = 0  # labels so far

    def seen(self) -> reference.Event:
        if self.row["cancelled"]:
            return reference.Event(self.ended_us, "excluded", self.row)
        fast = self.label or ("bad" if self.known_bad else "good")
        return reference.Event(self.ended_us, self.label or "unlabelled", self.row, fast)


def more(random: Random, now: float) -> list[Happened]:
    """A burst: some minutes of traffic that goes well or badly."""
    begin = now - random.choice([0, 60, 300, 3600, 6 * 3600, DAY, 2 * DAY, 3.9 * DAY, 5 * DAY])
    bad = random.choice([0.0, 0.02, 0.5, 1.0])
    return [
        Happened(
            int((begin - random.uniform(-600, 1200)) * 1_000_000),
            {
                "task_class": random.choice(["refund", "refund", "query"]),
                "sample_weight": random.choice([None] * 9 + [0.5, 20.0]),
                "cancelled": random.random() < 0.05,
            },
            random.random() < bad,
        )
        for _ in range(random.choice([0, 3, 20, 60]))
    ]


def speak(random: Random, happened: list[Happened], at_once: bool) -> list[Happened]:
    """Labels come: of many events late, of some again (the same or corrected), of some never."""
    told = [event for event in happened if at_once or random.random() < 0.4]
    for event in told:
        if at_once:
            event.label = "bad" if event.known_bad else "good" if random.random() < 0.98 else None
        elif event.said == 0 or random.random() < 0.1:
            event.label = (
                random.choice(["good", "bad"]) if random.random() < 0.2 else ("bad" if event.known_bad else "good")
            )
            event.said += 1
    return told


def date_of(event: Happened) -> date:
    return datetime.fromtimestamp(event.ended_us // 1_000_000, UTC).date()


def counted(slo: Slo, events: list[reference.Event], dates: set[date]) -> pa.Table:
    """What ``count_many`` gives for these dates; test_equals_reference.py says that it does."""
    squares = {"good": 1, "bad": 1}
    found = []
    for key, chosen in strata_of(slo, events).items():
        if bool(key) == bool(slo.by):
            for view in views_of(slo):
                for start, sums in reference.per_bucket(chosen, 60, view).items():
                    if datetime.fromtimestamp(start, UTC).date() in dates:
                        inside = [e for e in chosen if reference.bucket(e.ended_us, 60) == start]
                        weights = [e.weight**2 for e in inside if e.seen(view) in squares]
                        name = ",".join(f"{dimension}={value}" for dimension, value in key)
                        found.append(
                            {"start": start, "view": view, "stratum_key": name, "weight_squares": sum(weights), **sums}
                        )
    return pa.Table.from_pylist(found, SCHEMA)


@given(
    slo=slos(),
    moment=st.sampled_from(sorted(MOMENTS)),
    lag=st.sampled_from([0.0, 1800.0, 9 * 3600.0, 2 * DAY]),
    random=st.randoms(use_true_random=False),
)
@hypothesis_settings(max_examples=30, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_after_every_step_all_numbers_are_the_references(slo: Slo, moment: str, lag: float, random: Random) -> None:
    now = MOMENTS[moment].timestamp()
    minutes, happened = Minutes(slo), list[Happened]()
    adjustments: list[BudgetAdjustment] = []
    for step in range(4):
        new = more(random, now)
        happened += new
        changed = {date_of(event) for event in [*new, *speak(random, happened, len(views_of(slo)) == 1)]}
        if step == 2 and random.random() < 0.5:  # a planned exclusion, found out afterwards
            begin = now // 60 * 60 - random.choice([600, 7200, DAY])
            adjustments.append(BudgetAdjustment("drill", "slo", begin, begin + 3600, "ada", "drill"))
            changed |= {date_of(event) for event in happened}
        if step == 3:
            slo = replace(slo, objective=random.choice([0.9, 0.99]))
        spans = [(adjustment.start, adjustment.end) for adjustment in adjustments]
        raw = [event.seen() for event in happened]
        minutes.replace(changed, counted(slo, raw, changed), adjustments)
        if step == 0:
            minutes.choose()
        check(slo, minutes, reference.adjusted(raw, spans), now, lag=lag)
        now += random.choice([1, 60, 300, 5000, DAY // 2])
