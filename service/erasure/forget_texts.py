"""The texts of a scope in which something is to be forgotten, and what is removed with the parts that are meant:
sentences that say the same elsewhere, those that depend on them, and the assistant's replies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from service.conversations.statements import withdrawn
from service.domain.scope import Extent
from service.erasure.statements import targets
from service.erasure.statements.targets import SpokenText, StoredText
from service.language import lexemes, sentences, withdrawal
from service.language.forgetting import forget_matching, forget_query
from service.language.forgetting.forget_matching import LEFT_OUT, ForgetText, Part
from service.language.forgetting.forget_query import ForgetQuery
from service.language.talk.quotes import ASSISTANT, ASSISTANT_ROLES, take_apart
from service.language.withdrawal import Span
from service.postgres.engine import Session

ALIKE = 0.5
"""Share of common content words from which a sentence says the same as a statement."""

MemoryKey = tuple[UUID, int]
Key = MemoryKey | UUID
"""A version of a memory, or a turn."""


@dataclass(frozen=True, slots=True)
class ForgetTexts:
    """All texts of a scope, with their parts; for a turn, the sentences that its transcript shows."""

    memories: Mapping[MemoryKey, StoredText]
    turns: Mapping[UUID, SpokenText]
    parts: Mapping[Key, list[Part]]
    turn_at: Mapping[tuple[UUID, int], UUID]

    def by_assistant(self, key: Key) -> bool:
        """Whether an assistant said it."""
        if isinstance(key, tuple):
            return take_apart(self.memories[key].text).speaker == ASSISTANT
        return self.turns[key].role in ASSISTANT_ROLES

    def memory_of(self, key: MemoryKey) -> UUID:
        """The memory that it is a version of, or that corrects it; all versions of a memory are one candidate."""
        return self.memories[key].version_of or key[0]

    def joined(self, keys: Iterable[Key]) -> list[ForgetText[Key]]:
        """The texts to compare: the text of a memory, the shown text of a turn."""
        return [
            ForgetText(
                key,
                self.memories[key].text if isinstance(key, tuple) else " ".join(part.text for part in self.parts[key]),
            )
            for key in keys
        ]


@dataclass(frozen=True, slots=True)
class ChosenParts:
    """The parts of texts to remove, and the reason for each text."""

    parts: dict[Key, set[int]] = field(default_factory=dict)
    reasons: dict[Key, str] = field(default_factory=dict)

    def add(self, key: Key, places: set[int], reason: str) -> bool:
        """Adds parts; returns whether any is new."""
        known = self.parts.setdefault(key, set())
        self.reasons.setdefault(key, reason)
        new = not places <= known
        known |= places
        return new


async def read(session: Session, wanted: Extent, *, with_deleted: bool) -> ForgetTexts:
    stored = await targets.memories(session, wanted)
    if with_deleted and wanted.session_id is None:
        stored += await targets.list_gone(session, wanted)
    memories: dict[MemoryKey, StoredText] = {}
    for text in stored:
        number = 0
        while (text.id, number) in memories:
            number += 1
        memories[text.id, number] = text
    said = await targets.turns(session, wanted)
    gone = await _gone(session, [turn.id for turn in said if turn.shown is not None])
    turns = {turn.id: turn for turn in said if turn.id not in gone or withdrawal.hide(turn.text, gone[turn.id])}
    parts: dict[Key, list[Part]] = {key: forget_matching.split_parts(memory.text) for key, memory in memories.items()}
    parts |= {key: _split_left(turn, gone.get(key, [])) for key, turn in turns.items()}
    memories |= _corrected(memories, parts)
    return ForgetTexts(
        memories, turns, parts, {(turn.conversation_id, turn.turn_index): turn.id for turn in turns.values()}
    )


def _corrected(
    memories: Mapping[MemoryKey, StoredText], parts: Mapping[Key, list[Part]]
) -> dict[MemoryKey, StoredText]:
    """Past statements as versions of what corrects them: "My flight is at 7." of "Sorry, 8." """
    corrections = [key for key in memories if any(part.is_context and LEFT_OUT in part.text for part in parts[key])]
    return {
        key: replace(text, version_of=by[0])
        for by in corrections
        for key, text in memories.items()
        if text.has_ended and text.version_of is None and forget_matching.is_corrected(parts[key], parts[by])
    }


async def _gone(session: Session, ids: Sequence[UUID]) -> dict[UUID, list[Span]]:
    spans = await withdrawn.of_turns(session, ids)
    kept = await withdrawn.read_kept(session, ids)
    return {key: withdrawn.gone_of(spans.get(key, []), kept.get(key, [])) for key in ids}


def _split_left(turn: SpokenText, gone: Sequence[Span]) -> list[Part]:
    return [
        Part(left, right, turn.text[left:right])
        for start, end in sentences.split(turn.text)
        for left, right in withdrawal.subtract([(start, end)], gone)
    ]


def share(query: str, text: str) -> float:
    """The share of content words that two texts have in common."""
    one, other = (set(lexemes.lexemes(each)) for each in (query, text))
    return len(one & other) / len(one | other) if one | other else 0.0


# -- what goes with it -----------------------------------------------------------------------------------------------


def with_occasions(chosen: ChosenParts, texts: ForgetTexts) -> ChosenParts:
    """Adds what the user said just before, if only the assistant's reply has the words."""
    if not all(texts.by_assistant(key) for key in chosen.parts):
        return chosen
    for key in [each for each in chosen.parts if not isinstance(each, tuple)]:
        turn, parts = texts.turns[key], texts.parts[key]
        before = texts.turn_at.get((turn.conversation_id, turn.turn_index - 1))
        if before is not None and not texts.by_assistant(before):
            reply = " ".join(parts[index].text for index in chosen.parts[key])
            echoing = {p for p, part in enumerate(texts.parts[before]) if forget_matching.echoes(part.text, reply)}
            if echoing:
                chosen.add(before, echoing, "the assistant's reply to it says the words")
    return chosen


