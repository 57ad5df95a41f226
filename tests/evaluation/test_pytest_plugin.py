"""The plugin as its user meets it: pytest in a process of its own, on test files that are written here."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree as ET

import pytest

from surefoot.evaluation.pytest_gate import Gate, GateError, Repeated, checked, clopper_pearson_lower, gate_from
from surefoot.evaluation.records import Attempt, read_attempts, read_records
from surefoot.processors.evidence.intervals import share_interval

pytest_plugins = ["pytester"]

FLAKY = """
import random
import pytest

def agent(order):
    return "refunded" if random.random() < 0.7 else "refused"

@pytest.mark.repeat_agent(k=10)
def test_refund(agent_attempt):
    print("attempt", agent_attempt.repetition)
    assert agent_attempt.record(agent(42)) == "refunded"
"""


# What else is installed here takes three quarters of the processor time of such a process.
OTHERS = ("anyio", "asyncio", "hypothesispytest", "platformdirs", "time_machine", "xdist", "xdist.looponfail")


def run(pytester: pytest.Pytester, *arguments: str, with_others: bool = False) -> pytest.RunResult:
    """A process of pytest with this plugin, and with all others that are installed where a test is about them."""
    left_out = () if with_others else tuple(f"-pno:{name}" for name in OTHERS)
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *left_out, *arguments)


def attempts(pytester: pytest.Pytester) -> list[Attempt]:
    (folder,) = (pytester.path / "runs").iterdir()
    return sorted(read_attempts(folder), key=lambda attempt: attempt.slot)


def test_one_result_for_k_attempts_with_distribution_interval_and_replay(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=FLAKY)
    result = run(pytester, "--surefoot-seed", "1", "--surefoot-runs", "runs", "--junitxml", "out.xml")
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    found = attempts(pytester)
    assert len(found) == 10
    good = sum(attempt.acceptable is True for attempt in found)
    first = next(attempt.repetition for attempt in found if not attempt.acceptable)
    strip = "".join("●" if attempt.acceptable else "○" for attempt in found)
    assert f"acceptable in {good} of 10 judged attempts: Pass^10 is 0.000, and has to reach 1" in text
    assert strip in text
    assert re.search(rf"yield 0\.{good}00, 95 % interval \[.*\] \(Clopper-Pearson, n = 10 attempts", text)
    assert f"first failing attempt: {first}: assertions: assert 'refused' == 'refunded'" in text
    assert f"attempt {first}\n" in text  # what it printed,
    assert f"attempt {(first + 1) % 10}\n" not in text  # and not what others did
    case = ET.parse(pytester.path / "out.xml").find(".//testcase")
    assert case is not None
    kept = {each.get("name"): each.get("value") for each in case.iter("property")}
    assert kept["surefoot.strip"] == strip
    assert kept["surefoot.acceptable"] == str(good)
    (command,) = set(re.findall(r"replay it: pytest (.*)", text))  # pytest says it twice on CI
    again = run(pytester, *command.replace("'", "").split())
    again.assert_outcomes(failed=1)
    assert "assert 'refused' == 'refunded'" in again.stdout.str()
    passing = next(attempt.repetition for attempt in found if attempt.acceptable)
    run(pytester, "--surefoot-seed", "1", "--surefoot-attempt", str(passing)).assert_outcomes(passed=1)


def test_records_keep_outputs_seeds_and_provenance(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=FLAKY)
    run(pytester, "--surefoot-seed", "1", "--surefoot-runs", "runs", "--surefoot-variant", "new")
    found = attempts(pytester)
    assert {attempt.output for attempt in found} == {"refunded", "refused"}
    assert len({attempt.seed for attempt in found}) == 10
    assert {(attempt.variant, attempt.task_id) for attempt in found} == {("new", "test_it.py::test_refund")}
    assert len({attempt.signature for attempt in found}) == 2
    (folder,) = (pytester.path / "runs").iterdir()
    (conditions,) = json.loads((folder / "manifest.json").read_text())["provenances"].values()
    assert conditions["seed"] == 1
    assert conditions["packages"]


def test_every_attempt_has_fixtures_of_its_own_and_shares_those_of_the_module(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        made = {"module": 0, "function": 0, "down": 0}

        @pytest.fixture(scope="module")
        def server():
            made["module"] += 1
            yield
            made["down"] += 1

        @pytest.fixture
        def world(server):
            made["function"] += 1
            return {"orders": []}

        @pytest.mark.repeat_agent(k=5)
        def test_it(world):
            world["orders"].append(1)
            assert world["orders"] == [1]

        class TestIn:
            @pytest.mark.repeat_agent(3)
            def test_method(self, world):
                assert not hasattr(self, "left")
                self.left = True

        def test_after(server):
            assert made == {"module": 1, "function": 8, "down": 0}
        """
    )
    run(pytester).assert_outcomes(passed=3)


