"""The scripted model: plans a ticket's tool calls, and is wrong now and then, as language models are.

Its mistakes are drawn from the run's dice: a refund is misread more often than a lookup, and the policy is sometimes
skipped. So success differs by task, which is what Pass^k makes visible and an average hides.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from surefoot.demo.desk import ORDERS, REFUND_LIMIT, Ticket

NAME = "scripted-desk-1"
PROVIDER = "scripted"


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A tool call that the model asks for."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Mistakes:
    """Probability of each kind of mistake."""

    wrong_amount: float = 0.035
    wrong_order: float = 0.012
    no_reply: float = 0.008
    skipped_policy: float = 0.045  # of refunds that need it


def plan(ticket: Ticket, dice: random.Random, mistakes: Mistakes) -> list[ToolRequest]:
    """The tool calls that the model will ask for, one a turn."""
    order = ticket.order
    if dice.random() < mistakes.wrong_order:
        order = dice.choice([number for number in ORDERS if number != ticket.order])
    steps = [ToolRequest("find_order", {"order": order})]
    if ticket.task_class == "refund":
        steps += _refund(order, dice, mistakes)
    if ticket.task_class == "address_change":
        steps.append(ToolRequest("change_address", {"customer": ticket.customer, "address": ticket.address}))
    if dice.random() >= mistakes.no_reply:
        steps.append(ToolRequest("send_reply", {"customer": ticket.customer, "text": f"Done: {ticket.text}"}))
    return steps


def _refund(order: int, dice: random.Random, mistakes: Mistakes) -> list[ToolRequest]:
    amount = ORDERS[order][1]
    steps = []
    if amount > REFUND_LIMIT and dice.random() >= mistakes.skipped_policy:
        steps.append(ToolRequest("read_policy", {"topic": "refunds"}))
    if dice.random() < mistakes.wrong_amount:
        amount = round(amount * 0.9, 2)
    steps.append(ToolRequest("issue_refund", {"order": order, "amount": amount}))
    return steps
