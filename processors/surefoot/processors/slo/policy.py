"""Error-budget policies: what an organisation has agreed to do when a budget is spent or burns.

Rule: an action begins when every condition of its rule holds, and ends only when one of them is clear of its threshold
by a margin, so that a number that trembles around a threshold does not switch a rollout on and off. A view that is
frozen, or that has no number, neither begins nor ends an action: not to know is not to be well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from surefoot.processors.documents import Document, at, items
from surefoot.processors.slo import policy_schema as schema
from surefoot.processors.slo.definition import error_budget
from surefoot.processors.slo.openslo_rules import Refused
from surefoot.processors.slo.refusals import parse
from surefoot.processors.slo.report import ActionReport, SloReport, StratumReport
from surefoot.processors.slo.windows import seconds, windows_within
from surefoot.processors.suggestions import suggestion

KIND: Final = "ErrorBudgetPolicy"
UNKNOWN_STATES: Final = ("frozen", "no_data")
_DOCS: Final = "docs/error-budget-policy.md"
# How far from its threshold a condition is clear, unless the rule says `until`.
_BUDGET_MARGIN: Final = 0.05
_BURN_MARGIN: Final = 0.8


@dataclass(frozen=True, slots=True)
class Budget:
    """Less than ``below`` of the budget is left; clear at ``until``. Shares of the whole, negative = overspent."""

    below: float
    until: float


@dataclass(frozen=True, slots=True)
class Burn:
    """The burn rate in ``window`` is above ``above``; clear at ``until``."""

    above: float
    window: str
    until: float


@dataclass(frozen=True, slots=True)
class Rule:
    """One action and its conditions; all that are there must hold."""

    action: str
    mode: str | None  # of tighten_mode: the mode that is the most
    budget: Budget | None
    burn: Burn | None
    states: tuple[str, ...]  # any of them; () = no condition
    at_least_seconds: int  # an action lasts no shorter


@dataclass(frozen=True, slots=True)
class ErrorBudgetPolicy:
    """Rules for the SLOs that it names, or for all of a service. No two rules have the same action and mode."""

    name: str
    slos: tuple[str, ...]
    service: str | None
    each_stratum: bool  # each stratum by itself beside the roll-up, else the roll-up alone
    rules: tuple[Rule, ...]
    file: str = field(default="", compare=False)
    line: int = field(default=0, compare=False)

    def applies_to(self, slo: str, service: str) -> bool:
        """Whether it is about an SLO."""
        return service == self.service if self.service is not None else slo in self.slos


@dataclass(frozen=True, slots=True)
class Change:
    """An action that began or ended; what table ``slo_actions`` records."""

    slo: str
    action: ActionReport
    ended_at: float | None  # None: it began, at action.since
    evidence: str  # of the beginning, or of the end


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The actions in force by SLO, and what changed since ``previous``."""

    active: dict[str, list[ActionReport]]
    changes: list[Change]


def read(document: Document, file: str) -> ErrorBudgetPolicy | list[Refused]:
    """The policy of a parsed document of this kind, or everything that is wrong with it.

    The caller gives each refusal its line by ``document.line(refused.path)``.
    """
    parsed = parse(schema.Document, document.data, _DOCS)
    if isinstance(parsed, list):
        return parsed
    spec = parsed.spec
    return ErrorBudgetPolicy(
        name=parsed.metadata.name,
        slos=tuple(spec.slos),
        service=spec.service,
        each_stratum=spec.strata == "each",
        rules=tuple(_rule(rule) for rule in spec.rules),
        file=file,
        line=document.line(("metadata", "name")),
    )


def check(policy: ErrorBudgetPolicy, slos: Mapping[str, tuple[str, float, str]]) -> Iterator[Refused]:
    """What does not fit the SLOs that can be used: by name, each its (service, objective, period)."""
    chosen = {name: slo for name, slo in slos.items() if policy.applies_to(name, slo[0])}
    for index, rule in enumerate(policy.rules):
        if rule.burn is not None:
            yield from _check_burn(rule.burn, ("spec", "rules", index, "when", "burn"), chosen)


def check_names(data: Any, slos: Collection[str], services: Collection[str]) -> Iterator[Refused]:
    """What a document refers to and is not there; also of one that has other mistakes.

    ``slos`` and ``services`` are those of all files: one that cannot be used has a problem of its own.
    """
    for path, name in items(data, ("spec", "slos")):
        if isinstance(name, str) and name not in slos:
            yield Refused(path, f"there is no SLO {name!r}", suggestion(name, slos))
    service = at(data, ("spec", "service"))
    if isinstance(service, str) and service not in services:
        what = f"no SLO is about the service {service!r}"
        yield Refused(("spec", "service"), what, suggestion(service, services))


