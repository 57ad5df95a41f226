"""What a dialect is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Dialect:
    """One way of writing GenAI spans.

    ``scopes`` and ``markers`` recognise a span: a scope name, or an attribute key, that is one of these or starts with
    one that ends in ``.``. ``columns`` maps a column of the spans table to the attribute keys that may hold it, best
    first. ``operations`` maps this dialect's operation names to canonical ones (None: no GenAI operation).
    ``contents`` are keys, or shell patterns of keys, that hold messages, arguments or results beside those of the
    conventions: they go to the contents table only.
    """

    name: str
    scopes: frozenset[str] = frozenset()
    markers: frozenset[str] = frozenset()
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    operations: Mapping[str, str | None] = field(default_factory=dict)
    contents: frozenset[str] = frozenset()

    def has_scope(self, scope: str) -> bool:
        """Whether spans of this instrumentation scope are this dialect."""
        return _listed(scope, self.scopes)

    def has_marker(self, key: str) -> bool:
        """Whether an attribute of this name marks a span as this dialect."""
        return _listed(key, self.markers)


def _listed(name: str, wanted: frozenset[str]) -> bool:
    return name in wanted or any(name.startswith(item) for item in wanted if item.endswith("."))
