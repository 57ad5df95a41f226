"""A profile from its written part: the numbers come from the lake, or from counts that somebody published.

Rule: a number is never written by hand. The spec says who, what and why; which runs, how many and how well is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from surefoot.processors.errors import ProcessorsError
from surefoot.processors.evidence.counting import published_counts
from surefoot.processors.evidence.grading.propagation import indicators_behind
from surefoot.processors.evidence.measure import NOT_MEASURED, Counted
from surefoot.processors.evidence.profile import (
    Evidence,
    GraderError,
    Profile,
    StratumCounts,
    StratumResult,
    Tally,
    sealed,
)
from surefoot.processors.evidence.template import Published, Spec, Written


class BuildError(ProcessorsError):
    """A profile that cannot be built as its spec asks."""


def build_published(spec: Spec, now: float) -> Profile:
    """A profile of the spec's ``published`` counts."""
    if spec.published is None:
        raise BuildError("Cannot build a profile of published counts: the spec has none. Add `published`, or `select`.")
    counts = published_counts(spec.published)
    evidence = _published_evidence(spec.published, counts, now)
    return assemble(spec, evidence, grader_of_kind(spec.published.grader_kind))


def assemble(spec: Spec, evidence: Evidence, grader: GraderError) -> Profile:
    """The profile of this evidence."""
    protocol = spec.repeat_protocol
    level, k = protocol.confidence_level, protocol.k.value
    whole = indicators_behind(Counted.of(evidence, k), grader, level)
    strata = [
        StratumResult(
            task_class=one.task_class,
            consequence_class=one.consequence_class,
            horizon=one.horizon,
            indicators=indicators_behind(Counted.of(evidence, k, [one]), grader, level),
        )
        for one in evidence.counts
    ]
    used = {name: found[0].method for name, found in whole.confidence_intervals.items()}
    methods = "; ".join(f"{method}: {', '.join(_of(used, method))}" for method in dict.fromkeys(used.values()))
    written = {name: getattr(spec, name) for name in Written.model_fields}
    window = protocol.evaluation_window or _window(evidence)
    written["repeat_protocol"] = protocol.model_copy(
        update={"interval_method": methods or None, "evaluation_window": window}
    )
    return sealed({**written, "indicators": whole, "strata": strata, "grader": grader, "evidence": evidence})


def grader_of_kind(kind: str | None) -> GraderError:
    """What is known of the outcome grader without an audit: an executable oracle decides by definition."""
    if kind == "executable":
        reason = "every outcome verdict is an executable check's: no learned grader's error enters the numbers"
        return GraderError(decision_grade=True, reasons=[reason])
    return GraderError(decision_grade=False, reasons=[NOT_MEASURED])


def built_at(now: float) -> str:
    """The time as profiles write it."""
    return datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds")


def _window(evidence: Evidence) -> str | None:
    """Nobody has to write when the runs were: they say it themselves."""
    if evidence.first_run is None or evidence.last_run is None:
        return None
    return f"{evidence.first_run} to {evidence.last_run}, from the first run's begin to the last one's end"


def _of(used: dict[str, str], method: str) -> list[str]:
    return [name for name, one in used.items() if one == method]


def _published_evidence(published: Published, counts: Sequence[StratumCounts], now: float) -> Evidence:
    rows = [row for stratum in counts for row in stratum.outcomes]
    judged = sum(row.n * row.groups for row in rows)
    return Evidence(
        source="published",
        publication=published.source,
        selection=None,
        built_at=built_at(now),
        first_run=None,
        last_run=None,
        left_out={},
        groups=sum(row.groups for row in rows),
        tally=Tally(
            runs=judged + sum(row.missing * row.groups for row in rows),
            infrastructure=0,
            excluded=0,
            production=0,
            judged=judged,
            crashed=0,
            with_process_verdict=None,
            with_versions=None,
            with_task_id=None,
            executable_process_verdicts=None,
        ),
        run_ids_sha256=None,
        table_versions={},
        versions={},
        equivalence_rule="published",
        graders=None,
        environments=None,
        tool_effects=None,
        horizon=None,
        production_runs=None,
        cost_per_run=None,
        seconds_per_run=None,
        counts=list(counts),
        listed_groups=[],
    )
