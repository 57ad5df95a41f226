"""``surefoot profile build|show|diff|verify|html``."""

from __future__ import annotations

import getpass
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer
from rich.table import Table
from rich.text import Text

from surefoot.cli.output import JSON_OPTION, console, number, print_json

if TYPE_CHECKING:
    from surefoot.processors.evidence.profile import Indicators, Profile

_PROFILE: Final = typer.Argument(metavar="PROFILE", help="A profile's file, YAML or JSON.")
_OUT: Final = typer.Option("--out", "-o", help="File to write; its ending decides: .yaml or .json.")
_STRATA: Final = 12  # that `show` prints
_TASKS: Final = 10  # to look at first
_ANSWER_STYLE: Final = {"yes": "green", "no": "bold red", "not recorded": "yellow"}


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Reliability profiles: what repeated runs show, and what from.")
    for command in (build, show, diff, verify, html):
        group.command(command.__name__)(command)
    app.add_typer(group, name="profile")


def build(
    spec: Path = typer.Argument(metavar="SPEC.yaml", help="The written part, and which runs are the evidence."),
    out: Path | None = typer.Option(None, "--out", "-o", help="Default: PROFILE_ID-VERSION.yaml beside the spec."),
) -> None:
    """Count the runs that the spec selects, or the counts that it cites, and write the profile."""
    from surefoot.cli.config import load
    from surefoot.processors.evidence.building import build_profile, profile_row
    from surefoot.processors.evidence.profile import to_json, to_yaml
    from surefoot.processors.evidence.template import Spec
    from surefoot.processors.inbox import have_done
    from surefoot.processors.yaml_models import read_model

    read = read_model(spec, Spec)
    settings, now = load(), time.time()
    built = build_profile(read, settings.lake_path, now)
    target = out or spec.with_name(f"{built.profile_id}-{built.version}.yaml")
    _write(target, to_json(built) if target.suffix == ".json" else to_yaml(built))
    evidence = built.evidence
    if evidence.source == "lake":
        have_done(
            settings,
            "record",
            {"table": "profiles", "row": profile_row(built, now)},
            getpass.getuser(),
            tell=lambda _: None,
            clock=time.time,
            sleep=time.sleep,
        )
    typer.echo(f"{target}: {evidence.groups:,} groups, {evidence.tally.runs:,} runs, {built.content_hash}")


def show(path: Path = _PROFILE, as_json: bool = JSON_OPTION) -> None:
    """The indicators with their intervals and samples, by stratum, and the claim that they support."""
    from surefoot.processors.boundary.claim import claim
    from surefoot.processors.evidence.profile import read_profile

    profile = read_profile(path)
    if as_json:
        print_json(profile.model_dump(mode="json"))
        return
    out = console()
    _warn(profile, path)
    evidence = profile.evidence
    told = f" {profile.version}, owner {profile.owner}, review {profile.review_date}"
    out.print(Text.assemble((profile.profile_id, "bold"), told))
    out.print(f"{evidence.groups:,} groups, {evidence.tally.runs:,} runs, k = {profile.repeat_protocol.k.value}")
    out.print(_indicator_table(profile.indicators))
    out.print(Text(_silent(profile.indicators), style="dim"), soft_wrap=True)
    if len(profile.strata) > 1:
        worst = sorted(profile.strata, key=lambda one: one.indicators.strict_repeated_success_at_k.value or 0)
        if len(worst) > _STRATA:
            out.print(f"\n{_STRATA} of {len(worst)} strata, those with the least Pass^k; --json has all")
        for stratum in worst[:_STRATA] if len(worst) > _STRATA else profile.strata:
            name = _stratum_name(stratum.task_class, stratum.consequence_class, stratum.horizon)
            out.print(Text(f"\n{name}", style="bold"))
            out.print(_indicator_table(stratum.indicators))
    if first := _first(profile):
        out.print(Text(first), soft_wrap=True)
    if not profile.grader.decision_grade:
        out.print(Text(f"Not decision-grade: {'; '.join(profile.grader.reasons)}.", style="yellow"))
    out.print(Text(claim(profile, profile.operating_boundary.allowed_autonomous_mode or "autonomous")), soft_wrap=True)


def diff(
    before: Path = typer.Argument(metavar="BEFORE", help="The profile that something was decided about."),
    after: Path = typer.Argument(metavar="AFTER", help="The profile of now."),
    as_json: bool = JSON_OPTION,
) -> None:
    """What changed from one profile to another; ends with 1 if it revokes what was decided about the first.

    So does a profile that was edited after it was built.
    """
    from surefoot.processors.evidence.changes import changes
    from surefoot.processors.evidence.profile import read_profile

    first, second = read_profile(before), read_profile(after)
    edited = [_warn(first, before), _warn(second, after)]
    found = changes(first, second)
    if as_json:
        print_json({**asdict(found), "revokes": found.revokes})
    else:
        out = console()
        for one in found.revoking:
            out.print(Text.assemble(("revokes  ", "bold red"), str(one)))
        for one in found.other:
            out.print(Text.assemble(("changed  ", "dim"), str(one)))
        table = Table(box=None, pad_edge=False, header_style="bold")
        for title in ("indicator", "before", "after", "intervals"):
            table.add_column(title)
        for moved in found.indicators:
            if moved.before is not None or moved.after is not None:
                said = {True: "apart", False: "meet", None: "–"}[moved.apart]
                table.add_row(moved.indicator, number(moved.before, "{:.4f}"), number(moved.after, "{:.4f}"), said)
        out.print(table)
        end = "Revoked: boundaries that were cleared for the first say nothing about the second."
        out.print(end if found.revokes else "The subject is the same: nothing is revoked.")
    if found.revokes or any(edited):
        raise typer.Exit(1)


