"""A case as files: a suite in Python that says what was observed, and a cassette of the tools' calls beside it."""

from __future__ import annotations

import ast
import json
import pprint
from pathlib import Path
from typing import Final

from surefoot.evaluation.replay.case import Case, CaseError
from surefoot.evaluation.replay.cassette import write_cassette

_WIDTH: Final = 110
_LOADED: Final = "json.loads("
_SUITE: Final = '''\
"""A regression case: what a trace showed must not recur. Written by `surefoot case from-trace`; edit it.

Tools are replayed from {cassette}; the model is really called, unless its client has a transport of
surefoot.evaluation.replay and is recorded, too.
"""

{imports}from pathlib import Path

from surefoot.evaluation import Checker, Protocol, Suite, Task, Variant, replay

TRACE = {trace}
# What was observed.
FAILURES = {failures}
# The answer that the agent gave; None: not captured, or there was none.
OBSERVED = {observed}
# What the trace does not tell.
GAPS = {gaps}


def observed_failure(output, ctx):
    """Fail if what was observed happens again. An attempt that raises is unacceptable before it gets here."""
{checker}


suite = Suite(
    name={name},
    agent={agent},
    tasks=(
        Task(
            id={task_id},
            task_class={task_class},
            consequence_class={consequence_class},
            input={input},
            checkers=(Checker(type="callable", expected=observed_failure, name="observed_failure"),),
        ),
    ),
    protocol=Protocol(
        k=10,
        why="a failure that comes in one run of four is missed by ten good ones in 6 % of cases",
        reset="each attempt replays the recorded tools from their first call on",
        effects="replayed",
        around=(replay.Around(Path(__file__).parent / {cassette_name}),),
    ),
    variants=(Variant(name="baseline", versions={versions}),),
)
'''
_CRASHED: Final = "    return True  # there is an answer: the run did not end as it did then"
_SAME: Final = """    if OBSERVED is not None and output == OBSERVED:
        return False, f"the answer that was not acceptable came again: {FAILURES[0]}"
    # Another answer is not yet a right one: say here what is right, and return True or False.
    return "unresolved", "nobody has said what the right answer is\""""
_UNKNOWN: Final = """    # The trace shows no failure: say here what must not happen, and return True or False.
    return "unresolved", "nobody has said what must not happen\""""
INPUT_PLACEHOLDER: Final = "WRITE THE TASK'S INPUT HERE: it was not captured"
AGENT_PLACEHOLDER: Final = "your_module:your_agent"


def write_case(case: Case, folder: Path, agent: str | None) -> tuple[Path, Path]:
    """Write the suite and the cassette; returns their paths. Raises CaseError if one is there already."""
    stem = f"case_{case.trace_id[:8]}"
    suite, cassette = folder / f"{stem}.py", folder / f"{stem}.tools.jsonl"
    for path in (suite, cassette):
        if path.exists():
            raise CaseError(f"Writing the case of trace {case.trace_id}: {path} is there already. Name another --out.")
    write_cassette(cassette, {"source": "trace", "trace_id": case.trace_id, "gaps": list(case.gaps)}, case.entries)
    suite.write_text(_source(case, stem, cassette.name, agent), encoding="utf-8")
    return suite, cassette


def _source(case: Case, stem: str, cassette: str, agent: str | None) -> str:
    run = case.run
    checker = _CRASHED if case.crashed else _SAME if case.failures else _UNKNOWN
    found = {
        "failures": _literal(list(case.failures)),
        "observed": _literal(case.output),
        "input": _literal(INPUT_PLACEHOLDER if case.input is None else case.input),
    }
    return _SUITE.format(
        **found,
        imports="import json\n" if any(text.startswith(_LOADED) for text in found.values()) else "",
        cassette=cassette,
        trace=repr(case.trace_id),
        gaps=_literal(list(case.gaps)),
        checker=checker,
        name=repr(stem.replace("_", "-")),
        agent=repr(agent or AGENT_PLACEHOLDER),
        task_id=repr(run["task_id"] or stem),
        task_class=repr(run["task_class"]),
        consequence_class=repr(run["consequence_class"]),
        cassette_name=repr(cassette),
        versions=_literal(case.versions),
    )


def _literal(value: object) -> str:
    text = pprint.pformat(value, width=_WIDTH, sort_dicts=False)
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):  # NaN and infinity, which JSON of a trace may hold, are no literals
        return f"{_LOADED}{json.dumps(value)!r})"
    return text
