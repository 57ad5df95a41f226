"""When two calls are the same call, and what comes back as what it was."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import math
import pathlib
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from surefoot.evaluation.replay.canonical import NotPlainError, call_key, canonical_json
from surefoot.evaluation.replay.errors import ReplayedError
from surefoot.evaluation.replay.values import decode, decode_error, encode, encode_error


@dataclasses.dataclass(frozen=True)
class Order:
    number: int
    placed: datetime.date


class Item(BaseModel):
    name: str
    price: decimal.Decimal = decimal.Decimal(1)


class Colour(enum.Enum):
    RED = "red"


class StockError(Exception):
    def __init__(self, item: str, left: int) -> None:
        super().__init__(f"{item}: {left} left")
        self.item = item
        self.left = left


class PrivateError(Exception):
    def __init__(self, handle: object) -> None:
        super().__init__(handle)

    def __str__(self) -> str:
        return "it has a handle"


COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"
SAME: list[tuple[Any, Any]] = [
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    (1, 1.0),
    (0.0, -0.0),
    (0.1 + 0.2, 0.30000000000000004),
    (COMPOSED, DECOMPOSED),
    ({COMPOSED: 1}, {DECOMPOSED: 1}),
    ((1, 2), [1, 2]),
    ({3, 1, 2}, [1, 2, 3]),
    (Order(1, datetime.date(2026, 1, 2)), {"number": 1, "placed": "2026-01-02"}),
    (Item(name="pen"), {"name": "pen", "price": "1"}),
    (Colour.RED, "red"),
    (pathlib.PurePosixPath("/a/b"), "/a/b"),
]
DIFFERENT: list[tuple[Any, Any]] = [
    (1, True),
    (1, "1"),
    (None, {}),
    ({"a": None}, {}),
    ([1, 2], [2, 1]),
    ("a", "A"),
    ("a", "a "),
    (0.3, 0.1 + 0.2),
    (2**53, 2**53 + 1),
    (math.nan, "nan"),
    (math.inf, -math.inf),
    (b"a", "a"),
    ("\ud800", "?"),
    ({COMPOSED: 1, DECOMPOSED: 2}, {COMPOSED: 2, DECOMPOSED: 1}),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_call(one: Any, other: Any) -> None:
    assert call_key("t", {"x": one}) == call_key("t", {"x": other})


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_another_call(one: Any, other: Any) -> None:
    assert call_key("t", {"x": one}) != call_key("t", {"x": other})


def test_the_key_is_a_whole_sha256_of_text_that_is_fixed() -> None:
    assert canonical_json({"b": [1.0, 1.5, COMPOSED], "a": None}) == '{"a":null,"b":[1,1.5,"caf\\u00e9"]}'
    # Of {"arguments":{"order":42},"name":"look_up"}; it is a promise to the cassettes that there are.
    assert call_key("look_up", {"order": 42}) == "660194a1f11459c429c939906b9d324d6d3a71bf2cec5d9f50266ed563c9d1fa"
    assert call_key("a", {"b": 1}) != call_key("b", {"a": 1})


def test_what_has_no_json_says_where_it_is() -> None:
    with pytest.raises(NotPlainError, match=r"value\.a\[1\] is of the type object"):
        canonical_json({"a": [1, object()]})


VALUES: list[Any] = [
    None,
    True,
    -0.0,
    math.inf,
    "\ud800",
    b"\xff",
    (1, (2,), [3]),
    {1, 2},
    frozenset({"a"}),
    {1: "a", (2, 3): "b"},
    {"$bytes": "a"},
    {"$dataclass": "os:system", "fields": {}},
    datetime.datetime(2026, 1, 2, 3, tzinfo=datetime.UTC),
    datetime.timedelta(days=1, microseconds=3),
    datetime.time(1, 2),
    decimal.Decimal("1.10"),
    uuid.UUID(int=7),
    pathlib.Path("a/b"),
    Order(1, datetime.date(2026, 1, 2)),
    [Item(name="pen"), Item(name="ink", price=decimal.Decimal("2.5"))],
    Colour.RED,
]


@pytest.mark.parametrize("value", VALUES)
def test_a_value_comes_back_equal_and_of_its_type(value: Any) -> None:
    back = decode(encode(value))
    assert (type(back), back, repr(back)) == (type(value), value, repr(value))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner, inner),
    max_leaves=10,
)


@given(JSON)
def test_any_data_comes_back(value: Any) -> None:
    assert decode(encode(value)) == value


@given(JSON)
def test_any_data_has_one_key_whether_typed_or_plain(value: Any) -> None:
    assert canonical_json(value) == canonical_json(decode(encode(value)))


def test_what_could_not_be_built_again_is_refused() -> None:
    class Local(BaseModel):
        name: str

    for value in (object(), Local(name="a"), lambda: None, iter([])):
        with pytest.raises(NotPlainError):
            encode([value])


ERRORS = [
    ValueError("no"),
    KeyError("a"),
    FileNotFoundError(2, "none", "f"),
    StockError("pen", 3),
    TimeoutError(),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
]


@pytest.mark.parametrize("error", ERRORS)
def test_an_exception_comes_back_as_its_type(error: Exception) -> None:
    back = decode_error(encode_error(error))
    assert (type(back), str(back), back.args) == (type(error), str(error), error.args)
    assert getattr(back, "left", None) == getattr(error, "left", None)


def test_an_exception_that_cannot_be_built_says_what_it_was() -> None:
    gone = {**encode_error(ValueError("no")), "type": "not_installed.errors:GoneError"}
    for told, name in (
        (gone, "not_installed.errors.GoneError"),
        (encode_error(PrivateError(object())), "PrivateError"),
    ):
        back = decode_error(told)
        assert isinstance(back, ReplayedError)
        assert name in back.type_name
        assert back.message == told["message"]


def test_only_what_is_meant_is_built() -> None:
    with pytest.raises(ReplayedError):
        decode({"$dataclass": "subprocess:Popen", "fields": {}})
    assert isinstance(decode_error({"type": "subprocess:Popen", "message": "x", "args": ["true"]}), ReplayedError)
