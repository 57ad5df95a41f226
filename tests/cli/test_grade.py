"""``surefoot grade`` as a user meets it, and the example of docs/graders.md."""

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
from pathlib import Path
from unittest import mock

import pytest

from support.serving import SUREFOOT
from surefoot.cli.main import main

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "graders.md"


def surefoot(home: Path, *arguments: str, sends: bool = False, answers: str = "") -> tuple[int, str, str]:
    """Exit code, output and errors. What sends to a collector is a process of its own, the rest runs in this one."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SUREFOOT_", "OTEL_"))}
    clean["SUREFOOT_HOME"] = str(home / "home")
    if sends:
        done = subprocess.run(
            [*SUREFOOT, *arguments], cwd=home, env=clean, input=answers, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout, done.stderr
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.dict(os.environ, clean, clear=True),
        mock.patch.object(sys, "argv", ["surefoot", *arguments]),
        contextlib.chdir(home),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return int(ended.value.code or 0), out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's example, step by step, against what the page says."""
    folder = tmp_path_factory.mktemp("graders")
    shutil.copytree(ROOT / "examples" / "graded", folder / "examples" / "graded")
    (console,) = re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL)
    for command, expected in re.findall(r"^\$ (.*)\n((?:[^$].*\n)*)", console, re.MULTILINE):
        words = shlex.split(command)
        if words[0] == "python":
            subprocess.run([sys.executable, *words[1:]], cwd=folder, check=True)
            continue
        code, out, err = surefoot(folder, *words[1:], sends=words[1] == "import" or words[2] == "adjudicate")
        assert (code, [line.rstrip() for line in out.splitlines() if line.strip()]) == (
            0,
            [line.rstrip() for line in expected.splitlines()],
        ), err
    return folder


def test_a_report_for_scripts_and_what_it_may_govern(home: Path) -> None:
    code, out, _ = surefoot(home, "grade", "report", "--json", "--check")
    (found,) = json.loads(out)
    assert code == 0
    assert found["decision_grade"]
    assert found["pass_hat_k"]["value"] == pytest.approx(0.8921, abs=1e-4)
    assert found["false_accept"]["intervals"][0]["method"] == "clopper_pearson_audit"
    code, out, _ = surefoot(home, "grade", "report", "--budget", "0.02", "--check")
    assert code == 1
    assert "not decision-grade" in out
    assert "the budget of 0.02" in out
    assert surefoot(home, "grade", "report", "--check", "--where", "task_class=none")[0] == 1


def test_the_same_answers_twice_and_a_contradiction(home: Path) -> None:
    code, out, _ = surefoot(home, "grade", "adjudicate", "sheet.csv")
    assert (code, out) == (0, "sheet.csv: 0 verdicts stored, 194 were there already, 0 without an answer\n")
    first = (home / "sheet.csv").read_text().splitlines()[1].split(",")
    other = "n" if first[3] == "y" else "y"
    (home / "other.csv").write_text(f"run_id,verdict\n{first[0]},{other}\nunknown,y\n{first[0]},{other}\n")
    code, out, err = surefoot(home, "grade", "adjudicate", "other.csv")
    assert code == 2
    assert "0 verdicts stored" in out
    assert re.search(r"other.csv, line 2: .* but refund team said .* --replace", err)
    assert "line 3: there is no graded run unknown" in err
    assert "line 4: run" in err


def test_a_person_is_asked_and_may_replace_an_answer(home: Path) -> None:
    first, second = [line.split(",") for line in (home / "sheet.csv").read_text().splitlines()[1:3]]
    (home / "asked.csv").write_text(f"run_id,verdict,comment\n{first[0]},,\n{second[0]},,\n")
    command = ("grade", "adjudicate", "asked.csv", "--ask", "--replace")
    code, out, err = surefoot(home, *command, sends=True, answers="what\nu\nq\n")
    assert code == 0, err
    assert "asked.csv: 1 verdicts stored (1 unresolved), 0 were there already, 1 without an answer" in out
    assert (home / "asked.csv").read_text().splitlines()[1] == f"{first[0]},unresolved,"
    (found,) = json.loads(surefoot(home, "grade", "report", "--json")[1])
    assert (found["unresolved"], found["audited"]) == (1, 193)
    stored = surefoot(
        home, "sql", "--format", "json", "select count(*) as n from verdicts where supersedes is not null"
    )
    assert json.loads(stored[1]) == [{"n": 1}]


def test_wrong_use_is_told(home: Path) -> None:
    code, _, err = surefoot(home, "grade", "sample", "sheet.csv")
    assert (code, "is there already" in err) == (2, True)
    code, _, err = surefoot(home, "grade", "sample", "new.csv", "--where", "task_class=none")
    assert (code, "No graded run is left" in err) == (2, True)
    assert not (home / "new.csv").exists()
    assert surefoot(home, "grade", "sample", "new.csv", "--where", "task_class")[0] == 2
    assert surefoot(home, "grade", "sample", "new.csv", "--since", "yesterday")[0] == 2
    assert surefoot(home, "grade", "report", "--confidence", "95")[0] == 2
    code, _, err = surefoot(home, "grade", "adjudicate", "none.csv")
    assert (code, "Cannot read the worksheet none.csv" in err) == (2, True)


def test_without_a_lake(tmp_path: Path) -> None:
    assert surefoot(tmp_path, "grade", "report")[0] == 3
