"""Which spans of a trace are agent runs, and which run every other span belongs to.

Rules (docs/runs.md gives the reasons):

- A run is an ``invoke_agent`` span, except a nameless one with a named one below it, and one directly under another of
  the same name. A trace without any falls back to its topmost ``invoke_workflow``.
- A start event whose span has not come is a run too, under the same id, so a killed agent leaves a run.
- Everything belongs to the nearest run above it. Spans whose parent has not come belong to the run that was open when
  they began.
- Calls that nothing claims, once the trace is quiet, tell of one run of unknown outcome, if they look like a run's.

A span therefore belongs to at most one run, and a late root takes over the id that its children point to already.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from surefoot.instrumentation import semconv
from surefoot.processors.genai.trace import Event, Span, Trace
from surefoot.processors.genai.tree import climb


@dataclass(frozen=True, slots=True)
class Run:
    """A run before it is a row. Of ``span`` and ``start`` at most one is there; an unknown run has neither."""

    span_id: str
    span: Span | None
    start: Event | None
    parent: str | None  # span id of the run above
    members: tuple[Span, ...]  # its own spans in order of time, sub-runs' excepted


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of a trace by span id, and the run of each span that has one."""

    by_id: Mapping[str, Run]
    run_of: Mapping[str, str]  # span id -> span id of its run

    def sole(self) -> Run | None:
        """The only run that stands under no other, if there is exactly one."""
        top = [run for run in self.by_id.values() if run.parent is None]
        return top[0] if len(top) == 1 else None


def find_runs(trace: Trace) -> Runs:
    """All runs of the trace, in order of their start."""
    agents = agent_spans(trace.spans)
    starts = {event.span_id: event for event in trace.starts if event.span_id}
    heads = {*agents, *starts}
    if not heads:
        heads = _topmost_workflows(trace.spans)
    above = climb(trace.spans, heads)
    owner: dict[str, str] = {}
    orphans: defaultdict[str, list[Span]] = defaultdict(list)
    for span in trace.spans.values():
        end = above(span.span_id)
        if end in heads:
            owner[span.span_id] = end
        elif end is not None and end not in trace.spans:
            orphans[end].append(span)
    open_at = _Open(heads, trace.spans, starts)
    adopted = {missing: open_at.find(group[0].start_unix_nano) for missing, group in orphans.items()}
    unknown = _unknown_run(trace, {missing: group for missing, group in orphans.items() if adopted[missing] is None})
    for missing, group in orphans.items():
        run_id = adopted[missing] or unknown.get(missing)
        if run_id is not None:
            owner.update((span.span_id, run_id) for span in group)
    parents = {
        head: _parent(above(trace.spans[head].parent_span_id), heads, unknown, trace, open_at, head)
        for head in heads
        if head in trace.spans
    }
    parents |= {head: open_at.find(event.time_unix_nano, but=head, unfinished=True) for head, event in starts.items()}
    return _assemble(trace, starts, {**parents, **dict.fromkeys(unknown.values())}, owner)


def agent_spans(spans: Mapping[str, Span]) -> set[str]:
    """Ids of the ``invoke_agent`` spans that are runs."""
    candidates = {span.span_id: span for span in spans.values() if span.operation == semconv.INVOKE_AGENT}
    above = climb(spans, candidates)
    wrappers: set[str] = set()
    for span in candidates.values():
        if span.agent_name:
            here = above(span.parent_span_id)
            while here in candidates and here not in wrappers:
                wrappers.add(here)
                here = above(candidates[here].parent_span_id)
    return {
        span.span_id
        for span in candidates.values()
        if not (span.agent_name is None and span.span_id in wrappers) and not _repeats(span, candidates)
    }


def _repeats(span: Span, candidates: Mapping[str, Span]) -> bool:
    outer = candidates.get(span.parent_span_id or "")
    return outer is not None and span.agent_name is not None and outer.agent_name == span.agent_name


