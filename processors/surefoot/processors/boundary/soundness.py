"""What keeps a profile's evidence from clearing anything, whatever its bounds are.

Rule: a bound is about the runs that it was computed from. So those must be of the declared population, of versions that
were recorded, repeated as the protocol says, judged as far as the boundary asks, and the file's own numbers must follow
from its counts. What cannot be checked because nobody recorded it does not pass: nor do counts that cite no runs,
unless the boundary accepts them in so many words, and then a note says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from surefoot.processors.boundary.definition import Boundary
from surefoot.processors.boundary.gates import absent_attempts
from surefoot.processors.evidence.integrity import not_from_counts, other_sample
from surefoot.processors.evidence.profile import STILL_RUNNING, Profile, is_intact
from surefoot.processors.evidence.template import Dimension

_DECLARED: tuple[Dimension, ...] = ("task_class", "consequence_class")
_REPEATED_FAILURES = ("consistent_wrong_rate", "non_equivalent_repeated_failure_rate")


def unsound(profile: Profile, boundary: Boundary, today: date) -> Iterator[tuple[str, str]]:
    """Reasons, each with its code."""
    yield from _edited(profile)
    yield from _population(profile)
    yield from _unfinished(profile, today)
    evidence = profile.evidence
    if evidence.run_ids_sha256 is None and boundary.minimum_evidence.cited_runs:
        remedy = "measure it yourself, or accept that with `minimum_evidence.cited_runs: false`"
        yield (
            "evidence",
            f"minimum evidence: {_uncited(profile)}, and there is no run that anybody could check; {remedy}",
        )
    if evidence.source == "lake" and not evidence.versions:
        yield "evidence", "the runs recorded no versions, so that a change of one would not be seen"
    if evidence.tally.same_number:
        what = f"{evidence.tally.same_number} runs share their repetition number with another run of their group"
        yield "evidence", f"{what}: which of them counts was open after looking. Repeat and select another run group"
    yield from _process_coverage(profile, boundary)


def remarks(profile: Profile, boundary: Boundary) -> list[str]:
    """What a reader of the decision has to know, although it decides nothing."""
    evidence, tally = profile.evidence, profile.evidence.tally
    found = []
    if evidence.run_ids_sha256 is None:
        found.append(f"{_uncited(profile)}: no run is cited that could be checked")
    if tally.infrastructure or tally.excluded:
        found.append(
            f"in no outcome bound, of {tally.runs} runs: {tally.infrastructure} that the infrastructure ended, "
            f"{tally.excluded} that were cancelled, deferred or refused"
        )
    missing = sum(row.missing * row.groups for stratum in evidence.counts for row in stratum.outcomes)
    if missing and not tally.production:
        found.append(f"{missing} runs without a verdict count as what makes each bound worse")
    if (absent := absent_attempts(profile)) and not tally.production:
        found.append(
            f"{absent} attempts are not there: groups have fewer than the protocol's k, and each that is absent "
            "counts as what makes a bound worse"
        )
    attempts = {row.n + row.missing for stratum in evidence.counts for row in stratum.outcomes}
    if len(attempts) > 1:
        found.append(
            f"groups have {min(attempts)} to {max(attempts)} attempts: the bounds hold if their number did not depend "
            "on how the first ones ended"
        )
    k = profile.repeat_protocol.k.value
    if k > boundary.minimum_evidence.k and any(gate.indicator in _REPEATED_FAILURES for gate in boundary.gates):
        least = boundary.minimum_evidence.k
        found.append(f"k is {k}, the boundary asks for at least {least}: failing {k} times is rarer than {least} times")
    return found


def _uncited(profile: Profile) -> str:
    publication = profile.evidence.publication
    return f"the counts are a publication's ({publication})" if publication else "the counts name no source"


def _unfinished(profile: Profile, today: date) -> Iterator[tuple[str, str]]:
    evidence = profile.evidence
    running = evidence.left_out.get(STILL_RUNNING, 0)
    if running and not evidence.tally.production:
        what = f"{running} of the selected runs were still running when it was built"
        yield "evidence", f"{what}, and the slow ones are not like the others: build it again when they have ended"
    ended = evidence.last_run
    if ended is not None and ended[:10] > today.isoformat():
        yield "evidence", f"the last run ended on {ended[:10]}, and today is {today}: one of the two clocks is wrong"


def _edited(profile: Profile) -> Iterator[tuple[str, str]]:
    if not is_intact(profile):
        yield "edited", "the profile was edited after it was built: its content hash does not fit"
        return
    if sample := other_sample(profile):
        yield "edited", sample
    elif wrong := not_from_counts(profile):
        yield "edited", f"its numbers do not follow from its counts: {', '.join(wrong)}"


def _population(profile: Profile) -> Iterator[tuple[str, str]]:
    """What runs recorded of themselves against what the profile says that they are."""
    for name in _DECLARED:
        declared = getattr(profile.task_population, name)
        if declared is None or isinstance(declared, dict):
            continue
        wanted = {declared} if isinstance(declared, str) else set(declared)
        found = {getattr(stratum, name) for stratum in profile.evidence.counts}
        if profile.evidence.source == "published":
            found.discard(None)
            if not found:
                continue
        if None in found and name not in profile.repeat_protocol.stratification:
            yield "evidence", f"task_population declares a {name}, and the profile is not stratified by it"
            continue
        other = sorted(one or "unknown" for one in found - wanted)
        if other:
            yield (
                "revoked",
                f"task_population.{name} is {', '.join(sorted(wanted))}, and runs are of {', '.join(other)}",
            )
        absent = sorted(wanted - found)
        if absent and not other:
            yield "evidence", f"task_population.{name} has {', '.join(absent)}, and no run is of it"


def _process_coverage(profile: Profile, boundary: Boundary) -> Iterator[tuple[str, str]]:
    tally, least = profile.evidence.tally, boundary.minimum_evidence.verdict_coverage
    eligible = tally.runs - tally.infrastructure - tally.excluded
    asked = any(gate.indicator == "policy_compliance_rate" for gate in boundary.gates)
    if asked and tally.with_process_verdict is not None and tally.with_process_verdict < least * eligible:
        share = tally.with_process_verdict / eligible
        yield "evidence", f"minimum evidence: {share:.4g} of the runs have a process verdict, {least:g} is needed"
