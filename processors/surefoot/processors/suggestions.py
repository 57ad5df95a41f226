"""What somebody who wrote a wrong word may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggestion(wrong: str, known: Iterable[str]) -> str:
    """A question if something known is close, in either case of letters, then everything that is known."""
    names = sorted(known)
    spelled = {name.lower(): name for name in names}
    close = difflib.get_close_matches(wrong.lower(), spelled, n=1)
    question = f"did you mean {spelled[close[0]]}? " if close else ""
    return f"{question}known here: {', '.join(names) or 'none'}"


def close(wrong: str, known: Iterable[str], example: str) -> str:
    """The same where too much is known to list it: a question if something is close, else an example."""
    spelled = {name.lower(): name for name in known}
    found = difflib.get_close_matches(wrong.lower(), spelled, n=1)
    return f"did you mean {spelled[found[0]]}?" if found else f"write one such as {example}"
