"""Which dialect a span is written in, and where its columns' values stand.

Works on the flat keys and values of all attribute maps at once, both dictionary-encoded. Rule: a decision is made once
per distinct key, a dialect's reading function is asked once per distinct value, and both are applied by index; nothing
here loops over spans. Of several sources the best that says something wins, which is why they are noted worst first.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from surefoot.processors.dictionaries import codes_of
from surefoot.processors.genai.dialects import DIALECTS
from surefoot.processors.genai.dialects.dialect import Read, Source, Where
from surefoot.processors.genai.values import is_storable
from surefoot.processors.otlp.arrays import pairs_of

NONE: Final = -1  # the number of a span that no dialect recognises, and the code of a value that is not there

_Sources = tuple[str | Source, ...]


class Flat:
    """All attributes of all rows, one after another, and where each key stands; and the rows' names."""

    def __init__(self, maps: pa.MapArray, names: pa.DictionaryArray) -> None:
        self.row_count = len(maps)
        self.names = names
        self.rows, (keys, self.values) = pairs_of(maps)
        self.keys: list[str] = keys.dictionary.to_pylist()
        self.value_codes = codes_of(self.values)
        self._code_of = {key: code for code, key in enumerate(self.keys)}
        codes = codes_of(keys)
        small = codes.astype(np.uint16) if len(self.keys) < 1 << 16 else codes  # sorted by radix
        self._order = np.argsort(small, kind="stable")
        self._ends = np.cumsum(np.bincount(codes, minlength=len(self.keys)))

    def places(self, key: str) -> Any | None:
        """The places of this key, in order, or None."""
        code = self._code_of.get(key)
        if code is None:
            return None
        return self._order[self._ends[code - 1] if code else 0 : self._ends[code]]


def recognise(scopes: pa.DictionaryArray, flat: Flat) -> Any:
    """For each row the number of its dialect, or NONE. Scopes count before marker attributes, these before names."""
    scope_codes = codes_of(scopes)
    found = of_scopes(scopes)
    shared = np.array([*(number != NONE and _shares(number, s) for s, number in _numbered(scopes)), False], np.bool_)
    open_rows = (found == NONE) | shared[scope_codes]
    if not open_rows.any():
        return found
    marked = np.full(flat.row_count, NONE)
    for number, key in sorted(((_dialect_of_key(key), key) for key in flat.keys), reverse=True):
        if number != NONE:
            marked[flat.rows[flat.places(key)]] = number
    better = open_rows & (marked != NONE) & ((found == NONE) | (marked < found))
    found = np.where(better, marked, found)
    if (found == NONE).any():
        of_name = np.array([*map(_dialect_of_name, flat.names.dictionary.to_pylist()), NONE])
        found = np.where(found == NONE, of_name[codes_of(flat.names)], found)
    return found


def of_scopes(scopes: pa.DictionaryArray) -> Any:
    """For each row the number of the dialect that has its scope, or NONE."""
    return np.array([*(number for _, number in _numbered(scopes)), NONE])[codes_of(scopes)]


def numbers_of(dialects: Any) -> list[int]:
    """The numbers that occur, in order."""
    return (np.flatnonzero(np.bincount(dialects - NONE)) + NONE).tolist()


def is_of(dialects: Any, numbers: Iterable[int]) -> Any:
    """Whether each row's dialect is one of these."""
    wanted = np.zeros(len(DIALECTS) + 1, np.bool_)  # the last stands for NONE
    wanted[list(numbers)] = True
    return wanted[dialects]


def _numbered(scopes: pa.DictionaryArray) -> list[tuple[str, int]]:
    return [(scope, _dialect_of_scope(scope)) for scope in scopes.dictionary.to_pylist()]


def _shares(number: int, scope: str) -> bool:
    return scope in DIALECTS[number].shared_scopes


@lru_cache(maxsize=1 << 16)
def _dialect_of_scope(scope: str) -> int:
    return next((number for number, dialect in enumerate(DIALECTS) if dialect.has_scope(scope)), NONE)


@lru_cache(maxsize=1 << 16)
def _dialect_of_key(key: str) -> int:
    return next((number for number, dialect in enumerate(DIALECTS) if dialect.has_marker(key)), NONE)


@lru_cache(maxsize=1 << 16)
def _dialect_of_name(name: str | None) -> int:
    return next((number for number, dialect in enumerate(DIALECTS) if name and dialect.has_span_name(name)), NONE)


