"""What an attempt's figures depend on, as far as this machine can tell: code, packages, machine, seeds, what was given.

Rule: what cannot be told is null, never guessed; values of environment variables are kept only where they cannot be
secrets. The id is a hash of all of it: equal ids, equal conditions.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any, Final

from surefoot.evaluation.suite import Suite, plain, suite_hash

_LOCKS: Final = ("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "requirements.lock", "requirements.txt")
_NAME_AND_VERSION: Final = re.compile(r"^(Name|Version):\s*(\S+)", re.MULTILINE)
_VARIABLES: Final = ("PYTHONHASHSEED", "TZ", "LANG", "LC_ALL", "PYTHONPATH", "SUREFOOT_INSTRUMENTORS")


def collect(
    suite: Suite, folder: Path, *, besides: Path | None = None, given: dict[str, str] | None = None
) -> dict[str, Any]:
    """Return the provenance of attempts made now.

    ``folder`` is the suite's; ``besides`` a folder whose files are no code (that of the runs). ``given``: what only the
    caller knows, such as ``image_digest`` and ``retrieval_snapshot``.
    """
    packages = sorted(set(filter(None, map(_named, distributions()))))
    lock = _lock_file(folder)
    found: dict[str, Any] = {
        **_git(folder, besides),
        "lock_file": None if lock is None else lock.name,
        "lock_hash": None if lock is None else _hash(lock.read_bytes()),
        "image_digest": os.environ.get("SUREFOOT_IMAGE_DIGEST"),
        "retrieval_snapshot": None,
        "python": sys.version,
        "platform": platform.platform(),
        "packages": packages,
        "environment": {name: os.environ[name] for name in _VARIABLES if name in os.environ},
        "environment_names": sorted(os.environ),
        "suite_hash": suite_hash(suite),
        "seed": suite.protocol.seed,
        "sampling": plain(suite.protocol.sampling),
        "versions": {variant.name: dict(variant.versions) for variant in suite.variants},
        "freeze": plain(suite.protocol.freeze),
        **(given or {}),
    }
    return {"id": _hash(json.dumps(found, sort_keys=True).encode()), **found}


def version(provenance: dict[str, Any]) -> str | None:
    """Return the code's version as one word: the commit, and what was changed since."""
    if provenance["commit"] is None:
        return None
    changed = provenance["dirty_hash"]
    return str(provenance["commit"])[:12] + ("" if changed is None else f"+{changed[:8]}")


def _named(package: Distribution) -> str | None:
    # ``name`` and ``version`` each parse the whole description.
    head = (package.read_text("METADATA") or package.read_text("PKG-INFO") or "").partition("\n\n")[0]
    found = dict(_NAME_AND_VERSION.findall(head))
    return f"{found['Name']}=={found['Version']}" if len(found) == 2 else None


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _lock_file(folder: Path) -> Path | None:
    for place in (folder.resolve(), *folder.resolve().parents):
        found = next((place / name for name in _LOCKS if (place / name).is_file()), None)
        if found is not None or (place / ".git").exists():
            return found
    return None


def _git(folder: Path, besides: Path | None) -> dict[str, Any]:
    """Return the commit, and a hash of what differs from it: changes, and new files that are not ignored."""
    nothing = {"commit": None, "branch": None, "dirty": None, "dirty_hash": None}
    commit = _asked(folder, "rev-parse", "HEAD")
    top = _asked(folder, "rev-parse", "--show-toplevel")
    if commit is None or top is None:
        return nothing
    root = Path(os.fsdecode(top))
    inside = besides is not None and besides.resolve().is_relative_to(root)
    but = [f":(exclude){besides.resolve().relative_to(root)}"] if inside and besides is not None else []
    changes = _asked(root, "diff", "HEAD", "--binary", "--", ".", *but) or b""
    listed = _asked(root, "ls-files", "-oz", "--exclude-standard", "--", ".", *but)
    new = [] if listed is None else listed.split(b"\0")
    whole = hashlib.sha256(changes)
    for name in filter(None, new):
        file = root / os.fsdecode(name)
        whole.update(name + b"\0" + (file.read_bytes() if file.is_file() else b""))
    dirty = bool(changes) or any(new)
    return {
        "commit": commit.decode(),
        "branch": (_asked(folder, "rev-parse", "--abbrev-ref", "HEAD") or b"").decode() or None,
        "dirty": dirty,
        "dirty_hash": whole.hexdigest()[:16] if dirty else None,
    }


def _asked(folder: Path, *question: str) -> bytes | None:
    """Return git's answer, None where there is no git, no repository, or no commit."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *question], capture_output=True, check=False)
    except OSError:
        return None
    return done.stdout.strip(b"\n") if done.returncode == 0 else None
