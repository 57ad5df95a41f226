"""What an alert on an SLO says: plain words with the numbers of now, their sample size, and a query to paste.

Prometheus fills the texts in at each evaluation, by queries for the very line that fires. Rule: a number that there is
none of reads "unknown", and a count is exact.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from surefoot.processors.slo import Slo
from surefoot.processors.slo.indicator import label

EXACT: Final = 'printf "%.0f"'
SHORT: Final = 'printf "%.3g"'
PERCENT: Final = "humanizePercentage"


class Texts(NamedTuple):
    """Summary and description of an alert."""

    summary: str
    description: str


def dimensions(slo: Slo) -> list[str]:
    """Labels of the SLO's strata."""
    return [label(name) for name in slo.by]


def promise(slo: Slo) -> str:
    """How a description begins: what was promised, and the line that the queries after it are about."""
    return f"{_line(slo)}The objective of {slo.name} is {100 * slo.objective:.10g} % over {slo.period}."


def where(slo: Slo) -> str:
    """The stratum that fires, in brackets; nothing for the roll-up."""
    named = "".join(f"{{{{ with $labels.{name} }}}} ({name} {{{{ . }}}}){{{{ end }}}}" for name in dimensions(slo))
    return f"{slo.name}{named}"


def events(outcome: str, window: str) -> str:
    """A count of events: ``outcome`` one or several with ``|``, ``window`` a name or a variable of the template."""
    written, arguments = _window(window)
    matchers = f'outcome=~"{outcome}",{written}'
    return _first(_asked("sum(max by (outcome) (", "surefoot_slo_events", matchers, "))", arguments), EXACT)


def number(metric: str, shown: str, matchers: str = "", arguments: str = "") -> str:
    """The value of a gauge of the line that fires."""
    return _first(_asked("max(", metric, matchers, ")", arguments), shown)


def budget_left() -> str:
    """Share of the error budget, in per cent; negative when overspent."""
    return number("surefoot_slo_error_budget_remaining_ratio", PERCENT)


def burn_texts(slo: Slo, severity: str) -> Texts:
    """Which windows burn and by how much; or that it cannot be told any more."""
    burning = _asked(
        "max by (tier, long_window, short_window) (",
        "surefoot_slo_tier_burning",
        f'severity="{severity}"',
        ") == 1",
    )
    verb = "pages" if severity == "page" else "opens a ticket"
    numbers = (
        f"In {{{{ $long }}}} {events('bad', '$long')} bad of n {events('good|bad', '$long')}, burn rate "
        f"{number('surefoot_slo_burn_rate', SHORT, 'window=%q', '$long')}; in {{{{ $short }}}} burn rate "
        f"{number('surefoot_slo_burn_rate', SHORT, 'window=%q', '$short')}; above "
        f"{number('surefoot_slo_burn_rate_threshold', SHORT, 'tier=%q', '$tier')} in both, or after "
        f"enough bad events in a row where there are few, it {verb} (p "
        f"{number('surefoot_slo_tier_p_value', SHORT, 'tier=%q', '$tier')} that the budget's own rate does this). "
    )
    loop = (
        f"{{{{ range {burning} }}}}"
        "{{ $tier := .Labels.tier }}{{ $long := .Labels.long_window }}{{ $short := .Labels.short_window }}"
        f"{numbers}"
        "{{ else }}Whether it still burns cannot be told now, labels or numbers are missing; the alert stays until it "
        "can. {{ end }}"
    )
    urgent = "the error budget is burning fast" if severity == "page" else "the error budget will not last"
    text = f"{promise(slo)} {loop}A burn rate of 1 spends the budget exactly within the period."
    return Texts(f"{where(slo)}: {urgent}", text)


def exhausted_texts(slo: Slo) -> Texts:
    """What was spent, of how many."""
    text = (
        f"{promise(slo)} {budget_left()} of its error budget is left: {events('bad', slo.period)} bad of "
        f"n {events('good|bad', slo.period)}, {events('unlabelled', slo.period)} without a label. It is "
        "spent even if all of those are good."
    )
    return Texts(f"{where(slo)}: the error budget is spent", text)


def query(slo: Slo) -> str:
    """What to paste into a shell: the bad minutes of the line that fires, and how the SLO is counted."""
    sql = (
        "SELECT minute, stratum_key, good, bad, unlabelled FROM slo_minutes "  # noqa: S608 - names are [a-z0-9-]
        f"WHERE slo = '{slo.name}' AND view = '{{{{ $labels.view }}}}' AND bad > 0 ORDER BY minute DESC LIMIT 20"
    )
    return f'surefoot sql "{sql}"; surefoot slo explain {slo.name}'


def _window(window: str) -> tuple[str, str]:
    return ("window=%q", window) if window.startswith("$") else (f'window="{window}"', "")


def _asked(before: str, metric: str, matchers: str, after: str, arguments: str = "") -> str:
    """A template's query; ``$line`` selects the line that fires."""
    chosen = ",".join(["%s", *([matchers] if matchers else [])])
    given = " ".join(["$line", *([arguments] if arguments else [])])
    return f"printf `{before}{metric}{{{chosen}}}{after}` {given} | query"


def _line(slo: Slo) -> str:
    names = ["view", *dimensions(slo)]
    chosen = ",".join([f'slo="{slo.name}"', *(f"{name}=%q" for name in names)])
    return f"{{{{ $line := printf `{chosen}` {' '.join(f'$labels.{name}' for name in names)} }}}}"


def _first(asked: str, shown: str) -> str:
    return f"{{{{ with {asked} }}}}{{{{ . | first | value | {shown} }}}}{{{{ else }}}}unknown{{{{ end }}}}"
