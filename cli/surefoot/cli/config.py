"""``surefoot config``: the settings in force, and where each came from."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table

from surefoot.cli.output import JSON_OPTION, console, print_json
from surefoot.errors import SurefootError

if TYPE_CHECKING:
    from surefoot.processors.settings import Settings


class SettingsError(SurefootError):
    """A setting has a value that cannot be used."""


def load(**flags: Any) -> Settings:
    """The settings, with the flags that were given laid over environment and file."""
    from pydantic import ValidationError

    from surefoot.processors.settings import Settings

    given = {name: value for name, value in flags.items() if value is not None}
    try:
        return Settings(**given)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}, got {e['input']!r}" for e in error.errors())
        raise SettingsError(
            f"The settings cannot be used: {problems}. "
            "Look at the SUREFOOT_* environment, surefoot.toml and the flags; `surefoot config` lists the names."
        ) from error


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("config")(show)


def show(as_json: bool = JSON_OPTION) -> None:
    """Print every setting: its value, what set it, what it means."""
    settings = load()
    fields = type(settings).model_fields
    rows = [
        {
            "name": name,
            "value": getattr(settings, name) if name != "lake" else settings.lake_path,
            "from": _origin(name, settings),
            "meaning": field.description or "",
        }
        for name, field in fields.items()
    ]
    if as_json:
        print_json(rows)
        return
    table = Table("setting", "value", "from", "meaning", box=None, pad_edge=False)
    for row in rows:
        table.add_row(str(row["name"]), str(row["value"]), str(row["from"]), str(row["meaning"]))
    console().print(table)


def _origin(name: str, settings: Settings) -> str:
    variable = f"SUREFOOT_{name.upper()}"
    if variable in os.environ:
        return variable
    return "surefoot.toml" if name in settings.model_fields_set else "default"
