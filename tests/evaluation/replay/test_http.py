"""HTTP calls: secrets stay out, streams come chunk by chunk, failures come back as what they were."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest

from surefoot.evaluation import replay
from surefoot.evaluation.replay.cassette import read_cassette
from surefoot.evaluation.replay.redaction import Redaction

URL = "https://models.example/v1/chat"
EVENTS = [b'data: {"n": 1}\n\n', b"data: caf\xc3", b"\xa9\n\n", b"data: [DONE]\n\n"]


class Chunks(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body in pieces that may fail after them."""

    def __init__(self, chunks: list[bytes], error: Exception | None = None) -> None:
        self.chunks, self.error = chunks, error

    def __iter__(self) -> Iterator[bytes]:
        yield from self.chunks
        if self.error is not None:
            raise self.error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self.chunks:
            yield chunk
        if self.error is not None:
            raise self.error


def client(answer: Any = None, **options: Any) -> httpx.Client:
    def refuse(_: httpx.Request) -> httpx.Response:
        raise AssertionError("a replay reached the network")

    return httpx.Client(transport=replay.transport(inner=httpx.MockTransport(answer or refuse), **options))


def test_secrets_are_nowhere_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bearer, key, cookie, env = "t0psecretbearer", "k3yofthegateway", "sessionc00kie", "valueofthevariable"
    password, pin, token = "hunter2 hunter2", 90210777, "refreshme-refreshme"
    monkeypatch.setenv("SHOP_API_KEY", env)
    body = {
        "messages": [{"role": "user", "content": f"mind {env}"}],
        "login": {"password": password, "clientSecret": password, "pin": pin},
        "tool": json.dumps({"refresh_token": token, "inner": json.dumps({"api-key": token})}),
    }
    said = f'{{"error": "wrong key {bearer}", "access_token": "{token}", "password": {pin}, "text": "fine"}}'

    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["authorization"] == f"Bearer {bearer}"
        assert password in request.read().decode()
        headers = {
            "x-echo": bearer,
            "set-cookie": f"s={cookie}",
            "x-auth-token": token,
            "content-type": "application/json",
        }
        if "fail" in str(request.url):
            raise httpx.ConnectError(f"cannot reach {URL}?api_key={key}")
        # The key of the request lies across two chunks of the answer.
        return httpx.Response(401, headers=headers, stream=Chunks([said[:20].encode(), said[20:].encode()]))

    def work(http: httpx.Client, key: str, bearer: str) -> list[Any]:
        headers = {"authorization": f"Bearer {bearer}", "x-api-key": key, "cookie": f"s={cookie}"}
        found: list[Any] = [http.post(URL, params={"api_key": key, "q": "1"}, json=body, headers=headers).json()]
        with pytest.raises(httpx.ConnectError) as caught:
            http.post(f"{URL}/fail", headers=headers, json=body)
        return [*found, str(caught.value)]

    path = tmp_path / "a.jsonl"
    redaction = Redaction(fields=("pin",))
    with replay.opened(path, "record", redaction=redaction) as world:
        live = work(client(answer), key, bearer)
        world.tool("login", lambda user, password: {"user": user, "token": bearer, "id_token": token})("ann", password)
    assert live[0]["access_token"] == token, "what the agent gets while recording is what was said"
    text = path.read_text()
    for secret in (bearer, key, cookie, env, password, str(pin), token):
        assert secret not in text
    assert '"text' in text
    # Another key finds what was recorded: no secret is part of a key.
    with replay.opened(path, redaction=redaction) as world:
        again = work(client(), "another-gateway-key", "another-bearer")
        assert world.tool("login", lambda user, password: None)("ann", "x")["user"] == "ann"
    assert again[0]["text"] == "fine"
    assert again[0]["access_token"] == "[REDACTED]"
    assert "cannot reach" in again[1]
    assert world.report().unused == ()


def stream(http: httpx.Client, stop: int = 99) -> list[str]:
    with http.stream("POST", URL, json={"a": 1}) as response:
        assert response.status_code == 200
        found = []
        for chunk in response.iter_raw():
            found.append(chunk.decode("utf-8", "replace"))
            if len(found) == stop:
                break
        return found


