"""(e) An agent killed in the middle of a run is ``running``, then ``abandoned``, and burns the availability budget."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from support.serving import DESK_AVAILABILITY, eventually, serving

AGENT = textwrap.dedent(
    """
    import time
    from surefoot.instrumentation import agent_run, flush, init, tool
    init(service_name="desk")
    with agent_run("clerk", task_class="refund"):
        with tool("look_up"):
            pass
        flush()
        print("in the middle", flush=True)
        time.sleep(600)
    """
)


def test_a_killed_agent_is_running_then_abandoned_and_burns_the_budget(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "slos").mkdir(parents=True)
    (home / "slos" / "desk.yaml").write_text(DESK_AVAILABILITY)
    program = tmp_path / "agent.py"
    program.write_text(AGENT)
    with serving(home, settle_seconds="6") as server:
        environment = {**server.environment, "OTEL_EXPORTER_OTLP_ENDPOINT": server.http}
        with subprocess.Popen(
            [sys.executable, str(program)], stdout=subprocess.PIPE, text=True, env=environment
        ) as agent:
            assert agent.stdout is not None
            assert agent.stdout.readline() == "in the middle\n"
            agent.kill()
        running = eventually("the running run", lambda: server.rows("SELECT * FROM runs WHERE outcome = 'running'"))
        assert [(r["agent_name"], r["task_class"], r["ended_at"]) for r in running] == [("clerk", "refund", None)]
        abandoned = eventually("its end", lambda: server.rows("SELECT * FROM runs WHERE outcome = 'abandoned'"))
        assert [r["run_id"] for r in abandoned] == [running[0]["run_id"]]
        assert server.rows("SELECT count(*) AS n FROM runs") == [{"n": 1}]
        assert abandoned[0]["tool_calls"] == 1

        def burnt() -> bool:
            done = server.command("slo", "status", "--json")
            return done.returncode == 0 and '"bad": 1' in done.stdout

        eventually("the burnt budget", burnt)
        checked = server.command("slo", "status", "--check")
        assert checked.returncode == 1, checked.stdout