def evaluate(
    policies: Sequence[ErrorBudgetPolicy],
    reports: Sequence[SloReport],
    previous: Mapping[str, Sequence[ActionReport]],
    now: float,
    files_are_whole: bool = True,
) -> Evaluation:
    """What the policies demand at ``now``. ``previous``: the actions in force before, by SLO (from ``slo_actions``).

    ``reports`` are those of all views. An action whose policy, rule or SLO is gone ends; but while there are files that
    cannot be used, nobody knows whether it is gone, and it stays.
    """
    active: dict[str, list[ActionReport]] = {}
    changes: list[Change] = []
    for slo, views in _by_slo(reports).items():
        before = {_identity(action): action for action in previous.get(slo, ())}
        held = list(_demanded(policies, views, before, now))
        if held:
            active[slo] = held
        changes += [Change(slo, action, None, action.evidence) for action in held if _identity(action) not in before]
    for slo, actions in previous.items():
        if not files_are_whole:
            missing = [action for action in actions if not _is_asked(policies, reports, slo, action)]
            if missing:
                active.setdefault(slo, []).extend(missing)
        held_now = {_identity(action) for action in active.get(slo, ())}
        changes += [
            Change(slo, action, now, _why_ended(policies, reports, slo, action))
            for action in actions
            if _identity(action) not in held_now
        ]
    return Evaluation(active, changes)


def _is_asked(
    policies: Sequence[ErrorBudgetPolicy], reports: Sequence[SloReport], slo: str, action: ActionReport
) -> bool:
    """Whether the rule that began an action, and its SLO, are there."""
    services = {report.service for report in reports if report.slo == slo}
    return any(
        (rule.action, rule.mode) == (action.action, action.mode)
        for policy in policies
        for rule in policy.rules
        if policy.name == action.policy and any(policy.applies_to(slo, service) for service in services)
    )


def _by_slo(reports: Sequence[SloReport]) -> dict[str, list[SloReport]]:
    found: dict[str, list[SloReport]] = {}
    for report in reports:
        found.setdefault(report.slo, []).append(report)
    return found


def _identity(action: ActionReport) -> tuple[str, str, str | None, str]:
    return action.policy, action.action, action.mode, action.stratum_key


def _demanded(
    policies: Sequence[ErrorBudgetPolicy],
    views: list[SloReport],
    before: Mapping[tuple[str, str, str | None, str], ActionReport],
    now: float,
) -> Iterator[ActionReport]:
    for policy in policies:
        if not policy.applies_to(views[0].slo, views[0].service):
            continue
        for key in _strata(policy, views, before.values()):
            for rule in policy.rules:
                known = before.get((policy.name, rule.action, rule.mode, key))
                findings = [_find(part, views, key, known is not None) for part in _parts(rule)]
                if _holds(findings, rule, known, now):
                    evidence = "; ".join(finding.sentence for finding in findings)
                    since = now if known is None else known.since
                    yield ActionReport(policy.name, rule.action, rule.mode, key, since, evidence)


def _strata(policy: ErrorBudgetPolicy, views: list[SloReport], before: Iterable[ActionReport]) -> list[str]:
    """The roll-up, and where asked for all strata that are there or that an action is in force for."""
    if not policy.each_stratum:
        return [""]
    seen = [stratum.key for view in views for stratum in view.strata]
    seen += [action.stratum_key for action in before if action.policy == policy.name]
    return list(dict.fromkeys(["", *seen]))


@dataclass(frozen=True, slots=True)
class _Finding:
    """Whether one condition holds; None: it cannot be told."""

    holds: bool | None
    sentence: str


def _parts(rule: Rule) -> list[Budget | Burn | tuple[str, ...]]:
    return [part for part in (rule.budget, rule.burn, rule.states) if part]


def _holds(findings: list[_Finding], rule: Rule, known: ActionReport | None, now: float) -> bool:
    if known is None:
        return all(finding.holds for finding in findings)
    return now - known.since < rule.at_least_seconds or not any(finding.holds is False for finding in findings)


def _find(part: Budget | Burn | tuple[str, ...], views: list[SloReport], key: str, in_force: bool) -> _Finding:
    """One condition on a stratum; ``in_force`` moves the threshold to where it is clear."""
    view = _view_for(part, views)
    stratum = next((item for item in view.strata if item.key == key), None)
    where = f"of {view.slo}{f' in {key}' if key else ''} ({view.view})"
    if stratum is None:
        return _Finding(None, f"{where}: no events")
    if isinstance(part, tuple):
        holds = _any(_in_state(name, view, stratum) for name in part)
        return _Finding(holds, f"state {where} is {stratum.state}, {_sizes(stratum, view.period)}")
    value, limit, sentence = _measure(part, view, stratum, where, in_force)
    if value is None or _unknown(view, stratum):
        return _Finding(None, f"{sentence}, state {stratum.state}")
    return _Finding(value < limit if isinstance(part, Budget) else value > limit, sentence)


