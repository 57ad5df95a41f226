"""Repeated evidence: runs an agent k times per task, keeps everything, and never throws a failure away.

The public names of a suite in Python, and of an agent:

    from surefoot.evaluation import AttemptContext, Checker, Protocol, Suite, Task, Variant
"""

from __future__ import annotations

from surefoot.evaluation.agent import AttemptContext
from surefoot.evaluation.errors import EvaluationError, InfrastructureError, SuiteError
from surefoot.evaluation.records import Attempt, Failure, Verdict, read_attempts
from surefoot.evaluation.suite import Budget, Checker, Endpoint, Frozen, Protocol, Suite, Task, User, Variant

__all__ = [
    "Attempt",
    "AttemptContext",
    "Budget",
    "Checker",
    "Endpoint",
    "EvaluationError",
    "Failure",
    "Frozen",
    "InfrastructureError",
    "Protocol",
    "Suite",
    "SuiteError",
    "Task",
    "User",
    "Variant",
    "Verdict",
    "read_attempts",
]
