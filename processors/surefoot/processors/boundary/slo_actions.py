"""What error-budget policies demand now of the SLOs that a boundary names, read from the table ``slo_actions``.

Rule: only an action that says a stricter mode counts here; a demand is open from the row that begins it until the row
of the same policy, SLO, stratum, mode and beginning that ends it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, cast

from surefoot.processors.evidence.template import Mode
from surefoot.processors.lake import Lake

_OPEN: Final = """
select policy, slo, action, mode, started_at, max(evidence) as evidence
from slo_actions
where action in ('tighten_mode', 'require_approval')
group by policy, slo, stratum_key, action, mode, started_at
having max(ended_at) is null
order by slo, policy, started_at
"""


@dataclass(frozen=True, slots=True)
class SloAction:
    """A demand that is open."""

    policy: str
    slo: str
    action: str
    mode: Mode  # the least strict one that it leaves
    started_at: str
    evidence: str


def open_actions(lake: Lake, slos: list[str]) -> list[SloAction]:
    """The demands on these SLOs; none where the lake has no such table yet."""
    connection = lake.connect()
    try:
        names = {name for (name,) in connection.sql("select view_name from duckdb_views()").fetchall()}
        rows = connection.sql(_OPEN).fetchall() if "slo_actions" in names else []
    finally:
        connection.close()
    return [
        SloAction(policy, slo, action, _mode(action, mode), str(since), evidence or "")
        for policy, slo, action, mode, since, evidence in rows
        if slo in slos
    ]


def _mode(action: str, mode: str | None) -> Mode:
    return cast(Mode, mode) if action == "tighten_mode" and mode else "human_approval"
