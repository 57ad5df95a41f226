"""``surefoot profile build``: a spec to a profile, from the lake or from published counts."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from surefoot.processors.evidence.build import BuildError, build_published
from surefoot.processors.evidence.from_lake import build_from_lake
from surefoot.processors.evidence.profile import Profile, to_json
from surefoot.processors.evidence.template import Spec
from surefoot.processors.lake import Lake


def build_profile(spec: Spec, lake_path: Path, now: float) -> Profile:
    """The profile; raises BuildError when the spec asks for both kinds of evidence, or for none."""
    if (spec.select is None) == (spec.published is None):
        raise BuildError("Cannot build a profile: the spec needs either `select` (runs of the lake) or `published`.")
    if spec.published is not None:
        return build_published(spec, now)
    return build_from_lake(spec, Lake.open(lake_path, create=False), now)


def profile_row(profile: Profile, now: float) -> dict[str, Any]:
    """The profile's row of the table ``profiles``, times as microseconds and days since 1970 (JSON has no others)."""
    population = profile.task_population
    return {
        "profile_id": profile.content_hash,
        "name": profile.profile_id,
        "task_class": _text(population.task_class),
        "consequence_class": _text(population.consequence_class),
        "horizon": _text(population.horizon_descriptors),
        "created_at": int(now * 1_000_000),
        "document": to_json(profile),
        "date": (datetime.fromtimestamp(now, UTC).date() - datetime(1970, 1, 1, tzinfo=UTC).date()).days,
    }


def _text(value: str | list[str] | dict[str, str] | None) -> str | None:
    if isinstance(value, dict):
        return ", ".join(f"{name} {one}" for name, one in value.items())
    return ", ".join(value) if isinstance(value, list) else value
