"""A decision as a row of the table ``decisions``, which is kept for ever.

Rule: the row holds the whole boundary beside the answer, so that a boundary that was edited afterwards is seen. Its id
is the hash of both, without the time: the same decision on the same day is one row, however often it is asked for.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from datetime import UTC, date, datetime
from typing import Any

from surefoot.processors.boundary.check import Decision
from surefoot.processors.boundary.definition import Boundary


def decision_row(decision: Decision, boundary: Boundary, now: float) -> dict[str, Any]:
    """The row, times as microseconds and days since 1970 (JSON has no others)."""
    told = asdict(decision)
    text = json.dumps({"decision": told, "boundary": boundary.model_dump(mode="json")}, sort_keys=True)
    return {
        "decision_id": f"sha256:{hashlib.sha256(text.encode()).hexdigest()}",
        "profile_id": decision.content_hash,
        "boundary_id": decision.boundary_id,
        "allowed": decision.cleared,
        "mode": decision.mode,
        "reasons": json.dumps(told["reasons"]),
        "decided_at": int(now * 1_000_000),
        "document": text,
        "date": (datetime.fromtimestamp(now, UTC).date() - date(1970, 1, 1)).days,
    }
