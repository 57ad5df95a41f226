"""``surefoot slo init``: a commented starter of SLO files."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from surefoot.cli.config import load

if TYPE_CHECKING:
    from surefoot.processors.slo.scaffold import Service

_DAYS = 28


def init(
    path: Path | None = typer.Argument(None, help="Folder for the files; default: the slos/ folder of the settings."),
) -> None:
    """Write SLO files to start from, made from the services, agents and task classes in the lake.

    Never overwrites a file, and leaves out services that an SLO is about already.
    """
    from surefoot.processors.slo import load_slos
    from surefoot.processors.slo.scaffold import MOST_SERVICES, scaffold, without_slo

    settings = load()
    folder = path or settings.slos_path
    found = _look(settings.lake_path)
    new = without_slo(found, load_slos(folder).slos if folder.exists() else [])
    if found and not new:
        typer.echo(f"Every service of the last {_DAYS} days ({len(found)}) has an SLO in {folder} already.")
        return
    if not found:
        typer.echo(f"No run of the last {_DAYS} days is in {settings.lake_path}, so this is an example to fill in.")
    folder.mkdir(parents=True, exist_ok=True)
    written = [_write(folder / name, text) for name, text in scaffold(new).items()]
    if len(new) > MOST_SERVICES:
        left = ", ".join(service.name for service in new[MOST_SERVICES:][:5])
        typer.echo(f"{len(new) - MOST_SERVICES} services with fewer runs were left out: {left} ... Call it again.")
    if any(written):
        typer.echo("Read them, change what does not fit, and check them with: surefoot slo validate")


def _look(lake: Path) -> list[Service]:
    from surefoot.processors.errors import LakeNotFoundError
    from surefoot.processors.lake import Lake
    from surefoot.processors.slo.scaffold import look

    try:
        con = Lake.open(lake, create=False).connect()
    except LakeNotFoundError:
        return []
    return look(con, datetime.fromtimestamp(time.time(), UTC).date() - timedelta(days=_DAYS))


def _write(file: Path, text: str) -> bool:
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        typer.echo(f"{file} is there already and was left as it is.")
        return False
    typer.echo(f"Wrote {file}: {text.count('kind: SLO')} SLOs.")
    return True
