"""The command line as a user meets it: sentences, JSON for scripts, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.reports import every_state
from support.serving import SUREFOOT
from surefoot.collector.auth import add_token
from surefoot.collector.testing import collector_process
from surefoot.processors import status

ROOT = Path(__file__).parents[2]


def surefoot(*arguments: str, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SUREFOOT_", "OTEL_"))}
    return subprocess.run(
        [*SUREFOOT, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=home,
        env={**clean, "SUREFOOT_HOME": str(home), **environment},
    )


def test_help_names_every_command(tmp_path: Path) -> None:
    done = surefoot("--help", home=tmp_path)
    assert done.returncode == 0
    for command in ("run", "serve", "demo", "doctor", "sql", "slo", "rules", "dashboards", "config"):
        assert f" {command} " in done.stdout
    assert surefoot("--version", home=tmp_path).stdout.startswith("surefoot 0.")


def test_config_says_where_each_value_came_from(tmp_path: Path) -> None:
    (tmp_path / "surefoot.toml").write_text("settle_seconds = 60\n")
    done = surefoot("config", "--json", home=tmp_path, SUREFOOT_PORT_WEB="4399")
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    assert (rows["port_web"]["value"], rows["port_web"]["from"]) == (4399, "SUREFOOT_PORT_WEB")
    assert (rows["settle_seconds"]["value"], rows["settle_seconds"]["from"]) == (60.0, "surefoot.toml")
    assert rows["host"]["from"] == "default"
    assert rows["lake"]["value"] == str(tmp_path / "lake")
    assert all(row["meaning"] for row in rows.values())
    assert "settle_seconds" in surefoot("config", home=tmp_path).stdout


def test_a_setting_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    done = surefoot("config", home=tmp_path, SUREFOOT_PORT_WEB="70000")
    assert done.returncode == 2
    assert "port_web" in done.stderr
    assert "70000" in done.stderr


def test_slo_validate_names_file_line_and_remedy(tmp_path: Path) -> None:
    good = ROOT / "demo" / "surefoot" / "demo" / "slos" / "availability.yaml"
    (tmp_path / "good.yaml").write_text(good.read_text())
    (tmp_path / "bad.yaml").write_text(
        good.read_text().replace("target: 0.99", "target: 1").replace("desk-a", "desk-b")
    )
    done = surefoot("slo", "validate", str(tmp_path), home=tmp_path)
    assert done.returncode == 2
    assert "bad.yaml:" in done.stderr
    assert "target" in done.stderr
    assert "1 valid, 1 problems" in done.stdout
    scripted = json.loads(surefoot("slo", "validate", str(tmp_path), "--json", home=tmp_path).stdout)
    assert scripted["valid"] == ["support-desk-availability"]
    assert len(scripted["problems"]) == 1


def test_slo_status_shows_what_burns(tmp_path: Path) -> None:
    status.publish(tmp_path / "status", "slo", every_state(time.time()).to_json())
    done = surefoot("slo", "status", home=tmp_path)
    assert done.returncode == 0
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if line.strip()}
    assert "burning page" in lines["pages"]
    assert "1,000" in lines["pages"]
    assert "-2900.0 %" in lines["pages"]
    assert "–" in lines["silent"]
    assert "  task_class=refund" in done.stdout
    assert surefoot("slo", "status", "--check", home=tmp_path).returncode == 1
    assert len(json.loads(surefoot("slo", "status", "--json", home=tmp_path).stdout)["slos"]) == 7


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("slo", "status"), "surefoot serve"),
        (("slo", "validate"), "There are no SLO files"),
        (("rules", "build"), "There are no SLO files"),
        (("sql", "SELECT 1"), "lake"),
        (("run", "no-such-program"), "no-such-program"),
    ],
)
def test_what_is_not_there_is_said_with_exit_code_3(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    done = surefoot(*arguments, home=tmp_path)
    assert done.returncode == 3, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_no_tokens_is_said(tmp_path: Path) -> None:
    done = surefoot("token", "list", home=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert "There are no tokens in" in done.stderr
    assert "surefoot token add" in done.stderr
    assert surefoot("token", "list", "--json", home=tmp_path).stdout.split() == ["[]"]


def test_doctor_says_that_a_token_is_wanted(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    token = add_token(tokens, "laptop")
    with collector_process(tmp_path / "spool", "--tokens", str(tokens)) as running:
        for protocol, url in (("http/protobuf", running.http), ("grpc", f"http://{running.grpc}")):
            given = {"OTEL_EXPORTER_OTLP_PROTOCOL": protocol, "OTEL_EXPORTER_OTLP_ENDPOINT": url}
            done = surefoot("doctor", home=tmp_path, **given)
            assert done.returncode == 3
            assert "The server wants a token" in done.stdout, done.stdout
            assert "Start `surefoot serve`" not in done.stdout
            header = {"OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{token}"}
            assert surefoot("doctor", home=tmp_path, **given, **header).returncode == 0


def test_rules_are_not_built_from_files_with_problems(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("apiVersion: openslo/v1\nkind: SLO\nmetadata: {name: x}\nspec: {nonsense: 1}\n")
    done = surefoot("rules", "build", str(tmp_path), "--out", str(tmp_path / "rules.yml"), home=tmp_path)
    assert done.returncode == 2
    assert "nonsense" in done.stderr
    assert not (tmp_path / "rules.yml").exists()


def test_run_hands_over_exit_code_and_arguments(tmp_path: Path) -> None:
    code = "import sys; print(sys.argv[1:]); sys.exit(7)"
    done = surefoot("run", sys.executable, "-c", code, "--json", "-x", home=tmp_path)
    assert done.returncode == 7
    assert done.stdout == "['--json', '-x']\n"


def test_doctor_says_whether_the_endpoint_answers(tmp_path: Path) -> None:
    done = surefoot("doctor", "--endpoint", "http://127.0.0.1:9", home=tmp_path)
    assert done.returncode == 3
    assert "127.0.0.1:9" in done.stdout
    assert "pydantic_ai" in done.stdout
    found = json.loads(surefoot("doctor", "--json", "--endpoint", "http://127.0.0.1:9", home=tmp_path).stdout)
    assert found["endpoint"]["answers"] is False
    assert found["distros"][0]["name"] == "surefoot"


def test_a_base_install_is_told_what_is_missing(tmp_path: Path) -> None:
    """Modules of the server extra are hidden from the interpreter, as in a base install."""
    hide = "import sys\nfor name in ('duckdb', 'pydantic', 'yaml', 'pyarrow'): sys.modules[name] = None\n"
    script = hide + "sys.argv = ['surefoot', 'sql', 'SELECT 1']\nfrom surefoot.cli.main import main\nmain()\n"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 3
    assert "surefoot[server]" in done.stderr
