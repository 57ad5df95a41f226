"""What can go wrong on purpose in an evaluation, and what an agent or a tool raises to say "that was not the agent"."""

from __future__ import annotations

from surefoot.errors import SurefootError


class EvaluationError(SurefootError):
    """Base of this room's errors."""


class SuiteError(EvaluationError):
    """A suite that cannot be used; the message has a line for each mistake."""


class EffectsError(EvaluationError):
    """A suite whose tools reach the world; repeating that k times is refused."""


class RecordsError(EvaluationError):
    """A run folder that cannot be read or written as asked."""


class InfrastructureError(EvaluationError):
    """Raise it from a tool, a fixture or an agent where what failed is the set-up, not the agent.

    The attempt is then counted as infrastructure: it is in no denominator, and it is reported.
    """


class AttemptTimeoutError(EvaluationError):
    """An attempt took longer than its protocol allows."""


class AgentExitError(EvaluationError):
    """The agent ended its process, or raised SystemExit, in the middle of an attempt."""
