"""Libraries that emit GenAI spans by themselves, and how each is switched on.

None is imported here: a hook runs when the program imports the library, so that starting stays cheap and a library that
the program does not use is never loaded.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

import wrapt

from surefoot.instrumentation import content

log = logging.getLogger("surefoot.instrumentation")


@dataclass(frozen=True, slots=True)
class NativeEmitter:
    """A library that emits. ``switch_on`` is None where a tracer provider is all that it needs."""

    distribution: str
    module: str
    switch_on: Callable[[Any], None] | None = None


def _pydantic_ai(module: Any) -> None:
    wanted = bool(content.capture_mode())
    settings = module.models.instrumented.InstrumentationSettings(
        include_content=wanted, include_binary_content=wanted, include_model_request_parameters=wanted
    )
    module.Agent.instrument_all(settings)


NATIVE: Final = (
    NativeEmitter("pydantic-ai-slim", "pydantic_ai", _pydantic_ai),
    NativeEmitter("google-adk", "google.adk"),
    NativeEmitter("strands-agents", "strands"),
    NativeEmitter("fastmcp", "fastmcp"),
    NativeEmitter("anthropic", "anthropic"),
    NativeEmitter("agent-framework-core", "agent_framework"),
)


def switch_on_when_imported() -> None:
    """Switch each library on when the program imports it, or now if it has."""
    for emitter in NATIVE:
        if emitter.switch_on is not None:
            wrapt.register_post_import_hook(_hook(emitter, emitter.switch_on), emitter.module)


def _hook(emitter: NativeEmitter, switch_on: Callable[[Any], None]) -> Callable[[ModuleType], None]:
    def on_import(module: ModuleType) -> None:
        try:
            switch_on(module)
        except Exception as error:  # noqa: BLE001 - the agent must run even if its library changed
            log.warning(
                "%s is not recorded: switching it on failed: %s: %s", emitter.distribution, type(error).__name__, error
            )

    return on_import