def test_errors_are_kept_infrastructure_is_told_apart_and_nothing_is_lost(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import itertools
        import pytest
        from surefoot.evaluation import InfrastructureError
        calls, setups = itertools.count(), itertools.count()

        @pytest.fixture
        def database():
            if next(setups) == 4:
                raise ConnectionError("no database")

        @pytest.mark.repeat_agent(k=6)
        def test_it(database):
            match next(calls):
                case 1: raise KeyError("order")
                case 2: assert False, "wrong order"
                case 3: raise InfrastructureError("no network")
        """
    )
    result = run(pytester, "--surefoot-runs", "runs")
    result.assert_outcomes(failed=1)
    assert [attempt.outcome for attempt in attempts(pytester)] == [
        *("ok", "error", "ok", "infrastructure", "infrastructure", "ok"),
    ]
    text = result.stdout.str()
    assert "acceptable in 2 of 4 judged attempts: 6 judged attempts were asked for, and there are 4" in text
    assert "●○○··●" in text
    assert "first failing attempt: 1: KeyError: 'order'" in text
    assert "not judged: 2, the first is attempt 3: the infrastructure ended it" in text


def test_a_minimum_lets_some_fail_and_a_confidence_asks_for_the_bound(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        def body(agent_attempt):
            assert agent_attempt.repetition % 10

        @pytest.mark.repeat_agent(k=10, min_yield=0.9)
        def test_yield(agent_attempt):
            body(agent_attempt)

        @pytest.mark.repeat_agent(k=1, attempts=40, min_yield=0.9, confidence=0.95)
        def test_bound(agent_attempt):
            body(agent_attempt)

        @pytest.mark.repeat_agent(k=2, attempts=10, min_pass_hat_k=0.8)
        def test_strict(agent_attempt):
            body(agent_attempt)

        @pytest.mark.repeat_agent(k=2, attempts=10, min_pass_hat_k=0.81)
        def test_too_strict(agent_attempt):
            body(agent_attempt)

        """
    )
    result = run(pytester, "-v", "-n", "0", with_others=True)
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines_random(["*::test_yield PASSED*", "*::test_strict PASSED*"])
    # 36 of 40 at one-sided 95 %, and C(9,2) / C(10,2) = .8
    assert "yield is 0.786 at confidence 0.95, as its lower bound, and has to reach 0.9" in result.stdout.str()
    assert "Pass^2 is 0.800, and has to reach 0.81" in result.stdout.str()


@pytest.mark.parametrize("plugins", [["-p", "no:asyncio"], ["-o", "asyncio_mode=auto"], ["-o", "asyncio_mode=strict"]])
def test_async_tests_run_with_and_without_a_plugin_of_theirs(pytester: pytest.Pytester, plugins: list[str]) -> None:
    pytester.makepyfile(
        """
        import asyncio
        import pytest

        seen = []

        @pytest.mark.repeat_agent(k=4)
        async def test_it():
            await asyncio.sleep(0)
            seen.append(1)
            assert len(seen) != 3

        def test_count():
            assert len(seen) == 4
        """
    )
    result = run(pytester, *plugins, with_others=True)
    result.assert_outcomes(failed=1, passed=1)
    assert "●●○●" in result.stdout.str()


def test_xdist_gives_one_result_per_test_one_seed_and_one_file(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.repeat_agent(k=6)
        @pytest.mark.parametrize("order", ["a", "b[{x}]", "c"])
        def test_it(order, agent_attempt):
            assert order != "b[{x}]" or agent_attempt.repetition != 4
        """
    )
    result = run(pytester, "-n", "2", "--surefoot-runs", "runs", "--junitxml", "out.xml", with_others=True)
    result.assert_outcomes(passed=2, failed=1)
    found = attempts(pytester)
    assert len(found) == 18
    assert [attempt.repetition for attempt in found if not attempt.acceptable] == [4]
    (folder,) = (pytester.path / "runs").iterdir()
    assert not read_records(folder).open
    (command,) = set(re.findall(r"replay it: pytest '(.*)' (.*)", result.stdout.str()))  # pytest says it twice on CI
    assert "-n 0" in command[1]
    run(pytester, command[0], *command[1].split(), with_others=True).assert_outcomes(failed=1)
    names = [each.get("name") for each in ET.parse(pytester.path / "out.xml").iter("property")]
    assert names.count("surefoot.strip") == 3


def test_skips_expected_failures_and_teardowns_stay_what_they_are(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        made = []

        @pytest.mark.repeat_agent(k=3)
        def test_skips():
            made.append(1)
            pytest.skip("not here")

        @pytest.mark.repeat_agent(k=3)
        @pytest.mark.skip
        def test_marked():
            raise AssertionError

        @pytest.mark.xfail(reason="known")
        @pytest.mark.repeat_agent(k=3)
        def test_xfails(agent_attempt):
            assert agent_attempt.repetition != 1

        @pytest.fixture
        def leaky():
            yield
            raise OSError("left open")

        @pytest.mark.repeat_agent(k=3)
        def test_teardown(leaky):
            pass

        def test_once():
            assert made == [1]
        """
    )
    run(pytester).assert_outcomes(skipped=2, xfailed=1, passed=2, errors=1)


