"""``surefoot slo explain``: one SLO in plain words: what it counts, what is left, why it burns or does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer
from rich.table import Table
from rich.text import Text

from surefoot.cli.config import load
from surefoot.cli.output import JSON_OPTION, console, lasting, number, objective_percent, percent, print_json
from surefoot.cli.slo_spent import print_spent, spent_on
from surefoot.cli.slo_status import STATE_STYLE, demand, latest, print_widest, watermark
from surefoot.errors import SurefootError

if TYPE_CHECKING:
    from surefoot.processors.slo import Slo
    from surefoot.processors.slo.report import SloReport, StratumReport, TierReport

_FEW = 30
# What is said of a window: the first that fits.
_COLUMNS = (
    ("window", "good", "bad", "unlabelled", "excluded", "bad share", "at least–at most", "burn"),
    ("window", "good", "bad", "unlabelled", "bad share", "burn"),
    ("window", "bad", "bad share", "burn"),
)


class UnknownSloError(SurefootError):
    """There is no such SLO, or stratum of it."""

    exit_code = 1


def explain(
    name: str = typer.Argument(..., metavar="SLO", help="Name of the SLO."),
    stratum: str = typer.Option("", "--stratum", help="One stratum, as `slo status` names it; default: all together."),
    as_json: bool = JSON_OPTION,
) -> None:
    """Say what an SLO counts, where its numbers end, what is left of its budget, and why each tier burns or not."""
    from surefoot.processors.slo import load_slos
    from surefoot.processors.suggestions import suggestion

    settings = load()
    report = latest(settings.status_path)
    views = [slo for slo in report.slos if slo.slo == name]
    if not views:
        known = sorted({slo.slo for slo in report.slos})
        raise UnknownSloError(f"There is no SLO {name!r}. {suggestion(name, known) if known else 'None is computed.'}")
    keys = sorted({found.key for slo in views for found in slo.strata if found.key})
    if stratum and stratum not in keys:
        remedy = suggestion(stratum, keys) if keys else "It has none."
        raise UnknownSloError(f"{name} has no stratum {stratum!r}. {remedy}")
    defined = next((slo for slo in load_slos(settings.slos_path).slos if slo.name == name), None)
    spent = "" if stratum else spent_on(settings, defined, views[-1])  # the last view is that of the budget
    if as_json:
        told = {"not_told": spent} if isinstance(spent, str) else asdict(spent)
        print_json({"views": [asdict(slo) for slo in views], "spent": told})
        return
    _say(*_definition(views[0], defined))
    for slo in views:
        for found in slo.strata:
            if found.key == stratum:
                _explain_view(slo, found, report.computed_at)
    if isinstance(spent, str):
        _say(*[spent] * bool(spent))
    else:
        print_spent(spent)


def _say(*sentences: str | Text) -> None:
    for sentence in sentences:
        console().print(sentence if isinstance(sentence, Text) else Text(sentence))


def _definition(slo: SloReport, defined: Slo | None) -> Iterator[str | Text]:
    yield Text(f"{slo.slo}: {objective_percent(slo.objective)} good over {_period(slo, defined)}", style="bold")
    if slo.description:
        yield slo.description
    yield f"Indicator {slo.indicator}, service {slo.service}, budgeting {slo.budgeting}, generation {slo.generation}."
    if defined is None:
        yield "Its file is gone, or has problems: surefoot slo validate"
        return
    yield f"It counts {defined.population}. Defined in {defined.file}:{defined.line}."
    if defined.by:
        yield f"Divided by {', '.join(defined.by)}."
    if defined.selected:
        chosen = " and ".join(f"{column} is {' or '.join(values)}" for column, values in defined.selected)
        yield f"Only runs whose {chosen} are selected for grading; labels are expected of those alone."


def _period(slo: SloReport, defined: Slo | None) -> str:
    if defined is None or defined.calendar is None:
        return f"the last {slo.period}"
    begun = "" if slo.period_start is None else f", this one since {_clock(slo.period_start)}"
    return f"calendar periods of {slo.period} in {defined.calendar.zone}{begun}"


def _clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"


def _explain_view(slo: SloReport, stratum: StratumReport, computed_at: float) -> None:
    out = console()
    out.print()
    title = f"View {slo.view}" + (f", stratum {stratum.key}" if stratum.key else "")
    state = Text(stratum.state.replace("_", " "), style=STATE_STYLE.get(stratum.state, ""))
    out.print(Text(f"{title}:", style="bold"), state)
    _say(*_where_it_ends(slo, computed_at))
    print_widest(out, (_windows(stratum, columns) for columns in _COLUMNS))
    _say(*_budget(slo, stratum))
    for tier in stratum.tiers:
        out.print(_tier(tier))
    if not stratum.tiers:
        _say("No tier alerts from this view.")
    _say(*_left_out(slo, stratum))
    _say(*_more(slo, stratum, computed_at))


def _left_out(slo: SloReport, stratum: StratumReport) -> Iterator[str]:
    """What a period of a day or a few has no room for."""
    from surefoot.processors.slo.windows import WINDOWS

    shown = {window.window for window in stratum.windows[:-1]}
    missing = [name for name in WINDOWS if name not in shown]
    if missing:
        names = " and ".join(missing)
        yield f"The period is {slo.period}: windows of {names}, and tiers that look back so long, are left out."


def _where_it_ends(slo: SloReport, computed_at: float) -> Iterator[str]:
    end = slo.evaluated_at or computed_at
    if slo.view == "fast" and len(slo.views) > 1:
        yield f"Windows end at {_clock(end)}. Whatever is not known to be bad counts as good, so bad is a lower bound."
    else:
        yield f"Windows end at {_clock(end)}."
    if slo.budgeting != "Occurrences":
        yield "Shares and burn are of time slices that are over; the counts beside them are events."
    if slo.label_delay_seconds:
        sentence = watermark(slo)
        yield f"{sentence[0].upper()}{sentence[1:]}."
    if slo.watermark_stale:
        yield f"The watermark cannot be trusted: {slo.watermark_stale}."
    if slo.problem:
        yield f"No numbers: {slo.problem}."


def _windows(stratum: StratumReport, columns: tuple[str, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in columns:
        table.add_column(title, justify="left" if title == "window" else "right", no_wrap=True)
    for window in stratum.windows:
        counts = window.counts
        bounds = "–"
        if window.error_ratio_low is not None and window.error_ratio_high is not None:
            bounds = f"{100 * window.error_ratio_low:.2f}–{100 * window.error_ratio_high:.2f} %"
        cells = {
            "window": window.window,
            **{name: f"{getattr(counts, name):,}" for name in ("good", "bad", "unlabelled", "excluded")},
            "bad share": percent(window.error_ratio, 2),
            "at least–at most": bounds,
            "burn": number(window.burn_rate),
        }
        table.add_row(*(cells[title] for title in columns))
    return table


def _budget(slo: SloReport, stratum: StratumReport) -> Iterator[str]:
    period = stratum.windows[-1]
    left = stratum.error_budget_remaining_ratio
    if left is None:
        yield "Budget: undefined, because no event of the period is known to be good or bad."
        return
    mass = period.mass
    labelled = period.counts.good + period.counts.bad if mass is None else mass.good + mass.bad
    bad = period.counts.bad if mass is None else mass.bad
    unit = "events" if mass is None else "events by weight" if slo.budgeting == "Occurrences" else "time slices"
    allowed = (1 - slo.objective) * labelled
    yield f"Budget: {percent(left, 1)} is left. {bad:,.6g} {unit} were bad, {allowed:,.4g} of {labelled:,.6g} may be."
    low = stratum.budget_remaining_low
    if low is not None and low != left:
        yield f"Were all {period.counts.unlabelled:,} missing labels bad, {percent(low, 1)} would be left."
    if stratum.time_to_exhaustion_seconds is not None:
        yield f"If the last day's burn goes on, it is spent in {lasting(stratum.time_to_exhaustion_seconds)}."
    if stratum.interval_low is not None and stratum.interval_high is not None:
        span = f"{100 * stratum.interval_low:.2f} to {100 * stratum.interval_high:.2f} %"
        n = period.counts.good + period.counts.bad
        yield f"Good: 95 % interval {span} (Wilson, n {n:,}); it describes, no alert depends on it."


def _tier(tier: TierReport) -> Text:
    said, style = ("burns", "bold red") if tier.burning else ("frozen", "cyan") if tier.frozen else ("quiet", "green")
    text = Text(f"{tier.name}: ")
    text.append(said, style=style)
    factor = f"{tier.factor:.4g}"
    if tier.factor != tier.nominal_factor:
        factor += f" (would be {tier.nominal_factor:.4g})"
    text.append(f". A {tier.severity} where {tier.long_window} and {tier.short_window} burn faster than {factor}.")
    if tier.reason:
        text.append(f" {tier.reason[0].upper()}{tier.reason[1:]}.")
    return text


def _more(slo: SloReport, stratum: StratumReport, computed_at: float) -> Iterator[str]:
    if stratum.overdispersion is not None:
        n = stratum.overdispersion_n
        how = f"correlation {stratum.overdispersion:.3f} within an hour, from {n:,} hours"
        few = "; too few to say much" if n < _FEW else ""
        yield f"Failures together: {how}{few}. Above 0, failures come in bursts and alerts come more often."
    if stratum.consecutive_bad:
        n = stratum.consecutive_bad
        yield f"The last {n:,} events were bad." if n > 1 else "The newest event was bad."
    if stratum.last_event_at is not None:
        ago = lasting(max(0.0, computed_at - stratum.last_event_at))
        limit = stratum.silence_limit_seconds
        usual = "" if limit is None else f"; more than {lasting(limit)} of silence is unusual"
        yield f"The newest event ended {ago} before the report{usual}."
    for action in slo.actions:
        if action.stratum_key == stratum.key:
            yield f"Since {_clock(action.since)} {demand(action)}: {action.evidence}."
    for adjustment in slo.adjustments:
        yield f"Not counted: {adjustment}."
