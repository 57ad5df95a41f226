"""Libraries that emit GenAI spans by themselves, and how each is switched on.

None is imported here: a hook runs when the program imports the library, so that starting stays cheap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import wrapt

from surefoot.instrumentation import content


@dataclass(frozen=True, slots=True)
class NativeEmitter:
    """A library that emits. ``switch_on`` is None where a configured provider is all that it needs."""

    distribution: str
    module: str
    switch_on: Callable[[Any], None] | None


def _pydantic_ai(module: Any) -> None:
    settings = module.models.instrumented.InstrumentationSettings(include_content=content.captures())
    module.Agent.instrument_all(settings)


NATIVE: Final = (
    NativeEmitter("pydantic-ai-slim", "pydantic_ai", _pydantic_ai),
    NativeEmitter("google-adk", "google.adk", None),
    NativeEmitter("strands-agents", "strands", None),
    NativeEmitter("fastmcp", "fastmcp", None),
    NativeEmitter("anthropic", "anthropic", None),
    NativeEmitter("agent-framework-core", "agent_framework", None),
)


def watch_imports(report: Callable[[str, BaseException], None]) -> None:
    """Switch each library on when it is imported. ``report`` is told of one that refuses."""
    for emitter in NATIVE:
        if emitter.switch_on is not None:
            wrapt.register_post_import_hook(_hook(emitter, emitter.switch_on, report), emitter.module)


def _hook(
    emitter: NativeEmitter, switch_on: Callable[[Any], None], report: Callable[[str, BaseException], None]
) -> Callable[[Any], None]:
    def on_import(module: Any) -> None:
        try:
            switch_on(module)
        except Exception as error:  # noqa: BLE001 - the agent must run even if its library changed; it is reported
            report(emitter.distribution, error)

    return on_import