def test_the_fixture_repeats_a_plain_function_or_an_agent(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest, random

        def test_plain(repeat_agent):
            calls = []
            found = repeat_agent(lambda order: calls.append(order) or len(calls), 42, checker=lambda n: n != 2, k=4)
            assert (found.n, found.c, found.outputs) == (4, 3, [1, 2, 3, 4])
            assert found.share == 0.75 and found.pass_hat_k(2) == 0.5

        async def agent(order):
            if random.random() < 0.5:
                raise TimeoutError("slow")
            return order

        def test_async_agent(repeat_agent):
            repeat_agent(agent, 1, k=20).require()

        @pytest.mark.asyncio
        async def test_inside_of_a_loop(repeat_agent):
            def check(output):
                assert output == 7
            repeat_agent(agent, 7, checker=check, k=20, min_yield=0.01).require()
        """
    )
    result = run(pytester, "--surefoot-seed", "5", "--surefoot-runs", "runs", with_others=True)
    result.assert_outcomes(passed=2, failed=1)
    text = result.stdout.str()
    assert "TimeoutError: slow" in text
    assert "replay it: pytest test_the_fixture_repeats_a_plain_function_or_an_agent.py::test_async_agent" in text
    assert len(attempts(pytester)) == 44


def test_a_mark_that_cannot_be_meant_is_refused_before_anything_runs(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.repeat_agent(k=10, min_yield=0.99, confidence=0.95)
        def test_it():
            raise AssertionError
        """
    )
    result = run(pytester)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    # .05^(1/n) >= .99: n = 299
    assert "make attempts=299" in result.stderr.str()


def test_without_the_mark_nothing_changes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import random, sys
        def test_it():
            assert "surefoot.evaluation.pytest_attempts" not in sys.modules
            assert "scipy" not in sys.modules and "numpy" not in sys.modules
        """
    )
    run(pytester, "--strict-markers", with_others=True).assert_outcomes(passed=1)
    assert not (pytester.path / "runs").exists()


def test_gates() -> None:
    assert checked(Gate(k=10, attempts=299, min_yield=0.99, confidence=0.95)).made == 299
    with pytest.raises(GateError, match="make attempts=285"):  # 10 ln(.05) / ln(.9) = 284.3
        checked(Gate(k=10, attempts=284, min_pass_hat_k=0.9, confidence=0.95))
    checked(Gate(k=10, attempts=285, min_pass_hat_k=0.9, confidence=0.95))
    for wrong in ({"k": 0}, {"k": 5, "attempts": 4}, {"min_yield": 95}, {"confidence": 0.95}):
        with pytest.raises(GateError):
            checked(Gate(**wrong))
    with pytest.raises(GateError, match="takes k, attempts"):
        gate_from((), {"times": 3})
    with pytest.raises(GateError, match="only k"):
        gate_from((3, 4), {})


def test_a_perfect_run_of_as_many_as_the_gate_names_passes_it() -> None:
    made = [
        Attempt(attempt_id=str(n), suite="s", variant="v", task_id="t", repetition=n, outcome="ok", acceptable=True)
        for n in range(285)
    ]
    gate = Gate(k=10, attempts=285, min_pass_hat_k=0.9, confidence=0.95)
    assert not Repeated(gate, tuple(made)).missed
    assert Repeated(Gate(k=10, attempts=284, min_pass_hat_k=0.9, confidence=0.95), tuple(made[:284])).missed


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (7, 10), (10, 10)])
def test_the_bound_is_that_of_the_evidence(hits: int, n: int) -> None:
    expected = share_interval(hits, n, sides="lower", confidence=0.95).low
    assert clopper_pearson_lower(hits, n, 0.05) == pytest.approx(expected, abs=1e-12)


EXPECTED = """
import pytest

@pytest.mark.xfail(strict=True, reason="known")
@pytest.mark.repeat_agent(k=2)
def test_strictly_better():
    pass

@pytest.mark.xfail(reason="known")
@pytest.mark.repeat_agent(k=2)
def test_better():
    pass

@pytest.mark.xfail(strict=True, reason="known")
@pytest.mark.repeat_agent(k=2)
def test_as_expected(agent_attempt):
    assert agent_attempt.repetition

@pytest.mark.repeat_agent(k=3)
def test_fails_then_skips(agent_attempt):
    if agent_attempt.repetition:
        pytest.skip("not now")
    assert False
"""


def test_what_was_expected_to_fail_and_what_skips_after_a_failure(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=EXPECTED)
    result = run(pytester, "-rA", "--surefoot-runs", "runs")
    result.assert_outcomes(failed=2, xpassed=1, xfailed=1)
    result.stdout.fnmatch_lines(["*XPASS(strict)*known*", "FAILED *test_strictly_better*"])
    result.stdout.fnmatch_lines(["*acceptable in 0 of 1 judged attempts: 3 judged attempts were asked for*"])
    (folder,) = (pytester.path / "runs").iterdir()
    assert read_records(folder).open == ()
    last = [attempt.acceptable for attempt in attempts(pytester) if "fails_then_skips" in attempt.task_id]
    assert last == [False, None]


def test_attempts_are_numbered_from_0(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=FLAKY)
    result = run(pytester, "--surefoot-attempt", "-1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
