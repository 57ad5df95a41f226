"""What the SLO files' reader has to say beside definitions: problems, and what is fine and does nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a document is not used."""

    file: str
    line: int
    path: str  # of the field, such as spec.objectives[0].target; "" for the document
    what: str
    remedy: str
    holds_up: tuple[str, ...] = ()  # SLOs that refer to the document and are not used until it is mended

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        said = f"{self.file}:{self.line}: {where}{self.what}; {self.remedy}"
        if not self.holds_up:
            return said
        more = len(self.holds_up) - _NAMED
        names = ", ".join(self.holds_up[:_NAMED]) + (f" and {more} more" if more > 0 else "")
        return f"{said}. Until then not used: {names}"


@dataclass(frozen=True, slots=True)
class Unused:
    """A document, or a part of one, that is fine and does nothing here."""

    file: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"