def _unknown(view: SloReport, stratum: StratumReport) -> bool:
    return view.watermark_stale is not None or stratum.state in UNKNOWN_STATES


def _in_state(name: str, view: SloReport, stratum: StratumReport) -> bool | None:
    """By the tiers, because a report tells only the most urgent of several states."""
    if view.watermark_stale is not None or stratum.state == "no_data":
        return None
    if name == "exhausted":
        return None if stratum.state in ("frozen", "burning_page") else stratum.state == name
    severity = name.removeprefix("burning_")
    tiers = [tier for tier in stratum.tiers if tier.severity == severity]
    return _any(None if tier.frozen else tier.burning for tier in tiers)


def _any(answers: Iterable[bool | None]) -> bool | None:
    """True if one is; else None if one is not known."""
    found = list(answers)
    return True if True in found else None if None in found else False


def _measure(
    part: Budget | Burn, view: SloReport, stratum: StratumReport, where: str, in_force: bool
) -> tuple[float | None, float, str]:
    if isinstance(part, Budget):
        limit = part.until if in_force else part.below
        value = stratum.error_budget_remaining_ratio
        shown = "unknown" if value is None else f"{100 * value:.1f} %"
        rule = f"below {100 * part.below:g} %, until {100 * part.until:g} %"
        sizes = _sizes(stratum, view.period)
        return value, limit, f"error budget left {where} is {shown} ({rule}), {sizes}"
    limit = part.until if in_force else part.above
    window = next((item for item in stratum.windows if item.window == part.window), None)
    value = None if window is None else window.burn_rate
    shown = "unknown" if value is None else f"{value:.2f}"
    rule = f"above {part.above:g}, until {part.until:g}"
    return value, limit, f"burn rate {where} over {part.window} is {shown} ({rule}), {_sizes(stratum, part.window)}"


def _view_for(part: Budget | Burn | tuple[str, ...], views: list[SloReport]) -> SloReport:
    """The view that pages for a state of paging; for all else the one that holds the budget."""
    severity = "page" if isinstance(part, tuple) and "burning_page" in part else "ticket"
    return next((view for view in views if severity in view.severities), views[-1])


def _sizes(stratum: StratumReport, name: str) -> str:
    counts = next((item.counts for item in stratum.windows if item.window == name), None)
    if counts is None:
        return "no such window"
    unlabelled = f", {counts.unlabelled:,} unlabelled" if counts.unlabelled else ""
    return f"{counts.bad:,} bad of n {counts.good + counts.bad:,}{unlabelled}"


def _why_ended(
    policies: Sequence[ErrorBudgetPolicy], reports: Sequence[SloReport], slo: str, action: ActionReport
) -> str:
    views = [report for report in reports if report.slo == slo]
    if not views:
        return f"the SLO {slo} is gone"
    policy = next((item for item in policies if item.name == action.policy), None)
    if policy is None or not policy.applies_to(slo, views[0].service):
        return f"the policy {action.policy} is gone, or is not about {slo} any more"
    rule = next((item for item in policy.rules if (item.action, item.mode) == (action.action, action.mode)), None)
    if rule is None or (action.stratum_key and not policy.each_stratum):
        return f"the policy {action.policy} does not ask for it any more"
    findings = [_find(part, views, action.stratum_key, in_force=True) for part in _parts(rule)]
    return "; ".join(finding.sentence for finding in findings if finding.holds is False)


def _check_burn(
    burn: Burn, path: tuple[str | int, ...], chosen: Mapping[str, tuple[str, float, str]]
) -> Iterator[Refused]:
    for name, (_, objective, period) in chosen.items():
        if burn.window not in (*windows_within(period), period):
            known = ", ".join((*windows_within(period), period))
            yield Refused((*path, "window"), f"{name} has no window {burn.window}", f"write one of {known}")
        highest = float(1 / error_budget(objective))
        if burn.above >= highest:
            what = f"the burn rate of {name} (objective {100 * objective:.10g} %) can never be above {highest:g}"
            yield Refused((*path, "above"), what, f"write less, such as {highest / 2:g}")


def _rule(rule: schema.Rule) -> Rule:
    when = rule.when
    budget = burn = None
    if when.budget is not None:
        until = when.budget.until
        budget = Budget(when.budget.below, min(1.0, when.budget.below + _BUDGET_MARGIN) if until is None else until)
    if when.burn is not None:
        until = when.burn.until
        burn = Burn(when.burn.above, when.burn.window, when.burn.above * _BURN_MARGIN if until is None else until)
    lasts = 0 if rule.at_least is None else seconds(rule.at_least)
    return Rule(rule.action, rule.mode, budget, burn, tuple(when.state), lasts)
