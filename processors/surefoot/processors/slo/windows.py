"""Windows of time, and the buckets that they consist of.

Definition: a bucket holds the events that ended in it and is named by its start. At ``now`` a window of ``w`` seconds
is every bucket with ``now - w < start <= now``: the one that is filling now, and whole buckets back from it. So a
window of n buckets always has n buckets, no event counts half, and a bucket that begins in the future (a sender's clock
is ahead) waits for its time.

``scale`` (``Settings.window_scale``) multiplies bucket and windows for tests; labels keep their nominal names. Buckets
start anew at midnight UTC, so a bucket belongs to one date even where the scaled bucket does not divide a day.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

MINUTE: Final = 60
DAY: Final = 86_400
_UNITS: Final = {"m": MINUTE, "h": 3600, "d": DAY, "w": 7 * DAY}

# Of the burn-rate tiers; the period comes after them.
WINDOWS: Final = ("5m", "30m", "1h", "2h", "6h", "1d", "3d")

# Shorter ones would hold no alert window that tells anything; runs are kept 400 days.
SHORTEST_PERIOD: Final = "1d"
LONGEST_PERIOD: Final = "366d"


@lru_cache(maxsize=1024)
def seconds(duration: str) -> int:
    """Seconds of a duration such as ``5m``, ``6h``, ``28d`` or ``4w``; ValueError for anything else."""
    match = re.fullmatch(r"([0-9]+)([mhdw])", duration)
    if match is None:
        raise ValueError(f"{duration!r} is not a duration such as 5m, 6h, 28d or 4w")
    return int(match[1]) * _UNITS[match[2]]


@lru_cache(maxsize=1024)
def windows_within(period: str) -> tuple[str, ...]:
    """Those of ``WINDOWS`` that are shorter than a period, as it is written: ``28d``, or ``1M`` of a calendar.

    One as long would have the period's name, and of a calendar's other numbers.
    """
    if period[-1] in "MQY":
        return WINDOWS
    return tuple(name for name in WINDOWS if seconds(name) < seconds(period))


def bucket_seconds(scale: float) -> int:
    """Length of a bucket: a minute times ``scale``, in whole seconds, at least one."""
    return max(1, round(MINUTE * scale))


def window_seconds(duration: int, scale: float) -> float:
    """Length of a window of nominally ``duration`` seconds; never less than a bucket."""
    return max(float(bucket_seconds(scale)), duration * scale)


def shortest_name(length: int) -> str:
    """The one name of a window of whole minutes: 1h for 60m, 1d for 24h, 28d for 4w; weeks are days.

    A window's name is a label and part of a key, and equal windows are to have equal ones.
    """
    for unit in ("d", "h"):
        if length % _UNITS[unit] == 0:
            return f"{length // _UNITS[unit]}{unit}"
    return f"{length // MINUTE}m"
