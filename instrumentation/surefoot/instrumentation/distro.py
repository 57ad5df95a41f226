"""The OpenTelemetry distro: what ``surefoot run`` and ``opentelemetry-instrument`` load before the program.

Inert unless it is meant. OpenTelemetry takes the first distro it finds, so an installed one could take over a program
that belongs to another. Ours acts only if ``OTEL_PYTHON_DISTRO`` names it or no other distro is installed; otherwise
it steps aside for the one that would have been first without it.
"""

from __future__ import annotations

import logging
import os
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from opentelemetry.instrumentation.distro import BaseDistro, DefaultDistro

log = logging.getLogger("surefoot.instrumentation")

NAME = "surefoot"
DISTRO_VARIABLE = "OTEL_PYTHON_DISTRO"
CONFIGURATOR_VARIABLE = "OTEL_PYTHON_CONFIGURATOR"
_GROUPS = {DISTRO_VARIABLE: "opentelemetry_distro", CONFIGURATOR_VARIABLE: "opentelemetry_configurator"}

# Why an instrumentor or a library could not be switched on, by its name.
problems: dict[str, str] = {}
active: list[str] = []


def others(variable: str) -> list[EntryPoint]:
    """The other distros (or configurators) that are installed."""
    return [entry for entry in entry_points(group=_GROUPS[variable]) if entry.name != NAME]


def is_meant(variable: str) -> bool:
    """Whether ours is the one to act."""
    named = os.environ.get(variable)
    return named == NAME if named else not others(variable)


class SurefootDistro(BaseDistro):
    """Loads instrumentors one by one and survives those that crash."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Step aside for another distro unless we are the one that is meant."""
        if is_meant(DISTRO_VARIABLE):
            return super().__new__(cls, *args, **kwargs)
        return others(DISTRO_VARIABLE)[0].load()(*args, **kwargs) if others(DISTRO_VARIABLE) else DefaultDistro()

    def _configure(self, **_kwargs: Any) -> None:
        opted = os.environ.get("OTEL_SEMCONV_STABILITY_OPT_IN", "")
        if "gen_ai_latest_experimental" not in opted:
            joined = ",".join(part for part in (opted, "gen_ai_latest_experimental") if part)
            os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = joined

    def load_instrumentor(self, entry_point: EntryPoint, **kwargs: Any) -> None:
        """Activate one instrumentor; one that crashes is noted and the others go on."""
        try:
            super().load_instrumentor(entry_point, **kwargs)
        except ModuleNotFoundError as error:
            problems[entry_point.name] = f"its library is not installed ({error.name})"
        except Exception as error:  # noqa: BLE001 - one that crashes must not take the others down
            problems[entry_point.name] = f"{type(error).__name__}: {error}"
            log.warning("The instrumentor %s (%s) is skipped: %s", entry_point.name, entry_point.value, error)
        else:
            active.append(entry_point.name)


class SurefootConfigurator:
    """Builds the pipeline and switches on libraries that emit by themselves."""

    def configure(self, **kwargs: Any) -> None:
        """Called by OpenTelemetry's auto-instrumentation."""
        if not is_meant(CONFIGURATOR_VARIABLE):
            following = others(CONFIGURATOR_VARIABLE)
            if following:
                following[0].load()().configure(**kwargs)
            return
        from surefoot.instrumentation import exit as at_exit
        from surefoot.instrumentation import native, pipeline

        if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
            return
        at_exit.install(pipeline.build())
        native.watch_imports(note)


def note(name: str, error: BaseException) -> None:
    """Keep, for ``surefoot doctor``, why a library could not be switched on."""
    problems[name] = f"{type(error).__name__}: {error}"
    log.warning("%s could not be switched on: %s", name, error)
