"""What decides the events of a few hours: their runs, and the verdicts and tool calls on these, read once for all SLOs.

Contract: :func:`hold` makes tables of the connection, and an indicator whose events are single runs finds in them, by
:func:`shadows`, all that its text would find in the lake's tables. Rule: a verdict that supersedes another one is held
whatever run it is on, because it takes that one's place by its id. Every indicator by itself searched the verdicts of
days for its runs, and planning a query opens each file of a table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import date
from typing import Final

import duckdb

from surefoot.processors.lake.schema import TABLES
from surefoot.processors.slo.indicator import words_of
from surefoot.processors.slo.source import Source, verdicts_from

# More hours than this are read from the lake by each indicator: their runs are many to hold.
MOST_HOURS: Final = 24

# While it is entered, a table's view needs to show no other rows than those since a date on these runs.
Narrow = Callable[[str, Collection[str], date], AbstractContextManager[None]]

# What the texts read of these tables; of runs it is what they name.
_COLUMNS: Final = {
    "verdicts": "verdict_id, supersedes, run_id, name, kind, verdict, finality, grader_kind, occurred_at, received_at, "
    "source, date",
    "tool_calls": "run_id, outcome, date",
}
_DATES: Final = {"verdicts": "date >= $verdicts_from", "tool_calls": "date >= $verdicts_from AND date <= $runs_to"}


def hold(
    con: duckdb.DuckDBPyConnection,
    sources: Sequence[Source],
    first: date,
    last: date,
    within: str,
    lookback_days: int,
    narrow: Narrow | None = None,
) -> None:
    """Make the tables for those of the sources that can do with them; ``within`` is SQL of the hours."""

    def ask(text: str) -> None:
        con.execute(text, sources[0].offered(text, first, last, lookback_days))

    words = {word for source in sources if source.of_one_run for word in words_of(source.text)}
    columns = ", ".join(name for name in TABLES["runs"].names if name in words | {"run_id", "ended_at", "date"})
    # S608, here and below: names are the schema's, and the hours are numbers.
    ask(
        f"CREATE OR REPLACE TEMP TABLE slo_runs AS SELECT {columns} FROM main.runs "  # noqa: S608
        f"WHERE date >= $from_date AND date <= $to_date AND {within}"
    )
    runs = [run for (run,) in con.execute("SELECT run_id FROM slo_runs").fetchall()] if narrow else []
    since = verdicts_from(first, lookback_days)
    for table in _COLUMNS.keys() & words:
        with narrow(table, runs, since) if narrow else nullcontext():
            ask(
                f"CREATE OR REPLACE TEMP TABLE slo_{table} AS SELECT {_COLUMNS[table]} FROM main.{table} "  # noqa: S608
                f"WHERE {_DATES[table]} AND run_id IN (SELECT run_id FROM slo_runs)"
            )
    if "verdicts" in words:
        ask(
            f"INSERT INTO slo_verdicts SELECT {_COLUMNS['verdicts']} FROM main.verdicts WHERE {_DATES['verdicts']} "  # noqa: S608
            "AND supersedes IS NOT NULL AND coalesce(run_id NOT IN (SELECT run_id FROM slo_runs), true)"
        )


def shadows(source: Source, wanted: str) -> str:
    """SQL before a source's relation, so that its text reads the tables of :func:`hold`; of runs the wanted ones."""
    others = [f", {table} AS (FROM slo_{table})" for table in sorted(_COLUMNS.keys() & words_of(source.text))]
    return f"WITH runs AS (SELECT * FROM slo_runs WHERE {wanted}){''.join(others)}"  # noqa: S608
