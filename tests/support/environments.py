"""Isolated environments with one agent framework each, installed from PyPI, kept beside the development environment."""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".venv" / "frameworks"


def environment(name: str, *requirements: str) -> Path:
    """The folder of programs of an environment with Surefoot (as it is here) and these requirements; made once."""
    folder = HOME / name
    HOME.mkdir(parents=True, exist_ok=True)
    wanted = hashlib.sha256("\n".join([sys.version, *requirements]).encode()).hexdigest()
    stamp = folder / "installed"
    with (HOME / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != wanted:
            _run(sys.executable, "-m", "venv", "--clear", str(folder))
            pip = (str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
            _run(*pip, "--editable", str(ROOT), *requirements)
            stamp.write_text(wanted)
    return folder / "bin"


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
