"""The arrows between rooms: who may import whom (docs/design.md)."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("instrumentation", "collector", "processors", "dashboards", "evaluation", "demo", "cli")
ALLOWED = {
    "instrumentation": set(),
    "collector": set(),
    "processors": {
        "surefoot.collector.segment",
        "surefoot.collector.spool",
        "surefoot.collector.errors",
        "surefoot.instrumentation.semconv",
    },
    "dashboards": {"surefoot.processors"},
    "evaluation": {"surefoot.instrumentation", "surefoot.processors"},
    "demo": {"surefoot.instrumentation"},
    "cli": {f"surefoot.{room}" for room in ROOMS},
}
# Helpers for tests may reach for what they test with.
TEST_HELPERS = {"testing.py"}


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; write the whole name"
            base = node.module or ""
            found |= {f"{base}.{alias.name}" for alias in node.names}
    return {name for name in found if name.startswith("surefoot.")}


def is_allowed(name: str, room: str) -> bool:
    if name.startswith((f"surefoot.{room}", "surefoot.errors")):
        return True
    return any(name == allowed or name.startswith(f"{allowed}.") for allowed in ALLOWED[room])


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_what_its_arrows_allow(room: str) -> None:
    files = sorted((ROOT / room / "surefoot" / room).rglob("*.py"))
    assert files
    wrong = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files
        if path.name not in TEST_HELPERS
        for name in imports(path)
        if not is_allowed(name, room)
    }
    assert wrong == set()


def test_the_namespace_belongs_to_nobody() -> None:
    assert not list(ROOT.glob("*/surefoot/__init__.py"))


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [
        ("surefoot.instrumentation", {"pydantic", "pyarrow", "duckdb", "grpc", "opentelemetry.sdk", "typer"}),
        ("surefoot.cli.main", {"pyarrow", "duckdb", "grpc", "pydantic", "deltalake", "opentelemetry.sdk"}),
        ("surefoot.collector", {"pyarrow", "duckdb", "deltalake"}),
    ],
)
def test_importing_stays_light(module: str, forbidden: set[str]) -> None:
    code = f"import sys, {module}; print('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert forbidden.isdisjoint(loaded)
