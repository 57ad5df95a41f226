"""The desk's world: tickets, a database in a known state, and the tools that act on it.

A world is made fresh for every ticket, so equal tickets meet equal state. Tools fail the way dependencies fail: each
call to a dependency times out with that dependency's current probability.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

REFUND_LIMIT = 100.0  # above it the policy has to be read first


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a customer wants, and the state of the database that would be right at the end."""

    task_id: str
    task_class: str  # lookup refund address_change
    consequence_class: str  # read_only reversible irreversible
    customer: int
    order: int
    text: str
    address: str | None = None


ORDERS: Mapping[int, tuple[int, float]] = {
    1001: (1, 25.0),
    1002: (1, 180.0),
    1003: (2, 60.0),
    1004: (3, 320.0),
    1005: (3, 45.0),
    1006: (4, 99.0),
}


def tickets() -> list[Ticket]:
    """The kinds of work that reach the desk; equal ``task_id`` means equal input."""
    made = []
    for order, (customer, amount) in ORDERS.items():
        made.append(Ticket(f"where-is-{order}", "lookup", "read_only", customer, order, f"Where is my order {order}?"))
        text = f"Please refund order {order}, I paid {amount:.2f}."
        made.append(Ticket(f"refund-{order}", "refund", "irreversible", customer, order, text))
    for customer in (1, 2, 3, 4):
        order = next(number for number, (owner, _) in ORDERS.items() if owner == customer)
        text = f"I moved to {customer} New Street, please update my address."
        made.append(
            Ticket(f"move-{customer}", "address_change", "reversible", customer, order, text, f"{customer} New Street")
        )
    return made


class DependencyTimeout(Exception):  # noqa: N818 - named after what happened, as it shows up in error.type
    """A dependency of the desk did not answer in time."""


@dataclass(slots=True)
class Weather:
    """How likely a call to each dependency times out right now."""

    timeout_probability: dict[str, float] = field(
        default_factory=lambda: {
            "orders-db": 0.004,
            "knowledge-base": 0.01,
            "payments": 0.012,
            "crm": 0.01,
            "mail": 0.004,
        }
    )


class World:
    """One ticket's database and the tools that act on it."""

    def __init__(self, weather: Weather, dice: random.Random) -> None:
        self._weather = weather
        self._dice = dice
        self._db = sqlite3.connect(":memory:")
        self._db.executescript(
            "CREATE TABLE orders (id INTEGER, customer INTEGER, amount REAL, refunded REAL DEFAULT 0);"
            "CREATE TABLE customers (id INTEGER, address TEXT);"
            "CREATE TABLE replies (customer INTEGER, text TEXT);"
        )
        self._db.executemany(
            "INSERT INTO orders (id, customer, amount) VALUES (?, ?, ?)",
            [(number, customer, amount) for number, (customer, amount) in ORDERS.items()],
        )
        self._db.executemany("INSERT INTO customers VALUES (?, ?)", [(c, f"{c} Old Street") for c in (1, 2, 3, 4)])

    def close(self) -> None:
        """Free the database."""
        self._db.close()

    def find_order(self, order: int) -> str:
        """Read an order."""
        self._reach("orders-db")
        customer, amount, refunded = self._db.execute(
            "SELECT customer, amount, refunded FROM orders WHERE id = ?", (order,)
        ).fetchone()
        return f"order {order}: customer {customer}, paid {amount:.2f}, refunded {refunded:.2f}, shipped"

    def read_policy(self, topic: str) -> str:
        """Read what the policy says about a topic."""
        self._reach("knowledge-base")
        return f"{topic}: refund at most what was paid; above {REFUND_LIMIT:.0f} check the policy first"

    def issue_refund(self, order: int, amount: float) -> str:
        """Pay money back. Cannot be undone."""
        self._reach("payments")
        self._db.execute("UPDATE orders SET refunded = refunded + ? WHERE id = ?", (amount, order))
        return f"refunded {amount:.2f}"

    def change_address(self, customer: int, address: str) -> str:
        """Write a customer's address."""
        self._reach("crm")
        self._db.execute("UPDATE customers SET address = ? WHERE id = ?", (address, customer))
        return "address changed"

    def send_reply(self, customer: int, text: str) -> str:
        """Answer the customer."""
        self._reach("mail")
        self._db.execute("INSERT INTO replies VALUES (?, ?)", (customer, text))
        return "sent"

    def is_as_asked(self, ticket: Ticket) -> bool:
        """Whether the database is what the ticket asked for: the executable grader of the outcome."""
        refunds = dict(self._db.execute("SELECT id, refunded FROM orders WHERE refunded <> 0").fetchall())
        moved = dict(self._db.execute("SELECT id, address FROM customers WHERE address NOT LIKE '%Old%'").fetchall())
        answered = [row[0] for row in self._db.execute("SELECT customer FROM replies").fetchall()]
        wanted_refunds = {ticket.order: ORDERS[ticket.order][1]} if ticket.task_class == "refund" else {}
        wanted_moves = {ticket.customer: ticket.address} if ticket.task_class == "address_change" else {}
        return refunds == wanted_refunds and moved == wanted_moves and answered == [ticket.customer]

    def _reach(self, dependency: str) -> None:
        if self._dice.random() < self._weather.timeout_probability[dependency]:
            raise DependencyTimeout(f"{dependency} did not answer within 5 s")


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """What the agent knows about a tool beyond its signature."""

    call: Callable[..., str]
    effect: Literal["read", "write", "irreversible"]
    dependency: str


def toolbox(world: World) -> dict[str, ToolFacts]:
    """The tools by name."""
    return {
        "find_order": ToolFacts(world.find_order, "read", "orders-db"),
        "read_policy": ToolFacts(world.read_policy, "read", "knowledge-base"),
        "issue_refund": ToolFacts(world.issue_refund, "irreversible", "payments"),
        "change_address": ToolFacts(world.change_address, "write", "crm"),
        "send_reply": ToolFacts(world.send_reply, "write", "mail"),
    }
