"""``surefoot repeat --task ID --repetition N``: one attempt again, with its seed, to look at what went wrong.

Rule: it is never evidence. Whoever looks at a failure until it passes would otherwise have made a success of it: so it
has a folder and a file of its own that no reader of attempts opens, and no span of it is sent anywhere.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import typer

from surefoot.cli.output import console, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from surefoot.evaluation.plan import Plan
    from surefoot.evaluation.records import Attempt

_SHOWN: Final = 4000  # characters of an answer, from its beginning, and of a log, from its end


def again(plan: Plan, as_json: bool) -> None:
    """Run it and print everything about it."""
    from surefoot.evaluation import runner
    from surefoot.evaluation.errors import SuiteError
    from surefoot.evaluation.records import to_json

    if len(plan.tasks) != 1:
        raise SuiteError("--repetition runs one attempt again: name its task with --task.")
    if plan.replayed is not None and plan.folder.exists():
        raise SuiteError(f"{plan.folder} is there already; what is run again has a folder of its own.")
    chosen = plan.variants or plan.suite.names
    if len(chosen) != 1:
        raise SuiteError(f"--repetition runs one attempt again: name one --variant of {', '.join(chosen)}.")
    plan = replace(plan, variants=chosen)
    ran = runner.repeat(plan)
    if not ran.attempts:
        raise typer.Exit(130 if ran.ended == "interrupted" else 2)
    attempt = ran.attempts[-1]
    if as_json:
        print_json({"folder": str(ran.folder), "replay": True, "attempt": to_json(attempt)})
    else:
        _print(console(), plan, attempt)
    raise typer.Exit(0 if attempt.acceptable else 1)


def command(source: str, attempt: Attempt, *, name_variant: bool) -> str:
    """Return what runs an attempt again as it was: with its seed, and where the harness drew it, that of ``hash``."""
    parts = ["surefoot", "repeat", source, "--task", attempt.task_id, "--repetition", str(attempt.repetition)]
    parts += ["--variant", attempt.variant] if name_variant else []
    drawn = attempt.extra.get("hash_seed")
    return ("" if drawn is None else f"PYTHONHASHSEED={drawn} ") + shlex.join(parts)


def _print(out: Console, plan: Plan, attempt: Attempt) -> None:
    from surefoot.evaluation.compare_sides import printable

    def line(text: str) -> None:
        out.print(printable(text, keep="\n\t"), markup=False, highlight=False, soft_wrap=True)  # the agent wrote it

    known = {True: "acceptable", False: "not acceptable", None: "not judged"}[attempt.acceptable]
    line(f"{attempt.variant}, {attempt.task_id}, repetition {attempt.repetition}, seed {attempt.seed}: {known}")
    line(f"ended       {attempt.outcome}" + ("" if attempt.seconds is None else f" after {attempt.seconds:.3f} s"))
    if attempt.error is not None:
        line(f"error       {attempt.error.traceback or f'{attempt.error.type}: {attempt.error.message}'}")
    if attempt.output is not None:
        line(f"answer      {json.dumps(attempt.output, ensure_ascii=False, indent=1)[:_SHOWN]}")
    for verdict in attempt.verdicts:
        why = f": {verdict.explanation}" if verdict.explanation else ""
        line(f"{verdict.kind:<11} {verdict.verdict} {verdict.name}{why}")
    if attempt.actions:
        line(f"tools       {', '.join(attempt.actions)}")
    for log in sorted((plan.folder / "workers").glob("*.log")):
        text = log.read_text(encoding="utf-8", errors="replace").strip()
        if text:
            line(f"printed     {text[-_SHOWN:]}")
    freeze = plan.suite.protocol.freeze
    if freeze is None or not freeze.random:
        line("Not frozen (protocol.freeze): what the agent draws without the attempt's seed is drawn anew.")
    line(f"A replay: counted nowhere, sent nowhere. Folder: {plan.folder}")
