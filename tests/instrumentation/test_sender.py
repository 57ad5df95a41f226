"""The queue: everything put in arrives or is counted, in time, urgent first, across forks and interruptions."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.instrumentation.sender import Limits, Sender

SLOW = Limits(delay=60, batch=100, capacity=1000)


class Target:
    """An exporter; ``open`` is cleared to block it, ``answer`` is the reason that it gives."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.open = threading.Event()
        self.open.set()
        self.busy = threading.Event()
        self.answer: str | None = None

    def __call__(self, batch: Sequence[int]) -> str | None:
        self.busy.set()
        self.open.wait(30)
        if self.answer is None:
            self.batches.append(list(batch))
        return self.answer


def test_a_full_batch_leaves_without_waiting_for_time() -> None:
    target = Target()
    sender = Sender("t", target, Limits(delay=60, batch=3, capacity=10))
    for number in range(3):
        sender.put(number)
    assert target.busy.wait(10)
    assert sender.flush(10)
    assert target.batches == [[0, 1, 2]]


def test_a_partial_batch_leaves_after_the_delay() -> None:
    target = Target()
    sender = Sender("t", target, Limits(delay=0.01, batch=100, capacity=100))
    sender.put(1)
    assert target.busy.wait(10)
    assert sender.flush(10)
    assert target.batches == [[1]]


def test_what_is_urgent_takes_everything_along_at_once() -> None:
    target = Target()
    sender = Sender("t", target, SLOW)
    sender.put(1)
    assert not target.busy.wait(0.05)
    sender.put(2, urgent=True)
    assert target.busy.wait(10)
    assert sender.flush(10)
    assert target.batches == [[1, 2]]


def test_a_flush_keeps_its_time_limit_and_says_no() -> None:
    target = Target()
    target.open.clear()
    sender = Sender("t", target, SLOW)
    sender.put(1)
    before = time.monotonic()
    assert not sender.flush(0.05)
    assert time.monotonic() - before < 10
    assert sender.missing == 1
    target.open.set()
    assert sender.flush(10)
    assert sender.missing == 0


def test_what_did_not_arrive_is_counted_with_the_reason() -> None:
    target = Target()
    target.answer = "refused"
    sender = Sender("t", target, SLOW)
    sender.put(1)
    assert not sender.flush(10)
    assert (sender.missing, sender.reason) == (1, "refused")
    target.answer = None
    sender.put(2)
    assert sender.flush(10), "this flush lost nothing"
    assert sender.missing == 1


def test_a_full_queue_loses_the_newest_and_says_so() -> None:
    target = Target()
    target.open.clear()
    sender = Sender("t", target, Limits(delay=60, batch=1, capacity=2))
    sender.put(0)
    assert target.busy.wait(10)
    for number in (1, 2, 3, 4):
        sender.put(number)
    target.open.set()
    sender.flush(10)
    assert target.batches == [[0], [1], [2]]
    assert (sender.missing, sender.reason) == (2, "the queue of 2 was full")


def test_nothing_is_taken_after_the_end() -> None:
    target = Target()
    sender = Sender("t", target, SLOW)
    sender.close()
    sender.put(1)
    assert (sender.missing, sender.reason, target.batches) == (1, "it came after the end", [])


def test_what_waits_at_the_end_is_missing_and_nobody_waits_for_it() -> None:
    target = Target()
    sender = Sender("t", target, SLOW)
    sender.put(1)
    sender.close()
    before = time.monotonic()
    assert not sender.flush(60)
    assert time.monotonic() - before < 30
    assert (sender.missing, target.batches) == (1, [])


def test_a_flush_inside_a_put_of_the_same_thread_ends() -> None:
    """A signal handler may interrupt code that holds the lock."""
    target = Target()
    sender = Sender("t", target, SLOW)
    sender.put(1)
    with sender._changed:
        assert sender.flush(10)
    assert target.batches == [[1]]


def test_a_fork_starts_from_nothing_and_the_parent_delivers() -> None:
    target = Target()
    sender = Sender("t", target, SLOW)
    sender.put(1)
    child = os.fork()
    if child == 0:
        sender.put(2)
        good = sender.flush(10) and target.batches == [[2]] and sender.missing == 0
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sender.flush(10)
    assert target.batches == [[1]]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=4),
    st.integers(1, 7),
    st.integers(7, 40),
    st.lists(st.booleans(), min_size=8, max_size=8),
)
def test_counts_add_up_for_any_writers_and_failures(
    writers: list[int], batch: int, capacity: int, good: list[bool]
) -> None:
    delivered: list[int] = []

    def export(items: Sequence[int]) -> str | None:
        arrives = good[len(delivered) % len(good)]
        if arrives:
            delivered.extend(items)
        return None if arrives else "refused"

    sender = Sender("t", export, Limits(delay=0.001, batch=batch, capacity=capacity))

    def write(number: int) -> None:
        for item in range(number):
            sender.put(item, urgent=item % 5 == 0)

    threads = [threading.Thread(target=write, args=(number,)) for number in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sender.flush(10)
    assert len(delivered) + sender.missing == sum(writers)
    assert (sender.reason is None) == (sender.missing == 0)
    sender.close()