def test_a_stream_comes_back_chunk_by_chunk(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with replay.opened(path, "record"):
        stream(client(lambda _: httpx.Response(200, stream=Chunks(EVENTS))))
    with replay.opened(path):
        # A letter that was cut in two is whole in the second half's chunk.
        assert stream(client()) == ['data: {"n": 1}\n\n', "data: caf", "\u00e9\n\n", "data: [DONE]\n\n"]


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path, chunks = tmp_path / "a.jsonl", [b"\xff\xfe", b"\x00\x80"]
    with replay.opened(path, "record"):
        client(lambda _: httpx.Response(200, stream=Chunks(chunks))).get(URL)
    with replay.opened(path), client().stream("GET", URL) as response:
        assert list(response.iter_raw()) == chunks


def test_a_compressed_answer_is_kept_readable(tmp_path: Path) -> None:
    path, body = tmp_path / "a.jsonl", b'{"answer": "yes", "api_key": "abc"}'

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-encoding": "gzip"}, stream=Chunks([gzip.compress(body)]))

    with replay.opened(path, "record"):
        assert client(answer).get(URL).content == body
    assert "abc" not in path.read_text()
    with replay.opened(path):
        assert client().get(URL).json()["answer"] == "yes"


def test_a_stream_that_was_left_early_replays_up_to_there(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with replay.opened(path, "record"):
        stream(client(lambda _: httpx.Response(200, stream=Chunks(EVENTS))), stop=1)
    with replay.opened(path):
        assert len(stream(client(), stop=1)) == 1
    with pytest.raises(replay.CassetteMissError, match="ends after 1 chunks"), replay.opened(path):
        stream(client())


@pytest.mark.parametrize("error", [httpx.ReadTimeout("too slow"), httpx.RemoteProtocolError("cut off")])
def test_a_failure_in_the_middle_of_a_stream(tmp_path: Path, error: Exception) -> None:
    path = tmp_path / "a.jsonl"
    for mode, answer in (("record", lambda _: httpx.Response(200, stream=Chunks(EVENTS[:1], error))), ("replay", None)):
        with replay.opened(path, mode), pytest.raises(type(error), match=str(error)):  # type: ignore[arg-type]  # a mode
            stream(client(answer))


def test_what_makes_a_key(tmp_path: Path) -> None:
    def keys(*requests: httpx.Request, **options: Any) -> set[str]:
        path = tmp_path / "a.jsonl"
        with replay.opened(path, "record"), client(lambda _: httpx.Response(200), **options) as http:
            for request in requests:
                http.send(request)
        return {entry.key for entry in read_cassette(path).entries}

    def post(url: str = URL, **more: Any) -> httpx.Request:
        return httpx.Request("POST", url, **more)

    local = "http://127.0.0.1:1/v1/chat"
    assert len(keys(post(json={"a": 1, "b": 2}), post(content=b'{"b":2.0,"a":1}'))) == 1
    assert len(keys(post(params={"a": "1", "b": "2"}), post(f"{URL}?b=2&a=1"))) == 1
    assert len(keys(post(headers={"x": "1"}), post(headers={"x": "2"}))) == 1
    assert len(keys(post(), post(local))) == 2
    assert len(keys(post(), post(local), match_host=False)) == 1
    assert len(keys(post(), httpx.Request("GET", URL), post(content="a"), post(content=b"\xff"))) == 4
    varied = [post(json={"user": n, "m": [{"id": n, "text": "a"}], "meta": {"at": n}}) for n in range(3)]
    assert len(keys(*varied, volatile=("user", "m.*.id", "meta.*"))) == 1
    assert len(keys(*varied, volatile=("user", "m.*.id"))) == 3
    assert len(keys(*[post(files={"f": b"abc"}) for _ in range(2)])) == 1


async def test_many_at_once_and_one_cancelled(tmp_path: Path) -> None:
    met = 0

    async def answer(request: httpx.Request) -> httpx.Response:
        nonlocal met
        number = json.loads(request.content)["n"]
        if number == 99:
            await asyncio.Event().wait()
        await asyncio.sleep((7 - number) / 1000)
        met += 1
        return httpx.Response(200, json={"met": met})

    async def work(inner: Any) -> list[Any]:
        async with httpx.AsyncClient(transport=replay.async_transport(inner=inner)) as http:
            posts = [http.post(URL, json={"n": number % 7}) for number in range(28)]
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(http.post(URL, json={"n": 99}), 0.05)
            return [response.json() for response in await asyncio.gather(*posts)]

    path = tmp_path / "a.jsonl"
    with replay.opened(path, "record"):
        first = await work(httpx.MockTransport(answer))
    with replay.opened(path) as world:
        assert await work(None) == first
    assert world.report().unused == ()
    assert met == 28


def test_outside_of_a_world_a_transport_only_passes_on() -> None:
    assert client(lambda _: httpx.Response(204)).get(URL).status_code == 204
    assert isinstance(replay.transport(inner=httpx2.MockTransport(lambda _: httpx2.Response(204)))._http, type(httpx2))
    with pytest.raises(replay.CassetteError, match="httpx, httpx2"):
        replay.transport(library="requests")
