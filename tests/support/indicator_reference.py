"""What class each event has, computed slowly and obviously from docs/indicators.md.

Plain loops over plain rows. It imports nothing of Surefoot, so that an error there is not repeated here. Times are unix
microseconds; a row holds only the columns that it has a value for.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Event:
    event_id: str
    ended_us: int
    kind: str  # its class: good, bad, unlabelled, excluded
    fast: str  # its class in the fast view
    labelled_us: int | None = None
    imported: bool = False
    weight: float = 1.0


@dataclass(frozen=True)
class Tables:
    runs: list[Row]
    tool_calls: list[Row]
    verdicts: list[Row]


NOT_JUDGED = ("cancelled", "deferred", "refused")


def availability(tables: Tables) -> list[Event]:
    kinds = {"ok": "good", "error": "bad", "abandoned": "bad", **dict.fromkeys(NOT_JUDGED, "excluded")}
    return [at_once(run, kinds.get(run.get("outcome") or "unknown", "unlabelled")) for run in user_facing(tables)]


def latency(tables: Tables, threshold_ns: int) -> list[Event]:
    events = []
    for run in user_facing(tables):
        duration = run.get("duration_ns")
        if run.get("outcome") != "ok":
            kind = "excluded"
        elif duration is None or duration < 0:
            kind = "unlabelled"
        else:
            kind = "good" if duration <= threshold_ns else "bad"
        events.append(at_once(run, kind))
    return events


def cost(tables: Tables, dollars: float) -> list[Event]:
    events = []
    for run in user_facing(tables):
        family = [run, *descendants(tables, run, 3)]
        known = [member["cost_usd"] for member in family if member.get("cost_usd") is not None]
        used = ("model_calls", "input_tokens", "output_tokens")
        unpriced = [
            member
            for member in family
            if member.get("cost_usd") is None and any((member.get(name) or 0) > 0 for name in used)
        ]
        if sum(known) > dollars:
            kind = "bad"
        elif run.get("outcome") == "abandoned" or unpriced or not known:
            kind = "unlabelled"
        else:
            kind = "good"
        events.append(at_once(run, kind))
    return events


def descendants(tables: Tables, run: Row, depth: int) -> list[Row]:
    if depth == 0:
        return []
    found = []
    for child in tables.runs:
        if child.get("parent_run_id") == run["run_id"]:
            found += [child, *descendants(tables, child, depth - 1)]
    return found


def tool_success(tables: Tables) -> list[Event]:
    kinds = {"ok": "good", "error": "bad", "retry": "excluded", **dict.fromkeys(NOT_JUDGED, "excluded")}
    return [
        Event(f"{call['trace_id']}-{call['span_id']}", call["ended_us"], kind, kind, weight=weight(call))
        for call in tables.tool_calls
        if call.get("ended_us") is not None
        for kind in [kinds.get(call.get("outcome") or "unknown", "unlabelled")]
    ]


def autonomous_coverage(tables: Tables) -> list[Event]:
    events = []
    for run in user_facing(tables):
        outcome, mode = run.get("outcome"), run.get("mode")
        if outcome == "cancelled":
            kind = "excluded"
        elif outcome in ("error", "abandoned") or intervened(tables, run):
            kind = "bad"
        else:
            kind = "good" if outcome == "ok" and mode == "autonomous" else "unlabelled"
        events.append(at_once(run, kind))
    return events


def intervened(tables: Tables, run: Row) -> bool:
    calls = [call for call in tables.tool_calls if call.get("run_id") == run["run_id"]]
    stopped = any(call.get("outcome") in ("deferred", "refused") for call in calls)
    return run.get("mode") not in (None, "autonomous") or run.get("outcome") in ("deferred", "refused") or stopped


def acceptable_outcome(tables: Tables) -> list[Event]:
    return [judged(tables, run, NOT_JUDGED) for run in user_facing(tables)]


def recovery(tables: Tables) -> list[Event]:
    failed = [
        run for run in user_facing(tables) if (run.get("tool_errors") or 0) > 0 or (run.get("tool_retries") or 0) > 0
    ]
    return [judged(tables, run, NOT_JUDGED) for run in failed]


def intervention_success(tables: Tables) -> list[Event]:
    return [judged(tables, run, ("cancelled",)) for run in user_facing(tables) if intervened(tables, run)]


def policy_compliance(tables: Tables) -> list[Event]:
    events = []
    for run in user_facing(tables):
        by_rule = defaultdict(list)
        for verdict in verdicts_on(tables, run, "process"):
            by_rule[verdict.get("name")].append(verdict)
        results = [best["verdict"] for said in by_rule.values() if (best := effective(tables, said)) is not None]
        kind = "bad" if "fail" in results else "good" if "pass" in results else "unlabelled"
        labelled, imported = first_label(tables, run, "process")
        fast = "bad" if kind == "bad" else "good"
        events.append(Event(run["run_id"], run["ended_us"], kind, fast, labelled, imported, weight(run)))
    return events


def strict_repeat(tables: Tables) -> list[Event]:
    events = []
    for group in complete_groups(tables):
        results = [result(tables, run) for run in group.runs]
        void = "void" in results
        if "fail" in results:
            kind = "bad"
        elif void:
            kind = "excluded"
        else:
            kind = "good" if set(results) == {"pass"} else "unlabelled"
        fast = "bad" if {"fail", "failing"} & set(results) else "excluded" if void else "good"
        times = group.label_times(tables, "fail" if kind == "bad" else "pass")
        told = {"bad": min(times, default=None), "good": max(times, default=None)}.get(kind)
        events.append(group.event(tables, kind, fast, told))
    return events


def consistent_wrong(tables: Tables) -> list[Event]:
    events = []
    for group in complete_groups(tables):
        results = [result(tables, run) for run in group.runs]
        if group.k < 2:
            kind = fast = "excluded"
        elif "pass" in results:
            kind = fast = "good"
        elif "void" in results:
            kind = fast = "excluded"
        else:
            kind = "bad" if set(results) == {"fail"} else "unlabelled"
            fast = "bad" if set(results) <= {"fail", "failing"} else "good"
        told = None
        if "pass" in results:
            told = min(group.label_times(tables, "pass"), default=None)
        elif set(results) == {"fail"}:
            told = max(group.label_times(tables, "fail"), default=None)
        events.append(group.event(tables, kind, fast, told))
    return events


# What they share


def user_facing(tables: Tables) -> list[Row]:
    return [
        run
        for run in tables.runs
        if run.get("parent_run_id") is None and run.get("outcome") != "running" and run.get("ended_us") is not None
    ]


def weight(row: Row) -> float:
    """A weight that is no number above 0, or beyond a million, is 1."""
    said = row.get("sample_weight")
    return float(said) if said is not None and 0 < said <= 1_000_000 else 1.0


def at_once(run: Row, kind: str) -> Event:
    return Event(run["run_id"], run["ended_us"], kind, kind, weight=weight(run))


def verdicts_on(tables: Tables, run: Row, kind: str) -> list[Row]:
    return [row for row in tables.verdicts if row.get("run_id") == run["run_id"] and row["kind"] == kind]


def effective(tables: Tables, said: list[Row]) -> Row | None:
    """The one that counts: not superseded, final, human, executable, model, newest, greater id."""
    replaced = {verdict.get("supersedes") for verdict in tables.verdicts}
    standing = [verdict for verdict in said if verdict["verdict_id"] not in replaced]
    kinds = ["model", "executable", "human"]
    order = lambda verdict: (  # noqa: E731 - a key, read beside its use
        verdict.get("finality") == "final",
        kinds.index(verdict["grader_kind"]) if verdict.get("grader_kind") in kinds else -1,
        verdict.get("occurred_us") if verdict.get("occurred_us") is not None else -1,
        verdict["verdict_id"],
    )
    return max(standing, key=order, default=None)


def first_label(tables: Tables, run: Row, kind: str) -> tuple[int | None, bool]:
    """When the first pass or fail was received, and whether it or the run came by an import."""
    told = [row for row in verdicts_on(tables, run, kind) if row["verdict"] in ("pass", "fail")]
    first = min((row["received_us"] for row in told), default=None)
    by_import = any(is_import(row) for row in told if row["received_us"] == first)
    return first, is_import(run) or by_import


def is_import(row: Row) -> bool:
    return (row.get("source") or "").startswith("import:")


def judged(tables: Tables, run: Row, excluded: tuple[str, ...]) -> Event:
    best = effective(tables, verdicts_on(tables, run, "outcome"))
    said = None if best is None else best["verdict"]
    broken = run.get("outcome") in ("error", "abandoned")
    if run.get("outcome") in excluded:
        kind = fast = "excluded"
    elif said == "pass":
        kind = fast = "good"
    elif said == "fail":
        kind = fast = "bad"
    else:
        kind = "bad" if said is None and broken else "unlabelled"
        fast = "bad" if broken else "good"
    labelled, imported = first_label(tables, run, "outcome")
    return Event(run["run_id"], run["ended_us"], kind, fast, labelled, imported, weight(run))


def result(tables: Tables, run: Row) -> str:
    """Of one run of a group."""
    best = effective(tables, verdicts_on(tables, run, "outcome"))
    if run.get("outcome") in NOT_JUDGED:
        return "void"
    if best is not None and best["verdict"] in ("pass", "fail"):
        return str(best["verdict"])
    if run.get("outcome") in ("error", "abandoned"):
        return "fail" if best is None else "failing"
    return "missing"


@dataclass(frozen=True)
class Group:
    name: str
    k: int
    runs: list[Row]

    def label_times(self, tables: Tables, wanted: str) -> list[int]:
        runs = [run for run in self.runs if result(tables, run) == wanted]
        return [time for run in runs if (time := first_label(tables, run, "outcome")[0]) is not None]

    def event(self, tables: Tables, kind: str, fast: str, told: int | None) -> Event:
        last = max(self.runs, key=lambda run: (run["ended_us"], run["run_id"]))
        imported = any(first_label(tables, run, "outcome")[1] for run in self.runs)
        return Event(self.name, last["ended_us"], kind, fast, told, imported, weight(last))


def complete_groups(tables: Tables) -> list[Group]:
    members = defaultdict(list)
    for run in tables.runs:
        if run.get("parent_run_id") is None and run.get("run_group") is not None:
            key = tuple(run.get(name) or "" for name in ("service_name", "run_group", "task_id", "variant"))
            members[key].append(run)
    groups = []
    for key, runs in members.items():
        numbers = [run.get("repetition") for run in runs]
        told = sorted({number for number in numbers if number is not None})
        ended = all(run.get("ended_us") is not None and run.get("outcome") != "running" for run in runs)
        whole = None not in numbers and told[0] in (0, 1) and told == list(range(told[0], told[-1] + 1))
        if ended and (not told or whole):
            *first, variant = key
            escaped = [part.replace("%", "%25").replace("/", "%2F") for part in first]
            groups.append(Group("/".join([*escaped, variant]), len(told) or len(runs), runs))
    return groups
