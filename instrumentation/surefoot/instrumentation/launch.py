"""``surefoot run``: start a program with OpenTelemetry loaded before its first line, by replacing this process.

The mechanism is that of ``opentelemetry-instrument``: a folder with a ``sitecustomize`` module is put first on
PYTHONPATH.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from surefoot.errors import UnreachableError
from surefoot.instrumentation.distro import CONFIGURATOR_VARIABLE, DISTRO_VARIABLE, NAME


def launch(command: Sequence[str]) -> NoReturn:
    """Replace this process by the command. Raises UnreachableError if there is no such program."""
    program = shutil.which(command[0])
    if program is None:
        raise UnreachableError(f"There is no program {command[0]!r} on the PATH. Try: surefoot run python {command[0]}")
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(program, [program, *command[1:]], command_environment(os.environ))  # noqa: S606 - replacing is the point


def command_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment in which a Python program starts instrumented by Surefoot."""
    from opentelemetry.instrumentation import auto_instrumentation

    folder = str(Path(auto_instrumentation.__file__).parent)
    inherited = [part for part in environ.get("PYTHONPATH", "").split(os.pathsep) if part and part != folder]
    return {
        **environ,
        "PYTHONPATH": os.pathsep.join([folder, *inherited]),
        DISTRO_VARIABLE: NAME,
        CONFIGURATOR_VARIABLE: NAME,
    }
