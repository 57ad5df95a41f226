"""The distro and its configurator among others: never in the way, always there when named, alive after crashes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.collecting import Collector, distribution
from surefoot.instrumentation.distro import CONFIGURATOR_VARIABLE, DISTRO_VARIABLE, why_inert

Run = Callable[..., "subprocess.CompletedProcess[str]"]
INSTRUMENT = (str(Path(sys.executable).with_name("opentelemetry-instrument")),)
PROGRAM = """
from opentelemetry import trace
from surefoot.instrumentation import agent_run
with agent_run("desk"):
    pass
print(type(trace.get_tracer_provider()).__name__)
"""
OTHER_MODULE = """
    from opentelemetry.instrumentation.distro import BaseDistro
    class Distro(BaseDistro):
        def _configure(self, **kwargs):
            print("their distro")
        def load_instrumentor(self, entry_point, **kwargs):
            print("their distro loads", entry_point.name)
    class Configurator:
        def configure(self, **kwargs):
            print("their configurator")
    """
OTHER_ENTRY_POINTS = """
    [opentelemetry_distro]
    theirs = their_distro:Distro
    [opentelemetry_configurator]
    theirs = their_distro:Configurator
    [opentelemetry_instrumentor]
    something = their_distro:Distro
    """


@pytest.fixture(params=["before ours", "after ours"])
def other(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """PYTHONPATH with another distro on it, found before ours or after it."""
    folder = tmp_path / "site"
    distribution(folder, "their-distro", OTHER_ENTRY_POINTS, {"their_distro": OTHER_MODULE})
    if request.param == "before ours":
        return str(folder)
    # Ours again, earlier on the path than theirs, as if it were installed first.
    first = tmp_path / "first"
    ours = """
        [opentelemetry_distro]
        surefoot = surefoot.instrumentation.distro:SurefootDistro
        [opentelemetry_configurator]
        surefoot = surefoot.instrumentation.distro:SurefootConfigurator
        """
    distribution(first, "surefoot", ours, {})
    return f"{first}:{folder}"


def test_alone_it_acts_without_being_named(run: Run, collector: Collector) -> None:
    done = run(PROGRAM, through=INSTRUMENT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "TracerProvider\n", "")
    assert collector.span_names() == ["invoke_agent desk"]
    assert len(collector.events("surefoot.run.started")) == 1
    assert all("telemetry.auto.version" in resource for resource in collector.resources)


def test_another_distro_is_not_hijacked(run: Run, collector: Collector, other: str) -> None:
    done = run(PROGRAM, through=INSTRUMENT, PYTHONPATH=other)
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        *("their distro", "their configurator", "their distro loads something", "ProxyTracerProvider"),
    ]
    assert "theirs not loaded" not in done.stderr
    assert (collector.spans, collector.logs) == ([], [])


def test_named_it_acts_beside_another(run: Run, collector: Collector, other: str) -> None:
    named = {DISTRO_VARIABLE: "surefoot", CONFIGURATOR_VARIABLE: "surefoot"}
    done = run(PROGRAM, through=INSTRUMENT, PYTHONPATH=other, **named)
    assert done.returncode == 0
    assert done.stdout == "TracerProvider\n"
    assert collector.span_names() == ["invoke_agent desk"]


def test_without_auto_instrumentation_being_installed_changes_nothing(run: Run, collector: Collector) -> None:
    done = run(PROGRAM)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ProxyTracerProvider\n", "")
    assert collector.spans == []


@pytest.mark.parametrize(
    ("environ", "variable", "inert"),
    [
        ({}, DISTRO_VARIABLE, None),
        ({DISTRO_VARIABLE: "surefoot"}, CONFIGURATOR_VARIABLE, None),
        ({DISTRO_VARIABLE: "other"}, DISTRO_VARIABLE, "OTEL_PYTHON_DISTRO names 'other'"),
        ({DISTRO_VARIABLE: "other"}, CONFIGURATOR_VARIABLE, "OTEL_PYTHON_DISTRO names 'other'"),
        ({DISTRO_VARIABLE: "other", CONFIGURATOR_VARIABLE: "surefoot"}, CONFIGURATOR_VARIABLE, None),
        ({CONFIGURATOR_VARIABLE: "other"}, CONFIGURATOR_VARIABLE, "OTEL_PYTHON_CONFIGURATOR names 'other'"),
    ],
)
def test_when_it_steps_aside(environ: dict[str, str], variable: str, inert: str | None) -> None:
    assert why_inert(environ, variable) == inert


CRASHES = {
    "crash_on_import": "raise RuntimeError('no such attribute')",
    "crash_on_import_error": "from os import no_such_thing",
    "crash_on_instrument": "class Instrumentor:\n    def instrument(self, **kwargs): raise TypeError('changed')",
    "library_missing": "import a_library_that_is_not_there",
    "good": "class Instrumentor:\n    def instrument(self, **kwargs): print('good one is on')",
}


def test_instrumentors_that_crash_do_not_take_the_others_down(run: Run, collector: Collector, tmp_path: Path) -> None:
    entries = "[opentelemetry_instrumentor]\n" + "\n".join(f"{name} = {name}:Instrumentor" for name in CRASHES)
    distribution(tmp_path / "site", "crashing", entries, CRASHES)
    done = run(PROGRAM, through=INSTRUMENT, PYTHONPATH=str(tmp_path / "site"))
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["good one is on", "TracerProvider"]
    said = sorted(line for line in done.stderr.splitlines() if "crashed" in line)
    assert [line.partition(" crashed and is off: ")[::2] for line in said] == [
        ("The instrumentor crash_on_import (crash_on_import:Instrumentor)", "RuntimeError: no such attribute"),
        (
            "The instrumentor crash_on_import_error (crash_on_import_error:Instrumentor)",
            f"ImportError: cannot import name 'no_such_thing' from 'os' ({sys.modules['os'].__file__})",
        ),
        ("The instrumentor crash_on_instrument (crash_on_instrument:Instrumentor)", "TypeError: changed"),
    ]
    assert "Traceback" not in done.stderr
    assert collector.span_names() == ["invoke_agent desk"]


def test_a_pipeline_that_cannot_be_set_up_leaves_the_program_running(run: Run) -> None:
    done = run("print('still here')", through=INSTRUMENT, OTEL_TRACES_EXPORTER="zipkin")
    assert (done.returncode, done.stdout) == (0, "still here\n")
    assert done.stderr.count("Nothing is recorded, the program runs as it is.") == 1
    assert "Traceback" not in done.stderr
