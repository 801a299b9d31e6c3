"""How a new fact relates to an older one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LinkKind(StrEnum):
    """SAME and COARSER add nothing; FINER, NEWER and ENDS take the old one's place; FULFILS: a plan came true, its row
    may go when the present one is updated; APART: both stand."""

    SAME = "same"
    COARSER = "coarser"
    FINER = "finer"
    NEWER = "newer"
    ENDS = "ends"
    FULFILS = "fulfils"
    APART = "apart"


@dataclass(frozen=True, slots=True)
class FactLink:
    """`text` is what the old row should say when that is not simply the new fact's text."""

    kind: LinkKind
    reason: str
    text: str | None = None
