"""``surefoot run`` and ``surefoot doctor``: what people use on the agent's side; works in the base install."""

from __future__ import annotations

import typer

from surefoot.cli.output import JSON_OPTION


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("run", context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True})(run)
    app.command("doctor")(doctor)


def run(
    command: list[str] = typer.Argument(
        ..., metavar="COMMAND...", help="The program and its arguments, as you run it."
    ),
) -> None:
    """Run a program with its agents instrumented: surefoot run python my_agent.py."""
    from surefoot.instrumentation.launch import launch

    launch(command)


def doctor(
    as_json: bool = JSON_OPTION,
    endpoint: str | None = typer.Option(None, help="OTLP base address to try; default: the one the agent would use."),
) -> None:
    """Show what would be instrumented, what is skipped and why, and whether the collector answers."""
    from surefoot.cli.diagnosis import show

    show(as_json=as_json, endpoint=endpoint)
