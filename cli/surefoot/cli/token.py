"""``surefoot token``: who may send to the collector."""

from __future__ import annotations

from pathlib import Path

import typer

from surefoot.cli.config import load
from surefoot.cli.output import JSON_OPTION, print_json

_HOME = typer.Option(None, help="Folder that holds the tokens file, as for serve.")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Bearer tokens that senders show to the collector.")
    group.command("add")(add)
    group.command("list")(show)
    group.command("revoke")(revoke)
    app.add_typer(group, name="token")


def add(
    name: str = typer.Argument(help="Names the source on every row that it sends."), home: Path | None = _HOME
) -> None:
    """Make a token and print it, once: only its hash is kept."""
    from surefoot.collector.auth import add_token

    path = load(home=home).tokens_path
    is_first = not path.exists()
    typer.echo(add_token(path, name))
    typer.echo(f"Its hash is in {path}. It cannot be shown again.", err=True)
    if is_first:
        typer.echo("From its next start on, `surefoot serve` takes only requests that show a token.", err=True)


def show(as_json: bool = JSON_OPTION, home: Path | None = _HOME) -> None:
    """List the names; the tokens themselves are not kept."""
    from surefoot.collector.auth import read_tokens

    path = load(home=home).tokens_path
    names = sorted(read_tokens(path)) if path.exists() else []
    if as_json:
        print_json(names)
        return
    if not names:
        typer.echo(f"There are no tokens in {path}; `surefoot token add NAME` makes one.", err=True)
    for name in names:
        typer.echo(name)


def revoke(name: str = typer.Argument(help="A name from `surefoot token list`."), home: Path | None = _HOME) -> None:
    """Forget a token: a running collector refuses it within seconds."""
    from surefoot.collector.auth import revoke_token

    revoke_token(load(home=home).tokens_path, name)
