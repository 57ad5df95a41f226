"""Rules of the house that a machine can hold."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.split("\n") if name and (ROOT / name).is_file()]


def test_yaml_is_loaded_safely_and_nothing_is_pickled() -> None:
    wrong = []
    for path in tracked("*.py"):
        text = path.read_text()
        if path != Path(__file__) and re.search(
            r"yaml\.(load|unsafe_load|full_load)\(|^import pickle|pickle\.loads", text, re.MULTILINE
        ):
            wrong.append(path.relative_to(ROOT))
    assert wrong == []


def test_no_file_names_the_path_of_a_machine() -> None:
    pattern = re.compile(r"(?<![\w/.])/(?:root|home/\w+|work/main|tmp/[a-z]\w+)/")
    wrong = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in tracked("*.py", "*.md", "*.toml", "*.yaml", "*.yml", "*.json", "Makefile", "scripts/*", ".ci/*")
        for match in [pattern.search(path.read_text())]
        if match
    ]
    assert wrong == []


def test_every_docs_page_is_reachable_from_the_readme() -> None:
    index = (ROOT / "README.md").read_text() + (ROOT / "docs" / "index.md").read_text()
    pages = {path.name for path in tracked("docs/*.md")} - {"index.md"}
    assert {name for name in pages if name not in index} == set()
