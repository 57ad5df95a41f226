"""What each process of ``surefoot serve`` says about itself: one small JSON file each, replaced atomically.

The web process reads these files for its metrics and its page. They are a view, never a source: deleting them loses
nothing but the last few seconds of display.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def publish(folder: Path, process: str, content: dict[str, Any]) -> None:
    """Write ``content`` as ``<folder>/<process>.json`` so that a reader sees the old or the new text, never a mix."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{process}.json"
    draft = folder / f".{process}.{os.getpid()}.tmp"
    draft.write_text(json.dumps(content, allow_nan=False))
    draft.replace(target)


def read(folder: Path, process: str) -> dict[str, Any] | None:
    """The last published content of ``process``, or None if it never published or a power loss left no whole file."""
    try:
        content: dict[str, Any] = json.loads((folder / f"{process}.json").read_text())
    except (FileNotFoundError, ValueError):
        return None
    return content
