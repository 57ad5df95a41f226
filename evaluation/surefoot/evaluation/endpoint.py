"""One question to an OpenAI-compatible endpoint: messages in, text out.

Rule: an endpoint that does not answer is infrastructure, never a verdict and never a user's turn.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from surefoot.evaluation.errors import InfrastructureError
from surefoot.evaluation.suite import Endpoint


def ask(endpoint: Endpoint, messages: Sequence[dict[str, str]]) -> str:
    """Return the endpoint's answer. Raises InfrastructureError if there is none."""
    # A tenth of a worker's start, which most suites need not pay.
    import httpx

    url = f"{endpoint.url.rstrip('/')}/chat/completions"
    body: dict[str, object] = {"model": endpoint.model, "messages": list(messages)}
    if endpoint.temperature is not None:
        body["temperature"] = endpoint.temperature
    headers = {}
    if endpoint.api_key_env is not None:
        if endpoint.api_key_env not in os.environ:
            raise InfrastructureError(
                f"Asking {url}: the variable {endpoint.api_key_env} is not set; set it to the key."
            )
        headers["Authorization"] = f"Bearer {os.environ[endpoint.api_key_env]}"
    try:
        answer = httpx.post(url, json=body, headers=headers, timeout=endpoint.timeout_seconds)
        answer.raise_for_status()
        text = answer.json()["choices"][0]["message"]["content"]
    except (httpx.HTTPError, ValueError, LookupError, TypeError) as error:
        raise InfrastructureError(f"Asking {url}: {type(error).__name__}: {error}. Check that it is up.") from error
    if not isinstance(text, str):
        raise InfrastructureError(
            f"Asking {url}: the answer has no text, but {text!r}. Use a model that answers in text."
        )
    return text
