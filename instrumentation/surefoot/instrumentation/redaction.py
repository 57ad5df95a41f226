"""What to take out of every text before it leaves the process: built-in patterns, and a callable of one's own.

This is the rule; ``cleaning.py`` applies it to copies of spans and log records inside the exporters.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

REDACTED: Final = "[REDACTED]"
Redact: TypeAlias = Callable[[str, str], str]
"""Takes an attribute's name and its text, returns what may leave the process."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """Text to take out. ``confirms`` has the last word on a match; ``in_ids=False`` leaves attributes that are ids."""

    name: str
    expression: re.Pattern[str]
    confirms: Callable[[str], bool] | None = None
    in_ids: bool = True

    def applied(self, text: str) -> str:
        """The text with every match replaced."""
        if self.confirms is None:
            return self.expression.sub(REDACTED, text)
        return self.expression.sub(self._replacement, text)

    def _replacement(self, match: re.Match[str]) -> str:
        return REDACTED if self.confirms is None or self.confirms(match.group()) else match.group()


def is_card_number(digits: str) -> bool:
    """Whether the last of 13 to 19 digits is the check digit of a payment card (Luhn, ISO/IEC 7812-1)."""
    if not 13 <= len(digits) <= 19:
        return False
    values = [int(digit) for digit in reversed(digits)]
    doubled = (value * 2 - 9 if value > 4 else value * 2 for value in values[1::2])
    return (sum(values[::2]) + sum(doubled)) % 10 == 0


def holds_card_number(text: str) -> bool:
    """Whether neighbouring groups of digits make a card number; a quantity may stand right before or after it."""
    groups = re.split(r"[ -]", text)
    ends = range(1, len(groups) + 1)
    return any(is_card_number("".join(groups[start:end])) for end in ends for start in range(max(0, end - 19), end))


PATTERNS: Final[tuple[Pattern, ...]] = (
    Pattern("bearer token", re.compile(r"(?i)\b(?:bearer|basic)\s+[a-z0-9._~+/-]{8,}=*")),
    Pattern(
        "API key",
        re.compile(
            r"\b(?:(?:sk|pk|rk|xox[abprs])[-_][A-Za-z0-9_-]{16,}|A[KS]IA[0-9A-Z]{16}\b|"
            r"gh[pousr]_[A-Za-z0-9]{20,}|AIza[A-Za-z0-9_-]{30,})"
        ),
    ),
    Pattern(
        "credential with its name",
        re.compile(r"(?i)\b(?:api[_-]?key|secret|password|access[_-]?token)[\"']?\s*[=:]\s*[\"']?[^\s\"',;&]{6,}"),
    ),
    Pattern("JSON web token", re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}")),
    Pattern("mail address", re.compile(r"\b[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+\b")),
    Pattern("card number", re.compile(r"(?<![\w.-])\d(?:[ -]?\d){12,}(?![\w-])"), holds_card_number, in_ids=False),
)


@dataclass(frozen=True, slots=True)
class Redaction:
    """What to take out of every text: ``patterns`` first, then ``call`` (attribute name, text) -> text."""

    patterns: tuple[Pattern, ...] = PATTERNS
    call: Redact | None = None

    def __call__(self, key: str, text: str) -> str:
        """The text as it may leave the process. Raises what ``call`` raises."""
        is_id = key.endswith((".id", "_id", ".run_group"))
        for pattern in self.patterns:
            if pattern.in_ids or not is_id:
                text = pattern.applied(text)
        return text if self.call is None else self.call(key, text)


BUILT_IN: Final = Redaction()
