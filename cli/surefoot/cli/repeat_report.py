"""What ``surefoot repeat`` prints at its end: each variant's figures with their sizes, and the worst tasks first."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from surefoot.cli.output import console, number, percent, print_json
from surefoot.cli.repeat_again import command

if TYPE_CHECKING:
    from surefoot.evaluation.records import Attempt
    from surefoot.evaluation.results import Summary
    from surefoot.evaluation.runner import Ran
    from surefoot.evaluation.suite import Suite
    from surefoot.processors.evidence.estimate import Interval

_WORST: Final = 10  # tasks that are shown


def report(ran: Ran, suite: Suite, source: str, as_json: bool) -> None:
    """Print what a run came to."""
    from surefoot.evaluation.perturb.ratios import of_suite
    from surefoot.evaluation.results import summaries
    from surefoot.evaluation.varied import varied

    found = summaries(ran.attempts, suite.protocol.k)
    kept = of_suite(suite, ran.attempts)
    differing = varied(ran.attempts) if suite.protocol.freeze is not None else []
    if as_json:
        print_json(_for_scripts(ran, found) | {"robustness": [asdict(each) for each in kept]})
        return
    out = console()
    for summary in found:
        _print(out, summary, source, name_variant=len(suite.variants) > 1)
    for each in kept:
        out.print(f"disturbed  {each}", markup=False, soft_wrap=True)
    for one in differing:
        kind = "world" if one.of_world else "agent"
        out.print(
            f"still varied ({kind})  {one.what}: in {one.tasks} of {one.of} tasks, e.g. {one.example}",
            soft_wrap=True,
        )
    out.print(f"Run folder: {ran.folder}", soft_wrap=True)
    undelivered = sum("undelivered" in attempt.extra for attempt in ran.attempts)
    if undelivered:
        out.print(
            f"[yellow]Runs of {undelivered} attempts may not have reached the server; the folder has them.[/yellow]"
        )
    if ran.lost:
        out.print(f"{ran.lost} attempts were under way when an earlier run broke off; they were run again.")
    if ran.retried:
        out.print(f"{ran.retried} tries that the infrastructure had ended were made again; the folder has all of them.")
    broken = sum(attempt.outcome == "infrastructure" for attempt in ran.attempts)
    if broken and ran.ended == "complete":
        tried = "1 attempt" if broken == 1 else f"{broken} attempts"
        out.print(
            f"[yellow]The infrastructure ended {tried}.[/yellow] To try again: "
            f"surefoot repeat {source} --folder {ran.folder}",
            soft_wrap=True,
        )
    if ran.drifted:
        out.print(
            "[yellow]The folder holds attempts of different code, packages or environment.[/yellow]", soft_wrap=True
        )
    if ran.ended != "complete":
        left = f"{ran.slots - len(ran.attempts)} attempts are left"
        more = f"surefoot repeat {source} --folder {ran.folder}"
        out.print(
            f"[yellow]{ran.ended}[/yellow]; {left}. To continue: {more}",
            soft_wrap=True,
        )


def _for_scripts(ran: Ran, found: list[Summary]) -> dict[str, Any]:
    def plain(summary: Summary) -> dict[str, Any]:
        told = asdict(summary)
        told["worst"] = [{"task_id": one.task_id, "acceptable": one.c, "judged": one.n} for one in summary.worst]
        return told

    return {
        "folder": str(ran.folder),
        "ended": ran.ended,
        "slots": ran.slots,
        "made": ran.made,
        "lost": ran.lost,
        "retried": ran.retried,
        "variants": [plain(summary) for summary in found],
    }


def _print(out: Console, summary: Summary, source: str, *, name_variant: bool) -> None:
    out.print(
        f"[bold]{summary.variant}[/bold]: {summary.groups} tasks, {summary.judged} judged attempts", soft_wrap=True
    )
    strict = summary.strict.reason or ""
    if summary.strict.value is not None:
        strict = _with(summary.strict_interval, summary.strict.groups)
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column()
    table.add_row("Mean@k", percent(summary.mean.value, 1), _with(summary.mean_interval, summary.mean.groups))
    table.add_row(f"Pass^{summary.k}", percent(summary.strict.value, 1), strict)
    classes = "  ".join(f"{name.replace('_', ' ')} {count}" for name, count in summary.classes.items() if count)
    table.add_row("classes", "", classes)
    apart = f"agent failed {summary.failed}  not judged {summary.missing}  infrastructure {summary.infrastructure}"
    table.add_row("attempts", "", apart)
    unknown = f", unknown for {summary.cost_unknown}" if summary.cost_usd is not None and summary.cost_unknown else ""
    table.add_row(
        "used", "", f"{summary.tokens} tokens, {number(summary.cost_usd, '{:.4f} USD', 'cost unknown')}{unknown}"
    )
    out.print(table)
    _print_worst(out, summary, source, name_variant=name_variant)


def _print_worst(out: Console, summary: Summary, source: str, *, name_variant: bool) -> None:
    bad = [one for one in summary.worst if one.c < one.n]
    if not bad:
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("worst tasks", "acceptable", "first failure"):
        table.add_column(title)
    for one in bad[:_WORST]:
        table.add_row(Text(one.task_id), f"{one.c} of {one.n}", Text(_why(one.attempt)))
    out.print(table)
    if len(bad) > _WORST:
        out.print(f"and {len(bad) - _WORST} more")
    first = next((one.attempt for one in bad if one.attempt is not None), None)
    if first is not None:
        told = command(source, first, name_variant=name_variant)
        out.print(f"to look at the first: {told}", markup=False, soft_wrap=True)


def _why(attempt: Attempt | None) -> str:
    if attempt is None:
        return ""
    from surefoot.evaluation.compare_sides import shown

    if attempt.error is not None:
        return shown(f"{attempt.error.type}: {attempt.error.message}")[:200]
    failed = (f"{each.name}: {each.explanation}" for each in attempt.verdicts if each.verdict == "fail")
    return f"#{attempt.repetition} " + shown("; ".join(failed))[:200]


def _with(interval: Interval | None, groups: int) -> str:
    if interval is None or interval.low is None or interval.high is None:
        return f"n = {groups} tasks"
    bounds = f"{percent(interval.low, 1)} to {percent(interval.high, 1)}"
    return f"{bounds} ({interval.confidence:.0%}, {interval.method}, n = {groups} tasks)"
