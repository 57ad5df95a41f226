"""``surefoot slo``: validate and init for files, status, explain and history for what became of them."""

from __future__ import annotations

from pathlib import Path

import typer

from surefoot.cli.config import load
from surefoot.cli.output import JSON_OPTION, print_json
from surefoot.cli.slo_explain import explain
from surefoot.cli.slo_history import history
from surefoot.cli.slo_init import init
from surefoot.cli.slo_status import latest, print_table, show_status
from surefoot.errors import UnreachableError

__all__ = ["latest", "print_table", "register"]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        no_args_is_help=True,
        help="Service level objectives: write and check the files, see where they stand, why, and since when.",
    )
    group.command("init")(init)
    group.command("validate")(validate)
    group.command("status")(show_status)
    group.command("explain")(explain)
    group.command("history")(history)
    app.add_typer(group, name="slo")


def validate(
    path: Path | None = typer.Argument(None, help="A file or folder; default: the slos/ folder of the settings."),
    as_json: bool = JSON_OPTION,
) -> None:
    """Check SLO files; ends with 2 and names file, line and remedy if one is wrong, and says what does nothing."""
    from surefoot.processors.slo import load_slos

    folder = path or load().slos_path
    if not folder.exists():
        raise UnreachableError(
            f"There are no SLO files at {folder}. Start with `surefoot slo init`, put OpenSLO v1 YAML there, or name "
            "another path."
        )
    loaded = load_slos(folder)
    if as_json:
        print_json(
            {
                "valid": [slo.name for slo in loaded.slos],
                "policies": [policy.name for policy in loaded.policies],
                "adjustments": [adjustment.name for adjustment in loaded.adjustments],
                "problems": [str(item) for item in loaded.problems],
                "unused": [str(item) for item in loaded.unused],
            }
        )
    else:
        for problem in loaded.problems:
            typer.echo(str(problem), err=True)
        for unused in loaded.unused:
            typer.echo(f"{unused} (no problem)")
        own = ""
        for count, words in ((len(loaded.policies), "error-budget policies"), (len(loaded.adjustments), "adjustments")):
            own += f", {count} {words}" if count else ""
        typer.echo(f"{len(loaded.slos)} valid{own}, {len(loaded.problems)} problems in {folder}")
    if loaded.problems:
        raise typer.Exit(2)
