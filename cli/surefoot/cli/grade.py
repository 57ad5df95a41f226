"""``surefoot grade sample|adjudicate|report``."""

from __future__ import annotations

import getpass
import tempfile
import time
from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.table import Table
from rich.text import Text

from surefoot.cli.output import JSON_OPTION, console, number, print_json
from surefoot.errors import SurefootError

if TYPE_CHECKING:
    from surefoot.processors.evidence.estimate import Estimate
    from surefoot.processors.evidence.grading.adjudication import Answer, Checked
    from surefoot.processors.evidence.grading.reading import GradedRun
    from surefoot.processors.evidence.grading.report import ClassReport
    from surefoot.processors.settings import Settings

_DAYS: Final = 28
_SHOWN: Final = 20
_SINCE: Final = typer.Option(None, "--since", help="First UTC day on which runs ended; default: 28 days ago.")
_UNTIL: Final = typer.Option(None, "--until", help="Last UTC day; default: today.")
_WHERE: Final = typer.Option([], "--where", metavar="COLUMN=VALUE", help="Only runs with this value; may be repeated.")
_ANSWERS: Final = {"y": "pass", "n": "fail", "u": "unresolved"}


class GradeInputError(SurefootError):
    """An option that cannot be used."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Graders: audit their verdicts, and see what they are worth.")
    for command in (sample, adjudicate, report):
        group.command(command.__name__)(command)
    app.add_typer(group, name="grade")


def sample(
    out: Path = typer.Argument(metavar="FILE", help="Worksheet to write: .csv or .jsonl."),
    each: int = typer.Option(50, "--each", min=1, help="Runs of each task class and verdict."),
    precision: float = typer.Option(0.05, "--precision", help="How closely its share of errors is to be known."),
    seed: int = typer.Option(20260916, "--seed", help="Equal seeds and runs give equal samples."),
    grader: str | None = typer.Option(None, "--grader", help="Audit this grader; default: the verdict that counts."),
    show_verdict: bool = typer.Option(False, "--show-verdict", help="Show what the grader said; people tend to agree."),
    force: bool = typer.Option(False, "--force", help="Overwrite the file."),
    since: str | None = _SINCE,
    until: str | None = _UNTIL,
    where: list[str] = _WHERE,
) -> None:
    """Draw graded runs for a person to judge: seeded, by task class and verdict, of as many task groups as possible."""
    from surefoot.cli.config import load
    from surefoot.processors.evidence.grading.sampling import draw, needed, shuffled
    from surefoot.processors.evidence.grading.worksheet import write

    if out.exists() and not force:
        raise GradeInputError(f"{out} is there already, perhaps with answers in it. Name another, or add --force.")
    enough = needed(precision)
    drawn = draw(_graded(load(), since, until, where), each, seed=seed, grader=grader)
    runs = shuffled(drawn, seed)
    if not runs:
        raise GradeInputError(
            "No graded run is left to be drawn: there is none in these days, or all were audited. See `surefoot grade "
            "report`, or widen --since, --until and --where."
        )
    write(out, runs, grader=grader, show=show_verdict)
    shown = console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("task class", "verdict", "graded", "audited before", "drawn"):
        table.add_column(title, justify="left" if title in {"task class", "verdict"} else "right")
    for one in drawn:
        table.add_row(one.task_class or "–", one.verdict, f"{one.graded:,}", f"{one.audited:,}", f"{len(one.runs):,}")
    shown.print(table)
    shown.print(
        f"{out}: {len(runs):,} runs. To know a line's share of errors to {precision:g}, audit {enough:,} task groups "
        f"of it if none is wrong, {needed(precision, 0.05):,} if one in twenty is.",
        soft_wrap=True,
    )


def adjudicate(
    path: Path = typer.Argument(metavar="FILE", help="A worksheet of `grade sample`, with answers or without."),
    ask: bool = typer.Option(False, "--ask", help="Ask for each answer that is missing, and write it into the file."),
    by: str | None = typer.Option(None, "--by", help="Who answered; default: your user name."),
    replace: bool = typer.Option(False, "--replace", help="Let an answer supersede another one on the same run."),
    token: str | None = typer.Option(None, envvar="SUREFOOT_TOKEN", help="Token, if the running server asks for one."),
    since: str | None = _SINCE,
    until: str | None = _UNTIL,
    as_json: bool = JSON_OPTION,
) -> None:
    """Store a person's verdicts: y acceptable, n not, u cannot tell. Ends with 2 if a line could not be used."""
    from surefoot.cli.config import load
    from surefoot.processors.evidence.grading.adjudication import check
    from surefoot.processors.evidence.grading.worksheet import read

    settings = load()
    if ask:
        _ask(path)
    lines, bad = read(path)
    runs = {run.run_id: run for run in _graded(settings, since, until, [])}
    checked = check(lines, runs, replace=replace)
    if checked.answers:
        _store(settings, checked.answers, path, by or getpass.getuser(), token)
    bad = sorted([*bad, *checked.bad], key=lambda one: one.number)
    if as_json:
        told = {"stored": len(checked.answers), "stored_before": checked.stored, "open": checked.open}
        print_json({**told, "bad": [asdict(one) for one in bad]})
    else:
        _tell_adjudicated(path, checked)
        for one in bad[:_SHOWN]:
            typer.echo(f"{path}, line {one.number}: {one.why}", err=True)
        if len(bad) > _SHOWN:
            typer.echo(f"... and {len(bad) - _SHOWN} more lines", err=True)
    if bad:
        raise typer.Exit(2)


