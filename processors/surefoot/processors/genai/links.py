"""Who stands above a span, answered for all spans of many traces at once by pointer jumping.

A parent is the index of a node, or -1 for a root. Parents never form a circle: :func:`cut_circles` sees to that when
traces are put together, so nothing else has to think of it. Each question takes as many passes over the nodes as the
deepest chain has binary digits.
"""

from __future__ import annotations

import numpy as np

from surefoot.processors.genai.arrays import NONE, Bools, Ints, distinct


def nearest(parent: Ints, stops: Bools) -> Ints:
    """For each node the first of ``stops`` at or above it; where there is none, the root that the climb ends at."""
    own = np.arange(len(parent))
    here = np.where(stops | (parent < 0), own, parent)
    while True:
        further = here[here]
        if np.array_equal(further, here):
            return here
        here = further


def above(parent: Ints, stops: Bools, of: Ints) -> Ints:
    """For each node of ``of`` the first of ``stops`` strictly above it, or -1."""
    up = parent[of]
    end = nearest(parent, stops)[up]
    return np.where((up >= 0) & stops[end], end, NONE)


def mark_upwards(parent: Ints, of: Ints) -> Bools:
    """Which nodes stand above one of ``of``."""
    marked = np.zeros(len(parent), np.bool_)
    here = distinct(parent[of])
    while len(here := here[here >= 0]):
        here = here[~marked[here]]
        marked[here] = True
        here = distinct(parent[here])
    return marked


def depths(parent: Ints) -> Ints:
    """How many nodes stand above each."""
    depth = (parent >= 0).astype(np.int64)
    jump = parent.copy()
    while (jump >= 0).any():
        depth += np.where(jump >= 0, depth[jump], 0)
        jump = np.where(jump >= 0, jump[jump], NONE)
    return depth


def cut_circles(parent: Ints, start: Ints, number: Ints) -> Ints:
    """The parents; of nodes that are each other's ancestors (a broken exporter), the earliest becomes a root."""
    jump = parent
    for _ in range(len(parent).bit_length() + 1):
        if not (jump >= 0).any():
            return parent
        jump = np.where(jump >= 0, jump[jump], NONE)
    parent = parent.copy()
    waiting = set(jump[jump >= 0].tolist())  # after that many steps a climb that has not ended goes round in a circle
    while waiting:
        here = waiting.pop()
        circle = [here]
        while (here := int(parent[here])) != circle[0]:
            circle.append(here)
        waiting.difference_update(circle)
        parent[min(circle, key=lambda node: (start[node], number[node]))] = NONE
    return parent
