"""``surefoot boundary check``: may the agent act on its own? An answer for people, for scripts and for CI."""

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

from surefoot.cli.output import JSON_OPTION, console, lasting, number, print_json

if TYPE_CHECKING:
    from surefoot.processors.boundary.check import Decision
    from surefoot.processors.boundary.definition import Boundary
    from surefoot.processors.boundary.gates import GateResult, Missing
    from surefoot.processors.boundary.slo_actions import SloAction

_STYLE: Final = {"cleared": "green", "failed": "bold red", "undefined": "yellow"}


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Operating boundaries: what a profile allows the agent to do.")
    group.command("check")(check)
    app.add_typer(group, name="boundary")


def check(
    profile: Path = typer.Argument(metavar="PROFILE", help="A profile's file, YAML or JSON."),
    boundary: Path = typer.Argument(metavar="BOUNDARY", help="A boundary's file, YAML or JSON."),
    as_json: bool = JSON_OPTION,
    markdown: bool = typer.Option(False, "--markdown", help="Print Markdown, for a CI summary or a comment."),
    record: bool = typer.Option(False, "--record", help="Keep the decision in the lake's table decisions."),
) -> None:
    """Hold a profile against a boundary: ends with 0 if it is cleared, 1 if it is not, 2 if a file is wrong."""
    from surefoot.processors.boundary.check import check_boundary
    from surefoot.processors.boundary.definition import read_boundary
    from surefoot.processors.evidence.profile import read_profile

    read, now = read_boundary(boundary), time.time()
    today = datetime.fromtimestamp(now, UTC).date()
    decision = check_boundary(read_profile(profile), read, today, open_actions_of(read))
    if record:
        _record(decision, read, now)
    if as_json:
        print_json(asdict(decision))
    elif markdown:
        typer.echo(_markdown(decision))
    else:
        _print(decision)
    if not decision.cleared:
        raise typer.Exit(1)


def open_actions_of(boundary: Boundary) -> list[SloAction]:
    """Of a boundary that names SLOs. Raises UnreachableError if there is no lake to ask."""
    if not boundary.slos:
        return []
    from surefoot.cli.config import load
    from surefoot.processors.boundary.slo_actions import open_actions
    from surefoot.processors.lake import Lake

    return open_actions(Lake.open(load().lake_path, create=False), boundary.slos)


def _record(decision: Decision, boundary: Boundary, now: float) -> None:
    from surefoot.cli.config import load
    from surefoot.processors.boundary.record import decision_row
    from surefoot.processors.inbox import have_done

    have_done(
        load(),
        "record",
        {"table": "decisions", "row": decision_row(decision, boundary, now)},
        getpass.getuser(),
        tell=lambda _: None,
        clock=time.time,
        sleep=time.sleep,
    )


def _print(decision: Decision) -> None:
    out = console()
    # Text, not str: names and owners are other people's words, and may look like markup.
    out.print(Text(_headline(decision), style="bold"), soft_wrap=True)
    out.print(Text(f"{decision.joint_rule}."), soft_wrap=True)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("gate", "observed", "bound", "need", "method", "groups", ""):
        table.add_column(title, no_wrap=True)
    table.add_column("still missing")
    for gate in decision.gates:
        *cells, _, missing = map(Text, _cells(gate))
        table.add_row(*cells, Text(_status(gate), style=_STYLE[gate.status]), missing)
    out.print(table)
    for reason in decision.reasons:
        out.print(Text.assemble(("not cleared  ", "bold red"), f"{reason.what} ({reason.mode})"), soft_wrap=True)
    for note in decision.notes:
        out.print(Text(note, style="yellow"), soft_wrap=True)
    out.print(f"{decision.answer}: {decision.mode}, {decision.obligation}.", soft_wrap=True)
    out.print(Text(decision.claim), soft_wrap=True)


def _headline(decision: Decision) -> str:
    word = "cleared" if decision.cleared else "NOT cleared"
    failed = [gate.name for gate in decision.gates if gate.status != "cleared"]
    which = f"; gates that fail: {', '.join(failed)}" if failed else ""
    subject = f"{decision.profile_id} {decision.profile_version}"
    return f"{subject} against boundary {decision.boundary_id} {decision.boundary_version}: {word}{which}"


def _cells(gate: GateResult) -> list[str]:
    return [
        gate.name,
        number(gate.observed, "{:.6f}"),
        number(gate.bound, "{:.6f}"),
        f"{gate.comparison} {gate.required:g}",
        f"{gate.method} at {gate.confidence:.4f}",
        f"{gate.groups:,}",
        _status(gate),
        _missing(gate.missing) if gate.status != "undefined" else gate.why,
    ]


def _status(gate: GateResult) -> str:
    return f"{gate.status}, reproduction only" if gate.reproduction_only else gate.status


def _missing(missing: Missing | None) -> str:
    if missing is None:
        return ""
    if missing.groups is None:
        return missing.reason or ""
    cost = "" if missing.cost_usd is None else f", {missing.cost_usd:,.2f} USD in all"
    time_ = "" if missing.seconds is None else f", {lasting(missing.seconds)} one after the other"
    return f"{missing.groups:,} more groups, {missing.total_groups:,} in all{cost}{time_}, if the rate stays"


def _markdown(decision: Decision) -> str:
    titles = ("gate", "observed", "bound", "need", "method", "groups", "answer", "still missing")
    rows = [titles, tuple("---" for _ in titles), *(tuple(_cells(gate)) for gate in decision.gates)]
    table = "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)
    reasons = "\n".join(f"- {reason.what} ({reason.mode})" for reason in decision.reasons)
    end = f"**{decision.answer}**: {decision.mode}, {decision.obligation}."
    parts = [
        f"### {_headline(decision)}",
        f"{decision.joint_rule}.",
        table,
        reasons,
        *decision.notes,
        end,
        decision.claim,
    ]
    return "\n\n".join(part for part in parts if part)
