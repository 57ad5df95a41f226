"""What an SLO's numbers are, computed slowly and obviously from the definitions (docs/slos.md).

Plain loops over plain rows and exact fractions. It imports nothing of Surefoot, so that an error there is not repeated
here. Times are unix microseconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from math import comb, floor
from typing import Any
from zoneinfo import ZoneInfo

Row = dict[str, Any]
Key = tuple[tuple[str, str], ...]
CLASSES = ("good", "bad", "unlabelled", "excluded")
MICROS = ("good_micros", "bad_micros", "unlabelled_micros")
ALPHA = Fraction(1, 100_000)
MIN_BAD = 2
WINDOWS = {"5m": 300, "30m": 1800, "1h": 3600, "2h": 7200, "6h": 21600, "1d": 86400, "3d": 259200}
TIERS = [
    ("page_fast", "page", "1h", "5m", Fraction(2, 100)),
    ("page_slow", "page", "6h", "30m", Fraction(5, 100)),
    ("ticket_fast", "ticket", "1d", "2h", Fraction(10, 100)),
    ("ticket_slow", "ticket", "3d", "6h", Fraction(10, 100)),
]


@dataclass
class Event:
    ended_us: int
    kind: str  # one of CLASSES: as far as labels say
    row: Row
    fast: str = ""  # one of CLASSES: bad if anything is known to be bad, else good; "" is the same as kind

    def seen(self, view: str) -> str:
        return self.fast or self.kind if view == "fast" else self.kind

    @property
    def weight(self) -> float:
        found = self.row.get("sample_weight")
        return found if found is not None and 0 < found <= 1_000_000 else 1.0


# Which events there are, and of what class


def availability(runs: list[Row], tool_calls: list[Row], verdicts: list[Row], threshold_ns: int | None) -> list[Event]:
    events = []
    for run in user_facing(runs):
        if run["outcome"] == "ok":
            kind = "good"
        elif run["outcome"] == "error" or run["outcome"] == "abandoned":
            kind = "bad"
        elif run["outcome"] in ["cancelled", "deferred", "refused"]:
            kind = "excluded"
        else:
            kind = "unlabelled"
        events.append(Event(run["ended_us"], kind, run))
    return events


def acceptable_outcome(
    runs: list[Row], tool_calls: list[Row], verdicts: list[Row], threshold_ns: int | None
) -> list[Event]:
    events = []
    for run in user_facing(runs):
        said = [verdict for verdict in verdicts if verdict["run_id"] == run["run_id"] and verdict["kind"] == "outcome"]
        best = effective(said, verdicts)
        if run["outcome"] in ["cancelled", "deferred", "refused"]:
            kind = "excluded"
        elif best is None:
            kind = "bad" if run["outcome"] in ["error", "abandoned"] else "unlabelled"
        else:
            kind = {"pass": "good", "fail": "bad", "unresolved": "unlabelled"}[best["verdict"]]
        fast = kind
        if kind == "unlabelled":
            fast = "bad" if run["outcome"] in ["error", "abandoned"] else "good"
        events.append(Event(run["ended_us"], kind, run, fast))
    return events


def policy_compliance(
    runs: list[Row], tool_calls: list[Row], verdicts: list[Row], threshold_ns: int | None
) -> list[Event]:
    events = []
    for run in user_facing(runs):
        by_name = defaultdict(list)
        for verdict in verdicts:
            if verdict["run_id"] == run["run_id"] and verdict["kind"] == "process":
                by_name[verdict["name"]].append(verdict)
        chosen = [effective(said, verdicts) for said in by_name.values()]
        results = [verdict["verdict"] for verdict in chosen if verdict is not None]
        if "fail" in results:
            kind = "bad"
        elif "pass" in results:
            kind = "good"
        else:
            kind = "unlabelled"
        events.append(Event(run["ended_us"], kind, run, "good" if kind == "unlabelled" else kind))
    return events


def tool_success(runs: list[Row], tool_calls: list[Row], verdicts: list[Row], threshold_ns: int | None) -> list[Event]:
    events = []
    for call in tool_calls:
        if call["ended_us"] is None:
            continue
        if call["outcome"] == "ok":
            kind = "good"
        elif call["outcome"] == "error":
            kind = "bad"
        elif call["outcome"] in ["retry", "cancelled", "deferred", "refused"]:
            kind = "excluded"
        else:
            kind = "unlabelled"
        events.append(Event(call["ended_us"], kind, call))
    return events


def latency(runs: list[Row], tool_calls: list[Row], verdicts: list[Row], threshold_ns: int | None) -> list[Event]:
    assert threshold_ns is not None
    events = []
    for run in user_facing(runs):
        if run["outcome"] != "ok":
            kind = "excluded"
        elif run["duration_ns"] is None or run["duration_ns"] < 0:
            kind = "unlabelled"
        else:
            kind = "good" if run["duration_ns"] <= threshold_ns else "bad"
        events.append(Event(run["ended_us"], kind, run))
    return events


INDICATORS = {
    "availability": availability,
    "acceptable_outcome": acceptable_outcome,
    "policy_compliance": policy_compliance,
    "tool_success": tool_success,
    "latency": latency,
}


def user_facing(runs: list[Row]) -> list[Row]:
    return [
        run
        for run in runs
        if run["parent_run_id"] is None and run["outcome"] != "running" and run["ended_us"] is not None
    ]


def effective(said: list[Row], all_verdicts: list[Row]) -> Row | None:
    """The verdict that counts among those ``said``."""
    superseded = {verdict["supersedes"] for verdict in all_verdicts}
    standing = [verdict for verdict in said if verdict["verdict_id"] not in superseded]
    best: Row | None = None
    for verdict in standing:
        if best is None or beats(verdict, best):
            best = verdict
    return best


def beats(one: Row, other: Row) -> bool:
    if (one["finality"] == "final") != (other["finality"] == "final"):
        return bool(one["finality"] == "final")
    for kind in ["human", "executable", "model"]:
        if (one["grader_kind"] == kind) != (other["grader_kind"] == kind):
            return bool(one["grader_kind"] == kind)
    if one["occurred_us"] != other["occurred_us"]:
        return bool(one["occurred_us"] > other["occurred_us"])
    return bool(one["verdict_id"] > other["verdict_id"])


# Which of them an SLO is about, and where they count


def value(row: Row, dimension: str) -> str | None:
    if dimension.startswith("stratum."):
        found: str | None = (row["strata"] or {}).get(dimension[len("stratum.") :])
        return found
    column: str | None = row[dimension]
    return column


def selected(events: list[Event], where: Iterable[tuple[str, Sequence[str]]]) -> list[Event]:
    return [event for event in events if all(value(event.row, name) in allowed for name, allowed in where)]


def graded(events: list[Event], chosen: Iterable[tuple[str, Sequence[str]]]) -> list[Event]:
    """Events that nobody meant to grade are excluded where labels count, and stay where they are known at once."""
    conditions = list(chosen)
    return [
        event
        if all(value(event.row, name) in allowed for name, allowed in conditions)
        else Event(event.ended_us, "excluded", event.row, event.fast or event.kind)
        for event in events
    ]


def adjusted(events: list[Event], spans: Iterable[tuple[float, float]]) -> list[Event]:
    """Planned exclusions, in unix seconds."""
    times = [(start * 1_000_000, end * 1_000_000) for start, end in spans]
    return [
        Event(event.ended_us, "excluded", event.row, "excluded")
        if any(start <= event.ended_us < end for start, end in times)
        else event
        for event in events
    ]


def stratum(event: Event, by: Sequence[str]) -> Key:
    return tuple((name, value(event.row, name) or "") for name in by)


@lru_cache(maxsize=100_000)
def bucket(ended_us: int, length: int) -> int:
    """Start of the event's bucket, unix seconds; buckets of ``length`` seconds are counted from midnight UTC."""
    moment = datetime.fromtimestamp(ended_us // 1_000_000, UTC)
    midnight = moment.replace(hour=0, minute=0, second=0)
    since = int((moment - midnight).total_seconds())
    return int(midnight.timestamp()) + since // length * length


def per_bucket(events: list[Event], length: int, view: str = "fast") -> dict[int, dict[str, int]]:
    """Counts of each class, and sums of weights in millionths."""
    counts: dict[int, dict[str, int]] = {}
    for event in events:
        kind = event.seen(view)
        found = counts.setdefault(bucket(event.ended_us, length), dict.fromkeys([*CLASSES, *MICROS], 0))
        found[kind] += 1
        if kind != "excluded":
            found[f"{kind}_micros"] += round(event.weight * 1_000_000)
    return counts


def between(events: list[Event], after: float, until: float, length: int) -> list[Event]:
    """Events of the buckets with after < start <= until."""
    return [event for event in events if after < bucket(event.ended_us, length) <= until]


def counted(events: list[Event], view: str) -> dict[str, int]:
    kinds = [event.seen(view) for event in events]
    return {kind: kinds.count(kind) for kind in CLASSES}


# What an SLO is


@dataclass
class Promise:
    """An SLO, as far as its numbers go."""

    objective: Fraction
    period: int  # seconds; of a calendar: of its longest window
    calendar: tuple[str, int, str, str] | None = None  # first day, count, unit, zone
    slicing: tuple[str, int, Fraction] | None = None  # method, seconds, target
    views: tuple[str, ...] = ("fast",)

    @property
    def windows(self) -> list[str]:
        """Those shorter than the period as it is written: a calendar's day is a day even if it has 25 hours."""
        period = self.period
        if self.calendar is not None and self.calendar[2] == "d":
            period = self.calendar[1] * 86400
        return [name for name, length in WINDOWS.items() if length < period]


@dataclass
class Amount:
    """Good, bad and unlabelled of a window: events, weights or slices, and as how many events a test may take them."""

    good: Fraction
    bad: Fraction
    unlabelled: Fraction
    counts: dict[str, int]
    size: Fraction
    plain: bool

    @property
    def labelled(self) -> Fraction:
        return self.good + self.bad

    @property
    def total(self) -> Fraction:
        return self.labelled + self.unlabelled


def amount(events: list[Event], after: float, until: float, length: int, view: str, promise: Promise) -> Amount:
    inside = between(events, after, until, length)
    counts = counted(inside, view)
    if promise.slicing is not None:
        method, seconds, target = promise.slicing
        parts = slices(events, after, until, length, view, method, seconds, target)
        good, bad, unlabelled = (sum((part[place] for part in parts), Fraction(0)) for place in range(3))
        return Amount(good, bad, unlabelled, counts, good + bad, plain=False)
    weights = {kind: [Fraction(event.weight) for event in inside if event.seen(view) == kind] for kind in CLASSES}
    of_labelled = weights["good"] + weights["bad"]
    squares = sum((weight**2 for weight in of_labelled), Fraction(0))
    size = sum(of_labelled, Fraction(0)) ** 2 / squares if squares else Fraction(0)
    plain = all(weight == 1 for kind in CLASSES[:3] for weight in weights[kind])
    good, bad, unlabelled = (sum(weights[kind], Fraction(0)) for kind in CLASSES[:3])
    return Amount(good, bad, unlabelled, counts, size, plain)


def slices(
    events: list[Event], after: float, until: float, length: int, view: str, method: str, seconds: int, target: Fraction
) -> list[tuple[Fraction, Fraction, Fraction]]:
    """Each slice that ended in (after, until] as its good, bad and unlabelled part; slices without events are none."""
    filled: dict[int, list[Event]] = {}
    for event in events:
        begin = bucket(bucket(event.ended_us, length) * 1_000_000, seconds)
        end = min(begin + seconds, (begin // 86_400 + 1) * 86_400)  # slices start anew at midnight UTC
        if after < end <= until and event.seen(view) != "excluded":
            filled.setdefault(begin, []).append(event)
    found = []
    for inside in filled.values():
        weights = {kind: sum(Fraction(e.weight) for e in inside if e.seen(view) == kind) for kind in CLASSES[:3]}
        total = sum(weights.values(), Fraction(0))
        good, unlabelled = Fraction(weights["good"]) / total, Fraction(weights["unlabelled"]) / total
        if method == "RatioTimeslices":
            found.append((good, 1 - good - unlabelled, unlabelled))
        elif good >= target:
            found.append((Fraction(1), Fraction(0), Fraction(0)))
        elif good + unlabelled >= target:
            found.append((Fraction(0), Fraction(0), Fraction(1)))
        else:
            found.append((Fraction(0), Fraction(1), Fraction(0)))
    return found


def period_of(promise: Promise, until: float) -> tuple[float, float]:
    """(after, first): the period's buckets start after ``after``; of a calendar it begins at ``first``."""
    if promise.calendar is None:
        return until - promise.period, until - promise.period
    day, count, unit, zone = promise.calendar
    start = datetime.fromisoformat(day)
    step = 0
    # From the calendar's first day on, window by window on the wall clock.
    while _later(start, (step + 1) * count, unit).replace(tzinfo=ZoneInfo(zone)).timestamp() <= until:
        step += 1
    first = _later(start, step * count, unit).replace(tzinfo=ZoneInfo(zone)).timestamp()
    return first - 0.5, first


def _later(start: datetime, count: int, unit: str) -> datetime:
    if unit == "d":
        return start + timedelta(days=count)
    if unit == "w":
        return start + timedelta(days=7 * count)
    month = start.month - 1 + count * {"M": 1, "Q": 3, "Y": 12}[unit]
    year, month = start.year + month // 12, month % 12 + 1
    day = start.day
    while True:  # the last day that the month has
        try:
            return start.replace(year=year, month=month, day=day)
        except ValueError:
            day -= 1


# What follows from the events


def burn_rate(found: Amount, objective: Fraction) -> Fraction | None:
    return found.bad / found.labelled / (1 - objective) if found.labelled else None


def remaining(good: Fraction, bad: Fraction, objective: Fraction) -> Fraction | None:
    if good + bad == 0:
        return None
    allowed = (1 - objective) * (good + bad)
    return (allowed - bad) / allowed


def factor(share: Fraction, long_window: str, period: int, objective: Fraction, severity: str) -> Fraction:
    nominal = share * period / WINDOWS[long_window]
    highest = Fraction(1, 2) / (1 - objective)
    if highest < 1:
        highest = Fraction(1)
    if nominal < Fraction(28, 30):
        nominal = Fraction(28, 30)
    if severity == "page" and period < 4 * 86400 and nominal < 2:
        nominal = Fraction(2)
    return min(nominal, highest)


def chance(bad: int, events: int, budget: Fraction) -> Fraction:
    """P(at least ``bad`` of ``events``), term by term."""
    return sum(
        (comb(events, k) * budget**k * (1 - budget) ** (events - k) for k in range(bad, events + 1)), Fraction(0)
    )


def streak(events: list[Event], until: float, length: int, view: str) -> tuple[int, int]:
    """Bad events since the last bucket with a good or unlabelled one; bad or unlabelled ones since the last good."""
    buckets = sorted(per_bucket([e for e in events if bucket(e.ended_us, length) <= until], length, view).items())
    certain = possible = 0
    open_end = True
    for _, found in reversed(buckets):
        if found["good"]:
            break
        open_end = open_end and not found["unlabelled"]
        certain += found["bad"] if open_end else 0
        possible += found["bad"] + found["unlabelled"]
    return certain, possible


@dataclass
class Decision:
    burning: bool
    frozen: bool


def decisions(
    events: list[Event], until: float, length: int, view: str, promise: Promise, pages: int
) -> dict[tuple[str, str], Decision]:
    """Every tier of the view, by name and severity."""
    severities = ["page", "ticket"] if len(promise.views) == 1 else ["page"] if view == "fast" else ["ticket"]
    found = {}
    for name, severity, long_window, short_window, share in TIERS:
        if severity in severities and long_window in promise.windows:
            limit = factor(share, long_window, promise.period, promise.objective, severity)
            long, short = (
                window(events, WINDOWS[name], until, length, view, promise) for name in (long_window, short_window)
            )
            answers = [
                burns(events, long, short, limit, severity, until, length, view, promise, pages, worst)
                for worst in (False, True)
            ]
            # A ticket waits while a streak grows that may become a page.
            needed = in_a_row_to_page(events, until, length, view, promise, pages)
            certain = streak(events, until, length, view)[0]
            waits = severity == "ticket" and needed is not None and 0 < certain < needed
            burning = answers[0] and not waits
            found[name, severity] = Decision(burning, answers[1] and not burning)
    return found


def window(events: list[Event], seconds: float, until: float, length: int, view: str, promise: Promise) -> Amount:
    shortest = promise.slicing[1] if promise.slicing is not None else length
    return amount(events, until - max(seconds, shortest), until, length, view, promise)


def burns(
    events: list[Event],
    long: Amount,
    short: Amount,
    limit: Fraction,
    severity: str,
    until: float,
    length: int,
    view: str,
    promise: Promise,
    pages: int,
    worst: bool,
) -> bool:
    """One tier, with every missing label bad, or good."""
    budget = 1 - promise.objective
    rates = []
    for found in (long, short):
        bad = found.bad + (found.unlabelled if worst else 0)
        rates.append(bad / found.total / budget if found.total else None)
    bad_events = long.counts["bad"] + (long.counts["unlabelled"] if worst else 0)
    if long.plain:
        size, failed = long.counts["good"] + long.counts["bad"] + long.counts["unlabelled"], bad_events
    elif long.total == 0:
        size = failed = bad_events = 0
    else:
        at_most = min(long.unlabelled, Fraction(sum(long.counts[kind] for kind in CLASSES[:3])))
        size = floor(long.size * long.total / long.labelled if long.labelled else at_most)
        failed = floor(size * (long.bad + (long.unlabelled if worst else 0)) / long.total)
    by_chance = chance(failed, size, budget)
    long_burns = rates[0] is not None and rates[0] > limit and by_chance < ALPHA / pages and bad_events >= MIN_BAD
    short_burns = rates[1] is not None and rates[1] > limit
    if rates[1] is None and worst:
        short_burns = True  # nobody can tell whether it is over
    if long_burns and short_burns:
        return True
    needed = in_a_row_to_page(events, until, length, view, promise, pages)
    in_a_row = streak(events, until, length, view)[1 if worst else 0]
    return severity == "page" and needed is not None and needed <= in_a_row


def in_a_row_to_page(
    events: list[Event], until: float, length: int, view: str, promise: Promise, pages: int
) -> int | None:
    """How many bad events in a row page; None where so many events come that windows tell."""
    needed = MIN_BAD
    while (1 - promise.objective) ** needed > ALPHA / pages:
        needed += 1
    recent = counted(between(events, until - 3 * 86_400, until, length), view)
    expected = Fraction(recent["good"] + recent["bad"] + recent["unlabelled"], 12)
    newest = [bucket(e.ended_us, length) for e in events if e.seen(view) != "excluded"]
    fresh = any(until - 3 * 86_400 <= start <= until for start in newest)
    return needed if fresh and expected < 4 * needed else None


def state(period: Amount, decided: Iterable[tuple[str, Decision]], objective: Fraction, stale: bool = False) -> str:
    """``decided``: severity and answer of each tier."""
    tiers = list(decided)
    if period.labelled == 0:
        return "no_data"
    burning = {severity for severity, decision in tiers if decision.burning and not stale}
    if "page" in burning:
        return "burning_page"
    left = remaining(period.good + period.unlabelled, period.bad, objective)
    if left is not None and left <= 0:
        return "exhausted"
    if "ticket" in burning:
        return "burning_ticket"
    return "frozen" if stale or any(decision.frozen for _, decision in tiers) else "ok"
