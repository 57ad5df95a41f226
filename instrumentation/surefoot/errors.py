"""The root of every error that Surefoot raises on purpose.

This module belongs to no room, so that each room can hang its own hierarchy under one root without importing another
room. Rule: a message says what was attempted, on what, and what to do about it.
"""

from __future__ import annotations


class SurefootError(Exception):
    """Base of all expected errors.

    ``exit_code`` is what the command line ends with when the error reaches it: 1 the answer is no, 2 wrong use or bad
    input, 3 something needed is not reachable.
    """

    exit_code = 2


class UnreachableError(SurefootError):
    """Something that the operation needs is not there: a server, a lake, a program."""

    exit_code = 3
