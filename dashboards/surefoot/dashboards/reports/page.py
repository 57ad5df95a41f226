"""A profile as one HTML file that a person can read, and that needs no network.

Rule: it shows what the profile says; it computes nothing that the profile does not hold the counts for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import jinja2

from surefoot.dashboards.reports.charts import curve_chart, dumbbell_chart
from surefoot.dashboards.reports.series import MOST_STRATA, class_shares, curve, dumbbells, strips
from surefoot.processors.boundary.check import Decision
from surefoot.processors.boundary.claim import claim
from surefoot.processors.evidence.changes import shown
from surefoot.processors.evidence.checklist import verify
from surefoot.processors.evidence.profile import INDICATORS, IndicatorPart, IntervalPart, Profile

WORST: Final = 100  # strips that are shown
_CLASSES: Final = {
    "all_acceptable": "all acceptable",
    "mixed": "mixed",
    "consistent_wrong": "consistent-wrong",
    "non_equivalent_repeated_failure": "never acceptable, not equivalent",
    "unknown_equivalence": "never acceptable, equivalence unknown",
    "too_few_runs": "fewer than two judged runs",
}
_SECTIONS: Final = ("system", "task_population", "outcome_contract", "operating_boundary", "change_control")


@dataclass(frozen=True, slots=True)
class _Line:
    name: str
    part: IndicatorPart
    interval: IntervalPart | None


def profile_page(profile: Profile, decision: Decision | None = None) -> str:
    """The page; ``decision`` adds the gates of a boundary."""
    found = strips(profile)
    points = curve(profile)
    total = max(1, profile.evidence.groups)
    return (
        _templates()
        .get_template("profile.html")
        .render(
            profile=profile,
            evidence=profile.evidence,
            k=profile.repeat_protocol.k.value,
            claim=claim(profile, profile.operating_boundary.allowed_autonomous_mode or "autonomous"),
            points=points,
            curve=curve_chart(points, 470, 240),
            bells=dumbbell_chart(dumbbells(profile), 500),
            classes=[
                {"key": key, "name": name, "groups": groups, "share": groups / total}
                for key, name in _CLASSES.items()
                if (groups := class_shares(profile)[key])
            ],
            strips=found[:WORST],
            most_strata=MOST_STRATA,
            more=len(found) - WORST,
            lines=[_line(profile, name) for name in INDICATORS],
            checklist=verify(profile),
            decision=decision,
            sections=[_section(profile, name) for name in _SECTIONS],
        )
    )


@cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("surefoot.dashboards.reports"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["words"] = lambda name: str(name).replace("_", " ")
    environment.filters["shown"] = shown
    return environment


def _line(profile: Profile, name: str) -> _Line:
    found = profile.indicators
    return _Line(name, getattr(found, name), next(iter(found.confidence_intervals.get(name, [])), None))


def _section(profile: Profile, name: str) -> dict[str, Any]:
    part = getattr(profile, name)
    return {"name": name, "fields": {field: getattr(part, field) for field in type(part).model_fields}}
