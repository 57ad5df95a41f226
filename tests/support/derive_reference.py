"""Derivation by its written rules (docs/runs.md), one trace and one span at a time, in plain Python.

Slow on purpose and without a line of the product's: the product derives thousands of traces by array operations, and
both must say the same. Takes rows of ``spans`` and ``logs`` as dicts (times as datetimes, maps as lists of pairs) and
gives rows of ``runs``, ``tool_calls`` and ``model_calls`` without cost. Verdicts are not part of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any

Row = dict[str, Any]
Tables = dict[str, list[Row]]

MODELS = {"chat", "generate_content", "text_completion"}
INHERITED = (
    *("agent_version", "conversation_id", "task_class", "task_id", "consequence_class", "intent_id", "run_group"),
    *("repetition", "variant", "boundary_id", "mode", "sample_weight"),
)
TOLD = {
    "agent_version": "gen_ai.agent.version",
    "conversation_id": "gen_ai.conversation.id",
    **{name: f"surefoot.{name.replace('_', '.')}" for name in INHERITED if name.startswith(("task", "cons", "intent"))},
    "run_group": "surefoot.run_group",
    "repetition": "surefoot.repetition",
    "variant": "surefoot.variant",
    "boundary_id": "surefoot.boundary.id",
    "mode": "surefoot.mode",
    "sample_weight": "surefoot.sample_weight",
}
TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
ANSWER = ("response_id", "provider_name", "request_model", "response_model")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def derive(rows: Iterable[Row], now: float, settle: float) -> Tables:
    """All traces of the rows; ``now`` in unix seconds."""
    tables: Tables = {"runs": [], "tool_calls": [], "model_calls": []}
    for trace in traces(rows, now, settle).values():
        for table, found in trace.tables().items():
            tables[table] += found
    return tables


def traces(rows: Iterable[Row], now: float, settle: float) -> dict[str, Trace]:
    """The traces of the rows by id."""
    by_trace: dict[str, list[Row]] = {}
    for row in rows:
        if row["trace_id"]:
            by_trace.setdefault(row["trace_id"], []).append(row)
    return {trace_id: Trace(trace_id, by_trace[trace_id], now, settle) for trace_id in sorted(by_trace)}


def micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def attributes(row: Row) -> dict[str, str]:
    return dict(row["attributes"] or ())


class Trace:
    """One trace. ``runs`` maps the id of each run to that of the run above it, ``owner`` a span's id to its run's."""

    def __init__(self, trace_id: str, rows: list[Row], now: float, settle: float) -> None:
        self.id, self.settle = trace_id, settle
        self.spans: dict[str, Row] = {}
        self.starts: dict[str, Row] = {}
        sign = arrival = 0
        self.latest = 0
        logs = [row for row in rows if "parent_span_id" not in row]
        for row in sorted((row for row in rows if "parent_span_id" in row), key=self._order):
            known = self.spans.get(row["span_id"])
            if known is None or self._version(row) > self._version(known):
                self.spans[row["span_id"]] = dict(row)
        for row in sorted(logs, key=lambda log: (log["time_unix_nano"], log["received_at"])):
            if row["event_name"] == "gen_ai.evaluation.result":
                arrival = max(arrival, micros(row["received_at"]))
                continue
            sign, self.latest = max(sign, micros(row["received_at"])), max(self.latest, row["time_unix_nano"])
            if row["event_name"] == "surefoot.run.started" and row["span_id"] and row["span_id"] not in self.spans:
                self.starts.setdefault(row["span_id"], row)
        for span in self.spans.values():
            sign = max(sign, micros(span["received_at"]))
            self.latest = max(self.latest, span["start_unix_nano"], span["end_unix_nano"])
        self.arrival = max(sign, arrival)
        limit = round(now * 1e6) - round(settle * 1e6)
        self.quiet, self.settled = sign <= limit, self.arrival <= limit
        self.ordered = sorted(self.spans.values(), key=self._order)
        self._break_circles()
        self._contain()
        self._find_runs()

    @staticmethod
    def _order(span: Row) -> tuple[int, str]:
        return span["start_unix_nano"], span["span_id"]

    @staticmethod
    def _version(span: Row) -> tuple[int, datetime]:
        return span["end_unix_nano"], span["received_at"]

    def _break_circles(self) -> None:
        for span in self.ordered:
            path: list[str] = []
            here = span["span_id"]
            while here in self.spans and here not in path:
                path.append(here)
                here = self.spans[here]["parent_span_id"]
            if here in path:
                circle = [self.spans[member] for member in path[path.index(here) :]]
                min(circle, key=self._order)["parent_span_id"] = None

    def _contain(self) -> None:
        """Without one link in the trace, the innermost agent or workflow that was open all the time is the parent."""
        holders = [span for span in self.ordered if span["operation"] in ("invoke_agent", "invoke_workflow")]
        if len(self.spans) < 2 or any(span["parent_span_id"] is not None for span in self.ordered):
            return

        def rank(span: Row) -> tuple[int, int, str]:
            return span["start_unix_nano"], -span["end_unix_nano"], span["span_id"]

        for span in self.ordered:
            around = [
                holder
                for holder in holders
                if rank(holder) < rank(span) and holder["end_unix_nano"] >= span["end_unix_nano"]
            ]
            if around:
                span["parent_span_id"] = max(around, key=rank)["span_id"]

    def ancestors(self, span_id: str) -> list[str]:
        """Ids above a span, nearest first, the last of which may be missing."""
        found: list[str] = []
        here = self.spans[span_id]["parent_span_id"] if span_id in self.spans else None
        while here is not None:
            found.append(here)
            here = self.spans[here]["parent_span_id"] if here in self.spans else None
        return found

    def above(self, span_id: str, stop: Callable[[str], bool]) -> str | None:
        return next((other for other in self.ancestors(span_id) if stop(other)), None)

    # Runs

    def _find_runs(self) -> None:
        heads = set(self._agents()) | set(self.starts)
        heads = heads or self._topmost("invoke_workflow") or {h for h in self._topmost("chain") if self._is_root(h)}
        begins = {head: (self.begin(head), head) for head in heads}
        self.owner: dict[str, str] = {}
        orphans: dict[str, list[Row]] = {}
        for span in self.ordered:
            line = [span["span_id"], *self.ancestors(span["span_id"])]
            head = next((member for member in line if member in heads), None)
            if head is not None:
                self.owner[span["span_id"]] = head
            elif line[-1] not in self.spans:
                orphans.setdefault(line[-1], []).append(span)
        unclaimed = {}
        for missing, group in orphans.items():
            moment = min(span["start_unix_nano"] for span in group)
            open_then = [head for head in heads if begins[head][0] <= moment and self.end(head) >= moment]
            if open_then:
                self._claim(group, max(open_then, key=begins.__getitem__))
            else:
                unclaimed[missing] = group
        unknown = self._unknown(unclaimed)
        self.runs: dict[str, str | None] = {head: self._parent(head, begins, unknown) for head in heads}
        self.runs |= dict.fromkeys(unknown.values())
        self.members = {
            run: [s for s in self.ordered if self.owner.get(s["span_id"]) == run and s["span_id"] != run]
            for run in self.runs
        }

    def _claim(self, group: list[Row], run: str) -> None:
        self.owner.update((span["span_id"], run) for span in group)

    def begin(self, head: str) -> int:
        return int(self.spans[head]["start_unix_nano"] if head in self.spans else self.starts[head]["time_unix_nano"])

    def end(self, head: str) -> float:
        return self.spans[head]["end_unix_nano"] if head in self.spans else float("inf")

    def _is_root(self, span_id: str) -> bool:
        return self.spans[span_id]["parent_span_id"] is None

    def _agents(self) -> list[str]:
        agents = {s["span_id"]: s["agent_name"] or None for s in self.ordered if s["operation"] == "invoke_agent"}
        agents = {s: name for s, name in agents.items() if "gen_ai.agent.source" not in attributes(self.spans[s])}
        found = []
        for span_id, name in agents.items():
            if name is None:
                wraps = any(agents[other] and span_id in self.ancestors(other) for other in agents)
                nearest = self.above(
                    span_id, lambda other: bool(agents.get(other)) or self._operation(other) == "execute_tool"
                )
                drop = wraps or nearest in agents
            else:
                drop = agents.get(self.spans[span_id]["parent_span_id"]) == name
            if not drop:
                found.append(span_id)
        return found

    def _operation(self, span_id: str) -> str | None:
        return self.spans[span_id]["operation"] if span_id in self.spans else None

    def _topmost(self, operation: str) -> set[str]:
        found = {span["span_id"] for span in self.ordered if span["operation"] == operation}
        return {span_id for span_id in found if not found & set(self.ancestors(span_id))}

    def _unknown(self, unclaimed: dict[str, list[Row]]) -> dict[str, str]:
        if not self.quiet:
            return {}
        calls = {m: [s for s in g if s["operation"] in MODELS | {"execute_tool"}] for m, g in unclaimed.items()}

        def like_a_run(group: list[Row]) -> bool:
            kinds = {span["operation"] == "execute_tool" for span in group}
            return len(kinds) == 2 or any(span["agent_name"] for span in group)

        if not any(like_a_run(group) for group in calls.values()):
            return {}
        of_run = [missing for missing, group in calls.items() if group]
        first = min(of_run, key=lambda missing: (unclaimed[missing][0]["start_unix_nano"], missing))
        for missing in of_run:
            self._claim(unclaimed[missing], first)
        return dict.fromkeys(of_run, first)

    def _parent(self, head: str, begins: dict[str, tuple[int, str]], unknown: dict[str, str]) -> str | None:
        line = self.ancestors(head)
        over = next((other for other in line if other in begins), None)
        if over is not None:
            return over
        if head in self.spans and (not line or line[-1] in self.spans):
            return None
        if line and line[-1] in unknown:
            return unknown[line[-1]]
        unfinished = [other for other in self.starts if begins[other] < begins[head]]
        return max(unfinished, key=begins.__getitem__, default=None)

    # Calls

    def tools(self) -> list[Row]:
        def counts(span: Row) -> bool:
            name = span["tool_name"]
            outer = self.above(
                span["span_id"], lambda other: other in self.runs or self._operation(other) == "execute_tool"
            )
            if (
                outer is not None
                and self._operation(outer) == "execute_tool"
                and self.spans[outer]["tool_name"] == name
            ):
                return False
            return name not in ("(merged tools)", "final_answer") and not self._handoff(name)

        return [span for span in self.ordered if span["operation"] == "execute_tool" and counts(span)]

    def _handoff(self, name: str | None) -> bool:
        if name is None:
            return False
        agents = {plain(span["agent_name"]) for span in self.ordered if span["agent_name"]}
        target = plain(name.removeprefix("transfer_to_")) if name.startswith("transfer_to_") else None
        return name.startswith("handoff to ") or target == "agent" or target in agents

    def models(self) -> list[Row]:
        inside = set()
        for span in self.ordered:
            if span["operation"] in MODELS:
                inside.add(
                    self.above(span["span_id"], lambda other: other in self.runs or self._operation(other) in MODELS)
                )
        return [span for span in self.ordered if span["operation"] in MODELS and span["span_id"] not in inside]

    def used(self, kind: str) -> dict[str, int | None]:
        found: dict[str, int | None] = {}
        for run in self.runs:
            told = [s[kind] for s in self.models() if self.owner.get(s["span_id"]) == run and s[kind] is not None]
            found[run] = sum(told) if told else None

        def resolve(run: str) -> int:
            """Fill in the aggregate where nothing else tells; gives the tokens with those of sub-runs."""
            below = sum(resolve(other) for other, parent in self.runs.items() if parent == run)
            aggregate = self.spans[run][kind] if run in self.spans else None
            if found[run] is None and aggregate is not None:
                found[run] = aggregate - below if aggregate >= below else aggregate
            return below + (found[run] or 0)

        for run, parent in self.runs.items():
            if parent is None:
                resolve(run)
        return found

    # Rows

    def tables(self) -> Tables:
        tools, models = self.tools(), self.models()
        used = {kind: self.used(kind) for kind in TOKENS}
        ended = {span["span_id"]: ending(span, tool=True) for span in tools}
        runs = {}
        for run in self.runs:
            own = [ended[span["span_id"]][0] for span in tools if self.owner.get(span["span_id"]) == run]
            row = self._run_row(run)
            row |= {
                "tool_calls": len(own),
                "tool_errors": own.count("error"),
                "tool_retries": own.count("retry"),
                "model_calls": sum(self.owner.get(span["span_id"]) == run for span in models),
                "recovered": row["outcome"] == "ok" and ("error" in own or "retry" in own),
                **{kind: used[kind][run] for kind in TOKENS},
            }
            runs[run] = row
        tool_rows = []
        for span in tools:
            told, of_run = attributes(span), runs.get(self.owner.get(span["span_id"], ""))
            strata = prefixed(told, "surefoot.stratum.")
            tool_rows.append(
                self._call_row(span, of_run, ended[span["span_id"]])
                | {name: span[name] if span[name] is not None else of_run and of_run[name] for name in INHERITED[2:5:2]}
                | {"tool_name": span["tool_name"], "tool_call_id": span["tool_call_id"]}
                | {"effect": span["tool_effect"] or "unknown", "dependency": span["tool_dependency"]}
                | {"strata": {**(of_run["strata"] if of_run else {}), **strata}}
            )
        model_rows = [
            self._call_row(span, runs.get(self.owner.get(span["span_id"], "")), ending(span))
            | {name: span[name] for name in (*ANSWER, *TOKENS)}
            | {"possible_duplicate": span["input_tokens"] is not None and is_instant(span)}
            for span in models
        ]
        return {"runs": list(runs.values()), "tool_calls": tool_rows, "model_calls": model_rows}

    def _run_row(self, run: str) -> Row:
        span, start, members = self.spans.get(run), self.starts.get(run), self.members[run]
        told = attributes(start) if start else {}
        first = members[0] if members else {}
        named: Row = next((member for member in members if member["agent_name"]), {})
        outcome, error = ending(span) if span else ("unknown", None)
        begin, end = min([self.begin(run)] if span or start else [s["start_unix_nano"] for s in members]), None
        if span:
            end = span["end_unix_nano"]
            name = span["agent_name"] or span["workflow_name"]
        else:
            name = told.get("gen_ai.agent.name") or named.get("agent_name")
            if start:
                outcome = "abandoned" if self.quiet else "running"
                end = self.latest + int(self.settle * 1e9) if self.quiet else None
            else:
                end = max(member["end_unix_nano"] for member in members)
        row = times(begin, end) | {
            "run_id": f"{self.id}-{run}",
            "parent_run_id": self.runs[run] and f"{self.id}-{self.runs[run]}",
            "trace_id": self.id,
            "span_id": run,
            **{name: (span or start or first).get(name) for name in ("service_name", "environment", "source")},
            "dialect": (span or first).get("dialect"),
            "agent_name": name,
            "outcome": outcome,
            "error_type": error,
            "confidence": span["confidence"] if span else None,
            "settled": self.settled,
            "received_at": EPOCH + timedelta(microseconds=self.arrival),
            "started_unix_nano": begin,
            "ended_unix_nano": end,
        }
        for name in INHERITED:
            layers = [span[name]] if span else [read(told.get(TOLD[name]), name)]
            row[name] = next((value for value in (*layers, *(m[name] for m in members)) if value is not None), None)
        own = attributes(span) if span else told
        for name, prefix in (("versions", "surefoot.versions."), ("strata", "surefoot.stratum.")):
            row[name] = {}
            for member in reversed(members):
                row[name] |= prefixed(attributes(member), prefix)
            row[name] |= prefixed(own, prefix)
        if row["mode"] == "refuse" and row["outcome"] in ("ok", "error"):
            row["outcome"] = "refused"
        return row

    def _call_row(self, span: Row, run: Row | None, ended: tuple[str, str | None]) -> Row:
        return times(span["start_unix_nano"], span["end_unix_nano"]) | {
            "run_id": run and run["run_id"],
            "trace_id": self.id,
            "span_id": span["span_id"],
            "agent_name": span["agent_name"] or (run and run["agent_name"]),
            "settled": self.settled,
            "outcome": ended[0],
            "error_type": ended[1],
            **{name: span[name] for name in ("service_name", "environment", "sample_weight", "received_at", "source")},
        }


def is_instant(span: Row) -> bool:
    return bool(span["start_unix_nano"] == span["end_unix_nano"])


def times(begin: int, end: int | None) -> Row:
    def moment(nanos: int) -> datetime:
        return EPOCH + timedelta(microseconds=nanos // 1000)

    return {
        "started_at": moment(begin),
        "ended_at": None if end is None else moment(end),
        "duration_ns": None if end is None else end - begin,
        "date": date(1970, 1, 1) + timedelta(days=(begin if end is None else end) // 86_400_000_000_000),
    }


def read(text: str | None, name: str) -> Any:
    kinds: dict[str, Callable[[str], Any]] = {"repetition": int, "sample_weight": float}
    try:
        return kinds.get(name, str)(text) if text else None
    except ValueError:
        return None


def prefixed(told: dict[str, str], prefix: str) -> dict[str, str]:
    return {key.removeprefix(prefix): value for key, value in told.items() if key.startswith(prefix)}


def plain(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())


def ending(span: Row, tool: bool = False) -> tuple[str, str | None]:
    """Outcome and error of a span."""
    told = attributes(span)
    stopped = told.get("surefoot.cancelled", "").lower() == "true" or "strands.cancellation.type" in told
    if span["status"] != "error" and span["error_type"] is None and not stopped:
        return "ok", None
    raised = [dict(event["attributes"]) for event in span["events"] or () if event["name"] == "exception"]
    kinds = [event["exception.type"] for event in raised if "exception.type" in event]
    message = span["status_message"] or ""
    name = "_OTHER"
    for candidate in (span["error_type"], kinds[-1] if kinds else None):
        if candidate and candidate != "_OTHER" and re.fullmatch(r"[\w.\-]{1,200}", candidate):
            name = candidate.rstrip(".").split(".")[-1] or candidate
            break
    else:
        prefix = re.match(r"((?:\w+\.)*[A-Z]\w*):(?:\s|$)", message)
        name = prefix[1].split(".")[-1] if prefix else name
    if stopped or name in ("CancelledError", "GeneratorExit", "KeyboardInterrupt") or message == "abandoned stream":
        return "cancelled", name
    if name in ("CallDeferred", "ApprovalRequired"):
        return "deferred", name
    if "GuardrailTripwireTriggered" in name or name == "ToolDenied":
        return "refused", name
    retried = tool and ("pydantic_ai.tool.retry.cause" in told or name == "ToolRetryError")
    return ("retry" if retried else "error"), name
