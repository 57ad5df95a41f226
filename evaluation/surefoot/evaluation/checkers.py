"""Was it right? Each checker gives one verdict; outcome and process verdicts stay apart.

Rule: an attempt is acceptable only if every outcome checker passes, so a right message with a wrong state is not. A
checker that fails to judge (it raises, its endpoint is down) is unresolved: nobody knows, which is not a failure.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from surefoot.evaluation.agent import AttemptContext, call_with
from surefoot.evaluation.conversation import reply
from surefoot.evaluation.endpoint import ask
from surefoot.evaluation.errors import SuiteError
from surefoot.evaluation.loading import resolve
from surefoot.evaluation.records import Verdict
from surefoot.evaluation.suite import Checker, Reference, named

_SHOWN: Final = 300  # characters of a value in an explanation
Found = tuple[bool | None, str | None]  # passed, unknown where None; why


def check(checker: Checker, output: Any, context: AttemptContext) -> Verdict:
    """Return the checker's verdict on an answer and on the state that was left."""
    try:
        passed, why = _CHECKS[checker.type](checker, _looked_at(checker, output, context), context)
    except AssertionError as error:
        passed, why = False, str(error) or "an assertion failed"
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise
    # BaseException: sys.exit() and pytest.fail() in a checker are no Exception, and must not end the harness.
    except BaseException as error:  # noqa: BLE001 - a checker of the user's may raise anything; that is no verdict
        said_no = _is_pytests_fail(error)
        why = str(error) if said_no else f"the checker failed: {type(error).__name__}: {error}"
        passed = False if said_no else None
    verdict = {True: "pass", False: "fail", None: "unresolved"}[passed]
    return Verdict(
        name=checker.title,
        kind=checker.kind,
        verdict=verdict,  # type: ignore[arg-type]  # one of the three words
        explanation=why,
        grader_name=_grader(checker),
        grader_version=checker.version if checker.endpoint is None else checker.endpoint.version,
        grader_kind="model" if checker.type == "judge" else "executable",
        severity=checker.severity,
    )


def _is_pytests_fail(error: BaseException) -> bool:
    # By its name: pytest is not imported where no checker does.
    kinds = type(error).__mro__
    return kinds[0].__name__ == "Failed" and any(kind.__module__ == "_pytest.outcomes" for kind in kinds)


def acceptable(verdicts: Sequence[Verdict]) -> bool | None:
    """Return whether all outcome verdicts pass; None if nobody knows."""
    outcomes = [verdict.verdict for verdict in verdicts if verdict.kind == "outcome"]
    if "fail" in outcomes:
        return False
    return True if outcomes and "unresolved" not in outcomes else None


def signature(rule: Reference, output: Any, state: Any) -> str | None:
    """Return what is equal for equivalent final states, None where the rule cannot tell."""
    if rule == "exact":
        seen: Any = [reply(output), state]
    elif rule == "state":
        seen = state
    elif rule == "message":
        seen = reply(output)
    elif rule == "words":
        seen = " ".join(re.findall(r"\w+", str(reply(output)).casefold()))
    else:
        seen = resolve(rule, "equivalence")(output, state)
        if seen is None:
            return None
    return hashlib.sha256(canonical(seen).encode()).hexdigest()[:16]


def rule_name(rule: Reference) -> str:
    """Return the name of an equivalence rule, for the record."""
    return rule if isinstance(rule, str) else named(rule)


def canonical(value: Any) -> str:
    """Return JSON that is equal for equal values; what JSON does not know is written as text."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)


def at(value: Any, path: str) -> Any:
    """Return what a dotted path leads to, in mappings, lists and objects. Raises AssertionError if nothing is there."""
    for step in path.split(".") if path else ():
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list | tuple) and step.lstrip("-").isdigit() and -len(value) <= int(step) < len(value):
            value = value[int(step)]
        elif not isinstance(value, dict | list | tuple) and hasattr(value, step):
            value = getattr(value, step)
        else:
            raise AssertionError(f"there is no {path!r} in {_short(value)}")
    return value


def final_state(context: AttemptContext) -> Any:
    """Return the state that the fixture's object holds: itself, or what its method ``final_state`` says."""
    tell = getattr(context.state, "final_state", None)
    return tell() if callable(tell) else context.state


def _looked_at(checker: Checker, output: Any, context: AttemptContext) -> Any:
    about_state = checker.on == "state" or checker.type == "final_state"
    value = final_state(context) if about_state else output
    if checker.type in {"callable", "pytest"} and not checker.field:
        return value
    return at(value if about_state or checker.field else reply(value), checker.field)


