"""The same request in other words: from a list, or written once by a model and kept.

Rule: a paraphrase is fixed before the first attempt, so that every variant and every rerun meets the same words, and
somebody can read them. A model that writes them is asked by ``generate``, never by a run.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from surefoot.evaluation.agent import AttemptContext
from surefoot.evaluation.endpoint import ask
from surefoot.evaluation.perturb.calls import PerturbError
from surefoot.evaluation.suite import Endpoint

PROMPT_VERSION: Final = "paraphrase/1"
PROMPT: Final = (
    "Rewrite the request below in {count} different ways. Keep every fact, name, number, date and condition, and ask "
    "for exactly the same thing; change only words and the order of sentences. Answer with a JSON array of {count} "
    "strings and nothing else.\n\nRequest:\n{request}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """Paraphrases by task. Repetition i gets number i, from the start again when they are used up."""

    given: Mapping[str, Sequence[str]]
    field: str = ""  # a dotted path to the words, where a task's input is an object
    provenance: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # of a model that wrote them

    def __post_init__(self) -> None:
        if empty := [task for task, texts in self.given.items() if isinstance(texts, str) or not texts]:
            raise PerturbError(f"Paraphrases of task {empty[0]!r}: give a list with at least one text.")

    def __call__(self, context: AttemptContext) -> None:
        """Give an attempt its task in other words, and note which."""
        texts = self.given.get(context.task_id)
        number = context.repetition % len(texts) if texts else None
        if texts and number is not None:
            context.input = _replaced(context.input, self.field.split(".") if self.field else [], texts[number])
        context.notes["prompts"] = {"paraphrase": number, **self.provenance}


def _replaced(value: Any, path: list[str], text: str) -> Any:
    if not path:
        if isinstance(value, str):
            return text
        raise PerturbError(f"Paraphrasing a task's input of type {type(value).__name__}: name the text in it (field).")
    if not isinstance(value, Mapping) or path[0] not in value:
        raise PerturbError(f"Paraphrasing a task's input: it has no field {path[0]!r}; correct `field`.")
    return {**value, path[0]: _replaced(value[path[0]], path[1:], text)}


def generate(requests: Mapping[str, str], endpoint: Endpoint, *, count: int = 5) -> Prompts:
    """Ask an OpenAI-compatible endpoint for paraphrases of each task's words; an empty ``prompt`` means ours.

    Raises PerturbError where the answer is no list of ``count`` different texts, InfrastructureError where none comes.
    """
    template = endpoint.prompt or PROMPT
    given: dict[str, Sequence[str]] = {}
    for task, request in requests.items():
        asked = template.replace("{count}", str(count)).replace("{request}", request)
        given[task] = _texts(ask(endpoint, [{"role": "user", "content": asked}]), task, request, count)
    made = {
        "model": endpoint.model,
        "prompt_version": endpoint.version if endpoint.prompt else PROMPT_VERSION,
        "prompt_sha256": hashlib.sha256(template.encode()).hexdigest(),
        "temperature": endpoint.temperature,
    }
    return Prompts(given=given, provenance=made)


def _texts(text: str, task: str, request: str, count: int) -> list[str]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise PerturbError(
            f"Paraphrasing task {task!r}: the model did not answer with a JSON array of texts. Try again."
        )
    different = [one for one in dict.fromkeys(one.strip() for one in found) if one and one != request.strip()]
    if len(different) < count:
        raise PerturbError(
            f"Paraphrasing task {task!r}: {len(different)} of {count} texts differ from each other and the request. "
            "Ask for fewer, or raise the temperature."
        )
    return different[:count]


def save(prompts: Prompts, path: Path) -> None:
    """Write them to read, correct and keep beside the suite."""
    data = {"provenance": dict(prompts.provenance), "field": prompts.field, "given": dict(prompts.given)}
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def load(path: Path) -> Prompts:
    """Read what ``save`` wrote."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return Prompts(given=data["given"], field=data.get("field", ""), provenance=data.get("provenance", {}))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PerturbError(
            f"Reading paraphrases from {path}: {error}. Give a file that was written by `save`."
        ) from error
