"""``surefoot run``: start a program with OpenTelemetry loaded before its first line, by replacing this process.

The mechanism is that of ``opentelemetry-instrument``: a folder with a ``sitecustomize`` module is put first on
PYTHONPATH. Since the process is replaced, signals, terminal and exit code are the program's own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from surefoot.instrumentation.distro import CONFIGURATOR_VARIABLE, DISTRO_VARIABLE, NAME
from surefoot.instrumentation.errors import LaunchError

_PYTHON = re.compile(r"python(\d+(\.\d+)*)?")


def launch(command: Sequence[str]) -> NoReturn:
    """Replace this process by the command.

    Raises LaunchError if there is no such program, if it cannot be executed, or if it is a Python of another
    environment in which Surefoot is not installed, for then nothing would be recorded.
    """
    program = find(command[0])
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(program, [command[0], *command[1:]], command_environment(os.environ))  # noqa: S606 - no shell wanted
    except OSError as error:
        raise LaunchError(f"{program} cannot be run: {error.strerror}. Name the interpreter that runs it.") from error


def find(name: str) -> str:
    """The path of a program by its name. Raises LaunchError (see :func:`launch`)."""
    program = shutil.which(name)
    if program is None:
        if Path(name).is_file():
            raise LaunchError(f"{name} is not executable. If it is a Python program: surefoot run python {name}")
        raise LaunchError(f"There is no program {name!r} on the PATH.")
    if _PYTHON.fullmatch(Path(program).name) and Path(program).parent != Path(sys.executable).parent:
        _check_python(program)
    return program


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


def _check_python(program: str) -> None:
    """Ask a Python of another folder whether it has Surefoot."""
    asked = subprocess.run(
        [program, "-c", "import surefoot.instrumentation"], capture_output=True, text=True, check=False
    )
    if asked.returncode != 0:
        lines = asked.stderr.strip().splitlines() or [f"exit code {asked.returncode}"]
        raise LaunchError(
            f"{program} cannot load Surefoot ({lines[-1]}). Install it there, or use {sys.executable}, which has it."
        )
