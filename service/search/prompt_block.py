"""Writes what is remembered as one block of text for a prompt, the best that fits into a token budget.

Every candidate is a piece: a line, or a passage of several, with a score that is comparable between parts. The best
piece that fits is taken, then the next that fits, until the budget is used up; a heading is paid for by the first piece
under it. The text reads part by part, what was said day by day and conversation by conversation.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import groupby
from types import MappingProxyType
from zoneinfo import ZoneInfo

from service.cognition.values import Goal, ProfileResponse, StrategyMatch
from service.domain.conversation import Turn
from service.domain.memory import LeanMemory
from service.language.prompt_text import estimate_tokens_of_bytes, one_line
from service.search.values import EntityItem

HEADINGS: Mapping[str, str] = MappingProxyType(
    {
        "user_context": "## About the user",
        "goals": "## Active goals",
        "facts": "## Known facts",
        "entities": "## People and things",
        "strategies": "## What has worked",
        "turns": "## Said before",
    }
)

FIRST = 1e9
"""Score of pieces that are taken before all others."""


@dataclass(frozen=True, slots=True)
class PromptLine:
    """A line of the block; passages that overlap may share one. `order` sorts it within its part, `heading` is a second
    heading under the part's own, which all lines with the same one share."""

    key: Hashable
    text: str
    order: tuple[object, ...] = ()
    heading: str | None = None


@dataclass(frozen=True, slots=True)
class PromptPiece:
    """Lines that are included or omitted as a whole. `group`: a caller may limit the number per group."""

    part: str
    score: float
    lines: tuple[PromptLine, ...]
    group: Hashable = None

    @property
    def keys(self) -> tuple[Hashable, ...]:
        return tuple(line.key for line in self.lines)


@dataclass(slots=True)
class PromptBlock:
    """The pieces taken so far, and their size in bytes."""

    headings: Mapping[str, str]
    max_tokens: int
    size: int = 0
    lines: dict[str, dict[Hashable, tuple[PromptPiece, PromptLine]]] = field(default_factory=dict)
    size_of_part: dict[str, int] = field(default_factory=dict)

    def take(self, piece: PromptPiece) -> bool:
        """Takes the piece if it fits; lines that are already included cost nothing."""
        known = self.lines.get(piece.part, {})
        new = {line.key: line for line in piece.lines if line.key not in known}
        cost = sum(_size(line.text) for line in new.values())
        if not known:
            cost += _size(self.headings[piece.part]) + (1 if self.size else 0)
        headings = {line.heading for _, line in known.values()}
        cost += sum(_size(each) for each in {line.heading for line in new.values()} - headings if each is not None)
        if estimate_tokens_of_bytes(self.size + cost) > self.max_tokens:
            return False
        self.size += cost
        self.size_of_part[piece.part] = self.size_of_part.get(piece.part, 0) + cost
        self.lines.setdefault(piece.part, {}).update({key: (piece, line) for key, line in new.items()})
        return True

    @property
    def tokens(self) -> int:
        return estimate_tokens_of_bytes(self.size)

    def tokens_of(self, part: str) -> int:
        """Returns the tokens of the part's lines and headings."""
        return estimate_tokens_of_bytes(self.size_of_part.get(part, 0))

    def text(self, parts: Sequence[str]) -> str:
        """Returns the block with its parts in this order; its length is exactly as counted."""
        sections = ["\n".join([self.headings[part], *self._texts(part)]) + "\n" for part in parts if part in self.lines]
        return "\n".join(sections)

    def _texts(self, part: str) -> list[str]:
        lines = sorted((line for _, line in self.lines[part].values()), key=lambda line: line.order)
        texts: list[str] = []
        for heading, under_it in groupby(lines, key=lambda line: line.heading):
            if heading is not None:
                texts.append(heading)
            texts += [line.text for line in under_it]
        return texts


def pack(pieces: Sequence[PromptPiece], block: PromptBlock) -> list[PromptPiece]:
    """Returns the pieces that were taken, best first; equal scores in the order given."""
    return [piece for piece in sorted(pieces, key=lambda each: -each.score) if block.take(piece)]


