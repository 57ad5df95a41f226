"""``surefoot case from-trace|seal``: a failing production trace as a regression case that can be replayed."""

from __future__ import annotations

from pathlib import Path

import typer

from surefoot.cli.config import load
from surefoot.errors import SurefootError


class NoSuchTraceError(SurefootError):
    """There is no such trace, or several."""

    exit_code = 1


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Regression cases: a trace's tools replayed, its failure checked.")
    group.command("from-trace")(from_trace)
    group.command("seal")(seal)
    app.add_typer(group, name="case")


def from_trace(
    trace_id: str = typer.Argument(metavar="TRACE_ID", help="A trace id, or its beginning."),
    out: Path = typer.Option(Path("cases"), "--out", help="Folder for the suite and its cassette."),
    agent: str | None = typer.Option(None, "--agent", help="The agent to run, as module:function."),
) -> None:
    """Write a suite with the trace's task and a cassette of its tool calls; say what the trace does not tell."""
    from surefoot.evaluation.replay.case import read_case
    from surefoot.evaluation.replay.case_files import AGENT_PLACEHOLDER, write_case
    from surefoot.processors.genai.explain_source import find_traces
    from surefoot.processors.lake import Lake

    settings = load()
    lake = Lake.open(settings.lake_path, create=False)
    wanted = trace_id.lower().partition("-")[0]
    found = list(find_traces(lake, wanted, 2))
    if len(found) != 1:
        which = "several traces begin" if found else "no trace begins"
        raise NoSuchTraceError(
            f"In {settings.lake_path} {which} with {wanted!r}; `surefoot explain` finds its whole id."
        )
    case = read_case(lake, found[0])
    suite, cassette = write_case(case, out, agent)
    missing = sum("missing" in entry.outcome for entry in case.entries)
    typer.echo(f"{suite}: {'; '.join(case.failures) or 'no failure seen'}")
    typer.echo(f"{cassette}: {len(case.entries)} tool calls, {missing} without a result")
    for gap in case.gaps:
        typer.echo(f"  not told: {gap}")
    if agent is None:
        typer.echo(f"  to do: name the agent in the suite, instead of {AGENT_PLACEHOLDER}")
    typer.echo(f"Run it: surefoot repeat {suite} --k 10")


def seal(path: Path = typer.Argument(metavar="CASSETTE", help="A cassette that was edited by hand.")) -> None:
    """Give an edited cassette its keys, occurrences and hash again."""
    from surefoot.evaluation.replay.cassette import seal as sealed

    typer.echo(f"{path}: {sealed(path)} calls")
