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
from surefoot.processors.boundary.claim import claim, visible
from surefoot.processors.evidence.changes import shown
from surefoot.processors.evidence.checklist import verify
from surefoot.processors.evidence.profile import INDICATORS, Evidence, IndicatorPart, IntervalPart, Profile
from surefoot.processors.evidence.suspects import suspects
from surefoot.processors.yaml_models import Part

WORST: Final = 100  # strips that are shown
FIRST: Final = 20  # names of tasks to look at first
_CLASSES: Final = {
    "all_acceptable": "all acceptable",
    "mixed": "mixed",
    "consistent_wrong": "consistent-wrong",
    "non_equivalent_repeated_failure": "never acceptable, not equivalent",
    "unknown_equivalence": "never acceptable, equivalence unknown",
    "too_few_runs": "fewer than two judged runs",
}
_SECTIONS: Final = (
    *("system", "task_population", "outcome_contract", "repeat_protocol", "operating_boundary", "change_control"),
)


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
            suspects=suspects(profile),
            most_suspects=FIRST,
            facts=_facts(profile.evidence),
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
        finalize=_seen,
    )
    environment.filters["words"] = lambda name: str(name).replace("_", " ")
    environment.filters["shown"] = shown
    return environment


def _seen(value: Any) -> Any:
    """Names are other people's words: a character that turns the direction of writing must not turn our numbers."""
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _line(profile: Profile, name: str) -> _Line:
    found = profile.indicators
    return _Line(name, getattr(found, name), next(iter(found.confidence_intervals.get(name, [])), None))


def _section(profile: Profile, name: str) -> dict[str, Any]:
    part = getattr(profile, name)
    return {"name": name, "fields": {field: _field(getattr(part, field)) for field in type(part).model_fields}}


def _field(value: Any) -> Any:
    if not isinstance(value, Part):
        return value
    return {name: one for name, one in value.model_dump(mode="json").items() if one is not None}


def _facts(evidence: Evidence) -> dict[str, str]:
    """What the numbers rest on, in the order in which a reader asks; what was not recorded says so."""
    tally = evidence.tally
    spans = [one for one in (evidence.first_run, evidence.last_run) if one is not None]
    graders = [
        f"{one.name} {one.version or '(unknown version)'}, {one.kind or 'unknown kind'}: {one.verdicts:,} {one.judges}"
        for one in evidence.graders or []
    ]
    found = {
        "source": evidence.publication or "the lake",
        "runs": f"{tally.runs:,}, of which {tally.judged:,} judged, {tally.crashed:,} ended without a result, "
        f"{tally.infrastructure:,} ended by the infrastructure, {tally.excluded:,} cancelled, deferred or refused, "
        f"{tally.production:,} of production",
        "left out": _counted(evidence.left_out) or "nothing",
        "from, to": " – ".join(one[:16].replace("T", " ") for one in spans),
        "versions": shown(evidence.versions) if evidence.versions else "",
        "graders": "; ".join(graders),
        "equivalence rule": evidence.equivalence_rule,
        "environments": _counted(evidence.environments),
        "effects of tool calls": _counted(evidence.tool_effects),
        "horizon, median (most)": ", ".join(
            f"{name.replace('_', ' ')} {_short(name, spread.median)} ({_short(name, spread.most)})"
            for name, spread in (evidence.horizon or {}).items()
        ),
        "run ids": evidence.run_ids_sha256 or "",
        "table versions": shown(evidence.table_versions) if evidence.table_versions else "",
    }
    return {name: text or "not recorded" for name, text in found.items()}


def _counted(found: dict[str, int] | None) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in (found or {}).items())


def _short(name: str, value: float) -> str:
    return f"{value / 1e9:.3g} s" if name.endswith("_ns") else f"{value:g}"