def verify(path: Path = _PROFILE, as_json: bool = JSON_OPTION) -> None:
    """Answer the repeated-run checklist from what the profile recorded; ends with 1 if an answer is no."""
    from surefoot.processors.evidence.checklist import verify as answers
    from surefoot.processors.evidence.profile import read_profile

    items = answers(read_profile(path))
    if as_json:
        print_json([asdict(item) for item in items])
    else:
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("answer", no_wrap=True)
        table.add_column("item", overflow="fold")
        table.add_column("from", overflow="fold")  # a hash is no use without its end
        for item in items:
            table.add_row(Text(item.answer, style=_ANSWER_STYLE[item.answer]), Text(item.question), Text(item.why))
        out = console()
        out.print(table)
        count = {answer: sum(item.answer == answer for item in items) for answer in _ANSWER_STYLE}
        out.print(", ".join(f"{number} {answer}" for answer, number in count.items()))
    if any(item.answer == "no" for item in items):
        raise typer.Exit(1)


def html(
    path: Path = _PROFILE,
    boundary: Path | None = typer.Option(None, "--boundary", help="Show its gates, too."),
    out: Path | None = typer.Option(None, "--out", "-o", help="Default: the profile's name with .html."),
) -> None:
    """Write the profile as one HTML file with charts; it needs no network."""
    from surefoot.cli.boundary import open_actions_of
    from surefoot.dashboards.reports import profile_page
    from surefoot.processors.boundary.check import check_boundary
    from surefoot.processors.boundary.definition import read_boundary
    from surefoot.processors.evidence.profile import read_profile

    profile = read_profile(path)
    today = datetime.fromtimestamp(time.time(), UTC).date()
    declared = None if boundary is None else read_boundary(boundary)
    decision = None if declared is None else check_boundary(profile, declared, today, open_actions_of(declared))
    target = out or path.with_suffix(".html")
    _write(target, profile_page(profile, decision))
    typer.echo(str(target))


def _warn(profile: Profile, path: Path) -> bool:
    """Say that a profile is not as it was built, and whether it is so."""
    from surefoot.processors.evidence.profile import is_intact

    if is_intact(profile):
        return False
    typer.echo(
        f"{path} was edited after it was built: it is evidence of nothing. See `surefoot profile verify`.", err=True
    )
    return True


def _write(target: Path, text: str) -> None:
    from surefoot.processors.yaml_models import FileError

    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise FileError(f"Cannot write {target}: {error}. Name a file in a folder that you may write to.") from error


def _first(profile: Profile) -> str:
    from surefoot.processors.boundary.claim import visible
    from surefoot.processors.evidence.suspects import suspects

    found = suspects(profile)
    if not found.total:
        return ""
    names = [
        f"{one.task_id} {one.outcomes.count('1')}/{one.outcomes.count('1') + one.outcomes.count('0')}"
        for one in found.groups[:_TASKS]
    ]
    more = f" and {found.total - len(names):,} more" if names and found.total > len(names) else ""
    many = f"{found.total:,} task{'' if found.total == 1 else 's'}"
    told = f": {visible(', '.join(names))}{more}" if names else ""
    return f"Look first at {many} that none or unusually few runs passed, which may be broken or wrongly graded{told}."


def _indicator_table(found: Indicators) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("indicator", "value", "interval", "method", "groups", "runs"):
        table.add_column(title, justify="right" if title in {"value", "groups", "runs"} else "left", no_wrap=True)
    table.add_column("remark")
    for name in _told(found):
        one = getattr(found, name)
        interval = next(iter(found.confidence_intervals.get(name, [])), None)
        bounds, method = "–", "–"
        if interval is not None:
            bounds = f"{number(interval.low, '{:.4f}')} to {number(interval.high, '{:.4f}')}"
            method = f"{100 * interval.confidence:g} % {interval.method.replace('_', ' ')}"
        cells = [name, number(one.value, "{:.4f}"), bounds, method, f"{one.groups:,}", f"{one.runs:,}"]
        table.add_row(*cells, Text(one.reason or "", style="dim"))
    return table


def _told(found: Indicators) -> list[str]:
    """The indicators about which there is something to say; of the others nothing was recorded."""
    from surefoot.processors.evidence.profile import INDICATORS

    return [name for name in INDICATORS if getattr(found, name).groups]


def _silent(found: Indicators) -> str:
    from surefoot.processors.evidence.profile import INDICATORS

    told = _told(found)
    absent = [f"{name} ({getattr(found, name).reason})" for name in INDICATORS if name not in told]
    return f"Not recorded: {', '.join(absent)}." if absent else ""


def _stratum_name(*parts: str | None) -> str:
    from surefoot.processors.boundary.claim import visible

    return visible(" / ".join(part or "–" for part in parts))
