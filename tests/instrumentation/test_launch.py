"""``surefoot run``: the program as it is, with recording; its exit code, signals and arguments are its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from support.collecting import Collector
from surefoot.instrumentation.errors import LaunchError
from surefoot.instrumentation.launch import command_environment, find

Environment = Callable[..., "dict[str, str]"]
RUN = [sys.executable, "-c", "from surefoot.cli.main import main; main()", "run"]
PROGRAM = """
import sys
from surefoot.instrumentation import agent_run
with agent_run("desk"):
    print(sys.argv[1:], sys.stdin.read())
sys.exit(3)
"""


def launched(environment: Environment, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RUN, *command], capture_output=True, text=True, env=environment(**more), input="in", timeout=60, check=False
    )


def test_a_script_keeps_its_arguments_input_and_exit_code(
    environment: Environment, collector: Collector, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = launched(environment, sys.executable, str(program), "--flag", "x")
    assert (done.returncode, done.stdout, done.stderr) == (3, "['--flag', 'x'] in\n", "")
    assert collector.span_names() == ["invoke_agent desk"]


def test_pytest_runs_instrumented(environment: Environment, collector: Collector, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "from surefoot.instrumentation import agent_run\ndef test_it():\n    with agent_run('tested'):\n        pass\n"
    )
    pytest_command = str(Path(sys.executable).with_name("pytest"))
    done = launched(environment, pytest_command, "-q", "-p", "no:cacheprovider", str(tmp_path))
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
    assert collector.span_names() == ["invoke_agent tested"]


def test_a_console_script_of_the_path_runs_instrumented(
    environment: Environment, collector: Collector, tmp_path: Path
) -> None:
    script = tmp_path / "my-agent"
    script.write_text(f"#!{sys.executable}\n" + PROGRAM)
    script.chmod(0o755)
    done = launched(environment, "my-agent", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert (done.returncode, done.stderr) == (3, "")
    assert collector.span_names() == ["invoke_agent desk"]


def test_a_signal_reaches_the_program(environment: Environment, collector: Collector, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            import time
            from surefoot.instrumentation import agent_run
            with agent_run("desk"):
                pass
            print("ready", flush=True)
            time.sleep(60)
            """
        )
    )
    with subprocess.Popen(
        [*RUN, sys.executable, str(program)], stdout=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == -signal.SIGTERM
    assert collector.span_names() == ["invoke_agent desk"]


def test_the_environment_is_the_programs_with_three_changes() -> None:
    given = {"PYTHONPATH": "/a:/b", "HOME": "/h", "OTEL_SERVICE_NAME": "s"}
    made = command_environment(given)
    assert {key: value for key, value in made.items() if given.get(key) != value}.keys() == {
        *("PYTHONPATH", "OTEL_PYTHON_DISTRO", "OTEL_PYTHON_CONFIGURATOR"),
    }
    first, *rest = made["PYTHONPATH"].split(os.pathsep)
    assert (Path(first) / "sitecustomize.py").is_file()
    assert rest == ["/a", "/b"]
    assert command_environment(made) == made


def test_a_program_that_is_not_there_is_named(environment: Environment) -> None:
    done = launched(environment, "no-such-program")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "surefoot: There is no program 'no-such-program' on the PATH.\n"


def test_a_script_without_its_interpreter_is_explained(tmp_path: Path, environment: Environment) -> None:
    script = tmp_path / "agent.py"
    script.write_text(PROGRAM)
    with pytest.raises(LaunchError, match=r"not executable. If it is a Python program: surefoot run python .*agent.py"):
        find(str(script))
    script.chmod(0o755)  # executable, but without a #! line
    done = launched(environment, str(script))
    assert done.returncode == 3
    assert "cannot be run: Exec format error" in done.stderr


def test_a_python_without_surefoot_is_refused(tmp_path: Path) -> None:
    bare = tmp_path / "python3"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')
    bare.chmod(0o755)
    with pytest.raises(LaunchError, match=r"cannot load Surefoot .*No module named 'surefoot'.*Install it there"):
        find(str(bare))
