"""Commands that write, while another process holds the lake's lease: files in which they ask and are answered.

``requests/<id>.request.json`` asks, ``<id>.progress.json`` says what is being done, ``<id>.result.json`` answers. Each
is put in place whole and synced. Rule: a request stays until its answer is on the disk, so a holder that dies in the
middle does it again, and everything that can be asked for may be done twice.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from surefoot.processors.lake.durable import make_folder, sync, write_file

_REQUEST: Final = ".request.json"
_PROGRESS: Final = ".progress.json"
_RESULT: Final = ".result.json"


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for: a command of ``lake.operate``, its arguments, and who asks."""

    command: str
    arguments: dict[str, Any]
    by: str
    id: str = ""


def submit(folder: Path, request: Request) -> str:
    """Ask; returns the request's id."""
    make_folder(folder)
    identity = uuid4().hex
    _write(folder / f"{identity}{_REQUEST}", {**asdict(request), "id": identity})
    return identity


def pending(folder: Path) -> list[Request]:
    """The requests without an answer, in no order; what is no request is answered so, or it would stop the holder."""
    found = []
    for path in folder.glob(f"*{_REQUEST}"):
        identity = path.name.removesuffix(_REQUEST)
        try:
            request = Request(**{**json.loads(path.read_text()), "id": identity})
        except FileNotFoundError:
            continue  # its author took it back meanwhile
        except (ValueError, TypeError) as error:
            answer(folder, identity, {"error": f"The request cannot be read: {error}.", "exit_code": 1})
            continue
        if (folder / f"{request.id}{_RESULT}").exists():  # its author died between answer and removal
            path.unlink(missing_ok=True)
        else:
            found.append(request)
    return found


def tell(folder: Path, identity: str, progress: str) -> None:
    """Say what is being done."""
    _write(folder / f"{identity}{_PROGRESS}", {"progress": progress})


def answer(folder: Path, identity: str, result: dict[str, Any]) -> None:
    """Answer, and take the request away."""
    _write(folder / f"{identity}{_RESULT}", result)
    for suffix in (_REQUEST, _PROGRESS):
        (folder / f"{identity}{suffix}").unlink(missing_ok=True)


def progress(folder: Path, identity: str) -> str | None:
    """What is being done about the request; None while nobody has taken it up."""
    try:
        told: str = json.loads((folder / f"{identity}{_PROGRESS}").read_text())["progress"]
    except FileNotFoundError:
        return None
    return told


def take_answer(folder: Path, identity: str) -> dict[str, Any] | None:
    """The answer, once; None while there is none."""
    path = folder / f"{identity}{_RESULT}"
    try:
        result: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    path.unlink()
    return result


def withdraw(folder: Path, identity: str) -> None:
    """Take back a request that nobody works on."""
    for suffix in (_REQUEST, _PROGRESS):
        (folder / f"{identity}{suffix}").unlink(missing_ok=True)


def _write(target: Path, content: dict[str, Any]) -> None:
    def write(draft: Path) -> None:
        draft.write_text(json.dumps(content))

    write_file(target, write)
    sync(target.parent)
