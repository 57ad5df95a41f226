"""The OpenTelemetry distro: what ``surefoot run`` and ``opentelemetry-instrument`` load before the program.

Inert unless it is meant. OpenTelemetry takes the first distro and the first configurator it finds, so an installed one
can take over a program that belongs to another. Ours act only if ``OTEL_PYTHON_DISTRO`` or ``OTEL_PYTHON_CONFIGURATOR``
name them, or if no other distro and no other configurator is installed; otherwise they step aside for the one that
would have been first without them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

# The module turns its own types off.
from opentelemetry.instrumentation.distro import BaseDistro, DefaultDistro  # type: ignore[attr-defined]

from surefoot.instrumentation import choosing
from surefoot.instrumentation.errors import PipelineError

NAME: Final = "surefoot"
DISTRO_VARIABLE: Final = "OTEL_PYTHON_DISTRO"
CONFIGURATOR_VARIABLE: Final = "OTEL_PYTHON_CONFIGURATOR"
DISTRO_GROUP: Final = "opentelemetry_distro"
CONFIGURATOR_GROUP: Final = "opentelemetry_configurator"

log = logging.getLogger("surefoot.instrumentation")


def others(group: str) -> list[EntryPoint]:
    """The other distros (or configurators) that are installed, in the order in which OpenTelemetry meets them."""
    return [entry for entry in entry_points(group=group) if entry.name != NAME]


def why_inert(environ: Mapping[str, str], variable: str) -> str | None:
    """Why ours steps aside, in words; None if it is the one to act.

    ``variable`` is DISTRO_VARIABLE or CONFIGURATOR_VARIABLE. A configurator that is not named follows the distro.
    """
    for name in dict.fromkeys((variable, DISTRO_VARIABLE)):
        if environ.get(name):
            return None if environ[name] == NAME else f"{name} names {environ[name]!r}"
    rivals = dict.fromkeys(entry.name for group in (DISTRO_GROUP, CONFIGURATOR_GROUP) for entry in others(group))
    return f"not named, and also installed: {', '.join(rivals)}" if rivals else None


class SurefootDistro(BaseDistro):  # type: ignore[misc]  # see its import
    """Loads instrumentors one by one, at most one per library, and survives those that crash."""

    _choices: dict[tuple[str, str], choosing.Choice] | None = None

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Steps aside for the next distro unless ours is the one that is meant."""
        if why_inert(os.environ, DISTRO_VARIABLE) is None:
            return super().__new__(cls, *args, **kwargs)
        following = others(DISTRO_GROUP)
        return following[0].load()(*args, **kwargs) if following else DefaultDistro()

    def _configure(self, **_kwargs: Any) -> None:
        from surefoot.instrumentation.pipeline import set_defaults

        set_defaults(os.environ)

    def load_instrumentor(self, entry_point: EntryPoint, **kwargs: Any) -> None:
        """Activate one instrumentor if it is the chosen one. One that crashes is reported, and the others go on."""
        choice = self._choice(entry_point)
        if choice.why_off is not None:
            log.info("The instrumentor %s is off: %s.", choosing.distribution(entry_point), choice.why_off)
            return
        if choice.rivals:
            log.info("%s is used, and not %s.", choosing.distribution(entry_point), ", ".join(choice.rivals))
        try:
            super().load_instrumentor(entry_point, **kwargs)
        except ModuleNotFoundError as error:
            log.debug("The instrumentor %s is skipped: its library is not installed (%s)", entry_point.name, error.name)
        except Exception as error:  # noqa: BLE001 - one that crashes must not take the others down
            log.warning(
                "The instrumentor %s (%s) crashed and is off: %s: %s",
                entry_point.name,
                entry_point.value,
                type(error).__name__,
                error,
            )

    def _choice(self, entry_point: EntryPoint) -> choosing.Choice:
        if self._choices is None:
            entries = entry_points(group=choosing.GROUP)
            try:
                self._choices = choosing.choose(entries, os.environ)
            except ValueError as error:
                log.warning("%s. It is ignored.", error)
                self._choices = choosing.choose(entries, {})
        return self._choices.get(choosing.key(entry_point), choosing.Choice(None))


class SurefootConfigurator:
    """Sets the pipeline up and switches on libraries that emit by themselves."""

    def configure(self, **kwargs: Any) -> None:
        """Called by OpenTelemetry's auto-instrumentation before the program."""
        if why_inert(os.environ, CONFIGURATOR_VARIABLE) is not None:
            _step_aside(kwargs)
            return
        from surefoot.instrumentation.setup import set_up

        try:
            set_up(auto_instrumentation_version=kwargs.get("auto_instrumentation_version"))
        except PipelineError as error:
            log.error("Nothing is recorded, the program runs as it is. %s", error)


def _step_aside(kwargs: dict[str, Any]) -> None:
    """Let the configurator act that would have been first without ours, if there is one."""
    following = others(CONFIGURATOR_GROUP)
    if not following:
        return
    # OpenTelemetry believes that ours did the work and goes on to warn that the other one was not loaded.
    loader = logging.getLogger("opentelemetry.instrumentation.auto_instrumentation._load")
    loader.addFilter(lambda record: record.args != (following[0].name, NAME))
    following[0].load()().configure(**kwargs)
