"""What can go wrong on purpose on the agent's side. Recording itself never raises into the agent."""

from __future__ import annotations

from surefoot.errors import SurefootError, UnreachableError


class InstrumentationError(SurefootError):
    """Base of this room's errors."""


class PipelineError(InstrumentationError):
    """The telemetry pipeline cannot be set up as asked."""


class LaunchError(InstrumentationError, UnreachableError):
    """A program cannot be started, or not with Surefoot in it."""
