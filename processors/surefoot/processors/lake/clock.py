"""The time by which rows grow old: the clock's, unless it has just jumped ahead.

A clock that is wrong by months would expire the whole lake in one step, and nothing brings the rows back. The lake's
own dates cannot tell: what arrives while the clock is wrong has wrong dates too. Rule: a clock that is more than a day
ahead of the last upkeep is believed a day later, if it is then still ahead; meanwhile the time of the last upkeep
counts. So a lake whose server was off for a month, or to which nothing comes, waits one day and then expires as ever.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Final

from surefoot.processors.lake.durable import sync, write_file
from surefoot.processors.lake.lake import Lake

log = logging.getLogger("surefoot.lake")

FILE: Final = "upkeep-clock.json"
_DAY: Final = 86400.0
# So far the file may be behind the last upkeep: it is not written with each.
_HOUR: Final = 3600.0


def believed(lake: Lake, now: float) -> float:
    """The time by which rows are old, at ``now`` by the clock; both in unix seconds. Call under the lease."""
    last, doubted_since = _read(lake)
    if now <= last + _DAY:
        if doubted_since is not None or not last <= now < last + _HOUR:
            _write(lake.path, now, None)
        return now
    if doubted_since is None or now < doubted_since:
        log.warning(
            "the clock is %.1f days ahead of the last upkeep; rows expire by the time of that upkeep until the clock "
            "has been so for a day. Is it right?",
            (now - last) / _DAY,
        )
        _write(lake.path, last, now)
        return last
    if now < doubted_since + _DAY:
        return last
    _write(lake.path, now, None)
    return now


def _read(lake: Lake) -> tuple[float, float | None]:
    """The time of the last upkeep, and since when a clock far ahead of it has been doubted."""
    try:
        told = json.loads((lake.path / FILE).read_text())
        return float(told["last"]), None if told["doubted_since"] is None else float(told["doubted_since"])
    except FileNotFoundError:  # the first upkeep: then the last commit tells what time it was
        return max(path.stat().st_mtime for table in lake.tables() for path in table.log_path.glob("*.json")), None


def _write(folder: Path, last: float, doubted_since: float | None) -> None:
    def write(draft: Path) -> None:
        draft.write_text(json.dumps({"last": last, "doubted_since": doubted_since}))

    write_file(folder / FILE, write)
    sync(folder)
