"""A conversation with a simulated user: the agent is called once per turn with the messages so far.

The user is scripted, or an endpoint that plays it from a hidden instruction. The agent never sees the instruction.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from surefoot.evaluation.endpoint import ask
from surefoot.evaluation.errors import InfrastructureError
from surefoot.evaluation.suite import User

Messages = list[dict[str, Any]]


async def converse(
    user: User,
    first: Any,
    agent: Callable[[Messages], Awaitable[Any]],
    in_thread: Callable[..., Awaitable[Any]],
) -> dict[str, Any]:
    """Return ``{"messages": [...]}``. ``first`` is the user's first turn, None where the user begins by itself."""
    messages: Messages = []
    turn = first
    scripted = iter(user.turns)
    for _ in range(1 + (user.max_turns if user.endpoint is not None else len(user.turns))):
        if turn is None:
            turn = await _next(user, scripted, messages, in_thread)
        if turn is None:
            break
        messages.append({"role": "user", "content": turn})
        # A copy, so that an agent that keeps or changes it does not change the record.
        answer = await agent([dict(message) for message in messages])
        messages.append({"role": "assistant", "content": answer})
        turn = None
    if not messages:
        raise InfrastructureError(  # the agent was not asked once
            "A conversation without a first turn: give the task an input, or its user turns or an endpoint."
        )
    return {"messages": messages}


def reply(output: Any) -> Any:
    """Return what the agent said last in a conversation; any other output is what it said."""
    if isinstance(output, dict) and isinstance(output.get("messages"), list):
        said = [message for message in output["messages"] if message.get("role") == "assistant"]
        return said[-1]["content"] if said else None
    return output


async def _next(user: User, scripted: Any, messages: Messages, in_thread: Callable[..., Awaitable[Any]]) -> str | None:
    if user.endpoint is None:
        return next(scripted, None)
    # To the model that plays the user, the agent is the other side.
    swapped = {"user": "assistant", "assistant": "user"}
    said = [{"role": swapped[message["role"]], "content": str(message["content"])} for message in messages]
    opening = [] if said else [{"role": "user", "content": "Begin the conversation."}]
    prompt = {"role": "system", "content": f"{user.endpoint.prompt}\n\nSay {user.stop} when you have what you wanted."}
    text: str = await in_thread(ask, user.endpoint, [prompt, *opening, *said])
    if not text.strip():
        raise InfrastructureError(f"The simulated user said nothing: {user.endpoint.model} gave an empty text.")
    return None if user.stop in text else text
