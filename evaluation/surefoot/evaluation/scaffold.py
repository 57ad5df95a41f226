"""A commented suite to start from, for an agent that is a function.

Rule: what the agent's tools reach is the author's to say. Unless told, the suite says ``real``, and repeating it is
refused: no irreversible action is repeated because somebody had not got round to editing a file.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from surefoot.evaluation.errors import SuiteError
from surefoot.evaluation.loading import resolve

EFFECTS: Final = ("none", "fixture", "replayed", "simulated", "withheld", "real")
_INPUTS: Final[dict[Any, Any]] = {int: 42, float: 4.2, dict: {"question": "What is 6 times 7?"}, list: ["6", "7"]}
_QUESTION: Final = "What is 6 times 7?"

_SUITE: Final = """\
# What is repeated, so that its figures mean something. Start it with: surefoot repeat {file}
name: {name}
agent: {agent}        # {doc}

protocol:
  k: {k}                # attempts of each task: Pass^k is the chance that k of them in a row are all acceptable
  why: {k} in a row     # why this k: how often a user, or a day, needs it to work
  # What the agent's tools reach while it is repeated:
  #   none       it has no tools with effects         fixture    only the state that each attempt gets a copy of
  #   replayed   from a cassette                      simulated  a stand-in
  #   withheld   the call is noted and not made       real       the world: refused, choose one of the others
  effects: {effects}
  timeout_seconds: 60
  concurrency: 2
  budget: {{seconds: 600}}    # also tokens and usd: no attempt begins after it
  # freeze: {{clock: "2026-01-15T09:00:00+00:00", timezone: UTC}}    # what every attempt is to find the same

variants:
  - name: baseline
    # versions: {{model: m-1, prompt: "1"}}    # of what is under test, for the record
  # - {{name: candidate, agent: "{module}:newer"}}    # surefoot compare FOLDER@baseline FOLDER@candidate

tasks:
  - id: first-task
    # class: question           # figures come by class, too
    # consequence: reversible   # what a mistake costs: reversible, irreversible, ...
    input: {input}
    checkers:
      # As written, an answer of any kind is acceptable. Say here what is right; every one of them has to pass.
      - regex: '\\S'
      # - exact: "42"
      # - json_schema: {{type: object, required: [answer]}}
      # - callable: "{module}:is_right"           # is_right(output) -> True, False, or (False, "why")
      # - final_state: {{refunded: [42]}}          # what the fixture has to hold afterwards
    # fixture: {{refunded: []}}    # state that each attempt gets a copy of, as ctx.state of agent(task_input, ctx)
    equivalence: words          # when two answers are the same: exact, words, message, state

# Tasks that differ in a parameter:
# templates:
#   - id: "times-{{a}}"
#     input: "What is {{a}} times 7?"
#     vary: {{a: {{from: 2, to: 99}}}}
#     count: 20
#     seed: 1
#     checkers: [{{regex: '\\d'}}]
"""


def suite_text(reference: str, file: Path, *, effects: str = "real", k: int = 10) -> str:
    """Return the suite's YAML. Raises SuiteError if the agent cannot be imported, or is nothing that can be called."""
    if effects not in EFFECTS:
        raise SuiteError(f"--effects {effects}: there are {', '.join(EFFECTS)}.")
    agent = resolve(reference, "agent")
    module, _, function = reference.partition(":")
    return _SUITE.format(
        file=file,
        name=re.sub(r"[^A-Za-z0-9]+", "-", function).strip("-") or "agent",
        agent=reference,
        module=module,
        doc=(inspect.getdoc(agent) or "module:function").splitlines()[0],
        k=k,
        effects=effects,
        input=json.dumps(_example(reference, agent)),
    )


def _example(reference: str, agent: Callable[..., Any]) -> Any:
    """Return an input that fits the agent's first parameter."""
    if not callable(agent) or inspect.isclass(agent):
        raise SuiteError(
            f"agent: {reference} is {type(agent).__name__}, not a function; name one that takes the input."
        )
    try:
        given = list(inspect.signature(agent, eval_str=True).parameters.values())
    except (TypeError, ValueError, NameError):
        return _QUESTION  # a built-in, or annotations that are only for type checkers
    positional = [each for each in given if each.kind in {each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD}]
    if inspect.isgeneratorfunction(agent) or inspect.isasyncgenfunction(agent):
        raise SuiteError(f"agent: {reference} gives its answer in parts; write a function that returns all of it.")
    needed = [each for each in given if each.default is each.empty and each.kind is each.KEYWORD_ONLY]
    needed += [each for each in positional[2:] if each.default is each.empty]
    several = any(each.kind is each.VAR_POSITIONAL for each in given)
    unbound = bool(positional) and positional[0].name == "self"  # a method without its object
    if needed or unbound or not (positional or several):
        raise SuiteError(
            f"agent: {reference}{inspect.signature(agent)} cannot be called with a task's input. Write a function "
            "agent(task_input), or agent(task_input, ctx), that calls it."
        )
    annotation = positional[0].annotation if positional else str
    return _INPUTS.get(getattr(annotation, "__origin__", annotation), _QUESTION)


def write_new(file: Path, text: str) -> None:
    """Write a file that is not there yet. Raises SuiteError if it is."""
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError as error:
        raise SuiteError(f"{file} is there already, and was left as it is; name another file.") from error
    except OSError as error:
        raise SuiteError(f"Writing {file}: {error}. Name a file in a folder that exists.") from error
