"""Which changes end a comparison with "no": the rules that a pipeline names.

``proved`` (a fall that an exact test shows), ``missing`` (a task that the candidate did not run or nobody judged),
``trade`` (mean up, Pass^k down), ``pass-hat-k:MARGIN``, ``mean:MARGIN`` and ``task:MARGIN`` (an observed fall by more
than the margin, 0 if left out).

Rule: only ``proved`` has a known rate of false alarms: where nothing changed it is at most alpha, half of it for the
McNemar tests and half for the tasks (two-sided families at alpha, of which only falls count). The others describe.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from surefoot.evaluation.compare import Comparison, TaskChange
from surefoot.evaluation.compare_sides import CompareError

DEFAULT: Final = ("proved", "missing")
_PLAIN: Final = ("proved", "missing", "trade")
_WITH_MARGIN: Final = ("pass-hat-k", "mean", "task")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule as it was asked for."""

    name: str
    margin: float = 0.0

    def __str__(self) -> str:
        return self.name if self.name in _PLAIN else f"{self.name}:{self.margin:g}"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found; ``broken`` where it says no."""

    rule: str
    broken: bool
    says: tuple[str, ...]
    tasks: tuple[str, ...] = ()


def parse_rules(texts: list[str]) -> list[Rule]:
    """Return the rules of ``--fail-on``; none for "none". Raises CompareError with the names that exist."""
    if texts == ["none"]:
        return []
    return [_parsed(text) for text in texts or DEFAULT]


def _parsed(text: str) -> Rule:
    name, _, margin = text.partition(":")
    if name in _PLAIN and not margin:
        return Rule(name)
    if name in _WITH_MARGIN and re.fullmatch(r"|0?\.\d+|0", margin):
        return Rule(name, float(margin or 0))
    plain, ranged = ", ".join(_PLAIN), ", ".join(f"{each}[:MARGIN]" for each in _WITH_MARGIN)
    raise CompareError(f"--fail-on {text}: there are {plain}, {ranged} with a margin below 1, as 0.05, and none.")


def check_rules(found: Comparison, rules: list[Rule]) -> list[Finding]:
    """Return what each rule found."""
    return [_CHECKS[rule.name](found, rule) for rule in rules]


def _proved(found: Comparison, rule: Rule) -> Finding:
    says = [
        f"McNemar, {test.name}: {test.fell} fell, {test.rose} rose, p = {test.p_holm:.4g} (Holm over the tests)"
        for test in found.tests
        if test.p_holm is not None and test.p_holm <= found.alpha and test.fell > test.rose
    ]
    says += [f"{_told(task)}, p = {task.p_holm:.4g} (Holm over {len(found.tasks)} tasks)" for task in found.fallen]
    return Finding(str(rule), bool(says), tuple(says), tuple(task.task_id for task in found.fallen))


def _missing(found: Comparison, rule: Rule) -> Finding:
    says = [f"{task}: {found.candidate} did not run it" for task in found.only_baseline]
    says += [f"{task}: not judged on both sides" for task in found.unjudged]
    return Finding(str(rule), bool(says), tuple(says), (*found.only_baseline, *found.unjudged))


def _trade(found: Comparison, rule: Rule) -> Finding:
    return Finding(str(rule), found.trade, (trade_text(found),) if found.trade else ())


def trade_text(found: Comparison) -> str:
    """Return the sentence about a mean that rose while Pass^k fell."""
    mean, passes = found.mean, found.pass_hat_k
    return (
        f"the mean rises from {mean.baseline:.3f} to {mean.candidate:.3f} while {passes.name} falls from "
        f"{passes.baseline:.3f} to {passes.candidate:.3f}: better on average, and less often the same twice"
    )


def _figure(found: Comparison, rule: Rule) -> Finding:
    figure = found.mean if rule.name == "mean" else found.pass_hat_k
    broken = figure.change < -rule.margin
    says = f"{figure.name} fell from {figure.baseline:.3f} to {figure.candidate:.3f} ({figure.change:+.3f})"
    return Finding(str(rule), broken, (says,) if broken else ())


def _task(found: Comparison, rule: Rule) -> Finding:
    fallen = [task for task in found.tasks if task.change < -rule.margin]
    return Finding(str(rule), bool(fallen), tuple(map(_told, fallen)), tuple(task.task_id for task in fallen))


def _told(task: TaskChange) -> str:
    one, two = task.baseline, task.candidate
    return f"{task.task_id}: {one.c}/{one.n} to {two.c}/{two.n}"


_CHECKS: Final = {
    "proved": _proved,
    "missing": _missing,
    "trade": _trade,
    "pass-hat-k": _figure,
    "mean": _figure,
    "task": _task,
}
