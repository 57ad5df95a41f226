"""The manifest of a run folder: the suite, and the provenance of its attempts.

Rule: attempts of a suite that has changed are no repetitions of each other, and no folder holds both.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, Final

from surefoot.evaluation import provenance
from surefoot.evaluation.errors import RecordsError
from surefoot.evaluation.plan import Plan
from surefoot.evaluation.records import MANIFEST, failing
from surefoot.evaluation.suite import plain

FORMAT: Final = "surefoot.run/1"


def conditions_of(plan: Plan) -> tuple[dict[str, Any], bool]:
    """Return the provenance of what follows, written into the manifest, and whether earlier attempts had another."""
    path = plan.folder / MANIFEST
    where = Path(plan.source).parent if plan.source and plan.source.endswith((".yaml", ".yml", ".py")) else Path.cwd()
    found = provenance.collect(plan.suite, where, besides=plan.folder.parent, given=plan.given)
    if path.exists():
        manifest = _read_manifest(path)
        if manifest["suite_hash"] != found["suite_hash"]:
            raise RecordsError(
                f"{plan.folder} holds attempts of the suite as it was ({manifest['suite_hash']}), and it has changed "
                f"since ({found['suite_hash']}): those attempts and new ones are not repetitions of each other. Use a "
                "new folder."
            )
    else:
        manifest = {
            "format": FORMAT,
            "suite": plain(plan.suite),
            "suite_hash": found["suite_hash"],
            "source": plan.source,
            "started_at": time.time(),
            "provenances": {},
            **({} if plan.replayed is None else {"replay": True}),
        }
    manifest["provenances"][found["id"]] = found
    _write_manifest(path, manifest)
    return found, len(manifest["provenances"]) > 1


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if {"suite_hash", "provenances"} <= found.keys():
            return dict(found)
        why = "it is of no run of surefoot repeat"
    except (OSError, ValueError, AttributeError) as error:
        why = str(error)
    raise RecordsError(f"Reading {path}: {why}. Restore it, or use a new folder.")


def _write_manifest(path: Path, manifest: dict[str, Any]) -> None:
    temporary = path.with_suffix(".tmp")
    with failing("Writing", path):
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(manifest, file, indent=1, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
