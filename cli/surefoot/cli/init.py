"""``surefoot init``: from a function to a suite that can be repeated."""

from __future__ import annotations

from pathlib import Path

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("init")(init)


def init(
    agent: str = typer.Argument(metavar="MODULE:FUNCTION", help="The agent: agent(task_input), plain or async."),
    file: Path = typer.Argument(Path("suite.yaml"), metavar="[FILE]", help="The suite to write."),
    effects: str = typer.Option(
        "real",
        "--effects",
        help="What the agent's tools reach: none, fixture, replayed, simulated, withheld, real. Real is refused later.",
    ),
    k: int = typer.Option(10, "--k", min=1, help="Attempts of each task."),
) -> None:
    """Write a commented suite for an agent: tasks, checkers, protocol. Imports the agent first, overwrites nothing."""
    from surefoot.evaluation.loading import load_suite
    from surefoot.evaluation.scaffold import suite_text, write_new

    write_new(file, suite_text(agent, file, effects=effects, k=k))
    read = load_suite(str(file))
    typer.echo(f"Wrote {file}: {len(read.tasks)} task, k = {read.protocol.k}, for {agent}.")
    if effects == "real":
        typer.echo(f"Say in {file} what the agent's tools reach (protocol.effects); real is refused.")
    typer.echo(f"Then see whether it would do it again: surefoot repeat {file}")
