"""Numbers and times as people read them. A dash stands for a number that is not defined, never a 0."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

UNDEFINED: Final = "–"
_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def percent(ratio: float | None, digits: int = 1) -> str:
    """A ratio as per cent: ``99.5 %``, ``−2,900 %``. Beyond 1,000 % a decimal says nothing any more."""
    if ratio is None:
        return UNDEFINED
    return f"{number(100 * ratio, digits if abs(ratio) < 10 else 0)} %"


def objective(ratio: float) -> str:
    """An objective with the digits that it was written with: ``95 %``, ``99.95 %``."""
    return f"{100 * ratio:.10g} %"


def number(value: float | None, digits: int = 1) -> str:
    """A number with a fixed count of decimals, a real minus sign, and no minus before a zero."""
    if value is None:
        return UNDEFINED
    return f"{value:z,.{digits}f}".replace("-", "−")


def compact(count: int) -> str:
    """A count for a narrow place: exact up to five digits, then ``123 k``, ``1.2 M``."""
    if count < 100_000:
        return f"{count:,}"
    return f"{count / 1e3:.0f} k" if count < 999_500 else f"{count / 1e6:,.1f} M"


def duration(nanos: float | None) -> str:
    """Nanoseconds in the unit that people would use."""
    if nanos is None:
        return UNDEFINED
    seconds = nanos / 1e9
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{1000 * seconds:.0f} ms"


def ago(at: float, now: float) -> str:
    """How long ago, in words."""
    seconds = max(0.0, now - at)
    return f"{seconds:.0f} s ago" if seconds < 59.5 else f"{duration(seconds * 1e9)} ago"


def clock(at: datetime | None) -> str:
    """A time in UTC, to the second."""
    return UNDEFINED if at is None else at.astimezone(UTC).strftime("%d %b %H:%M:%S")


def moment(at: float | None) -> str:
    """A time given in unix seconds, in UTC, to the minute."""
    return UNDEFINED if at is None else datetime.fromtimestamp(at, UTC).strftime("%d %b %H:%M UTC")
