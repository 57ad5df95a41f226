"""``surefoot repeat``: run an agent k times per task, show Pass^k while it runs, and what came out at the end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from surefoot.cli.output import JSON_OPTION

if TYPE_CHECKING:
    from surefoot.evaluation.plan import Plan
    from surefoot.evaluation.records import Attempt
    from surefoot.evaluation.runner import Observer
    from surefoot.evaluation.suite import Suite


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("repeat")(repeat)


def repeat(
    suite: str = typer.Argument(metavar="SUITE", help="A .yaml or .py file, or module:name."),
    k: int | None = typer.Option(None, "--k", min=1, help="Repetitions of each task; default: the suite's."),
    variant: list[str] = typer.Option([], "--variant", help="Only this variant; may be repeated."),
    task: list[str] = typer.Option([], "--task", help="Only this task; may be repeated."),
    repetition: int | None = typer.Option(
        None, "--repetition", min=0, help="Run this one again, with its seed, to look at it; counted nowhere."
    ),
    folder: Path | None = typer.Option(None, "--folder", help="Run folder; one that is there already is continued."),
    concurrency: int | None = typer.Option(None, "--concurrency", min=1, help="Attempts at a time."),
    seconds: float | None = typer.Option(None, "--budget-seconds", min=0, help="Begin no attempt after this time."),
    tokens: int | None = typer.Option(None, "--budget-tokens", min=0, help="Begin no attempt after these tokens."),
    usd: float | None = typer.Option(None, "--budget-usd", min=0, help="Begin no attempt after these US dollars."),
    endpoint: str | None = typer.Option(
        None,
        "--endpoint",
        help="OTLP/HTTP address; default: OTEL_EXPORTER_OTLP_ENDPOINT, or the server that runs.",
    ),
    image_digest: str | None = typer.Option(None, "--image-digest", help="For the record: the image of this run."),
    retrieval_snapshot: str | None = typer.Option(None, "--retrieval-snapshot", help="For the record: the index used."),
    as_json: bool = JSON_OPTION,
) -> None:
    """Call the agent k times per task, keep everything, and say whether it would do it again.

    Ctrl-C keeps what is done; the same command with --folder continues. Ends with 0 if the run is complete or its
    budget is spent, 2 if the suite cannot be run, 130 after Ctrl-C. With --task and --repetition, one attempt is run
    again: ends with 0 if it was acceptable, 1 if not.
    """
    from surefoot.cli.repeat_report import report
    from surefoot.evaluation import plan as plans
    from surefoot.evaluation import runner, telemetry
    from surefoot.evaluation.loading import load_suite

    read = load_suite(suite)
    budget = read.protocol.budget
    protocol = replace(
        read.protocol,
        k=k or read.protocol.k,
        concurrency=concurrency or read.protocol.concurrency,
        budget=replace(
            budget,
            seconds=budget.seconds if seconds is None else seconds,
            tokens=budget.tokens if tokens is None else tokens,
            usd=budget.usd if usd is None else usd,
        ),
    )
    given = {"image_digest": image_digest, "retrieval_snapshot": retrieval_snapshot}
    plan = plans.Plan(
        suite=replace(read, protocol=protocol),
        folder=folder or plans.new_folder(read, Path("runs") if repetition is None else Path("runs", "replays")),
        source=suite,
        variants=tuple(variant),
        tasks=tuple(task),
        given={name: value for name, value in given.items() if value is not None},
        replayed=repetition,
    )
    if repetition is not None:
        from surefoot.cli.repeat_again import again

        again(replace(plan, endpoint=endpoint), as_json)
        return
    plan = replace(plan, endpoint=telemetry.receiver(asked=endpoint) or _running_server())
    plans.check(plan)
    out = Console(stderr=True, highlight=False)
    out.print(_what(plan.suite, plan.endpoint), soft_wrap=True)
    with _progress(out) as progress:
        ran = runner.repeat(plan, _observer(progress, plan))
    report(ran, plan.suite, suite, as_json)
    if ran.ended == "interrupted":
        raise typer.Exit(130)


def _running_server() -> str | None:
    """Return where this home's server takes OTLP, else the usual port; None: attempts are only in their file."""
    import urllib.request

    from surefoot.cli.config import load
    from surefoot.processors import status

    settings = load()
    said = status.read(settings.status_path, "collector") or {}
    at_home = (said.get("addresses") or {}).get("http")
    for address in (at_home, f"http://127.0.0.1:{settings.port_http}"):
        if not str(address).startswith(("http://127.0.0.1:", "http://localhost:", "http://[::1]:")):
            continue  # none, or one that wants TLS and a token: --endpoint and the exporter's own variables name it
        told = {"Content-Type": "application/x-protobuf"}
        probe = urllib.request.Request(f"{address}/v1/traces", data=b"", headers=told)  # noqa: S310 - on loopback
        try:
            with urllib.request.urlopen(probe, timeout=1):  # noqa: S310 - see above
                return str(address)
        except OSError:  # URLError is one: nobody listens there, or wants a token
            continue
    return None


def _what(suite: Suite, endpoint: str | None) -> str:
    protocol = suite.protocol
    attempts = len(suite.tasks) * protocol.k
    tasks = "1 task" if len(suite.tasks) == 1 else f"{len(suite.tasks)} tasks"
    alone = "no server of this home answers (--endpoint names another), so results are only in the run folder"
    where = f"spans and verdicts go to {endpoint}" if endpoint else alone
    return f"{suite.name}: {tasks}, k = {protocol.k}, {attempts} attempts a variant; {where}."


def _progress(out: Console) -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[live]}"),
    )
    return Progress(*columns, console=out)


def _observer(progress: Progress, plan: Plan) -> Observer:
    from surefoot.evaluation.live import Live
    from surefoot.evaluation.records import FILE, read_attempts

    shown = progress.add_task("attempts", total=None, live="")
    live = Live(plan.suite.protocol.k)
    for attempt in read_attempts(plan.folder) if (plan.folder / FILE).exists() else ():
        live.add(attempt)

    def observe(attempt: Attempt, done: int, total: int) -> None:
        live.add(attempt)
        progress.update(shown, completed=done, total=total, live=live.text())

    return observe
