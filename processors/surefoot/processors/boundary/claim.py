"""The one sentence that a profile supports.

Rule: the sentence has the class, the versions, the policy, and of each number its interval, confidence and sample; what
was not recorded is said, not left out.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from surefoot.processors.evidence.profile import Profile
from surefoot.processors.evidence.template import Mode

_NAMED: Final = 5  # of a list; a sentence of a hundred task classes says nothing


def visible(text: str) -> str:
    """Characters that nobody sees as their codes: one that turns the direction of writing turns .977 into 779."""
    return "".join(
        one if one in "\n\t" or unicodedata.category(one) not in {"Cc", "Cf", "Zl", "Zp"} else f"\\u{ord(one):04x}"
        for one in text
    )


def claim(profile: Profile, mode: Mode) -> str:
    """The sentence of Doyle's section 15."""
    k = profile.repeat_protocol.k.value
    parts = (
        ("outcome_yield", "the measured outcome yield is"),
        ("strict_repeated_success_at_k", f"strict repeated success at k = {k} is"),
        ("consistent_wrong_rate", "the consistent-wrong rate is"),
        ("autonomous_coverage", "and autonomous coverage is"),
    )
    numbers = ", ".join(f"{words} {_number(profile, name)}" for name, words in parts)
    return visible(f"For {_subject(profile)} and the policy {mode}, {numbers}.")


def _subject(profile: Profile) -> str:
    population = profile.task_population
    task = _words(population.task_class, "an unnamed task class")
    consequence = _words(population.consequence_class, "")
    versions = ", ".join(f"{name} {value}" for name, value in sorted(profile.evidence.versions.items()))
    of = f" of consequence {consequence}" if consequence else ""
    return f"{task}{of}, the version set {versions or 'that nobody recorded'}"


def _words(value: str | list[str] | dict[str, str] | None, otherwise: str) -> str:
    if value is None:
        return otherwise
    if isinstance(value, dict):
        return ", ".join(f"{key} {item}" for key, item in value.items())
    if isinstance(value, str):
        return value
    if len(value) > _NAMED + 1:
        return f"{', '.join(value[:_NAMED])} and {len(value) - _NAMED} more"
    return " and ".join(value)


def _number(profile: Profile, name: str) -> str:
    indicator = getattr(profile.indicators, name)
    if indicator.value is None:
        return f"not known ({indicator.reason or 'not recorded'})"
    sample = f"n = {indicator.groups:,} groups, {indicator.runs:,} runs"
    for interval in profile.indicators.confidence_intervals.get(name, []):
        low, high = interval.low, interval.high
        if low is not None and high is not None:
            level = f"{100 * interval.confidence:g} % {interval.method.replace('_', ' ')}"
            return f"{indicator.value:.4f} ({low:.4f} to {high:.4f}, {level}, {sample})"
    return f"{indicator.value:.4f} (no interval, {sample})"