def report(
    k: int | None = typer.Option(None, "--k", min=1, help="Of Pass^k; default: the usual number of runs of a group."),
    budget: float | None = typer.Option(None, "--budget", help="Share of runs that the grader is to govern, as 0.02."),
    confidence: float = typer.Option(0.95, "--confidence", help="Of each two-sided interval."),
    fail: bool = typer.Option(False, "--check", help="End with 1 if a grader is not decision-grade."),
    since: str | None = _SINCE,
    until: str | None = _UNTIL,
    where: list[str] = _WHERE,
    as_json: bool = JSON_OPTION,
) -> None:
    """Each grader on each task class: agreement, kappa, both errors, and the yield and Pass^k behind its verdicts."""
    from surefoot.cli.config import load
    from surefoot.processors.evidence.grading.report import report as of

    if not 0.5 < confidence < 1 or (budget is not None and not 0 < budget < 1):
        raise GradeInputError("--confidence is between .5 and 1 and --budget between 0 and 1: .95 and not 95.")
    found = of(_graded(load(), since, until, where), k=k, budget=budget, confidence=confidence)
    if as_json:
        print_json([_as_data(one) for one in found])
    else:
        _print_report(found)
    if fail and not (found and all(one.decision_grade for one in found)):
        raise typer.Exit(1)


def _graded(settings: Settings, since: str | None, until: str | None, where: list[str]) -> list[GradedRun]:
    from surefoot.processors.evidence.grading.reading import read_graded
    from surefoot.processors.lake import Lake

    today = datetime.fromtimestamp(time.time(), UTC).date()
    last = today if until is None else _day(until)
    first = last - timedelta(days=_DAYS) if since is None else _day(since)
    pairs = [one.partition("=") for one in where]
    if any(not sign for _, sign, _ in pairs):
        raise GradeInputError("--where is COLUMN=VALUE, such as task_class=refund.")
    with Lake.open(settings.lake_path, create=False).connect() as con:
        return read_graded(con, first, last, where={name: value for name, _, value in pairs})


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise GradeInputError(f"{text!r} is no day; write it as 2026-09-30.") from error


def _ask(path: Path) -> None:
    from surefoot.processors.evidence.grading.worksheet import fill, read

    left = [line for line in read(path)[0] if line.verdict is None]
    answers: dict[str, str] = {}
    typer.echo(f"{len(left)} runs. y acceptable, n not acceptable, u cannot tell, q stop.")
    for place, line in enumerate(left, 1):
        said = ""
        while said not in {*_ANSWERS, "q"}:
            said = typer.prompt(f"{place} of {len(left)}, run {line.run_id}: y/n/u/q").strip().lower()
        if said == "q":
            break
        answers[line.run_id] = _ANSWERS[said]
        fill(path, answers)  # after each, so that nothing is lost


