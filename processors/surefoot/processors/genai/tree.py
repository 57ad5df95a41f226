"""Who stands above a span, answered for all spans of a trace in linear time.

Parents may be missing (not exported yet, or never). They never form a circle: :func:`without_circles` sees to that when
a trace is put together, so nothing else has to think of it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from surefoot.processors.genai.trace import Span


def climb(spans: Mapping[str, Span], stops: Container[str]) -> Callable[[str | None], str | None]:
    """A function from a span id to the first of ``stops`` at or above it.

    Where there is none it gives the id that the climb ends at: a root, or a parent that is not among ``spans``. None
    stays None.
    """
    known: dict[str, str] = {}

    def above(span_id: str | None) -> str | None:
        if span_id is None:
            return None
        path: list[str] = []
        here = span_id
        while here not in known:
            path.append(here)
            span = spans.get(here)
            if here in stops or span is None or span.parent_span_id is None:
                known[here] = here
                break
            here = span.parent_span_id
        end = known[here]
        for passed in path:
            known[passed] = end
        return end

    return above


def without_circles(spans: dict[str, Span]) -> dict[str, Span]:
    """The spans; of those that are each other's ancestors (a broken exporter), the earliest becomes a root."""
    clear: set[str] = set()
    cut: dict[str, Span] = {}
    for span_id, span in spans.items():
        parent = span.parent_span_id
        if parent is None or parent in clear or parent not in spans:  # nearly always: parents begin first
            clear.add(span_id)
            continue
        path: dict[str, None] = {}
        here: str | None = span_id
        while here is not None and here not in clear and here in spans and here not in path:
            path[here] = None
            here = spans[here].parent_span_id
        if here in path:
            order = list(path)
            circle = [spans[member] for member in order[order.index(here) :]]
            first = min(circle, key=lambda span: (span.start_unix_nano, span.span_id))
            cut[first.span_id] = first._replace(parent_span_id=None)
        clear.update(path)
    return {**spans, **cut} if cut else spans
