"""What can go wrong with a cassette, and what stands for an exception that cannot be built again."""

from __future__ import annotations

from surefoot.evaluation.errors import EvaluationError, InfrastructureError


class CassetteError(InfrastructureError):
    """A cassette that cannot be read, written or used as asked: the set-up's fault, never the agent's."""


class CassetteMissError(InfrastructureError):
    """A call that the cassette does not hold, or holds without its result. Nothing was called.

    It is no failure of the agent: the recording says nothing about the way that the agent took.
    """


class IrreversibleError(EvaluationError):
    """A tool that cannot be undone, called while recording, without leave."""


class ReplayedError(Exception):
    """An exception of a recorded call whose type cannot be built here; ``type_name`` is the recorded one."""

    def __init__(self, type_name: str, message: str) -> None:
        super().__init__(f"{type_name}: {message}")
        self.type_name = type_name
        self.message = message
