"""The doctor's findings, with a real collector and distributions that pretend."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.collecting import Collector, distribution
from surefoot.instrumentation.doctor import diagnose

Run = Callable[..., "subprocess.CompletedProcess[str]"]
ASK = "import dataclasses, json, os; from surefoot.instrumentation.doctor import diagnose; "
ASK += "print(json.dumps(dataclasses.asdict(diagnose(os.environ))))"


def states(findings: list[dict[str, Any]]) -> dict[str, tuple[str, str]]:
    return {finding["name"]: (finding["state"], finding["reason"]) for finding in findings}


def test_a_healthy_environment(run: Run, collector: Collector) -> None:
    done = run(ASK)
    found = json.loads(done.stdout)
    assert done.stderr == ""
    assert found["endpoint"] == {
        "url": f"{collector.url}/v1/traces",
        "protocol": "http/protobuf",
        "answers": True,
        "detail": "accepted an empty export",
    }
    assert states(found["distros"]) == states(found["configurators"]) == {"surefoot": ("active", "the only one")}
    assert states(found["native"])["pydantic_ai"] == ("active", "switched on when the program imports it")
    assert states(found["native"])["strands"] == ("skipped", "not installed")
    assert {"surefoot", "opentelemetry-api", "opentelemetry-sdk"} <= found["versions"].keys()
    assert (found["capture_on_spans"], found["capture_on_events"]) == (False, False)


def test_every_instrumentor_with_what_becomes_of_it(run: Run, tmp_path: Path) -> None:
    modules = {
        "broken": "raise RuntimeError('changed')",
        "missing": "import a_library_that_is_not_there",
        "good": "class Instrumentor: pass",
        "unwanted": "class Instrumentor: pass",
    }
    entries = "[opentelemetry_instrumentor]\n" + "\n".join(f"{name} = {name}:Instrumentor" for name in modules)
    distribution(tmp_path / "site", "some", entries, modules)
    requires = 'Provides-Extra: instruments\nRequires-Dist: pytest<1; extra == "instruments"\n'
    old = "[opentelemetry_instrumentor]\nconflicting = good:Instrumentor"
    distribution(tmp_path / "site", "conflicts", old, {}, requires)
    done = run(ASK, PYTHONPATH=str(tmp_path / "site"), OTEL_PYTHON_DISABLED_INSTRUMENTATIONS="x, unwanted")
    found = states(json.loads(done.stdout)["instrumentors"])
    assert found["broken"] == ("broken", "RuntimeError: changed")
    assert found["missing"] == ("skipped", "its library is not installed: a_library_that_is_not_there")
    assert found["good"] == ("active", "instruments its library when the program starts")
    assert found["unwanted"] == ("skipped", "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS names it")
    assert found["conflicting"][0] == "skipped"
    assert "pytest" in found["conflicting"][1]


def test_which_distro_would_be_used_and_why(run: Run, tmp_path: Path) -> None:
    distribution(tmp_path / "site", "theirs", "[opentelemetry_distro]\ntheirs = nothing:Distro", {})
    path = str(tmp_path / "site")
    inert = "not named, and also installed: theirs; surefoot run would use it"
    expected = {
        "": {"theirs": ("active", "the first found"), "surefoot": ("skipped", inert)},
        "surefoot": {
            "theirs": ("skipped", "surefoot is used"),
            "surefoot": ("active", "OTEL_PYTHON_DISTRO names it"),
        },
        "gone": {
            "theirs": ("skipped", "gone is used"),
            "surefoot": ("skipped", "OTEL_PYTHON_DISTRO names 'gone'; surefoot run would use it"),
            "gone": ("broken", "OTEL_PYTHON_DISTRO names it"),
        },
    }
    for named, findings in expected.items():
        done = run(ASK, PYTHONPATH=path, OTEL_PYTHON_DISTRO=named)
        assert states(json.loads(done.stdout)["distros"]) == findings, named


@pytest.mark.parametrize(
    ("endpoint", "environ", "detail"),
    [
        ("http://127.0.0.1:9", {}, "Connection refused"),
        (None, {"OTEL_EXPORTER_OTLP_PROTOCOL": "carrier-pigeon"}, "'carrier-pigeon' is not supported"),
    ],
)
def test_an_endpoint_that_does_not_answer(
    endpoint: str | None, environ: dict[str, str], detail: str, capfd: pytest.CaptureFixture[str]
) -> None:
    found = diagnose(environ, endpoint).endpoint
    assert not found.answers
    assert detail in found.detail
    assert capfd.readouterr() == ("", "")


def test_an_endpoint_that_refuses(collector: Collector) -> None:
    collector.status = 401
    found = diagnose({}, collector.url).endpoint
    assert not found.answers
    assert "401" in found.detail


def test_capture_is_shown() -> None:
    found = diagnose({"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "EVENT_ONLY"}, "http://127.0.0.1:9")
    assert (found.capture_on_spans, found.capture_on_events) == (False, True)
