"""Production's runs by declared blocks: counted when a profile is built, bounded when it is read.

An interval over blocks is about the share of all runs (each run counts once), and only averages over runs have one:
what is said of repeated groups (Pass^k, consistent-wrong) stays descriptive in production.

Rule: blocks that were declared after the first run, or that are fewer than ten, open nothing (``blocks.py``). Runs that
do not say their block are one block together: the careful reading, because they may have failed together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

import duckdb
import numpy as np

from surefoot.processors.evidence.blocks import Blocks, production_interval
from surefoot.processors.evidence.counting import RATES, stratum_codes
from surefoot.processors.evidence.estimate import Interval, Sides
from surefoot.processors.evidence.groups import GroupTable, NameArray, RunTable
from surefoot.processors.evidence.profile import BlockCount, StratumCounts
from surefoot.processors.evidence.run_columns import Codes, Where
from surefoot.processors.evidence.run_rates import judged_runs
from surefoot.processors.evidence.template import BlockUnit

_STARTED: Final = "select run_id, epoch_us(started_at) from runs where run_id in (select run_id from evidence_runs)"
_STRATUM: Final = "select run_id, strata[$1] from runs where run_id in (select run_id from evidence_runs)"
_UNKNOWN: Final = "unknown"


def block_names(connection: duckdb.DuckDBPyConnection, unit: BlockUnit, runs: RunTable) -> NameArray:
    """The block of each run; ``evidence_runs`` are registered on the connection."""
    if unit.hours is not None:
        seconds = unit.hours * 3600
        found = {
            run: datetime.fromtimestamp(started // 1_000_000 // seconds * seconds, UTC).isoformat(timespec="hours")
            for run, started in connection.execute(_STARTED).fetchall()
            if started is not None
        }
    else:
        found = dict(connection.execute(_STRATUM, [unit.stratum]).fetchall())
    return np.array([found.get(run) or _UNKNOWN for run in runs.run_id], dtype=object)


def with_blocks(
    counts: Sequence[StratumCounts], groups: GroupTable, dimensions: Sequence[str], names: NameArray
) -> list[StratumCounts]:
    """The counts with those by block beside them; ``names`` has the block of each run of the groups."""
    runs = groups.runs
    if runs is None:
        return list(counts)
    codes, _ = stratum_codes(groups, dimensions)
    of_run, blocks = codes[runs.group], Codes.of(names.tolist())
    verdict = runs.flags["acceptable"]
    columns = {"outcome_yield": (runs.counted & (verdict >= 0), runs.counted & (verdict == 1))}
    columns |= {name: judged_runs(groups, rate) for name, rate in RATES.items()}
    return [
        one.model_copy(
            update={
                "blocks": {
                    name: _counted(blocks, judged & (of_run == place), good & (of_run == place))
                    for name, (judged, good) in columns.items()
                }
            }
        )
        for place, one in enumerate(counts)
    ]


def block_bounds(
    strata: Sequence[StratumCounts], unit: BlockUnit, first_run: str | None, name: str, sides: Sides, confidence: float
) -> Interval | None:
    """Bounds over blocks for an average over runs; None of other indicators, and where nothing was recorded."""
    totals: dict[str, tuple[int, int]] = {}
    for stratum in strata:
        for row in stratum.blocks.get(name, []):
            good, runs = totals.get(row.block, (0, 0))
            totals[row.block] = (good + row.hits, runs + row.runs)
    if not totals:
        return None
    names = sorted(totals)
    good, runs = np.array([totals[block] for block in names]).T
    # Whatever divides them, each row is a block by now.
    found = production_interval(
        good, runs, sides=sides, blocks=Blocks(unit.blocks, np.arange(len(names)), 1), confidence=confidence
    )
    if first_run is not None and first_run[:10] < unit.declared.isoformat():
        late = f"descriptive: the blocks were declared on {unit.declared}, after the first run began ({first_run[:10]})"
        return replace(found, gate=False, note="; ".join(filter(None, (late, found.note))))
    return found


def _counted(blocks: Codes, judged: Where, good: Where) -> list[BlockCount]:
    runs = np.bincount(blocks.codes[judged], minlength=len(blocks.names))
    hits = np.bincount(blocks.codes[good], minlength=len(blocks.names))
    rows = zip(blocks.names, runs.tolist(), hits.tolist(), strict=True)
    return [BlockCount(block=block, runs=total, hits=number) for block, total, number in rows if total]
