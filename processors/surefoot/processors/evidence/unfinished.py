"""Runs that a selection means and that are no evidence yet: those that still run, and those of a clock that is ahead.

Rule: they are counted, because what is read of the lake are survivors: whoever builds a profile while the slow runs of
an evaluation still go on has a sample of the fast ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Final

import duckdb

from surefoot.processors.evidence.profile import AHEAD, STILL_RUNNING

_LOOKBACK: Final = timedelta(days=8)  # a run may have begun so long before the first day

_COUNT: Final = """
select
  count(*) filter (where ended_at is null or coalesce(outcome, '') = 'running'),
  count(*) filter (where ended_at is not null and date > $last)
from runs
where date >= $first and parent_run_id is null and (task_id is not null or run_group is not null)
"""


def unfinished(
    connection: duckdb.DuckDBPyConnection,
    days: tuple[date, date],
    where: Mapping[str, str],
    versions: Mapping[str, str],
    *,
    until_now: bool,
) -> dict[str, int]:
    """Runs by reason, of those that ``where`` (columns that ``read_groups`` took) and ``versions`` choose."""
    values: dict[str, object] = {"first": days[0] - _LOOKBACK, "last": days[1]}
    text = _COUNT
    for place, (name, value) in enumerate(where.items()):
        text += f" and {name} = $where_{place}"
        values[f"where_{place}"] = value
    for place, (name, value) in enumerate(versions.items()):
        text += f" and versions[$name_{place}] = $value_{place}"
        values |= {f"name_{place}": name, f"value_{place}": value}
    running, ahead = connection.execute(text, values).fetchall()[0]
    found = {STILL_RUNNING: running, AHEAD: ahead if until_now else 0}
    return {reason: number for reason, number in found.items() if number}
