"""What evaluations mean: the one table that says which names judge what, and which words are a pass.

Rule: a word or a score that is not known to mean a pass or a fail is ``unresolved``, never a pass. Attributes
``surefoot.evaluation.*`` of the event itself win over this table. Names are compared without case, and with anything
but letters and digits taken out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

OUTCOME: Final = "outcome"
PROCESS: Final = "process"
OTHER: Final = "other"
PASS: Final = "pass"  # noqa: S105 - a verdict, not a password
FAIL: Final = "fail"
UNRESOLVED: Final = "unresolved"
PROVISIONAL: Final = "provisional"
FINAL: Final = "final"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What an evaluation of some name says. A score from ``threshold`` on passes; without one only 1 and 0 decide."""

    kind: str
    severity: str | None = None
    finality: str = FINAL
    threshold: float | None = None


UNKNOWN: Final = Meaning(OTHER)

# Was the final state acceptable? Names that graders and benchmarks use for the end result.
_OUTCOME: Final = Meaning(OUTCOME)
# Were the rules kept on the way?
_PROCESS: Final = Meaning(PROCESS)

_MEANINGS: Final[dict[str, Meaning]] = {
    "acceptable": _OUTCOME,
    "acceptable outcome": _OUTCOME,
    "outcome": _OUTCOME,
    "task completion": _OUTCOME,
    "task success": _OUTCOME,
    "goal achieved": _OUTCOME,
    "goal success": _OUTCOME,
    "correctness": _OUTCOME,
    "final state": _OUTCOME,
    "resolved": _OUTCOME,
    "user feedback": Meaning(OUTCOME, finality=PROVISIONAL),
    "policy compliance": _PROCESS,
    "policy": _PROCESS,
    "procedure": _PROCESS,
    "process": _PROCESS,
    "rules kept": _PROCESS,
    "tool use": _PROCESS,
    "tool call accuracy": _PROCESS,
    "authorization": Meaning(PROCESS, severity="critical"),
}

_PASS_WORDS: Final = frozenset(
    [
        *("pass", "passed", "passing", "true", "ok", "success", "succeeded", "successful", "satisfied", "satisfactory"),
        *("met", "compliant", "acceptable", "accepted", "correct", "good", "resolved"),
    ]
)
_FAIL_WORDS: Final = frozenset(
    [
        *("fail", "failed", "failing", "failure", "false", "unsuccessful", "unsatisfied", "notsatisfied"),
        *("unsatisfactory", "notmet", "unmet", "noncompliant", "notcompliant", "violation", "violated", "unacceptable"),
        *("notacceptable", "rejected", "incorrect", "bad"),
    ]
)


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


_BY_NAME: Final = {_plain(name): meaning for name, meaning in _MEANINGS.items()}


def meaning(name: str) -> Meaning:
    """What an evaluation called ``name`` judges; kind ``other`` if the table does not know it."""
    return _BY_NAME.get(_plain(name), UNKNOWN)


def verdict(label: str | None, score: float | None, threshold: float | None) -> str:
    """``pass``, ``fail`` or ``unresolved``. The label decides if there is one, otherwise the score."""
    if label is not None and label.strip():
        return _of_word(label)
    if score is None:
        return UNRESOLVED
    if threshold is not None:
        return PASS if score >= threshold else FAIL
    return _of_number(score)


def _of_word(label: str) -> str:
    word = _plain(label)
    if word in _PASS_WORDS:
        return PASS
    if word in _FAIL_WORDS:
        return FAIL
    try:
        return _of_number(float(label))
    except ValueError:
        return UNRESOLVED


def _of_number(number: float) -> str:
    if number == 1.0:
        return PASS
    return FAIL if number == 0.0 else UNRESOLVED
