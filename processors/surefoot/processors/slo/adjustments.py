"""Budget adjustments: planned exclusions, each a record of who took which time out of an SLO and why.

Rule: an adjustment never deletes. Its events become ``excluded``, are counted as such and are shown with author and
reason; two that overlap exclude an event once. One that lies in the future is fine, one that is over is kept for as
long as its time is in a window.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from surefoot.processors.documents import Document, at
from surefoot.processors.slo.count import dimensions_of
from surefoot.processors.slo.openslo_rules import Refused
from surefoot.processors.slo.openslo_schema import Metadata, Name, Part, refusal
from surefoot.processors.slo.refusals import parse
from surefoot.processors.slo.windows import MINUTE
from surefoot.processors.suggestions import suggestion

KIND: Final = "BudgetAdjustment"
_DOCS: Final = "docs/error-budget-policy.md"


@dataclass(frozen=True, slots=True)
class BudgetAdjustment:
    """Events of ``slo`` with ``start`` <= ended_at < ``end`` (unix seconds, whole minutes) are excluded."""

    name: str
    slo: str
    start: float
    end: float
    author: str
    reason: str
    stratum: tuple[tuple[str, str], ...] = ()  # only strata with all of these values; () = all events
    file: str = field(default="", compare=False)
    line: int = field(default=0, compare=False)

    def covers(self, stratum_key: str) -> bool:
        """Whether it is about a stratum. Never about ``other`` or the roll-up, if it names values.

        The engine excludes in the strata and adds the strata up, so the roll-up and ``other`` lose what theirs lose.
        Where events have no value, ``(none)`` names them, as reports do.
        """
        found: Mapping[str, str] = dimensions_of(stratum_key) if "=" in stratum_key else {}
        return all(name in found and (found[name] or "(none)") == value for name, value in self.stratum)

    @property
    def sentence(self) -> str:
        """For reports and pages: when, where, why, who."""
        where = ", ".join(f"{name} {value}" for name, value in self.stratum)
        time = f"{_clock(self.start)} to {_clock(self.end)} UTC"
        return f"{time}{f' in {where}' * bool(where)}: {self.reason} ({self.author})"


def read(document: Document, file: str) -> BudgetAdjustment | list[Refused]:
    """The adjustment of a parsed document of this kind, or everything that is wrong with it.

    The caller gives each refusal its line by ``document.line(refused.path)``.
    """
    parsed = parse(_Document, document.data, _DOCS)
    if isinstance(parsed, list):
        return parsed
    spec = parsed.spec
    return BudgetAdjustment(
        name=parsed.metadata.name,
        slo=spec.slo,
        start=spec.start.timestamp(),
        end=spec.end.timestamp(),
        author=spec.author,
        reason=spec.reason,
        stratum=tuple(sorted(spec.stratum.items())),
        file=file,
        line=document.line(("metadata", "name")),
    )


def exclusions(adjustments: Iterable[BudgetAdjustment], slo: str, stratum_key: str) -> list[tuple[float, float]]:
    """The times, half-open and in order, whose events in one stratum of ``slo`` are excluded; none overlap."""
    merged: list[tuple[float, float]] = []
    for start, end in sorted((a.start, a.end) for a in adjustments if a.slo == slo and a.covers(stratum_key)):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def check(adjustment: BudgetAdjustment, slos: Mapping[str, tuple[str, ...]]) -> list[Refused]:
    """What does not fit the SLOs that can be used: ``slos`` gives the strata's dimensions (``by``) by name."""
    if adjustment.slo not in slos:
        return []
    by = slos[adjustment.slo]
    return [
        Refused(
            ("spec", "stratum", name),
            f"the SLO {adjustment.slo} is not divided by {name!r}",
            suggestion(name, by) if by else "leave stratum out, the SLO has no strata",
        )
        for name, _ in adjustment.stratum
        if name not in by
    ]


def check_names(data: Any, slos: Collection[str]) -> Iterator[Refused]:
    """What a document refers to and is not there, of ``slos`` in all files; also of one that has other mistakes."""
    name = at(data, ("spec", "slo"))
    if isinstance(name, str) and name not in slos:
        yield Refused(("spec", "slo"), f"there is no SLO {name!r}", suggestion(name, slos))


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


def _time(value: Any) -> datetime:
    """YAML reads an unquoted time itself, a quoted one is text."""
    found = value
    if isinstance(value, str):
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            found = None
    if not isinstance(found, datetime):
        kind = "a date without a time" if isinstance(found, date) else f"{value!r}, not a time"
        raise refusal(f"it is {kind}", "write a time with its zone, such as 2026-12-24T18:00:00Z")
    if found.tzinfo is None:
        raise refusal("the time has no zone", f"write {found.isoformat()}Z for UTC, or +01:00 and the like")
    if not 1970 < found.year <= 2200:
        raise refusal(f"{found.isoformat()} is not between 1971 and 2200", "write when the time was, or will be")
    if found.timestamp() % MINUTE:
        raise refusal("the time is not a whole minute, and events are counted by the minute", "leave the seconds at 00")
    return found


def _said(value: str) -> str:
    if not value.strip():
        raise refusal("it is empty", "write it: whoever reads the budget later will ask")
    return value.strip()


_Time = Annotated[datetime, BeforeValidator(_time)]
_Said = Annotated[str, AfterValidator(_said)]


class _Spec(Part):
    slo: Name
    start: _Time = Field(alias="from")  # a word of Python
    end: _Time = Field(alias="to")
    author: _Said
    reason: _Said
    stratum: dict[str, str] = Field(default_factory=dict)

    @classmethod
    def wrong(cls, data: dict[Any, Any]) -> Iterator[PydanticCustomError]:
        """It begins before it ends."""
        try:
            start, end = (_time(data.get(name)) for name in ("from", "to"))
        except PydanticCustomError:  # told beside the field
            return
        if end <= start:
            yield refusal("it ends before it begins", "write a later time", "to")


class _Document(Part):
    api_version: str
    kind: str
    metadata: Metadata
    spec: _Spec
