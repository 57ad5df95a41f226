"""What evaluations mean: the one table that says which names judge what, and which words are a pass.

Rule: a word or a score that is not known to mean a pass or a fail is ``unresolved``, never a pass. Attributes
``surefoot.evaluation.*`` of the evaluation itself win over this table. Names and words are compared without case, and
with anything but letters and digits taken out. docs/verdicts.md shows the table; a test holds the two together.
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
    """What an evaluation of some name says. A score from ``threshold`` on passes; without one only 1 and 0 decide.

    ``adverse``: the name is of something bad, so that graders disagree on whether a yes or a 1 means that it was found
    or that all is well. Such words and all numbers are unresolved then.
    """

    kind: str
    severity: str | None = None
    finality: str = FINAL
    threshold: float | None = None
    adverse: bool = False


UNKNOWN: Final = Meaning(OTHER)

# Was the final state acceptable? Names that graders and benchmarks use for the end result.
_OUTCOME: Final = Meaning(OUTCOME)
# Were the rules kept on the way?
_PROCESS: Final = Meaning(PROCESS)
_ADVERSE: Final = Meaning(OTHER, adverse=True)

MEANINGS: Final[dict[str, Meaning]] = {
    **dict.fromkeys(
        (
            *("acceptable", "acceptable outcome", "outcome", "final state", "resolved", "correctness"),
            *("task completion", "task success", "goal achieved", "goal success", "goal success rate"),
            *("goal accuracy", "agent goal accuracy", "intent resolution"),
        ),
        _OUTCOME,
    ),
    "user feedback": Meaning(OUTCOME, finality=PROVISIONAL),
    **dict.fromkeys(
        (
            *("policy compliance", "policy", "procedure", "process", "rules kept", "task adherence"),
            *("instruction following", "tool use", "tool call accuracy", "tool selection accuracy"),
            *("tool parameter accuracy", "tool correctness", "trajectory"),
        ),
        _PROCESS,
    ),
    "authorization": Meaning(PROCESS, severity="critical"),
    **dict.fromkeys(
        (
            *("hallucination", "toxicity", "bias", "harmfulness", "stereotyping", "refusal", "jailbreak"),
            *("prompt injection", "pii", "pii leakage", "violence", "self harm", "hate unfairness"),
        ),
        _ADVERSE,
    ),
}

# A plain yes or no, which says nothing unless the name is of something good.
YES: Final = ("true", "yes")
NO: Final = ("false", "no")
PASS_WORDS: Final = (
    *("pass", "passed", "passing", "ok", "success", "succeeded", "successful", "satisfied", "satisfactory"),
    *("met", "compliant", "acceptable", "accepted", "correct", "good", "resolved", "relevant", "grounded", "factual"),
    *("not hallucinated", "non-toxic", "not toxic", "not biased", "unbiased", "thumbs up"),
)
FAIL_WORDS: Final = (
    *("fail", "failed", "failing", "failure", "unsuccessful", "unsatisfied", "not satisfied", "unsatisfactory"),
    *("not met", "unmet", "non-compliant", "not compliant", "violation", "violated", "unacceptable", "not acceptable"),
    *("rejected", "incorrect", "wrong", "bad", "not resolved", "unresolved issue", "irrelevant", "not relevant"),
    *("unrelated", "ungrounded", "not grounded", "hallucinated", "toxic", "biased", "thumbs down"),
)


def plain(text: str) -> str:
    """How names and words are compared."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


_BY_NAME: Final = {plain(name): meaning for name, meaning in MEANINGS.items()}
_CLEAR: Final = {**{plain(word): PASS for word in PASS_WORDS}, **{plain(word): FAIL for word in FAIL_WORDS}}
_BARE: Final = {**dict.fromkeys(YES, PASS), **dict.fromkeys(NO, FAIL)}
# Amazon's and others' built-in graders are called so.
_BUILT_IN: Final = re.compile(r"^built-?in[./: ]+", re.IGNORECASE)


def meaning(name: str) -> Meaning:
    """What an evaluation called ``name`` judges; kind ``other`` if the table does not know it."""
    return _BY_NAME.get(plain(_BUILT_IN.sub("", name)), UNKNOWN)


def verdict(
    label: str | None,
    score: float | None,
    threshold: float | None,
    *,
    passed: str | None = None,
    adverse: bool = False,
) -> str:
    """``pass``, ``fail`` or ``unresolved``.

    A label decides if there is one; ``passed``, the grader's own reading of its result, where the label does not; and
    the score if there is neither.
    """
    for word, doubtful in ((label, adverse), (passed, False)):
        if word is not None and word.strip():
            said = _of_word(word, doubtful)
            if said != UNRESOLVED or not passed:
                return said
    if (label and label.strip()) or passed or score is None or adverse:
        return UNRESOLVED
    if threshold is not None:
        return PASS if score >= threshold else FAIL
    return _of_number(score)


def _of_word(label: str, adverse: bool) -> str:
    word = plain(label)
    if word in _CLEAR:
        return _CLEAR[word]
    if adverse:
        return UNRESOLVED
    if word in _BARE:
        return _BARE[word]
    try:
        return _of_number(float(label))
    except ValueError:
        return UNRESOLVED


def _of_number(number: float) -> str:
    if number == 1.0:
        return PASS
    return FAIL if number == 0.0 else UNRESOLVED
