"""However a program ends, what it recorded has arrived, or one line on stderr says how much did not and why."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from support.collecting import Collector

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Environment = Callable[..., "dict[str, str]"]

START = """
import os, signal, sys, time
from surefoot.instrumentation import agent_run, flush, init, record_evaluation, tool
init(service_name="exiting")
with agent_run("desk"):
    with tool("look"):
        pass
record_evaluation("final_state", label="pass")
"""
RECORDED = ["execute_tool look", "invoke_agent desk"]


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("", 0),
        ("sys.exit(7)", 7),
        ("raise RuntimeError('unexpected')", 1),
        ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(30)", -signal.SIGTERM),
        # A test run in the background of a shell inherits an ignored SIGINT; Python's usual handler is what is meant.
        (
            (
                "signal.signal(signal.SIGINT, signal.default_int_handler); "
                "os.kill(os.getpid(), signal.SIGINT); time.sleep(30)"
            ),
            -signal.SIGINT,
        ),
    ],
)
def test_everything_arrives_however_the_program_ends(run: Run, collector: Collector, end: str, code: int) -> None:
    done = run(START + end)
    assert done.returncode == code
    assert "surefoot:" not in done.stderr
    assert collector.span_names() == RECORDED
    assert sorted(record.event_name for record in collector.logs) == [
        "gen_ai.evaluation.result",
        "surefoot.run.started",
    ]
    assert {resource["service.name"] for resource in collector.resources} == {"exiting"}


def test_an_interrupted_lock_holder_still_flushes_on_sigterm(run: Run, collector: Collector) -> None:
    """SIGTERM falls into a flush of the main thread that waits for a slow export."""
    collector.gate.clear()
    code = """
    import threading
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
    flush(30)
    """
    done = run(START + textwrap.dedent(code), SUREFOOT_FLUSH_SECONDS="0.3")
    assert done.returncode == -signal.SIGTERM
    assert "surefoot: 2 spans and 2 log records were not delivered" in done.stderr


def test_a_handler_of_the_program_is_left_alone(run: Run, collector: Collector) -> None:
    done = run(
        """
        import os, signal, sys
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
        """
        + textwrap.indent(START + "os.kill(os.getpid(), signal.SIGTERM)", " " * 8)
    )
    assert done.returncode == 5
    assert collector.span_names() == RECORDED


def test_an_unreachable_collector_is_named_with_what_was_lost(run: Run) -> None:
    done = run(START, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9", SUREFOOT_FLUSH_SECONDS="0.2")
    assert done.returncode == 0
    ours = [line for line in done.stderr.splitlines() if line.startswith("surefoot:")]
    assert ours == [
        "surefoot: 2 spans and 2 log records were not delivered to http://127.0.0.1:9: [Errno 111] Connection refused"
    ]


def test_a_refusal_is_named_with_what_was_lost(run: Run, collector: Collector) -> None:
    collector.status = 400
    done = run(START)
    assert f"2 spans and 2 log records were not delivered to {collector.url}: Failed to export" in done.stderr
    assert "400" in done.stderr


def test_a_collector_that_does_not_answer_costs_no_more_than_the_limit(run: Run, collector: Collector) -> None:
    collector.gate.clear()
    done = run(START, SUREFOOT_FLUSH_SECONDS="0.3")
    assert done.returncode == 0
    assert "2 spans and 2 log records were not delivered" in done.stderr
    assert "not acknowledged within 0.3 s" in done.stderr


def test_a_wrong_limit_is_said_and_the_default_holds(run: Run, collector: Collector) -> None:
    done = run(START, SUREFOOT_FLUSH_SECONDS="soon")
    assert done.stderr.count("SUREFOOT_FLUSH_SECONDS is 'soon', which is no number of seconds; 5 is used.") == 1
    assert collector.span_names() == RECORDED


def test_a_failing_redaction_is_counted_at_the_end(run: Run, collector: Collector) -> None:
    done = run(
        """
        from surefoot.instrumentation import agent_run, init
        init(redact=lambda key, text: 1 / 0)
        with agent_run("desk", principal="ada"):
            pass
        """
    )
    assert "surefoot: the redaction failed on " in done.stderr
    (span,) = collector.spans
    told = {pair.key: pair.value.string_value for pair in span.attributes}
    assert told["surefoot.principal"] == told["gen_ai.agent.name"] == "[REDACTED]"
    assert told["gen_ai.operation.name"] == "invoke_agent"


@pytest.mark.parametrize("how", ["multiprocessing", "os.fork"])
def test_a_forked_child_delivers_its_own_and_not_the_parents(run: Run, collector: Collector, how: str) -> None:
    end = {
        "multiprocessing": """
            import multiprocessing
            child = multiprocessing.get_context("fork").Process(target=work)
            child.start(); child.join()
            assert child.exitcode == 0
            """,
        "os.fork": """
            pid = os.fork()
            if pid == 0:
                work()
                sys.exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            """,
    }
    work = "\ndef work():\n    with tool('child'):\n        pass\n"
    done = run(START + work + textwrap.dedent(end[how]))
    assert (done.returncode, done.stderr) == (0, "")
    assert collector.span_names() == sorted([*RECORDED, "execute_tool child"])


def test_a_start_event_leaves_while_the_run_goes_on(
    collector: Collector, environment: Environment, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from surefoot.instrumentation import agent_run, init\ninit()\n"
        "with agent_run('desk', task_class='refund'):\n    input()\n"
    )
    with subprocess.Popen([sys.executable, str(program)], stdin=subprocess.PIPE, env=environment()) as process:
        try:
            assert collector.wait_for(lambda: bool(collector.logs))
            assert collector.spans == []
        finally:
            process.kill()
    (event,) = collector.logs
    told = {pair.key: pair.value.string_value for pair in event.attributes}
    assert event.event_name == "surefoot.run.started"
    assert told["surefoot.task.class"] == "refund"
    assert (len(event.trace_id), len(event.span_id)) == (16, 8)
    assert event.time_unix_nano > 0


def test_a_set_up_outside_of_the_main_thread_says_what_it_cannot_do(run: Run, collector: Collector) -> None:
    done = run(
        """
        import threading
        from surefoot.instrumentation import agent_run, init
        thread = threading.Thread(target=init)
        thread.start(); thread.join()
        with agent_run("desk"):
            pass
        """
    )
    assert "SIGTERM will not flush" in done.stderr
    assert collector.span_names() == ["invoke_agent desk"]
