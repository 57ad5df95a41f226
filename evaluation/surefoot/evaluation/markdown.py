"""A comparison as Markdown, for the comment on a pull request: the answer first, then tasks, figures, tests, versions.

Rule: what agents and tasks wrote is shown as text; it opens no table cell, no link and no HTML.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from surefoot.evaluation.compare import Comparison, Figure, PairedTest, TaskChange
from surefoot.evaluation.compare_rules import Finding, trade_text
from surefoot.evaluation.compare_sides import shown
from surefoot.processors.evidence.estimate import Interval

_SHOWN: Final = 20
_VERSIONS: Final = 50


def to_markdown(found: Comparison, findings: list[Finding]) -> str:
    """Return the comment."""
    broken = [finding for finding in findings if finding.broken]
    rules = ", ".join(finding.rule for finding in findings) or "none"
    head = f"### Surefoot: {'regression' if broken else 'no regression'}, by the rules {rules}"
    parts = [
        head,
        f"{escaped(found.baseline)} → {escaped(found.candidate)}; {len(found.tasks)} tasks, k = {found.k}",
        "\n".join(f"- **{finding.rule}**: {escaped(text)}" for finding in broken for text in finding.says[:_SHOWN]),
        "\n".join(f"> ⚠ {escaped(text)}" for text in warnings(found)),
        _tasks(found.tasks),
        table(FIGURE_TITLES, [figure_cells(figure) for figure in (found.mean, found.pass_hat_k)]),
        table(TEST_TITLES, [test_cells(test) for test in found.tests]),
        _lists(found),
        _versions(found),
        claims(found),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


TASK_TITLES: Final = ("task", "baseline", "", "candidate", "", "change", "p (Holm)", "first failure of the candidate")
FIGURE_TITLES: Final = ("figure", "baseline", "candidate", "change", "bootstrap over tasks", "proved (betting)")
TEST_TITLES: Final = ("exact McNemar", "pairs", "fell", "rose", "p", "p (Holm)", "")


def task_cells(task: TaskChange) -> list[str]:
    """Return a task's row."""
    one, two = task.baseline, task.candidate
    return [
        task.task_id,
        f"{one.c}/{one.n}",
        one.strip,
        f"{two.c}/{two.n}",
        two.strip,
        f"{task.change:+.2f}",
        f"{task.p_holm:.3f}",
        two.first_failure or "",
    ]


def figure_cells(figure: Figure) -> list[str]:
    """Return a figure's row."""
    return [
        figure.name,
        f"{figure.baseline:.3f} {bounds(figure.baseline_interval)}",
        f"{figure.candidate:.3f} {bounds(figure.candidate_interval)}",
        f"{figure.change:+.3f}",
        *(bounds(interval, "+.3f") for interval in figure.change_intervals),
    ]


def test_cells(test: PairedTest) -> list[str]:
    """Return a test's row."""
    p = ["–" if value is None else f"{value:.4f}" for value in (test.p, test.p_holm)]
    return [test.name, str(test.pairs), str(test.fell), str(test.rose), *p, test.reason]


def bounds(interval: Interval, form: str = ".3f") -> str:
    """Return an interval's bounds."""
    return "–" if interval.low is None or interval.high is None else f"[{interval.low:{form}}, {interval.high:{form}}]"


def warnings(found: Comparison) -> list[str]:
    """Return what a reader must not overlook."""
    return [*([trade_text(found)] if found.trade else []), *found.warnings]


def claims(found: Comparison) -> str:
    """Return by which methods the figures come about, and what they claim."""
    level = f"{100 * (1 - found.alpha):g} %"
    notes = {interval.note for figure in (found.mean, found.pass_hat_k) for interval in figure.change_intervals}
    told = "".join(f" {note[0].upper()}{note[1:]}." for note in sorted(notes) if note)
    return (
        f"Intervals are at {level}, two-sided, over tasks: of each side by betting, of Pass^k with n = k by "
        "Clopper-Pearson; of the change by resampling tasks with both their sides, and by betting, which holds with "
        "few tasks. Tasks: Fisher's exact test, adjusted by "
        "Holm over all tasks; a task whose p stays above the level is described, not accused." + told
    )


def _tasks(tasks: Sequence[TaskChange]) -> str:
    changed = [task for task in tasks if task.change]
    first = [task for task in changed if task.change < 0][:_SHOWN]
    rest = [task for task in tasks if task not in first]
    top = table(TASK_TITLES, [task_cells(task) for task in first]) if first else "No task fell."
    if not rest:
        return top
    more = table(TASK_TITLES, [task_cells(task) for task in rest[:200]])
    left = f"\n\n{len(rest) - 200} more." if len(rest) > 200 else ""
    return f"{top}\n\n<details><summary>{len(rest)} other tasks</summary>\n\n{more}{left}\n\n</details>"


def _lists(found: Comparison) -> str:
    named = {
        "Only in the baseline": found.only_baseline,
        "Only in the candidate": found.only_candidate,
        "Not judged on both sides": found.unjudged,
    }
    return "\n".join(f"- {what}: {escaped(shortened(tasks))}" for what, tasks in named.items() if tasks)


def shortened(names: Sequence[str]) -> str:
    """Return names as a list that stays readable."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _versions(found: Comparison) -> str:
    if not found.versions:
        return ""
    rows = [(each.what, _cut(each.baseline), _cut(each.candidate)) for each in found.versions[:_VERSIONS]]
    more = f"\n\n{len(found.versions) - _VERSIONS} more." if len(found.versions) > _VERSIONS else ""
    body = table(("what", "baseline", "candidate"), rows)
    return f"<details><summary>{len(found.versions)} versions differ</summary>\n\n{body}{more}\n\n</details>"


def _cut(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:80]}..."


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table of plain text."""
    lines = [titles, ["---"] * len(titles), *([escaped(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def escaped(text: str) -> str:
    """Return text that Markdown shows as it is, in one line."""
    flat = shown(text).replace("\\", "\\\\").replace("&", "&amp;").replace("<", "&lt;")
    for sign in "|*_`[]~@#":
        flat = flat.replace(sign, f"\\{sign}")
    # A backslash keeps no forge from linking these: names, numbers and addresses are found in what was rendered.
    for sign, parted in (("@", "@&#8203;"), ("#", "#&#8203;"), ("://", ":&#8203;//"), ("www.", "www&#8203;.")):
        flat = flat.replace(sign, parted)
    return flat
