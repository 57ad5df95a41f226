"""YAML files to plain data, and where in the file each part of it stands.

Rule: plain data only (PyYAML's safe loader), and what YAML would swallow is an error: a key that stands twice, a file
without a document.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from surefoot.errors import SurefootError

Path = Sequence[str | int]


class DocumentError(SurefootError):
    """A file that is not YAML of this kind; ``line`` counts from 1."""

    def __init__(self, line: int, path: Path, what: str, remedy: str) -> None:
        super().__init__(f"line {line}: {what}; {remedy}")
        self.line = line
        self.path = path
        self.what = what
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document."""

    data: Any
    node: yaml.Node

    def line(self, path: Path) -> int:
        """Line of the key or item that ``path`` leads to, or of the nearest part of it that there is."""
        node, line = self.node, _line(self.node)
        for step in path:
            found = _child(node, step)
            if found is None:
                return line
            line, node = found
        return line


def read_documents(text: str) -> Iterator[Document]:
    """The documents of a file, empty ones left out. Raises DocumentError at the first that cannot be read."""
    empty = True
    try:
        loader = yaml.SafeLoader(text)
        while loader.check_node():
            node = loader.get_node()
            assert node is not None  # noqa: S101 - check_node said so
            _refuse_twins(node, (), set())
            data = _construct(loader, node)
            if data is not None:
                empty = False
                yield Document(data, node)
    except yaml.MarkedYAMLError as error:
        raise _not_yaml(error) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise DocumentError(line, (), f"a character that YAML does not allow ({error.reason})", "remove it") from error
    except RecursionError as error:
        raise DocumentError(1, (), "nested too deeply", "write it flat") from error
    if empty:
        raise DocumentError(1, (), "the file holds nothing", "write something into it, or remove the file")


def _construct(loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    """The node's data. YAML takes some words for values that there are not, such as 30 February."""
    try:
        return loader.construct_document(node)
    except ValueError as error:
        for path, scalar in _scalars(node, (), set()):
            try:
                yaml.SafeLoader("").construct_object(scalar)
            except ValueError:
                what = f"{scalar.value[:40]!r} is read as {scalar.tag.rpartition(':')[2]}, and cannot be one"
                raise DocumentError(_line(scalar), path, what, "correct it, or put it in quotes") from error
        raise


def _scalars(node: yaml.Node, path: tuple[str | int, ...], seen: set[int]) -> Iterator[tuple[Path, yaml.ScalarNode]]:
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.ScalarNode):
        yield path, node
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _scalars(item, (*path, index), seen)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _scalars(key, path, seen)
            yield from _scalars(value, (*path, str(key.value)), seen)


def at(data: Any, path: Path) -> Any:
    """What stands at a place of a document; None if nothing does."""
    for step in path:
        is_there = step in data if isinstance(data, dict) else isinstance(data, list) and step in range(len(data))
        if not is_there:
            return None
        data = data[step]
    return data


def items(data: Any, path: Path) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """The items of a list in a document, each with its place."""
    found = at(data, path)
    for index, item in enumerate(found if isinstance(found, list) else ()):
        yield (*path, index), item


def dotted(path: Path) -> str:
    """``spec.objectives[0].target``."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _child(node: yaml.Node, step: str | int) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        item = node.value[step]
        return _line(item), item
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return _line(key), value
    return None


def _refuse_twins(node: yaml.Node, path: tuple[str | int, ...], seen: set[int]) -> None:
    """YAML forbids equal keys, PyYAML keeps the last: half of what was written would be lost without a word."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _refuse_twins(item, (*path, index), seen)
    elif isinstance(node, yaml.MappingNode):
        lines: dict[str, int] = {}
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in lines and key.tag != "tag:yaml.org,2002:merge":
                    raise DocumentError(
                        _line(key),
                        (*path, key.value),
                        f"the key stands twice, first in line {lines[key.value]}",
                        "keep one of the two",
                    )
                lines[key.value] = _line(key)
            _refuse_twins(value, (*path, str(key.value)), seen)


def _not_yaml(error: yaml.MarkedYAMLError) -> DocumentError:
    mark = error.problem_mark or error.context_mark
    problem = error.problem or error.context or "it cannot be parsed"
    remedy = "see the place and the line above it: a missing colon, quote or bracket, or an indent that does not fit"
    if "\\t" in problem:
        remedy = "indent with spaces, YAML does not allow tabs there"
    return DocumentError(1 if mark is None else int(mark.line) + 1, (), f"not YAML: {problem}", remedy)