def _topmost_workflows(spans: Mapping[str, Span]) -> set[str]:
    workflows = {span.span_id for span in spans.values() if span.operation == semconv.INVOKE_WORKFLOW}
    above = climb(spans, workflows)
    return {span_id for span_id in workflows if above(spans[span_id].parent_span_id) not in workflows}


class _Open:
    """Which run was open at a moment."""

    def __init__(self, heads: Iterable[str], spans: Mapping[str, Span], starts: Mapping[str, Event]) -> None:
        self._times: list[tuple[int, int | None, str]] = []  # start, end (None: not finished), id; latest start first
        for head in heads:
            span = spans.get(head)
            self._times.append(
                (starts[head].time_unix_nano, None, head)
                if span is None
                else (span.start_unix_nano, span.end_unix_nano, head)
            )
        self._times.sort(key=lambda times: (times[0], times[2]), reverse=True)

    def find(self, moment: int, but: str | None = None, unfinished: bool = False) -> str | None:
        """The run that began last before ``moment`` (unix ns) and was open then; not ``but`` nor a later one."""
        for start, end, head in self._times:
            if but is not None and (start, head) >= (moment, but):
                continue
            if start <= moment and (end is None or (end >= moment and not unfinished)):
                return head
        return None


def _parent(
    end: str | None, heads: set[str], unknown: Mapping[str, str], trace: Trace, open_at: _Open, head: str
) -> str | None:
    """The run above a run whose climb ended at ``end``.

    A parent that never came may be a caller that reports elsewhere. So only a run that did not finish, and for that
    reason lost spans, takes in a run by time alone.
    """
    if end is None or end in heads:
        return end
    if end in trace.spans:
        return None
    return unknown.get(end) or open_at.find(trace.spans[head].start_unix_nano, but=head, unfinished=True)


def _unknown_run(trace: Trace, unclaimed: Mapping[str, list[Span]]) -> dict[str, str]:
    """Maps each missing parent whose children make up the unknown run to that run's id; empty without one.

    The run's id is the missing parent of the earliest of them, most often the agent span that was never exported.
    """
    if not trace.quiet or not any(_looks_like_a_run(group) for group in unclaimed.values()):
        return {}
    groups = [(missing, group) for missing, group in unclaimed.items() if any(_is_call(span) for span in group)]
    first = min(groups, key=lambda item: (item[1][0].start_unix_nano, item[0]))[0]
    return {missing: first for missing, _ in groups}


def _is_call(span: Span) -> bool:
    return span.operation in semconv.MODEL_OPERATIONS or span.operation == semconv.EXECUTE_TOOL


def _looks_like_a_run(group: list[Span]) -> bool:
    """A call that names its agent; or a model call and a tool call side by side. A lone model call needs no agent."""
    calls = [span for span in group if _is_call(span)]
    kinds = {span.operation == semconv.EXECUTE_TOOL for span in calls}
    return len(kinds) > 1 or any(span.agent_name for span in calls)


def _assemble(
    trace: Trace, starts: Mapping[str, Event], parents: Mapping[str, str | None], owner: Mapping[str, str]
) -> Runs:
    members: defaultdict[str, list[Span]] = defaultdict(list)
    for span in trace.spans.values():
        if span.span_id in owner and owner[span.span_id] != span.span_id:
            members[owner[span.span_id]].append(span)
    runs = [
        Run(run_id, trace.spans.get(run_id), starts.get(run_id), parent, tuple(members[run_id]))
        for run_id, parent in parents.items()
    ]
    runs.sort(key=lambda run: (started(run), run.span_id))
    return Runs({run.span_id: run for run in runs}, owner)


def started(run: Run) -> int:
    """Unix nanoseconds of the run's start; of an unknown run, of its first known span."""
    if run.span is not None:
        return run.span.start_unix_nano
    if run.start is not None:
        return run.start.time_unix_nano
    return run.members[0].start_unix_nano
