"""``surefoot compare``: did it get worse? An answer for people, for pull requests and for CI."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.table import Table
from rich.text import Text

from surefoot.cli.output import JSON_OPTION, console, print_json
from surefoot.errors import SurefootError

if TYPE_CHECKING:
    from rich.console import Console

    from surefoot.evaluation.compare import Comparison
    from surefoot.evaluation.compare_rules import Finding


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare")(compare)


def compare(
    baseline: str = typer.Argument(metavar="BASELINE", help="Run folder or attempts.jsonl; FOLDER@VARIANT for one."),
    candidate: str = typer.Argument(metavar="CANDIDATE", help="The same for what is to replace it."),
    k: int | None = typer.Option(None, "--k", min=1, help="Pass^k at this k; default: the most that all tasks reach."),
    alpha: float = typer.Option(0.05, "--alpha", help="Level of the tests; intervals are at 1 - alpha."),
    fail_on: list[str] = typer.Option(
        [],
        "--fail-on",
        metavar="RULE",
        help="May be repeated: proved, missing, trade, pass-hat-k[:M], mean[:M], task[:M], none. "
        "Default: proved and missing.",
    ),
    tasks: int = typer.Option(20, "--tasks", min=0, help="Tasks to print, worst regression first; 0: all."),
    junit: Path | None = typer.Option(None, "--junit", metavar="FILE", help="Write JUnit XML."),
    markdown: Path | None = typer.Option(
        None, "--markdown", metavar="FILE", help="Write a comment for a pull request."
    ),
    as_json: bool = JSON_OPTION,
) -> None:
    """Compare two sets of repeated runs: ends with 0 if fine, 1 if a rule says regression, 2 if the input is wrong."""
    from surefoot.evaluation import compare as comparing
    from surefoot.evaluation.compare_rules import check_rules, parse_rules
    from surefoot.evaluation.compare_sides import CompareError, read_side
    from surefoot.evaluation.junit import to_junit
    from surefoot.evaluation.markdown import to_markdown

    if not 0 < alpha < 1:
        raise CompareError(f"--alpha {alpha}: a level lies between 0 and 1, .05 for 5 %.")
    rules = parse_rules(fail_on)
    found = comparing.compare(read_side(baseline), read_side(candidate), k=k, alpha=alpha)
    findings = check_rules(found, rules)
    if junit is not None:
        _write(junit, to_junit(found, findings))
    if markdown is not None:
        _write(markdown, to_markdown(found, findings))
    if as_json:
        print_json({**asdict(found), "trade": found.trade, "findings": [asdict(finding) for finding in findings]})
    else:
        _print(found, findings, tasks)
    if any(finding.broken for finding in findings):
        raise typer.Exit(1)


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SurefootError(f"Writing {file}: {error}. Name a file in a folder that exists.") from error


def _print(found: Comparison, findings: list[Finding], most: int) -> None:
    from surefoot.evaluation.compare_sides import shown as plain
    from surefoot.evaluation.markdown import (
        FIGURE_TITLES,
        TASK_TITLES,
        TEST_TITLES,
        claims,
        figure_cells,
        task_cells,
        test_cells,
        warnings,
    )

    out = console()
    what = f"{found.baseline} → {found.candidate}: {len(found.tasks)} tasks, k = {found.k}"
    out.print(Text(plain(what), style="bold"))
    shown = found.tasks[: most or None]
    _table(out, TASK_TITLES, [task_cells(task) for task in shown], [_style(found, task.task_id) for task in shown])
    if len(found.tasks) > len(shown):
        out.print(f"... and {len(found.tasks) - len(shown)} tasks that fell less, or rose (--tasks 0 shows all)")
    _table(out, FIGURE_TITLES, [figure_cells(figure) for figure in (found.mean, found.pass_hat_k)])
    _table(out, TEST_TITLES, [test_cells(test) for test in found.tests])
    for text in warnings(found):
        out.print(Text(f"warning  {plain(text)}", style="yellow"), soft_wrap=True)
    _lists(out, found)
    out.print(Text(claims(found), style="dim"), soft_wrap=True)
    _verdict(out, findings)


def _style(found: Comparison, task_id: str) -> str:
    return "bold red" if any(task.task_id == task_id for task in found.fallen) else ""


def _table(out: Console, titles: tuple[str, ...], rows: list[list[str]], styles: list[str] | None = None) -> None:
    from surefoot.evaluation.compare_sides import shown

    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, title in enumerate(titles):
        last = place == len(titles) - 1
        table.add_column(title, no_wrap=not last, max_width=60 if last else None)
    for row, style in zip(rows, styles or [""] * len(rows), strict=True):
        table.add_row(*(Text(shown(cell)) for cell in row), style=style)
    out.print(table)
    out.print()


def _lists(out: Console, found: Comparison) -> None:
    from surefoot.evaluation.compare_sides import shown
    from surefoot.evaluation.markdown import shortened

    for what, names in (
        ("only in the baseline", found.only_baseline),
        ("only in the candidate", found.only_candidate),
        ("not judged on both sides", found.unjudged),
        ("versions that differ", [f"{each.what} {each.baseline} → {each.candidate}" for each in found.versions]),
    ):
        if names:
            out.print(Text(shown(f"{what}: {shortened(names)}")), soft_wrap=True)


def _verdict(out: Console, findings: list[Finding]) -> None:
    from surefoot.evaluation.compare_sides import shown

    broken = [finding for finding in findings if finding.broken]
    for finding in broken:
        for text in finding.says:
            out.print(Text.assemble((f"{finding.rule}  ", "bold red"), shown(text)), soft_wrap=True)
    asked = ", ".join(finding.rule for finding in findings) or "none"
    word, style = ("regression", "bold red") if broken else ("no regression", "bold green")
    out.print(Text.assemble((word, style), f", by the rules {asked}"), soft_wrap=True)
