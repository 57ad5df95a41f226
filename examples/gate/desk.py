"""An agent under test, in two versions: each answers a multiplication, and each slips now and then."""

from __future__ import annotations

import random
import re
from typing import Any


def answer(question: str, ctx: Any = None) -> str:
    """Multiply. Half of the time wrong where the first number ends in 0, 1, 5 or 6; right everywhere else."""
    first, second = map(int, re.findall(r"\d+", question))
    slips = 0.5 if first % 5 < 2 else 0.0
    return str(first * second + (_luck(ctx) < slips))


def newer(question: str, ctx: Any = None) -> str:
    """Multiply. A little wrong everywhere: better on average, and less often right five times in a row."""
    first, second = map(int, re.findall(r"\d+", question))
    return str(first * second + (_luck(ctx) < 0.14))


def is_right(output: str, ctx: Any) -> tuple[bool, str]:
    """Check an answer against the question."""
    first, second = map(int, re.findall(r"\d+", ctx.input))
    return output == str(first * second), f"expected {first * second}, found {output}"


def _luck(ctx: Any) -> float:
    # A model's luck comes from its endpoint. This one's is the attempt's seed, so that the page's figures are yours.
    return random.random() if ctx is None else random.Random(ctx.seed).random()