def with_current(chosen: ChosenParts, texts: ForgetTexts) -> ChosenParts:
    """Adds what replaced a past statement that is meant: "where I live" means "I moved to Bonn.", too."""
    for key in [each for each in chosen.parts if isinstance(each, tuple)]:
        current = (texts.memory_of(key), 0)
        if current not in chosen.parts and current in texts.memories:
            was = {part.text for part in texts.parts[key]}
            new = {place for place, part in enumerate(texts.parts[current]) if part.text not in was}
            chosen.add(current, new, "replaced what is meant")
    return chosen


def _chase_names(parsed: ForgetQuery, chosen: ChosenParts, texts: ForgetTexts) -> None:
    """Adds every place of a name that is to be forgotten."""
    asked = {word for name in parsed.names for word in name}
    chosen_texts = [texts.parts[key][index].text for key, places in chosen.parts.items() for index in places]
    names = {name[-1] for text in chosen_texts for name in forget_query.names_in(f"of {text}") if not asked & set(name)}
    if not names:
        return
    query = ForgetQuery((), tuple((each,) for each in sorted(names)), frozenset(), everything=True)
    for keys in (texts.memories, texts.turns):
        matches = forget_matching.match(query, texts.joined(keys))
        for key, reason in matches.meant.items():
            chosen.add(key, forget_matching.meant_parts(query, texts.parts[key]), reason)


def spread(chosen: ChosenParts, texts: ForgetTexts, named: ForgetQuery | None = None) -> ChosenParts:
    """Adds sentences that say the same elsewhere, those that depend on them, and the assistant's replies to them.
    `named`: the query asks to forget a name."""
    if named is not None:
        _chase_names(named, chosen, texts)
    while True:
        chosen_parts = [texts.parts[key][index] for key, places in chosen.parts.items() for index in places]
        keys = {forget_matching.normalise(part.text) for part in chosen_parts if not part.is_context}
        added = False
        for key, parts in texts.parts.items():
            meant = {
                index
                for index, part in enumerate(parts)
                for text in [forget_matching.normalise(part.text)]
                if (text in keys if not part.is_context else any(len(each) >= BRIEF and each in text for each in keys))
            }
            if texts.by_assistant(key):
                meant |= {p for p, part in enumerate(parts) if any(share(each, part.text) >= ALIKE for each in keys)}
            if meant:
                added |= chosen.add(key, forget_matching.with_dependents(parts, meant), "says it, too")
        for key in [each for each in chosen.parts if not isinstance(each, tuple)]:
            turn = texts.turns[key]
            after = texts.turn_at.get((turn.conversation_id, turn.turn_index + 1))
            if after is None or texts.by_assistant(key) or not texts.by_assistant(after):
                continue
            words = " ".join(texts.parts[key][index].text for index in chosen.parts[key])
            meant = {p for p, part in enumerate(texts.parts[after]) if forget_matching.echoes(words, part.text)}
            if meant:
                added |= chosen.add(after, forget_matching.with_dependents(texts.parts[after], meant), "replies to it")
        if not added:
            return chosen


BRIEF = 8
"""The length of a sentence from which other texts may repeat it."""
