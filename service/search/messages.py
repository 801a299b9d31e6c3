"""Memories that keep a message as it was said, and later messages about the same thing. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from service.domain.conversation import SourcePassage, TurnPlace
from service.domain.memory import Hit
from service.language.talk.dates import as_said

TOPIC_HITS: Final = 10
"""Hits among which statements about the topic of the first hit are looked for: in a large store nearly every statement
has a later one about something similar."""

_TAKEN_UP: Final = re.compile(r" (?:asked|said): ")


@dataclass(frozen=True, slots=True)
class Message:
    """A memory with the text of a message, or of a passage of it from character `start` on. `own`: its words, with
    dates; `context`: the quotation before them of what it refers to ("Assistant asked: Shall we say Friday?")."""

    hit: Hit
    own: str
    start: int = 0
    context: str = ""

    @property
    def takes_up(self) -> str:
        """The words of the previous turn that the message refers to."""
        return _TAKEN_UP.split(self.context)[-1] if self.context else ""


def group_by_turn(hits: Iterable[Hit], passages: Sequence[SourcePassage]) -> dict[TurnPlace, list[Message]]:
    """The memories that keep messages, by their turns. `passages`: of all memories that are not turns themselves."""
    of: dict[UUID, list[SourcePassage]] = {}
    for source_passage in passages:
        of.setdefault(source_passage.memory_id, []).append(source_passage)
    by_turn: dict[TurnPlace, list[Message]] = {}
    for hit in hits:
        memory = hit.memory
        if memory.conversation_id is not None and memory.turn_index is not None:
            by_turn.setdefault((memory.conversation_id, memory.turn_index), []).append(Message(hit, memory.text))
        for passage in of.get(memory.id, ()):
            if (message := _message(hit, passage)) is not None:
                by_turn.setdefault(passage.place, []).append(message)
    return by_turn


def _message(hit: Hit, passage: SourcePassage) -> Message | None:
    """The memory as the message of the passage, where it ends with all of its words."""
    text, said = hit.memory.text, plain(passage.said)
    first = said.split(" ")[0]
    at = text.rfind(first) if first else -1
    while at >= 0 and plain(text[at:]) != said:
        at = text.rfind(first, 0, at)
    if at < 0:
        return None
    before, named, heading = text[:at].rpartition(f"{passage.speaker}: ")
    if not named:  # roles are capitalised there
        before, named, heading = text[:at].rpartition(f"{passage.speaker.capitalize()}: ")
    return Message(hit, f"{heading}{text[at:]}" if named else text[at:], passage.start, before.strip() if named else "")


def plain(text: str) -> str:
    """The words without the dates that were added to them."""
    return " ".join(as_said(text).split())


def later_of(hits: Sequence[Hit]) -> Mapping[UUID, tuple[Hit, Hit]]:
    """Each hit (by id) with the last of the others that replaced it, or may have and is about the same thing, or that
    the same speaker said about it later, one of both being the first hit. The first two hits are about one thing."""
    by_id, first = {hit.memory.id: hit for hit in hits}, [hit.memory.id for hit in hits[:TOPIC_HITS]]
    last_of = {}
    for hit in hits:
        memory, after = hit.memory, [statement.id for statement in hit.later]
        likely = [each for each in memory.may_be_outdated_by if each in after or {memory.id, each} == {*first[:2]}]
        topic = first[:1] if memory.id != first[0] else first
        said = [by_id[each].memory for each in after if each in topic and memory.id in first]
        related = [each.id for each in said if (each.role, each.speaker) == (memory.role, memory.speaker)]
        if later := [each for each in (*memory.superseded_by, *likely, *related) if each in by_id]:
            last_of[memory.id] = (hit, by_id[later[0]])
    return last_of