def _grader(checker: Checker) -> str:
    if checker.endpoint is not None:
        return f"judge:{checker.endpoint.model}"
    if checker.type in {"callable", "pytest"}:
        return checker.expected if isinstance(checker.expected, str) else named(checker.expected)
    return checker.type


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else canonical(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


def _exact(checker: Checker, value: Any, _: AttemptContext) -> Found:
    if _equal(checker.expected, value):
        return True, None
    return False, f"expected {_short(checker.expected)}, found {_short(value)}"


def _equal(one: Any, two: Any) -> bool:
    """Whether two values are equal, at every depth: true is not 1."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(_equal(item, two[key]) for key, item in one.items())
    if isinstance(one, list | tuple) and type(one) is type(two):
        return len(one) == len(two) and all(map(_equal, one, two))
    return bool(one == two) and isinstance(one, bool) == isinstance(two, bool)


def _regex(checker: Checker, value: Any, _: AttemptContext) -> Found:
    if value is None:
        return False, "there is no answer"  # which is not the word null
    text = value if isinstance(value, str) else canonical(value)
    if re.search(checker.expected, text):
        return True, None
    return False, f"{checker.expected!r} does not match {_short(text)}"


def _json_schema(checker: Checker, value: Any, _: AttemptContext) -> Found:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]  # it has no types

    if isinstance(value, str) and (checker.expected is True or checker.expected.get("type") != "string"):
        try:
            value = json.loads(value)
        except ValueError as error:
            return False, f"not JSON ({error}): {_short(value)}"
    # The registry of the drafts: the default one fetches what a $ref names, from wherever that is.
    validator = Draft202012Validator(checker.expected, registry=REGISTRY)
    worst = best_match(validator.iter_errors(value))
    return worst is None, None if worst is None else f"{worst.json_path}: {worst.message[:_SHOWN]}"


def _callable(checker: Checker, value: Any, context: AttemptContext) -> Found:
    return _told(call_with(resolve(checker.expected, f"checker {checker.title}"), value, context=context), checker)


def _told(result: Any, checker: Checker) -> Found:
    why = None
    if isinstance(result, tuple) and len(result) == 2:
        result, why = result[0], str(result[1])
    if type(result).__module__ == "numpy" and type(result).__name__ in {"bool", "bool_"}:
        result = bool(result)
    if isinstance(result, bool):
        return result, why
    if result is None:
        raise SuiteError(f"{checker.title} returned nothing; return True or False, or (False, why)")
    words = {"pass": True, "fail": False, "unresolved": None}
    if isinstance(result, str) and result in words:
        return words[result], why
    raise SuiteError(f"{checker.title} returned {result!r}; return True or False, or (False, why)")


def _final_state(checker: Checker, value: Any, context: AttemptContext) -> Found:
    expected = checker.expected
    if callable(expected) or (isinstance(expected, str) and re.fullmatch(r"[\w.]+:[\w.]+", expected)):
        expected = call_with(resolve(expected, f"checker {checker.title}"), context=context)
    differing = [
        difference
        for difference in differences(_plain(expected), _plain(value))
        if not any(difference[0] == path or difference[0].startswith(f"{path}.") for path in checker.ignore)
    ]
    if not differing:
        return True, None
    told = "; ".join(f"{path or 'state'}: expected {wanted}, found {there}" for path, wanted, there in differing[:5])
    more = f"; and {len(differing) - 5} more" if len(differing) > 5 else ""
    return False, told + more


def differences(expected: Any, found: Any, path: str = "") -> list[tuple[str, str, str]]:
    """Return (path, expected, found) of everything in which two states differ."""
    if isinstance(expected, dict) and isinstance(found, dict):
        keys = [*expected, *(key for key in found if key not in expected)]
        pairs = [(str(key), expected.get(key, _ABSENT), found.get(key, _ABSENT)) for key in keys]
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = [(str(i), wanted, there) for i, (wanted, there) in enumerate(zip(expected, found, strict=True))]
    else:
        same = expected == found and isinstance(expected, bool) == isinstance(found, bool)
        return [] if same else [(path, _state(expected), _state(found))]
    return [each for key, one, two in pairs for each in differences(one, two, f"{path}.{key}".lstrip("."))]


_ABSENT: Final = object()


def _state(value: Any) -> str:
    return "nothing" if value is _ABSENT else _short(value)


def _plain(value: Any) -> Any:
    return json.loads(canonical(value))


def _pytest(checker: Checker, value: Any, context: AttemptContext) -> Found:
    from surefoot.evaluation.pytest_checker import run_test

    return run_test(checker.expected, value, context)


_JUDGE: Final = """{prompt}

Task:
{task}

Answer of the agent:
{answer}

Reply with JSON only: {{"verdict": "pass" or "fail", "reason": "one sentence"}}"""


def _judge(checker: Checker, value: Any, context: AttemptContext) -> Found:
    if checker.endpoint is None:
        raise SuiteError("a judge needs an endpoint with url, model, prompt and version")
    parts = {"task": canonical(context.input), "answer": canonical(value)}
    text = ask(
        checker.endpoint,
        [{"role": "user", "content": _JUDGE.format(prompt=checker.endpoint.prompt, **parts)}],
    )
    found = re.search(r"\{.*\}", text, re.DOTALL)
    answer = json.loads(found.group()) if found else {}
    verdict = {"pass": True, "fail": False}.get(str(answer.get("verdict")).strip().lower())
    if verdict is None:
        return None, f"the judge gave no verdict: {_short(text)}"
    return verdict, str(answer.get("reason", "")) or None


_CHECKS: Final[dict[str, Callable[[Checker, Any, AttemptContext], Found]]] = {
    "exact": _exact,
    "regex": _regex,
    "json_schema": _json_schema,
    "callable": _callable,
    "final_state": _final_state,
    "pytest": _pytest,
    "judge": _judge,
}
