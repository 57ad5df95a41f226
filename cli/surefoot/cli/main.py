"""The entry point: puts the commands together and turns expected errors into sentences and exit codes.

Exit codes: 0 fine; 1 the answer is no; 2 wrong use or bad input; 3 something needed is not reachable. Commands import
what they need when they run, so that ``surefoot run`` starts an agent without loading the server's libraries.
"""

from __future__ import annotations

import sys
from importlib.metadata import version

import typer

from surefoot.cli import (
    agent,
    artefacts,
    boundary,
    case,
    compare,
    config,
    demo,
    explain,
    grade,
    importing,
    init,
    lake,
    profile,
    repeat,
    serve,
    slo,
    sql,
    token,
)
from surefoot.errors import SurefootError

app = typer.Typer(
    name="surefoot",
    help="Will your agent do it again? Records agent runs, keeps SLOs and error budgets, pages on burn rates.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)

agent.register(app)
serve.register(app)
demo.register(app)
sql.register(app)
explain.register(app)
lake.register(app)
importing.register(app)
slo.register(app)
profile.register(app)
grade.register(app)
boundary.register(app)
case.register(app)
compare.register(app)
init.register(app)
repeat.register(app)
artefacts.register(app)
config.register(app)
token.register(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"surefoot {version('surefoot')}")
        raise typer.Exit


@app.callback()
def options(
    _version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Show the version."),
) -> None:
    """Options that stand before a command."""


# Libraries that only the extra brings; a base install that meets one of these is told what to install.
_SERVER_MODULES = frozenset(
    {
        *("aiohttp", "altair", "deltalake", "duckdb", "google", "grafana_foundation_sdk", "grpc", "jinja2", "numpy"),
        *("orjson", "platformdirs", "prometheus_client", "ptars", "pyarrow", "pydantic", "pydantic_settings", "scipy"),
        *("msgspec", "starlette", "uvicorn", "vl_convert", "yaml"),
    }
)

_EVALUATION_MODULES = frozenset({"httpx", "jsonschema", "time_machine"})


def main() -> None:
    """Run the command line; never returns."""
    try:
        app()
    except SurefootError as error:
        typer.echo(f"surefoot: {error}", err=True)
        sys.exit(error.exit_code)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _SERVER_MODULES | _EVALUATION_MODULES:
            raise
        extra = "evaluation" if missing in _EVALUATION_MODULES else "server"
        typer.echo(
            f"surefoot: this command needs {error.name}, one of the {extra} parts: pip install 'surefoot[{extra}]'",
            err=True,
        )
        sys.exit(3)
