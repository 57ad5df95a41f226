"""What the demo tells: four weeks of the desk under a virtual clock, then live minutes with payments down.

Both send real spans and log events through the public SDK over OTLP. The history draws arrivals from a day with a busy
noon, contains one old outage, and grades each run twice: at once by comparing the database with the ticket, and for
some runs a day later by a person, who sometimes disagrees.
"""

from __future__ import annotations

import heapq
import math
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

from surefoot.demo.agent import VERSIONS, Desk, handle
from surefoot.demo.desk import DependencyTimeout, Ticket, Weather, World, tickets
from surefoot.demo.grading import Review, grade, human_review
from surefoot.instrumentation import agent_run, flush, init
from surefoot.instrumentation.clock import VirtualClock, use_clock

SERVICE = "support-desk"
RUNS_PER_HOUR = 5.0
FLUSH_EVERY = 150  # runs, some 1,200 spans; keeps the exporter's queue from overflowing when four weeks pass in seconds
LIVE_RUNS_PER_SECOND = 3.0
LIVE_FLUSH_EVERY = 3
OLD_OUTAGE_DAYS_AGO = 10.0
OLD_OUTAGE_HOURS = 3.0
_WEIGHTS = {"lookup": 3, "refund": 2, "address_change": 1}


def connect(endpoint: str) -> None:
    """Send the desk's telemetry to an OTLP/HTTP endpoint."""
    init(service_name=SERVICE, endpoint=endpoint, environment="demo")


def _run(ticket: Ticket, desk: Desk, weather: Weather) -> Review | None:
    """One run of the agent with its verdicts; returns what a person may look at later."""
    world = World(weather, desk.dice)
    used: list[str] = []
    try:
        with agent_run(
            SERVICE,
            task_class=ticket.task_class,
            task_id=ticket.task_id,
            consequence_class=ticket.consequence_class,
            versions=VERSIONS,
        ) as run:
            _, used = handle(ticket, world, desk)
    except DependencyTimeout:
        return None  # the run says so itself: status ERROR, no verdict needed
    finally:
        right = world.is_as_asked(ticket)
        world.close()
    return grade(run.span_context, ticket, right=right, used=used)


@dataclass(slots=True)
class History:
    """The four weeks before ``until`` (unix seconds)."""

    seed: int
    days: float
    until: float
    runs: int = 0

    def play(self) -> Iterator[tuple[float, int]]:
        """Send everything; yields (share of the time told, runs so far) now and then."""
        dice = random.Random(self.seed)
        start = self.until - self.days * 86400
        clock = VirtualClock(start)
        kinds = tickets()
        weights = [_WEIGHTS[kind.task_class] for kind in kinds]
        reviews: list[tuple[float, int, Review]] = []
        at = start
        with use_clock(clock):
            while (at := _next_arrival(at, dice)) < self.until - 300:
                _review_until(at, reviews, clock, dice)
                clock.set(at)
                desk = Desk(dice, clock.advance, slowness=dice.lognormvariate(0.0, 0.55))
                review = _run(dice.choices(kinds, weights)[0], desk, self._weather(at))
                self.runs += 1
                if review is not None and dice.random() < 0.15:
                    heapq.heappush(reviews, (at + dice.uniform(4, 30) * 3600, self.runs, review))
                if self.runs % FLUSH_EVERY == 0:
                    flush()
                    yield (at - start) / (self.days * 86400), self.runs
        flush()
        yield 1.0, self.runs

    def _weather(self, at: float) -> Weather:
        weather = Weather()
        hours_ago = (self.until - at) / 3600
        if 0 <= OLD_OUTAGE_DAYS_AGO * 24 - hours_ago < OLD_OUTAGE_HOURS:
            weather.timeout_probability["payments"] = 0.7
        return weather


def _next_arrival(at: float, dice: random.Random) -> float:
    """The next arrival of a Poisson process whose rate follows the hour of the day."""
    hour = (at % 86400) / 3600
    rate = RUNS_PER_HOUR * (1 + 0.8 * math.sin((hour - 6) / 24 * 2 * math.pi))
    return at + dice.expovariate(rate / 3600)


def _review_until(
    at: float, reviews: list[tuple[float, int, Review]], clock: VirtualClock, dice: random.Random
) -> None:
    while reviews and reviews[0][0] <= at:
        when, _, review = heapq.heappop(reviews)
        clock.set(when)
        human_review(review, dice)


@dataclass(frozen=True, slots=True)
class Incident:
    """Live traffic during which the payments service hardly answers."""

    seed: int

    def play(self, seconds: float) -> Iterator[tuple[float, int]]:
        """Send live runs for up to ``seconds``; yields (share of the time, runs so far) after each run."""
        dice = random.Random(self.seed + 1)
        weather = Weather()
        weather.timeout_probability["payments"] = 0.8
        kinds = tickets()
        weights = [_WEIGHTS[kind.task_class] for kind in kinds]
        start = time.monotonic()
        runs = 0
        while (passed := time.monotonic() - start) < seconds:
            desk = Desk(dice, lambda wanted: time.sleep(wanted / 200))
            _run(dice.choices(kinds, weights)[0], desk, weather)
            runs += 1
            if runs % LIVE_FLUSH_EVERY == 0:
                flush()
            yield passed / seconds, runs
            time.sleep(max(0.0, start + runs / LIVE_RUNS_PER_SECOND - time.monotonic()))
