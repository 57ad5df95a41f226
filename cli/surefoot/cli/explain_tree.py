"""An explained trace as lines for a terminal of any width: the tree on the left, what became of each span on the right.

Rule: the right-hand side is never cut; names on the left are, and a note takes as many lines as it needs.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rich.text import Text

if TYPE_CHECKING:
    from surefoot.processors.genai.explain import Explained, Node, Run
    from surefoot.processors.genai.explain_source import Answer, Stored

_NOTE: Final = 40  # columns that a note gets before names get more than they need at least
_NAME: Final = 28
_NARROWEST: Final = 24
_STYLES: Final = {"run": "bold", "tool_call": "", "model_call": "", "nothing": "dim"}  # by reason; the others: yellow
_COUNTED: Final = {
    "agent": "runs",
    "workflow": "runs",
    "chain": "runs",
    "tool": "tool calls",
    "model": "model calls",
}


def show(answer: Answer, width: int) -> Iterator[Text]:
    """Everything about the traces, in lines of at most ``width`` columns where names and words allow."""
    for trace in answer.traces:
        yield from _trace(trace, width)
    if answer.stored is not None:
        yield from _stored(answer, answer.stored, width)
    if answer.others:
        yield Text(f"{_some(len(answer.others), 'other traces')} not shown; --trace ID shows one.", "dim")


def _trace(trace: Explained, width: int) -> Iterator[Text]:
    state = "settled" if trace.settled else "may still change"
    copies = f", {_some(trace.copies, 'copies')} dropped (rule 1)" if trace.copies else ""
    yield Text.assemble((f"Trace {trace.trace_id}", "bold"), f"  {_some(trace.spans, 'spans')}{copies}, {state}")
    for dialect, scopes in trace.dialects.items():
        named = ", ".join(filter(None, scopes))
        yield Text(f"Dialect {dialect}{f' (scope {named})' if named else ''}", "dim")
    yield from _tree(trace, width)
    if trace.runs:
        yield Text("Runs", "bold")
        for run in trace.runs:
            yield from _run(run, width)
    else:
        yield Text("No run", "bold")
    yield from _counts(trace, width)
    yield Text("")


def _tree(trace: Explained, width: int) -> Iterator[Text]:
    guides = _guides(trace.nodes)
    cells = [_cells(node, several=len(trace.dialects) > 1) for node in trace.nodes]
    sizes = [max((len(row[place]) for row in cells), default=0) for place in range(len(cells[0]))] if cells else []
    beside = sum(size + 1 for size in sizes if size) + 2
    names = [f"{guide[0]}{_label(node)}" for guide, node in zip(guides, trace.nodes, strict=True)]
    room = min(max(map(len, names), default=0), max(_NAME, width - beside - _NOTE))
    for node, name, (_, below), row in zip(trace.nodes, names, guides, cells, strict=True):
        style = _STYLES.get(node.reason, "yellow")
        notes = _wrap(node.note, width - room - beside) or [""]
        columns = "".join(f" {_fit(cell, size)}" for cell, size in zip(row, sizes, strict=True) if size)
        left = name if len(name) <= room else f"{name[: room - 1]}…"
        failed = "red" if node.status == "error" else style
        yield Text.assemble((left.ljust(room), failed), (columns, "dim"), "  ", (notes[0], style))
        for more in notes[1:]:
            yield Text.assemble((below[:room].ljust(room + beside), "dim"), (more, style))


def _cells(node: Node, *, several: bool) -> list[str]:
    """Dialect (where there are several), time, status and tokens."""
    told = node.input_tokens, node.output_tokens
    tokens = "" if told == (None, None) else "+".join("?" if one is None else str(one) for one in told)
    status = node.status if node.status in ("ok", "error") else ""
    dialect = (node.dialect or "-") if several and node.kind == "span" else ""
    return [dialect, _duration(node.duration_ns), status, tokens]


def _fit(cell: str, size: int) -> str:
    return cell.rjust(size) if cell[:1].isdigit() else cell.ljust(size)


def _label(node: Node) -> str:
    if node.kind == "missing":
        return f"(parent {node.span_id})"
    if node.kind == "start":
        return f"(started {node.agent_name or node.span_id})"
    name = node.name or node.span_id
    return f"{name} ({node.operation})" if node.operation and node.operation not in name else name


def _guides(nodes: list[Node]) -> list[tuple[str, str]]:
    """For each node the lines before its name, and those of a further line below it."""
    found: list[tuple[str, str]] = [("", "")] * len(nodes)
    open_at: set[int] = set()  # depths at which another sibling follows below
    for place in range(len(nodes) - 1, -1, -1):
        depth = nodes[place].depth
        follows = depth in open_at
        open_at = {level for level in open_at if level < depth} | {depth}
        stems = "".join("│ " if level in open_at else "  " for level in range(1, depth))
        has_child = place + 1 < len(nodes) and nodes[place + 1].depth > depth
        own = ("├ " if follows else "└ ") if depth else ""
        under = ("│ " if follows else "  ") if depth else ""
        found[place] = (stems + own, stems + under + ("│" if has_child else ""))
    return found


def _run(run: Run, width: int) -> Iterator[Text]:
    under = f", sub-run of run {run.parent}" if run.parent else ""
    failed = f" ({run.tool_errors} failed)" if run.tool_errors else ""
    tokens = "no tokens told"
    if run.tokens_from is not None:
        told = "+".join("?" if one is None else str(one) for one in (run.input_tokens, run.output_tokens))
        tokens = f"{told} tokens from {run.tokens_from}"
    colour = {"ok": "green", "running": "blue", "unknown": "yellow"}.get(run.outcome, "red")
    head = f"  {run.number}  {run.agent_name or '(no name)'}{under}: "
    yield Text.assemble(head, (run.outcome, colour))
    calls = f"{_some(run.tool_calls, 'tool calls')}{failed}, {_some(run.model_calls, 'model calls')}"
    for sentence in (f"{run.outcome} because {run.because}", f"{calls}, {tokens}", f"run_id {run.run_id}"):
        yield from (Text(f"     {line}", "dim") for line in _wrap(sentence, width - 5))


def _counts(trace: Explained, width: int) -> Iterator[Text]:
    yield Text("Counted", "bold")
    for count in trace.counts:
        others = ", ".join(f"{word} ×{number}" for word, number in count.others.items())
        left = f" (not: {others})" if others else ""
        counted = _some(count.counted, _COUNTED[count.kind])
        line = f"{counted} of {_some(count.spans, f'{count.kind} spans')}{left}"
        yield from (Text(f"  {part}") for part in _wrap(line, width - 2))
    if trace.outside:
        told = " and ".join(_some(number, f"{kind.replace('_', ' ')}s") for kind, number in trace.outside.items())
        yield Text(f"  outside of any run: {told}")
    if not trace.counts:
        yield Text("  nothing: no span is an agent's, a tool's or a model's")


def _stored(answer: Answer, stored: Stored, width: int) -> Iterator[Text]:
    rows = ", ".join(_some(number, table.replace("_", " ")) for table, number in stored.rows.items())
    yield Text.assemble(("Stored", "bold"), f": {rows}")
    if not stored.differences:
        yield Text("  Deriving now gives the same.")
        return
    if not any(stored.rows.values()):
        yield Text("  Not derived yet: the jobs process has not come to it.")
        return
    if not answer.traces:
        yield Text("  No span of it is kept any more: what was derived before stays as it is.")
        return
    yield Text("  Deriving now gives something else. The jobs process does so after something arrived, or is due:")
    for difference in stored.differences:
        yield from (Text(f"  {line}", "yellow") for line in _wrap(difference, width - 2))


def _wrap(text: str, width: int) -> list[str]:
    """Lines of a text; a rule stays with its number."""
    lines = textwrap.wrap(re.sub(r"(rule) (\d)", "\\1\u00a0\\2", text), max(_NARROWEST, width))
    return [line.replace("\u00a0", " ") for line in lines]


def _some(number: int, things: str) -> str:
    """A number and its noun, which is given in the plural."""
    one = {"copies": "copy"}.get(things, things.removesuffix("s"))
    return f"{number:,} {one if number == 1 else things}"


def _duration(nanos: int | None) -> str:
    if nanos is None:
        return ""
    if abs(nanos) < 999_500_000:
        return f"{nanos / 1e6:.1f}ms" if abs(nanos) < 10_000_000 else f"{nanos / 1e6:.0f}ms"
    seconds = nanos / 1e9
    return f"{seconds:.2f}s" if seconds < 100 else f"{seconds / 60:.1f}min"
