"""Why a tier burns, does not burn or cannot be told, in one plain sentence with its numbers and sample sizes.

Rule: a sentence names the first condition that decided, and only numbers that the report shows, too.
"""

from __future__ import annotations

from surefoot.processors.slo.answer import Answer, Question, Sample, Window


def why(question: Question, least: Answer, most: Answer) -> str:
    """The sentence; ``least`` is the answer with the missing labels good, ``most`` with them bad."""
    if most.burning and question.may_become_a_page:
        return f"{question.needed} bad events in a row page, {question.tail.bad} are there; until then no ticket begins"
    if least.burning:
        return _why_burning(question, least)
    if most.burning:
        return _why_frozen(question, least, most)
    missing = question.long.counts.unlabelled
    same = f"; were the {missing} unlabelled ones bad, it would not burn either" if missing else ""
    return _why_quiet(question, least) + same


def _why_burning(question: Question, answer: Answer) -> str:
    tier = question.tier
    if answer.long_burns and answer.short_burns:
        return (
            f"{_bad(answer.long, question.long)} in the last {tier.long_window} and "
            f"{_bad(answer.short, question.short)} in the last {tier.short_window}: "
            f"burn {_short(answer.burns[0])} and {_short(answer.burns[1])} above {_short(tier.factor)}; "
            f"chance under the budget {answer.p:.2g} < {question.limit:.2g}"
        )
    return (
        f"the last {answer.streak} events were bad; at about {_short(question.tail.expected)} events in 6h, "
        f"{question.needed} in a row page"
    )


def _why_frozen(question: Question, least: Answer, most: Answer) -> str:
    tier = question.tier
    if least.long_burns and least.burns[1] is None and not question.short.counts.unlabelled:
        return (
            f"{_bad(least.long, question.long)} in the last {tier.long_window}: burn {_short(least.burns[0])} above "
            f"{_short(tier.factor)}, but no event in the last {tier.short_window} says whether it goes on"
        )
    if most.long_burns and most.short_burns:
        counts = question.long.counts
        return (
            f"{counts.unlabelled} of {counts.good + counts.bad + counts.unlabelled} events in the last "
            f"{tier.long_window} have no label yet: were they good, burn would be {_short(least.burns[0])}, were they "
            f"bad {_short(most.burns[0])}; the factor is {_short(tier.factor)}"
        )
    return f"the last {most.streak} events were bad or have no label yet; with fewer bad ones nothing burns"


def _why_quiet(question: Question, answer: Answer) -> str:
    tier = question.tier
    if answer.burns[0] is None:
        return f"no event in the last {tier.long_window}"
    text = f"{_bad(answer.long, question.long)} in the last {tier.long_window}: burn {_short(answer.burns[0])}"
    if answer.burns[0] <= tier.factor:
        return f"{text} is not above {_short(tier.factor)}"
    text += f" is above {_short(tier.factor)}"
    if answer.p >= question.limit:
        return f"{text}, but chance under the budget is {answer.p:.2g}, not < {question.limit:.2g}"
    if answer.long.bad_events < question.alerting.min_bad_events:
        return f"{text}, but at least {question.alerting.min_bad_events} bad events are asked for"
    return (
        f"{text}, but in the last {tier.short_window} {_bad(answer.short, question.short)}: "
        f"burn {_short(answer.burns[1] or 0.0)}"
    )


def _bad(window: Window, sample: Sample) -> str:
    if sample.mass is None:
        return f"{window.bad} of {window.total} events bad"
    return f"{window.bad:.1f} of {window.total:.1f} bad by weight (as good as {window.tested} events)"


def _short(number: float | None) -> str:
    return "-" if number is None else f"{number:.4g}" if number < 1000 else f"{number:.0f}"