def _store(settings: Settings, answers: list[Answer], path: Path, by: str, token: str | None) -> None:
    """As every other evaluation comes: through the running server's collector, or one of our own."""
    from surefoot.cli.importing import destination
    from surefoot.processors.evidence.grading.adjudication import otlp_lines
    from surefoot.processors.importing import Sender, read_file

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{path.stem}.audit.jsonl"
        file.write_text(otlp_lines(answers, by, time.time()), encoding="utf-8")
        with destination(settings) as (url, finish):
            sent = Sender(url, token, settings.tls_certificate).send_all(read_file(file), lambda _: None)
        finish()
    if sent.refused:
        why = "; ".join(one.reason for one in sent.refused[:3])
        raise GradeInputError(f"The collector refused the answers of {path}: {why}. They are still in the file.")


def _tell_adjudicated(path: Path, checked: Checked) -> None:
    count = {word: sum(one.verdict == word for one in checked.answers) for word in _ANSWERS.values()}
    words = ", ".join(f"{times} {word}" for word, times in count.items() if times)
    typer.echo(
        f"{path}: {len(checked.answers)} verdicts stored{f' ({words})' if words else ''}, {checked.stored} were there "
        f"already, {checked.open} without an answer"
    )


def _print_report(found: list[ClassReport]) -> None:
    out = console()
    if not found:
        out.print("No graded run ended in these days.")
    for one in found:
        name = f"{one.grader} {one.version or ''}".strip()
        out.print(f"[bold]{one.task_class or 'no task class'}[/bold], grader {name} ({one.kind or 'of unknown kind'})")
        against = ", ".join(f"{times} by {who}" for who, times in one.against.items()) or "none"
        unresolved = f"{one.grader_unresolved} unresolved by the grader, {one.rates.unresolved} by adjudication"
        if one.disputed:
            unresolved += f", {one.disputed} of them because auditors disagree"
        out.print(f"{one.graded:,} runs graded, {one.audit.groups:,} groups; adjudicated {against}; {unresolved}")
        table = Table(box=None, pad_edge=False, header_style="bold")
        for title in ("", "value", "interval", "method", "n"):
            table.add_column(title, justify="right" if title in {"value", "n"} else "left", no_wrap=True)
        table.add_column("remark")
        for title, estimate in _rows(one):
            table.add_row(title, *_cells(estimate))
        out.print(table)
        verdict = "[green]decision-grade[/green]" if one.decision_grade else "[bold red]not decision-grade[/bold red]"
        out.print(f"{verdict}: ", end="")
        out.print(Text("; ".join(one.reasons)), soft_wrap=True)
        out.print()


def _rows(one: ClassReport) -> list[tuple[str, Estimate]]:
    rates = one.rates
    return [
        ("agreement", rates.agreement),
        ("kappa", rates.kappa),
        ("false-accept rate", rates.false_accept),
        ("false-reject rate", rates.false_reject),
        ("Youden index", rates.youden),
        ("accepted and right", rates.accepted_right),
        ("rejected and right", rates.rejected_right),
        ("yield, corrected", rates.corrected_yield),
        (f"Pass^{one.k}, corrected", one.strict),
    ]


def _cells(estimate: Estimate) -> tuple[str, str, str, str, Text]:
    bounds, method = "–", "–"
    for interval in estimate.intervals[:1]:
        bounds = f"{number(interval.low, '{:.4f}')} to {number(interval.high, '{:.4f}')}"
        method = f"{100 * interval.confidence:g} % {interval.method.replace('_', ' ')}"
    value = number(estimate.value, "{:.4f}")
    return value, bounds, method, f"{estimate.runs:,}", Text(estimate.reason or "", style="dim")


def _as_data(one: ClassReport) -> dict[str, Any]:
    data = {
        name: getattr(one, name)
        for name in ("task_class", "grader", "version", "kind", "graded", "disputed", "against", "k")
    }
    data |= {"groups": one.audit.groups, "unresolved": one.rates.unresolved, "audited": one.rates.audited}
    data |= {"grader_unresolved": one.grader_unresolved, "graded_yield": one.graded_yield}
    data |= {"smallest_budget": one.grader_error.smallest_budget}
    data |= {name: asdict(getattr(one.rates, name)) for name in _ESTIMATES}
    data |= {"pass_hat_k": asdict(one.strict), "decision_grade": one.decision_grade, "reasons": one.reasons}
    return data


_ESTIMATES: Final = (
    *("agreement", "kappa", "false_accept", "false_reject", "youden", "accepted_right", "rejected_right"),
    "corrected_yield",
)