class Resolver:
    """Values of columns for rows whose dialects are known. Operations must be told before a source asks for them."""

    def __init__(self, flat: Flat, dialects: Any) -> None:
        self._flat = flat
        self._dialects = dialects
        self._present = tuple(numbers_of(dialects))
        self._operations: tuple[list[str | None], Any] = ([], None)
        self._rows_where: dict[Where, Any] = {}

    def tell_operations(self, operations: pa.Array) -> None:
        """The column ``operation``, on which other columns' sources may depend."""
        if pa.types.is_dictionary(operations.type):
            self._operations = ([*operations.dictionary.to_pylist(), None], codes_of(operations))

    def texts(self, column: str, common: Iterable[str]) -> pa.DictionaryArray | None:
        """The text that each row's dialect has for ``column``, else of the first ``common`` key; None if no row has."""
        pool = _Pool(self._flat)
        for key in reversed(tuple(common)):
            self._note(pool, Source(key), None)
        for sources, numbers in _plan(column, self._present):
            among = None if len(numbers) == len(self._present) else is_of(self._dialects, numbers)
            for source in reversed(sources):
                self._note(pool, source if isinstance(source, Source) else Source(source), among)
        return pool.taken()

    def _note(self, pool: _Pool, source: Source, among: Any | None) -> None:
        found = self._told(source.key)
        if found is None:
            return
        rows, codes, texts = found
        chosen = self._chosen(source, among)
        if chosen is not None:
            kept = chosen[rows]
            rows, codes = rows[kept], codes[kept]
        if source.named is not None:
            kept = self._bear_the_name(source.named, rows, codes, texts)
            rows, codes = rows[kept], codes[kept]
        if source.read is not None:
            codes = pool.answers(source.read, codes, texts)
            said = codes != NONE
            rows, codes = rows[said], codes[said]
        pool.note(rows, codes)

    def _bear_the_name(self, read: Read, rows: Any, codes: Any, texts: pa.StringArray) -> Any:
        """Whether each row's name is what ``read`` makes of its text."""
        names = self._flat.names
        code_of = {name: code for code, name in enumerate(names.dictionary.to_pylist())}
        distinct = _distinct(codes)
        wanted = np.full(int(codes.max(initial=0)) + 2, NONE - 1)
        told = texts.take(pa.array(distinct)).to_pylist()
        wanted[distinct] = [code_of.get(read(text) if text is not None else None, NONE - 1) for text in told]
        return wanted[codes] == codes_of(names)[rows]

    def _told(self, key: str | None) -> tuple[Any, Any, pa.StringArray] | None:
        """The rows that have this key (None: all, by their names), and the codes and the dictionary of what it says."""
        flat = self._flat
        if key is None:
            return np.arange(flat.row_count), codes_of(flat.names), flat.names.dictionary
        where = flat.places(key)
        return None if where is None else (flat.rows[where], flat.value_codes[where], flat.values.dictionary)

    def _chosen(self, source: Source, among: Any | None) -> Any | None:
        chosen = among
        if source.on is not None:
            words, codes = self._operations
            of_word = np.array([word in source.on for word in words], np.bool_)
            on = of_word[codes] if codes is not None else np.zeros(self._flat.row_count, np.bool_)
            chosen = on if chosen is None else chosen & on
        if source.where is not None:
            rows = self._where(source.where)
            chosen = rows if chosen is None else chosen & rows
        return chosen

    def _where(self, where: Where) -> Any:
        """Whether each row has this value under this key."""
        if where not in self._rows_where:
            key, value = where
            chosen = np.zeros(self._flat.row_count, np.bool_)
            found = self._told(key)
            if found is not None:
                rows, codes, texts = found
                distinct = _distinct(codes)
                wanted = distinct[[text == value for text in texts.take(pa.array(distinct)).to_pylist()]]
                chosen[rows[np.isin(codes, wanted)]] = True
            self._rows_where[where] = chosen
        return self._rows_where[where]


class _Pool:
    """For each row the code of a text: of an attribute's value, or of an answer of a reading function."""

    def __init__(self, flat: Flat) -> None:
        self._values = flat.values.dictionary
        self._answers: list[str] = []
        self._row_count = flat.row_count
        self._codes: Any = None

    def note(self, rows: Any, codes: Any) -> None:
        """These rows (ascending, each once) have these codes, whatever they had before."""
        if len(rows) == self._row_count:
            self._codes = codes.astype(np.int32)
        elif len(rows):
            if self._codes is None:
                self._codes = np.full(self._row_count, NONE, np.int32)
            self._codes[rows] = codes

    def answers(self, read: Read, codes: Any, texts: pa.StringArray) -> Any:
        """For each of ``codes`` the code of what ``read`` makes of its text, or NONE."""
        distinct = _distinct(codes)
        new = np.full(len(distinct), NONE, np.int32)
        for at, text in enumerate(texts.take(pa.array(distinct)).to_pylist()):
            answer = read(text) if text is not None else None
            if answer is not None and is_storable(answer):
                new[at] = len(self._values) + len(self._answers)
                self._answers.append(answer)
        by_code = np.full(int(codes.max(initial=0)) + 2, NONE, np.int32)  # the last stands for what is missing
        by_code[distinct] = new
        return by_code[codes]

    def taken(self) -> pa.DictionaryArray | None:
        """The texts, with a dictionary of what is used; None if there is none."""
        if self._codes is None:
            return None
        used = _used(self._codes)
        distinct = np.flatnonzero(used)
        if not len(distinct):
            return None
        split = np.searchsorted(distinct, len(self._values))
        texts = self._values.take(pa.array(distinct[:split]))
        places = np.cumsum(used, dtype=np.int32) - 1
        if split < len(distinct):  # an answer may be a text that is there already
            answers = [self._answers[code - len(self._values)] for code in distinct[split:]]
            encoded = pa.concat_arrays([texts, pa.array(answers, pa.string())]).dictionary_encode()
            texts, places = encoded.dictionary, encoded.indices.to_numpy()[places]
        missing = self._codes < 0
        if not missing.any():
            return pa.DictionaryArray.from_arrays(pa.array(places[self._codes]), texts)
        return pa.DictionaryArray.from_arrays(pa.array(places[np.where(missing, 0, self._codes)], mask=missing), texts)


def _distinct(codes: Any) -> Any:
    """The distinct codes, in order, without what is missing."""
    return np.flatnonzero(_used(codes))


def _used(codes: Any) -> Any:
    used = np.zeros(int(codes.max(initial=0)) + 2, np.bool_)
    used[codes] = True  # NONE marks the last, which is no code
    return used[:-1]


@lru_cache(maxsize=1 << 14)
def _plan(column: str, present: tuple[int, ...]) -> list[tuple[_Sources, list[int]]]:
    """The sources of a column, each with the dialects that have just these."""
    plan: dict[_Sources, list[int]] = {}
    for number in present:
        sources = () if number == NONE else DIALECTS[number].columns.get(column, ())
        plan.setdefault(sources, []).append(number)
    return [(sources, numbers) for sources, numbers in plan.items() if sources]
