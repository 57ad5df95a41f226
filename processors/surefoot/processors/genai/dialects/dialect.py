"""What a dialect is made of: data, and at most a few functions that read one value.

Contract: a dialect never sees a row. It names where a column's value may stand, best first; the engine
(:mod:`surefoot.processors.genai.columns`) asks each reading function once per distinct value, so a dialect costs what
its distinct values cost, not what its spans cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

# What a reading function answers where the source says that there is none: no later source is asked.
NOTHING: Final = ""

# Words of the column ``operation`` beside those of the conventions.
CHAIN: Final = "chain"  # a step of a program; the topmost one may stand for a run where nothing better does
HANDOFF: Final = "handoff"  # one agent passes the conversation to another: no run, no tool call
EVALUATE: Final = "evaluate"
GUARDRAIL: Final = "guardrail"

Read = Callable[[str], str | None]
Where = tuple[str | None, str]  # a key, or None for the span's name, and the value there


@dataclass(frozen=True, slots=True)
class Source:
    """A place where a column's value may stand.

    ``key`` is an attribute's name, None the span's own name. ``read`` turns its text into the column's (None: this
    source does not say, ask the next; NOTHING: there is none). ``on`` limits it to spans of these operations, ``where``
    to spans that have this value elsewhere, ``named`` to spans whose own name is what it reads here.
    """

    key: str | None
    read: Read | None = None
    on: frozenset[str] | None = None
    where: Where | None = None
    named: Read | None = None


def attribute(key: str, read: Read | None = None, on: str | None = None, where: Where | None = None) -> Source:
    """An attribute's value; ``on`` is one operation."""
    return Source(key, read, None if on is None else frozenset({on}), where)


def span_name(read: Read | None = None, on: str | None = None, where: Where | None = None) -> Source:
    """The span's name, for instrumentations that say it nowhere else."""
    return Source(None, read or str, None if on is None else frozenset({on}), where)


Columns = Mapping[str, tuple[str | Source, ...]]


@dataclass(frozen=True, slots=True)
class Dialect:
    """One way of writing GenAI spans.

    ``scopes``, ``markers`` and ``span_names`` recognise a span, in this order: a scope name, an attribute key, or a
    span name that is one of these or starts with one that ends in ``.``. ``shared_scopes`` are scopes that a dialect
    further up uses too: there its markers are asked first. ``columns`` maps a column of the spans table to the places
    that may hold it, best first; a text stands for the attribute of that name; ``operation`` is one of them.
    ``contents`` are keys, or shell patterns of keys, that hold messages, arguments or results: they go to the contents
    table only. A key with a dot in it is so on every span, since instrumentations write on each other's; a bare word
    only on this dialect's own.
    ``input_excludes_cache``: its input tokens do not count what was read from or written to a cache, as the
    conventions' do.
    """

    name: str
    scopes: frozenset[str] = frozenset()
    shared_scopes: frozenset[str] = frozenset()
    markers: frozenset[str] = frozenset()
    span_names: frozenset[str] = frozenset()
    columns: Columns = field(default_factory=dict)
    contents: frozenset[str] = frozenset()
    input_excludes_cache: bool = False

    def has_scope(self, scope: str) -> bool:
        """Whether spans of this instrumentation scope are this dialect."""
        return _listed(scope, self.scopes) or _listed(scope, self.shared_scopes)

    def has_marker(self, key: str) -> bool:
        """Whether an attribute of this name marks a span as this dialect."""
        return _listed(key, self.markers)

    def has_span_name(self, name: str) -> bool:
        """Whether a span of this name is this dialect."""
        return _listed(name, self.span_names)


def _listed(name: str, wanted: frozenset[str]) -> bool:
    return name in wanted or any(name.startswith(item) for item in wanted if item.endswith("."))
