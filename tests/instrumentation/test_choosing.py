"""At most one instrumentor per library, whatever the order of installation; none where the library emits by itself."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, PathDistribution
from pathlib import Path

import pytest

from support.collecting import distribution
from surefoot.instrumentation import choosing
from surefoot.instrumentation.doctor import diagnose

Run = Callable[..., "subprocess.CompletedProcess[str]"]
OPENAI = [
    "opentelemetry-instrumentation-genai-openai",
    "openinference_instrumentation_openai",
    "opentelemetry-instrumentation-openai",
    "opentelemetry-instrumentation-openai-v2",
]
GOOD = "class Instrumentor:\n    def instrument(self, **kwargs): print('{name} is on')"
BAD = "raise RuntimeError('made for another version')"


def entries(folder: Path, names: list[str], module: str = GOOD, label: str = "openai") -> list[EntryPoint]:
    found: list[EntryPoint] = []
    for name in names:
        code = f"{folder.name}_{name.replace('-', '_')}"  # its own in each test: modules stay imported
        distribution(folder, name, f"[{choosing.GROUP}]\n{label} = {code}:Instrumentor", {code: module})
        info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
        found += PathDistribution(info).entry_points
    return found


def chosen(
    found: list[EntryPoint], environ: dict[str, str] | None = None, installed: dict[str, int] | None = None
) -> list[str]:
    choices = choosing.choose(found, environ or {}, (installed or {}).get)
    return [name for (name, _), choice in choices.items() if choice.why_off is None]


def test_one_of_four_is_chosen_in_every_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    found = entries(tmp_path, OPENAI)
    for order in itertools.permutations(found):
        assert chosen(list(order)) == ["opentelemetry-instrumentation-genai-openai"]
    assert chosen(found[1:]) == ["openinference-instrumentation-openai"]
    assert chosen(found[2:]) == ["opentelemetry-instrumentation-openai"]


def test_one_that_crashes_keeps_none_out_that_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    found = [*entries(tmp_path, OPENAI[:1], BAD), *entries(tmp_path, OPENAI[2:])]
    assert chosen(found) == ["opentelemetry-instrumentation-openai"]


def test_different_libraries_do_not_compete_though_the_entry_points_have_one_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    names = ["opentelemetry-instrumentation-genai-openai", "openinference-instrumentation-openai-agents"]
    assert chosen(entries(tmp_path, names)) == names


@pytest.mark.parametrize(
    ("library", "emitter", "since"),
    [("anthropic", "anthropic", 2), ("mcp", "fastmcp", 2), ("mcp", "mcp", 2), ("google-adk", "google-adk", 1)],
)
def test_a_library_that_emits_by_itself_has_no_instrumentor(
    library: str, emitter: str, since: int, tmp_path: Path
) -> None:
    name = f"openinference-instrumentation-{library}"
    found = entries(tmp_path, [name], label=library)
    assert chosen(found, installed={emitter: since}) == []
    assert chosen(found, installed={emitter: since - 1}) == [name]
    assert chosen(found) == [name]
    assert chosen(found, {choosing.VARIABLE: f"{library}={name}"}, installed={emitter: since}) == [name]


def test_the_setting_decides(tmp_path: Path) -> None:
    found = entries(tmp_path, OPENAI)
    wish = {choosing.VARIABLE: "OpenAI = openinference_instrumentation_openai , crewai=none"}
    assert chosen(found, wish) == ["openinference-instrumentation-openai"]
    assert chosen(found, {choosing.VARIABLE: "openai=none"}) == []
    with pytest.raises(ValueError, match="'openai'; write library=distribution"):
        chosen(found, {choosing.VARIABLE: "openai"})


def test_under_surefoot_run_one_is_activated_and_doctor_says_which(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    for name in OPENAI[1:3]:
        entries(site, [name], GOOD.format(name=name))

    through = (sys.executable, "-c", "from surefoot.cli.main import main; main()", "run")
    done = run("print('program')", through=through, PYTHONPATH=str(site))
    assert done.stdout.splitlines() == ["openinference_instrumentation_openai is on", "program"], done.stderr
    wish = {choosing.VARIABLE: "openai=opentelemetry-instrumentation-openai"}
    done = run("print('program')", through=through, PYTHONPATH=str(site), **wish)
    assert done.stdout.splitlines() == ["opentelemetry-instrumentation-openai is on", "program"], done.stderr
    done = run("print('program')", through=through, PYTHONPATH=str(site), **{choosing.VARIABLE: "openai"})
    assert "write library=distribution" in done.stderr
    assert "openinference_instrumentation_openai is on" in done.stdout

    monkeypatch.syspath_prepend(site)
    told = {f.package: (f.state, f.reason) for f in diagnose({}, "http://127.0.0.1:9").instrumentors}
    assert told["openinference_instrumentation_openai"][0] == "active"
    state, reason = told["opentelemetry-instrumentation-openai"]
    assert (state, reason.partition(";")[0]) == ("skipped", "openinference-instrumentation-openai records openai")
