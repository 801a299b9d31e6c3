"""What fits into a prompt, and how does it read there?

Every candidate is a piece: a line, or a passage of several, with a score that is comparable between parts. The best
that fits is taken, then the next best that fits, until the room is used up; a heading is paid for by the first piece
under it. What was taken is told in an order that reads: parts one after the other, conversations by time. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from service.language.tokens import of_bytes


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the block; two pieces may share one (passages that overlap). `order` sorts it under its heading."""

    key: Hashable
    text: str
    order: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """What is taken or left as a whole. `group`: a second heading under the part's own, with what sorts it."""

    part: str
    score: float
    lines: tuple[Line, ...]
    group: tuple[Hashable, str] | None = None


@dataclass(slots=True)
class Block:
    """What was taken so far, and what it costs in bytes."""

    headings: Mapping[str, str]
    max_tokens: int
    spent: int = 0
    pieces: list[Piece] = field(default_factory=list)
    lines: dict[str, dict[Hashable, tuple[Piece, Line]]] = field(default_factory=dict)
    groups: dict[tuple[str, Hashable], str] = field(default_factory=dict)
    bytes_of: dict[str, int] = field(default_factory=dict)

    def take(self, piece: Piece) -> bool:
        """Takes the piece if it fits; a piece of nothing new costs nothing."""
        mine = self.lines.get(piece.part, {})
        new = {line.key: line for line in piece.lines if line.key not in mine}
        cost = sum(_size(line.text) for line in new.values())
        if not mine:
            cost += _size(self.headings[piece.part]) + (1 if self.spent else 0)
        if piece.group is not None and (piece.part, piece.group[0]) not in self.groups:
            cost += _size(piece.group[1])
        if of_bytes(self.spent + cost) > self.max_tokens:
            return False
        self.spent += cost
        self.bytes_of[piece.part] = self.bytes_of.get(piece.part, 0) + cost
        self.pieces.append(piece)
        there = self.lines.setdefault(piece.part, {})
        there.update({key: (piece, line) for key, line in new.items()})
        if piece.group is not None:
            self.groups.setdefault((piece.part, piece.group[0]), piece.group[1])
        return True

    @property
    def tokens(self) -> int:
        return of_bytes(self.spent)

    def tokens_of(self, part: str) -> int:
        """What the part's lines and headings take."""
        return of_bytes(self.bytes_of.get(part, 0))

    def text(self, parts: Sequence[str]) -> str:
        """The block, parts in this order; exactly as large as it was counted."""
        found = []
        for part in parts:
            if part in self.lines:
                found.append("\n".join([self.headings[part], *self._told(part)]) + "\n")
        return "\n".join(found)

    def _told(self, part: str) -> list[str]:
        rows = sorted(
            self.lines[part].values(),
            key=lambda row: row[1].order,
        )
        told: list[str] = []
        last: Hashable = None
        for piece, line in rows:
            group = piece.group[0] if piece.group is not None else None
            if group is not None and group != last:
                told.append(self.groups[part, group])
            last = group
            told.append(line.text)
        return told


def pack(pieces: Sequence[Piece], block: Block) -> list[Piece]:
    """The pieces that were taken, best first; equal scores in the order given."""
    return [piece for piece in sorted(pieces, key=lambda each: -each.score) if block.take(piece)]


def cap(pieces: Sequence[Piece], key: Callable[[Piece], Hashable], most: int | None) -> list[Piece]:
    """The pieces, best first, at most so many of each key (R7.12); None for all."""
    seen: dict[Hashable, int] = {}
    kept = []
    for piece in sorted(pieces, key=lambda each: -each.score):
        seen[key(piece)] = seen.get(key(piece), 0) + 1
        if most is None or seen[key(piece)] <= most:
            kept.append(piece)
    return kept


def one_line(text: str) -> str:
    """The text without its line breaks: it cannot end a list, open a heading or begin a new speaker's line."""
    return " ".join(text.split())


def _size(line: str) -> int:
    return len(line.encode()) + 1
