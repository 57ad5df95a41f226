"""An SLO's counts of the past, by minute, hour or day, as a table that other tools read.

Rule: what the table ``slo_minutes`` holds and no more: a generation that began later has its past counted anew, one
that ended keeps the dates that nobody has counted since. Ratios without events are null.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import duckdb
import pyarrow as pa

EVERY: Final = ("minute", "hour", "day")

# Weights are sums of sample weights; without any they are the counts.
_QUERY: Final = """
    SELECT
        slo, generation, view, stratum_key, date_trunc($every, minute) AS start,
        CAST(sum(good) AS BIGINT) AS good,
        CAST(sum(bad) AS BIGINT) AS bad,
        CAST(sum(unlabelled) AS BIGINT) AS unlabelled,
        CAST(sum(excluded) AS BIGINT) AS excluded,
        sum(coalesce(good_micros, good * 1000000)) / 1e6 AS good_weight,
        sum(coalesce(bad_micros, bad * 1000000)) / 1e6 AS bad_weight,
        sum(coalesce(unlabelled_micros, unlabelled * 1000000)) / 1e6 AS unlabelled_weight,
        bad_weight / nullif(good_weight + bad_weight, 0) AS error_ratio,
        max(computed_at) AS computed_at
    FROM slo_minutes
    WHERE slo = $slo
        AND ($view IS NULL OR view = $view)
        AND ($stratum IS NULL OR stratum_key = $stratum)
        AND ($generation IS NULL OR generation = $generation)
    GROUP BY slo, generation, view, stratum_key, start
    ORDER BY view, stratum_key, start, generation
"""


class Generation(NamedTuple):
    """A definition that an SLO had."""

    generation: str
    objective: float
    first_seen_at: Any  # datetime
    definition: str  # JSON


def history(
    con: duckdb.DuckDBPyConnection,
    slo: str,
    every: str,
    *,
    view: str | None = None,
    stratum: str | None = None,
    generation: str | None = None,
) -> pa.Table:
    """A row per view, stratum, generation and ``every`` (one of ``EVERY``, in UTC) in which there was an event."""
    values = {"slo": slo, "every": every, "view": view, "stratum": stratum, "generation": generation}
    return con.sql(_QUERY, params=values).to_arrow_table()


def generations(con: duckdb.DuckDBPyConnection, slo: str) -> list[Generation]:
    """The definitions that an SLO had, oldest first."""
    query = """
        SELECT generation, objective, first_seen_at, definition FROM slo_generations
        WHERE slo = $slo ORDER BY first_seen_at, generation, objective
    """
    return [Generation(*row) for row in con.execute(query, {"slo": slo}).fetchall()]


def known_slos(con: duckdb.DuckDBPyConnection) -> list[str]:
    """Names that have a history."""
    return [name for (name,) in con.execute("SELECT DISTINCT slo FROM slo_minutes ORDER BY 1").fetchall()]
