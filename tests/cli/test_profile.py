"""``surefoot profile`` and ``surefoot boundary`` as a user meets them, and the examples of their pages."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest
import yaml

from support.serving import SUREFOOT
from surefoot.cli.main import main

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "repeated"


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


def surefoot(home: Path, *arguments: str) -> Done:
    """The command in this process: starting one costs a second, and these tests run thirty."""
    out, err = io.StringIO(), io.StringIO()
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SUREFOOT_", "OTEL_"))}
    with (
        mock.patch.dict(os.environ, {**clean, "SUREFOOT_HOME": str(home / "home")}, clear=True),
        mock.patch.object(sys, "argv", ["surefoot", *arguments]),
        contextlib.chdir(home),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return Done(int(ended.value.code or 0), out.getvalue(), err.getvalue())


def record(home: Path) -> str:
    """The example's runs into the lake. Importing talks to a collector, so it is a process of its own."""
    environment = {**os.environ, "SUREFOOT_HOME": str(home / "home")}
    subprocess.run([sys.executable, EXAMPLE / "record.py"], cwd=home, check=True)
    told = subprocess.run(
        [*SUREFOOT, "import", "otlp", "runs.jsonl"],
        cwd=home,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return told.stdout


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the examples' runs in its lake, and their profile."""
    folder = tmp_path_factory.mktemp("profiles")
    shutil.copytree(ROOT / "examples", folder / "examples")
    record(folder)
    done = surefoot(folder, "profile", "build", "examples/repeated/spec.yaml", "--out", "reconcile.yaml")
    assert done.returncode == 0, done.stderr
    return folder


def flat(text: str) -> str:
    """Cells that a table broke into lines, and the widths of its columns, do not matter."""
    return re.sub(r"\s+", " ", text)


def steps(page: str) -> list[tuple[str, str]]:
    text = (ROOT / "docs" / page).read_text()
    consoles = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    return [step for console in consoles for step in re.findall(r"^\$ (.*)\n((?:[^$].*\n)*)", console, re.MULTILINE)]


def test_the_pages_show_what_is_printed(tmp_path: Path) -> None:
    """One after the other; … stands for what is left out."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    found = steps("profiles.md") + steps("boundary.md")
    assert len(found) == 9
    imported = ""
    for command, expected in found:
        program, *arguments = shlex.split(command)
        if program == "python":
            imported = record(tmp_path)
            continue
        if arguments[0] == "import":
            assert imported == expected
            continue
        done = surefoot(tmp_path, *arguments)
        assert done.returncode == (1 if "boundary" in arguments else 0), done.stderr
        printed = flat(done.stdout)
        for part in expected.split("…"):
            for line in filter(None, map(str.strip, part.splitlines())):
                for cell in re.split(r"\s{2,}", line):
                    if "more groups" not in cell:  # the table breaks it into lines
                        assert cell in printed, command


def test_verify_answers_and_its_exit_code_follows(home: Path) -> None:
    done = surefoot(home, "profile", "verify", "reconcile.yaml", "--json")
    items = json.loads(done.stdout)
    assert done.returncode == 0
    assert len(items) == 2 + 23
    assert {item["question"]: item["answer"] for item in items}["Every run uses a recorded version set."] == "yes"

    edited = home / "edited.yaml"
    edited.write_text((home / "reconcile.yaml").read_text().replace("owner: ledger team", "owner: somebody"))
    done = surefoot(home, "profile", "verify", "edited.yaml")
    assert done.returncode == 1
    assert "edited after it was built" in flat(done.stdout)
    shown = surefoot(home, "profile", "show", "edited.yaml")
    assert "edited.yaml was edited after it was built" in shown.stderr
    assert "Look first at 1 task that none or unusually few runs passed" in shown.stdout
    assert "ledger-007 0/3" in shown.stdout
    assert surefoot(home, "profile", "diff", "reconcile.yaml", "reconcile.yaml").returncode == 0
    compared = surefoot(home, "profile", "diff", "reconcile.yaml", "edited.yaml")
    assert compared.returncode == 1
    assert "evidence of nothing" in compared.stderr


def test_the_profile_is_a_row_of_its_table(home: Path) -> None:
    again = surefoot(home, "profile", "build", "examples/repeated/spec.yaml", "--out", "again.json")
    assert again.returncode == 0, again.stderr
    written = json.loads((home / "again.json").read_text())
    done = surefoot(home, "sql", "--format", "json", "SELECT profile_id, name, task_class, document FROM profiles")
    # Two builds of the same runs are one profile, and one row.
    (row,) = (one for one in json.loads(done.stdout) if one["profile_id"] == written["content_hash"])
    assert (row["name"], row["task_class"]) == ("reconcile", "reconcile")
    kept = json.loads(row["document"])
    for one in (kept, written):
        del one["evidence"]["built_at"], one["evidence"]["table_versions"]
    assert kept == written


def test_a_decision_is_recorded_once(home: Path) -> None:
    check = ("boundary", "check", "reconcile.yaml", "examples/repeated/boundary.yaml", "--record", "--json")
    first, second = surefoot(home, *check), surefoot(home, *check)
    assert (first.returncode, second.returncode) == (1, 1), first.stderr
    decision = json.loads(first.stdout)
    columns = "profile_id, boundary_id, allowed, mode, document"
    done = surefoot(home, "sql", "--format", "json", f"SELECT {columns} FROM decisions")
    (row,) = json.loads(done.stdout)
    document = json.loads(row.pop("document"))
    assert document["decision"] == decision
    assert document["boundary"]["joint_rule"]["declared"] == "2026-09-01"
    assert row == {
        "profile_id": decision["content_hash"],
        "boundary_id": "reconcile",
        "allowed": False,
        "mode": decision["mode"],
    }
    elsewhere = home / "no lake"
    elsewhere.mkdir()
    for file in ("reconcile.yaml", "examples/repeated/boundary.yaml"):
        shutil.copy(home / file, elsewhere)
    refused = surefoot(elsewhere, "boundary", "check", "reconcile.yaml", "boundary.yaml", "--record")
    assert refused.returncode == 3, refused.stderr


def test_a_changed_tool_revokes(home: Path) -> None:
    spec = yaml.safe_load((home / "examples/repeated/spec.yaml").read_text())
    spec["system"]["tool_and_schema_versions"] = {"post_entry": 5}
    (home / "changed.yaml").write_text(yaml.safe_dump(spec))
    assert surefoot(home, "profile", "build", "changed.yaml", "--out", "changed-profile.yaml").returncode == 0
    done = surefoot(home, "profile", "diff", "reconcile.yaml", "changed-profile.yaml")
    assert done.returncode == 1
    assert "revokes system.tool_and_schema_versions.post_entry: 4 became 5" in flat(done.stdout)
    assert surefoot(home, "profile", "build", "examples/repeated/spec.yaml", "--out", "same.yaml").returncode == 0
    assert surefoot(home, "profile", "diff", "reconcile.yaml", "same.yaml").returncode == 0
    done = surefoot(home, "boundary", "check", "changed-profile.yaml", "examples/repeated/boundary.yaml", "--json")
    assert done.returncode == 1
    decision = json.loads(done.stdout)
    assert [reason["code"] for reason in decision["reasons"]] == ["revoked", "gate"]


def test_a_boundary_that_clears_ends_with_0(home: Path) -> None:
    boundary = yaml.safe_load((home / "examples/repeated/boundary.yaml").read_text())
    boundary["gates"] = boundary["gates"][:3]
    (home / "clears.yaml").write_text(yaml.safe_dump(boundary))
    done = surefoot(home, "boundary", "check", "reconcile.yaml", "clears.yaml", "--markdown")
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("### reconcile 42 against boundary reconcile 1: cleared\n")
    assert "**proceed**: autonomous, the agent acts on its own." in done.stdout


def test_bad_input_ends_with_2_and_a_line(home: Path) -> None:
    text = (home / "examples/repeated/boundary.yaml").read_text()
    (home / "wrong.yaml").write_text(text.replace("outcome_yield", "outcome_yeild"))
    done = surefoot(home, "boundary", "check", "reconcile.yaml", "wrong.yaml")
    assert done.returncode == 2
    assert re.search(
        r"wrong\.yaml:\d+: gates\[0\]\.indicator: there is no indicator 'outcome_yeild'; did you mean", done.stderr
    )
    assert surefoot(home, "profile", "show", "absent.yaml").returncode == 2


def test_words_that_look_like_markup_are_words(home: Path) -> None:
    for example, name in (("section13/spec.yaml", "s.yaml"), ("section13/boundary.yaml", "b.yaml")):
        text = (home / "examples" / example).read_text()
        text = re.sub(r"(?m)^owner: .*", 'owner: "team [/bold] [red]"', text)
        text = text.replace("task_class: worked-example", 'task_class: "[ledger]"')
        (home / name).write_text(text.replace("name: yield", 'name: "[/] yield"'))
    assert surefoot(home, "profile", "build", "s.yaml", "--out", "p.yaml").returncode == 0
    done = surefoot(home, "profile", "show", "p.yaml")
    assert done.returncode == 0, done.stderr
    assert "owner team [/bold] [red]," in done.stdout
    checked = surefoot(home, "boundary", "check", "p.yaml", "b.yaml")
    assert checked.returncode == 1
    assert "gates that fail: [/] yield," in checked.stdout
    assert "For [ledger] of consequence" in checked.stdout


def test_an_slo_is_asked_only_if_the_boundary_names_one(home: Path) -> None:
    text = (home / "examples/repeated/boundary.yaml").read_text()
    (home / "asks.yaml").write_text(text + "slos: [reconcile-outcome]\n")
    asked = surefoot(home, "boundary", "check", "reconcile.yaml", "asks.yaml")
    assert asked.returncode == 1, asked.stderr
    elsewhere = home / "elsewhere"
    elsewhere.mkdir()
    for file in ("asks.yaml", "reconcile.yaml"):
        shutil.copy(home / file, elsewhere)
    assert surefoot(elsewhere, "boundary", "check", "reconcile.yaml", "asks.yaml").returncode == 3
    # The page shows the same decision, so it asks, too.
    assert surefoot(elsewhere, "profile", "html", "reconcile.yaml", "--boundary", "asks.yaml").returncode == 3


def test_the_html_page_needs_no_network(home: Path) -> None:
    done = surefoot(
        home, "profile", "html", "reconcile.yaml", "--boundary", "examples/repeated/boundary.yaml", "--out", "page.html"
    )
    assert done.returncode == 0, done.stderr
    page = (home / "page.html").read_text()
    assert "not cleared: verify" in page
    assert not re.search(r"(src|href)=[\"']?https?://|@import|url\(", page)
    assert page.index("ledger-007") < page.index("ledger-020") < page.index("ledger-000")  # the worst first