def cap_groups(pieces: Sequence[PromptPiece], most: int | None) -> list[PromptPiece]:
    """Returns the pieces, best first, up to a number per group; None for all."""
    seen: dict[Hashable, int] = {}
    kept = []
    for piece in sorted(pieces, key=lambda each: -each.score):
        seen[piece.group] = seen.get(piece.group, 0) + 1
        if most is None or seen[piece.group] <= most:
            kept.append(piece)
    return kept


def turn_line(turn: Turn, text: str, zone: ZoneInfo, *, named: bool, first: bool) -> PromptLine:
    """Returns the line of a turn under the heading of its day and, if `named`, its conversation. `first`: it probably
    answers and comes before the others."""
    at = turn.timestamp.astimezone(zone)
    name = f" ({one_line(turn.scope.run_id)[:60]})" if turn.scope.run_id else ""
    order = (not first, at.date(), name, str(turn.conversation_id), turn.index)
    heading = f"### {'Closest to the question, ' if first else ''}{at:%a %Y-%m-%d}{name if named else ''}"
    return PromptLine((turn.conversation_id, turn.index), text, order, heading)


def format_turn(turn: Turn, text: str | None = None) -> str:
    """Returns the turn with who speaks; `text`: its words, where they are not the turn's own."""
    return f"{one_line(turn.speaker or turn.role.capitalize())}: {one_line(text or turn.text)}"


def fact(memory: LeanMemory, score: float, day: date, marks: str = "", order: tuple[object, ...] = ()) -> PromptPiece:
    """Returns the line of a memory. `marks`: whether it is no longer valid or has later statements."""
    text = f"- {one_line(memory.text)} ({day}){marks}"
    return PromptPiece("facts", score, (PromptLine(memory.id, text, (*order, memory.timestamp, str(memory.id))),))


def entity(item: EntityItem, score: float) -> PromptPiece:
    known = item.entity
    parts = [f"- {one_line(f'{known.name} ({known.type})')}"]
    if known.description:
        parts.append(one_line(known.description))
    parts += [one_line(f"{relation.source} {relation.relation} {relation.target}") for relation in item.relations]
    text = parts[0] if len(parts) == 1 else f"{parts[0]}: {'; '.join(parts[1:])}"
    return PromptPiece("entities", score, (PromptLine(known.id, text, (known.name, str(known.id))),))


def strategy(match: StrategyMatch, score: float) -> PromptPiece:
    known = match.strategy
    when = f"when {one_line(known.context_pattern)}: " if known.context_pattern else ""
    tools = f" ({', then '.join(one_line(tool) for tool in known.tool_sequence)})" if known.tool_sequence else ""
    tried = known.success_count + known.failure_count
    text = f"- {when}{one_line(known.description)}{tools}; worked {known.success_count} of {tried} times"
    return PromptPiece("strategies", score, (PromptLine(known.id, text, (-score, str(known.id))),))


def goal(goal: Goal, now: datetime) -> PromptPiece:
    due = ""
    if goal.deadline is not None:
        due = f", {'overdue since' if goal.is_overdue(now) else 'due'} {goal.deadline:%Y-%m-%d}"
    text = f"- {one_line(goal.description)} (priority {goal.priority}{due})"
    return PromptPiece("goals", FIRST + goal.priority, (PromptLine(goal.id, text, (-goal.priority, str(goal.id))),))


def user_context(profile: ProfileResponse) -> list[PromptPiece]:
    """Returns a line for each part of the profile that is not empty."""
    parts = {
        "preferences": _pairs(profile.preferences),
        "expertise": ", ".join(_plain(expertise_area) for expertise_area in profile.expertise_areas),
        "communication style": _pairs(profile.communication_style),
    }
    return [
        PromptPiece("user_context", 2 * FIRST - index, (PromptLine(name, f"- {name}: {one_line(text)}", (index,)),))
        for index, (name, text) in enumerate(parts.items())
        if text
    ]


def _pairs(values: Mapping[str, object]) -> str:
    return "; ".join(f"{name}: {_plain(value)}" for name, value in values.items())


def _plain(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_plain(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_plain(each) for each in value)
    return str(value)


def _size(line: str) -> int:
    return len(line.encode()) + 1
