"""``surefoot import otlp``: alone, through a running server, twice, and while a server starts."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from support.captures import FOLDER
from support.certificates import self_signed
from support.serving import SUREFOOT, serving
from surefoot.collector.auth import add_token
from surefoot.processors.lake.console import query

CHOSEN = ("pydantic-ai-2.68.0__native-v6", "pydantic-evals", "util-genai")
FILES = sorted(path for path in FOLDER.glob("*.json") if path.name.startswith(CHOSEN))
COUNTS = """
SELECT (SELECT count(*) FROM spans) AS spans, (SELECT count(*) FROM logs) AS logs,
  (SELECT count(*) FROM runs) AS runs, (SELECT count(*) FROM runs WHERE NOT settled) AS unsettled,
  (SELECT count(*) FROM verdicts) AS verdicts, (SELECT coalesce(sum(input_tokens), 0) FROM runs) AS tokens,
  (SELECT count(*) FROM spans WHERE source NOT LIKE 'import:%.json') AS not_imported
"""


def start_import(home: Path, *arguments: Path | str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SUREFOOT_", "OTEL_"))}
    return subprocess.run(
        [*SUREFOOT, "import", "otlp", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**environment, "SUREFOOT_HOME": str(home), **settings},
        timeout=120,
        check=False,
    )


def run_import(home: Path, *files: Path | str) -> tuple[int, dict[str, Any]]:
    done = start_import(home, "--json", *files)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def counts(home: Path) -> dict[str, Any]:
    result = query(home / "lake", COUNTS)
    return dict(zip(result.columns, result.rows[0], strict=True))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, dict[str, Any]]:
    """A home that was filled without a server, and what the command said."""
    home = tmp_path_factory.mktemp("import") / "home"
    bad = home.parent / "bad.jsonl"
    good = json.dumps(json.loads(FILES[0].read_text()))
    bad.write_text(f'{{"resourceSpans": 5}}\n{good}\nnonsense\n')
    return home, *run_import(home, *FILES, bad)


def test_without_a_server_runs_are_settled_and_a_second_import_changes_nothing(
    alone: tuple[Path, int, dict[str, Any]],
) -> None:
    home, code, said = alone
    assert code == 2
    assert [(one["place"], Path(one["file"]).name) for one in said["refused"]] == [
        ("line 1", "bad.jsonl"),
        ("line 3", "bad.jsonl"),
    ]
    first = counts(home)
    assert first["runs"] > 5
    assert first["tokens"] > 0
    assert (first["unsettled"], first["not_imported"]) == (0, 0)
    # The first capture is in there twice.
    assert (said["spans"] - said["duplicates"], said["logs"]) == (first["spans"], first["logs"])
    code, said = run_import(home, *FILES)
    assert (code, said["refused"]) == (0, [])
    assert said["duplicates"] == first["spans"] + first["logs"]
    assert said["runs"] == first["runs"]
    assert counts(home) == first


def test_through_a_running_server(tmp_path: Path, alone: tuple[Path, int, dict[str, Any]]) -> None:
    home, other = tmp_path / "home", alone[0]
    with serving(home) as server:
        code, said = run_import(home, *FILES)
        assert (code, said["duplicates"]) == (0, 0)
        assert counts(home) == counts(other)
        assert run_import(home, *FILES)[0] == 0
        assert counts(home) == counts(other)
        assert server.pids().keys() == {"collector", "writer", "jobs", "web"}


def test_imports_race_a_starting_server(tmp_path: Path, alone: tuple[Path, int, dict[str, Any]]) -> None:
    home, other = tmp_path / "home", alone[0]
    home.mkdir()
    results: list[tuple[int, dict[str, Any]]] = []
    first = threading.Thread(target=lambda: results.append(run_import(home, *FILES)))
    with serving(home):
        first.start()
        results.append(run_import(home, *FILES))
        first.join()
        assert [code for code, _ in results] == [0, 0]
        assert counts(home) == counts(other)


def test_a_server_that_does_not_let_in_ends_the_import_with_the_remedy(tmp_path: Path) -> None:
    home, file = tmp_path / "home", FILES[0]
    pair = self_signed(tmp_path / "tls")
    home.mkdir()
    token = add_token(home / "tokens", "laptop")
    certificate = {"SUREFOOT_TLS_CERTIFICATE": str(pair.chain)}
    with serving(home, tls_certificate=str(pair.chain), tls_key=str(pair.key)):
        for settings, words in (
            ({}, "Set SUREFOOT_TLS_CERTIFICATE to the certificate"),
            ({"SUREFOOT_TLS_CERTIFICATE": str(self_signed(tmp_path / "other").chain)}, "Set SUREFOOT_TLS_CERTIFICATE"),
            ({"SUREFOOT_TLS_CERTIFICATE": str(tmp_path / "none")}, "Cannot read the server's certificate"),
            (certificate, "wants a token and none was given"),
            ({**certificate, "SUREFOOT_TOKEN": "wrong"}, "does not take this token"),
        ):
            done = start_import(home, file, **settings)
            assert (done.returncode, done.stdout) == (3, ""), done.stderr
            assert words in " ".join(done.stderr.split())
            assert "Traceback" not in done.stderr
        done = start_import(home, "--token", token, file, **certificate)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("1 file: ")
        assert " 0 runs " not in done.stdout
