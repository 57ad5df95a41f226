"""``python -m surefoot.collector``: flags to Config, errors to sentences and exit codes."""

from __future__ import annotations

import argparse
import dataclasses
import logging
import sys
import typing
from pathlib import Path

from surefoot.collector.config import Config
from surefoot.collector.server import serve
from surefoot.errors import SurefootError


def parser() -> argparse.ArgumentParser:
    """One flag for each field of Config: ``port_grpc`` is ``--port-grpc``."""
    made = argparse.ArgumentParser(prog="python -m surefoot.collector", description="Receive OTLP into a spool.")
    hints = typing.get_type_hints(Config, include_extras=True)
    for field in dataclasses.fields(Config):
        kind, text = hints[field.name].__origin__, hints[field.name].__metadata__[0]
        flag = f"--{field.name.replace('_', '-')}"
        if kind is bool:
            made.add_argument(flag, action=argparse.BooleanOptionalAction, help=text)
            continue
        (plain,) = {kind, *typing.get_args(kind)} & {int, float, str, Path}
        needed = field.default is dataclasses.MISSING
        shown = "" if needed or field.default in (None, "") else f" ({field.default})"
        made.add_argument(flag, type=plain, required=needed, help=text.replace("%", "%%") + shown)
    return made


def main() -> int:
    """Run a collector; returns the exit code."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="surefoot collector: %(levelname)s %(message)s")
    given = {name: value for name, value in vars(parser().parse_args()).items() if value is not None}
    try:
        serve(Config(**given))
    except SurefootError as error:
        logging.getLogger("surefoot.collector").error("%s", error)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
