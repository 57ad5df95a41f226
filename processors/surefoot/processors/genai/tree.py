"""Who stands above a span, answered for all spans of a trace in linear time.

Parents may be missing (not exported yet, or never) and may form a circle (a broken exporter); both are answers here.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

from surefoot.processors.genai.trace import Span


def climb(spans: Mapping[str, Span], stops: Container[str]) -> Callable[[str | None], str | None]:
    """A function from a span id to the first of ``stops`` at or above it.

    Where there is none it gives the id that the climb ends at: a root, a parent that is not among ``spans``, or a span
    of a circle. None stays None.
    """
    known: dict[str, str] = {}

    def above(span_id: str | None) -> str | None:
        if span_id is None:
            return None
        path: list[str] = []
        here = span_id
        while here not in known:
            path.append(here)
            known[here] = here  # ends a circle
            span = spans.get(here)
            if here in stops or span is None or span.parent_span_id is None:
                break
            here = span.parent_span_id
        end = known[here]
        for passed in path:
            known[passed] = end
        return end

    return above
