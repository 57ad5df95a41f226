"""Suites from YAML and Python: what is read, and what each mistake is told as."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.evaluation import Checker, SuiteError, Task
from surefoot.evaluation.loading import load_suite
from surefoot.evaluation.suite import suite_hash
from surefoot.evaluation.templates import expand

WHOLE = """
name: desk
agent: my_agent:handle
protocol:
  k: 5
  why: five users a day
  effects: fixture
  budget: {usd: 2}
  sampling: {temperature: 0.2}
  freeze: {clock: "2026-01-15T09:00:00+00:00", timezone: Europe/Berlin}
variants:
  - name: baseline
  - {name: candidate, agent: "my_agent:newer", versions: {prompt: 8}, env: {MODE: quick}}
tasks:
  - id: refund
    class: refund
    consequence: irreversible
    input: {order: 1001}
    fixture: {orders: [1001]}
    checkers:
      - {exact: done}
      - {json_schema: {type: object}, field: answer}
      - {final_state: {orders: []}, ignore: [log]}
      - {callable: "checks:polite", kind: process, severity: low}
      - {pytest: "checks.py::test_refund"}
      - judge: {url: "http://127.0.0.1:1/v1", model: m, prompt: "Was it polite?", version: 2}
    equivalence: state
  - id: talk
    user: {turns: [hello, goodbye]}
templates:
  - id: "refund-{order}"
    input: "Refund order {order}"
    fixture: {orders: ["{order}"]}
    checkers: [{regex: "order {order}"}]
    vary: {order: {from: 1000, to: 1999}}
    count: 3
    neighbours: 1
    seed: 4
