"""Verdicts on the desk's work: an executable grader at once, a person later for some runs.

Outcome and process are separate: the database may be right although a rule was skipped.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from opentelemetry.trace import SpanContext

from surefoot.demo.desk import ORDERS, REFUND_LIMIT, Ticket
from surefoot.instrumentation import record_evaluation

HUMAN_DISAGREES = 0.04


@dataclass(frozen=True, slots=True)
class Review:
    """A graded run that a person may look at."""

    context: SpanContext
    right: bool


def grade(context: SpanContext, ticket: Ticket, *, right: bool, used: list[str]) -> Review:
    """Record the executable verdicts of one run: final state (outcome) and refund policy (process)."""
    record_evaluation(
        "final_state",
        label="pass" if right else "fail",
        kind="outcome",
        finality="provisional",
        grader_name="database-comparison",
        grader_version="3",
        grader_kind="executable",
        span_context=context,
    )
    large = ticket.task_class == "refund" and ORDERS[ticket.order][1] > REFUND_LIMIT
    kept = not large or "read_policy" in used
    record_evaluation(
        "refund_policy",
        label="pass" if kept else "fail",
        kind="process",
        severity=None if kept else "medium",
        finality="final",
        grader_name="trace-rules",
        grader_version="1",
        grader_kind="executable",
        span_context=context,
    )
    return Review(context, right)


def human_review(review: Review, dice: random.Random) -> None:
    """A person's final verdict, which sometimes overturns the grader's."""
    right = review.right != (dice.random() < HUMAN_DISAGREES)
    record_evaluation(
        "final_state",
        label="pass" if right else "fail",
        kind="outcome",
        finality="final",
        grader_name="quality-team",
        grader_version="1",
        grader_kind="human",
        span_context=review.context,
    )
