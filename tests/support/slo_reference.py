"""What an SLO's numbers are, computed slowly and obviously from the definitions (docs/slos.md).

Plain loops over plain rows and exact fractions. It imports nothing of Surefoot, so that an error there is not repeated
here. Times are unix microseconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

Row = dict[str, Any]
Key = tuple[tuple[str, str], ...]
CLASSES = ("good", "bad", "unlabelled", "excluded")
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
    kind: str  # one of CLASSES
    row: Row


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
        events.append(Event(run["ended_us"], kind, run))
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
        events.append(Event(run["ended_us"], kind, run))
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


def stratum(event: Event, by: Sequence[str]) -> Key:
    return tuple((name, value(event.row, name) or "") for name in by)


def bucket(ended_us: int, length: int) -> int:
    """Start of the event's bucket, unix seconds; buckets of ``length`` seconds are counted from midnight UTC."""
    moment = datetime.fromtimestamp(ended_us // 1_000_000, UTC)
    midnight = moment.replace(hour=0, minute=0, second=0)
    since = int((moment - midnight).total_seconds())
    return int(midnight.timestamp()) + since // length * length


def per_bucket(events: list[Event], length: int) -> dict[int, dict[str, int]]:
    counts: dict[int, dict[str, int]] = {}
    for event in events:
        start = bucket(event.ended_us, length)
        counts.setdefault(start, dict.fromkeys(CLASSES, 0))[event.kind] += 1
    return counts


def in_window(events: list[Event], window: float, now: float, length: int) -> dict[str, int]:
    total = dict.fromkeys(CLASSES, 0)
    for start, counts in per_bucket(events, length).items():
        if now - window < start <= now:
            for kind in CLASSES:
                total[kind] += counts[kind]
    return total


# What follows from counts


def burn_rate(counts: dict[str, int], objective: Fraction) -> Fraction | None:
    labelled = counts["good"] + counts["bad"]
    if labelled == 0:
        return None
    return Fraction(counts["bad"], labelled) / (1 - objective)


def remaining(counts: dict[str, int], objective: Fraction) -> Fraction | None:
    labelled = counts["good"] + counts["bad"]
    if labelled == 0:
        return None
    allowed = (1 - objective) * labelled
    return (allowed - counts["bad"]) / allowed


def factor(share: Fraction, long_window: str, period: int, objective: Fraction) -> Fraction:
    nominal = share * period / WINDOWS[long_window]
    highest = Fraction(1, 2) / (1 - objective)
    if highest < 1:
        highest = Fraction(1)
    if nominal < Fraction(28, 30):
        nominal = Fraction(28, 30)
    return min(nominal, highest)


def burning_tiers(windows: dict[str, dict[str, int]], period: int, objective: Fraction) -> set[tuple[str, str]]:
    """Name and severity of the tiers that burn."""
    found = set()
    for name, severity, long_window, short_window, share in TIERS:
        long_burn = burn_rate(windows[long_window], objective)
        short_burn = burn_rate(windows[short_window], objective)
        limit = factor(share, long_window, period, objective)
        if long_burn is not None and short_burn is not None and long_burn > limit and short_burn > limit:
            found.add((name, severity))
    return found


def state(left: Fraction | None, burning: set[tuple[str, str]]) -> str:
    if left is None:
        return "no_data"
    if "page" in {severity for _, severity in burning}:
        return "burning_page"
    if left <= 0:
        return "exhausted"
    return "burning_ticket" if burning else "ok"