"""


def written(folder: Path, text: str) -> str:
    path = folder / "suite.yaml"
    path.write_text(text)
    return str(path)


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    suite = load_suite(written(tmp_path, WHOLE))
    assert (suite.protocol.k, suite.protocol.budget.usd, suite.names) == (5, 2, ("baseline", "candidate"))
    assert suite.variant("candidate").versions == {"prompt": "8"}
    assert suite.protocol.freeze is not None
    refund = suite.task("refund")
    kinds = [(checker.type, checker.kind, checker.on) for checker in refund.checkers]
    assert kinds == [
        ("exact", "outcome", "message"),
        ("json_schema", "outcome", "message"),
        ("final_state", "outcome", "state"),
        ("callable", "process", "message"),
        ("pytest", "outcome", "message"),
        ("judge", "outcome", "message"),
    ]
    assert refund.checkers[5].endpoint is not None
    assert refund.checkers[5].endpoint.version == "2"
    made = [task for task in suite.tasks if task.made_from == "refund-{order}"]
    assert len(made) == len({task.id for task in made}) == 6
    assert sum(task.neighbour_of is not None for task in made) == 3
    order = made[0].fixture["orders"][0]
    assert isinstance(order, int)
    assert (made[0].id, made[0].input) == (f"refund-{order}", f"Refund order {order}")
    assert made[0].checkers[0].expected == f"order {order}"


def test_the_hash_is_of_what_makes_attempts_comparable(tmp_path: Path) -> None:
    one = suite_hash(load_suite(written(tmp_path, WHOLE)))
    assert suite_hash(load_suite(written(tmp_path, WHOLE.replace("k: 5", "k: 50")))) == one
    for old, new in (
        ("exact: done", "exact: over"),
        ("0.2}", "0.3}"),
        ("seed: 4", "seed: 5"),
        ("2026-01-15", "2026-01-16"),
    ):
        assert suite_hash(load_suite(written(tmp_path, WHOLE.replace(old, new)))) != one


MINIMAL = "name: s\nagent: a:b\nprotocol: {k: 1, effects: none}\ntasks:\n  - {id: t, input: 1}\n"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("k: 1, ", "", r"suite.yaml:3: protocol.k: the field is missing; add k"),
        (", effects: none", "", r"suite.yaml:3: protocol.effects: the field is missing; add effects"),
        ("effects: none", "effects: some", r"suite.yaml:3: protocol.effects: 'some' is not one of the words"),
        ("k: 1", "k: 0", r"suite.yaml:3: protocol.k: "),
        ("k: 1", "kk: 1", r"suite.yaml:3: protocol.kk: the field is unknown"),
        ("agent: a:b", "agent: a", r"suite.yaml:2: agent: 'a' is no function; write module:function"),
        ("input: 1", "inptu: 1", r"suite.yaml:5: tasks\[0\].inptu: the field is unknown; .*input"),
        (", input: 1", "", r"suite.yaml:5: tasks\[0\]: the task has nothing to do; write input, or a user"),
        (
            "input: 1",
            "input: 1, checkers: [{name: x}]",
            r"the checker says nothing that is expected; write exactly",
        ),
        ("input: 1", "input: 1, checkers: [{exact: 1, regex: x}]", r"the checker is several: exact, regex"),
        ("input: 1", "input: 1, checkers: [{regex: '('}]", r"checkers\[0\].regex: not a regular expression"),
        ("input: 1", "input: 1, checkers: [{json_schema: {type: no}}]", r"json_schema: not a JSON schema"),
        ("input: 1", "input: 1, user: {max_turns: 2}", r"a user is scripted or an endpoint"),
        ("none}", "none, freeze: {clock: now}}", r"freeze.clock: 'now' is no instant"),
        ("input: 1}", "input: 1}\n  - {id: t, input: 2}", r"'t' stands twice"),
        ("tasks:\n  - {id: t, input: 1}\n", "", r"the suite has no task"),
        (
            "tasks:\n",
            "templates:\n  - {id: a, input: 1, vary: {x: [1]}, count: 1}\ntasks:\n",
            r"tasks that differ in x would have one id; put {x} into it",
        ),
        (
            "tasks:\n",
            "templates:\n  - {id: 'a{x}', input: 1, vary: {x: [1, 2]}, count: 3}\ntasks:\n",
            r"3 tasks are asked for, and its parameters give 2",
        ),
    ],
)
def test_mistakes_are_told_with_line_and_remedy(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in MINIMAL
    with pytest.raises(SuiteError, match=message):
        load_suite(written(tmp_path, MINIMAL.replace(old, new)))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nowhere.yaml", r"nowhere.yaml"),
        ("nowhere.py", "there is no such file"),
        ("nowhere", "importing nowhere failed"),
        ("json:loads", "no Suite named 'loads'"),
        ("a/b", "name a .yaml or .py file, or module:name"),
    ],
)
def test_a_suite_that_is_not_there_is_named(source: str, message: str) -> None:
    with pytest.raises(SuiteError, match=message):
        load_suite(source)


def test_a_python_suite_that_fails_says_why(tmp_path: Path) -> None:
    (tmp_path / "broken_suite.py").write_text("raise KeyError('x')")
    with pytest.raises(SuiteError, match="importing it failed: KeyError: 'x'"):
        load_suite(str(tmp_path / "broken_suite.py"))


def test_templates_give_equal_tasks_for_equal_seeds_and_neighbours_differ_in_one_parameter() -> None:
    template = Task(id="{a}-{b}", input={"a": "{a}", "b": "{b}"}, checkers=(Checker(type="exact", expected="{a}"),))
    choices = {"a": range(10), "b": ["x", "y", "z"]}
    tasks = expand(template, choices, count=5, neighbours=2, seed=1)
    assert tasks == expand(template, choices, count=5, neighbours=2, seed=1)
    assert tasks != expand(template, choices, count=5, neighbours=2, seed=2)
    assert len({task.id for task in tasks}) == 15
    by_id = {task.id: task for task in tasks}
    for task in tasks:
        if task.neighbour_of is not None:
            other = by_id[task.neighbour_of].input
            assert sum(task.input[name] != other[name] for name in ("a", "b")) == 1


BOMB = """
name: desk
agent: my_agent:handle
protocol: {k: 1, effects: none}
tasks:
  - id: a
    input:
"""


def test_aliases_that_grow_without_end_are_refused(tmp_path: Path) -> None:
    lines = ["      a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"      a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]" for n in range(12)]
    for number, text in enumerate(["\n".join(lines), "      a: &a [*a]"]):
        file = tmp_path / f"bomb{number}.yaml"
        file.write_text(BOMB + text)
        with pytest.raises(SuiteError, match="with its aliases"):
            load_suite(str(file))


def test_ranges_may_be_longer_than_a_list_can_be() -> None:
    wide = range(10**15)
    tasks = expand(Task(id="t-{a}-{b}", input="{a}"), {"a": wide, "b": wide}, count=3, seed=1)
    assert len({task.id for task in tasks}) == 3
    assert tasks == expand(Task(id="t-{a}-{b}", input="{a}"), {"a": wide, "b": wide}, count=3, seed=1)
