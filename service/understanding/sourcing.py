"""The sources that a model's facts are checked against: messages, earlier turns, speakers, and known facts.

A model returns texts. The source of a text is the sentence that shares most of its content words; a tie goes to the
message that the model named, then to the user, then to the later message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from zoneinfo import ZoneInfo

from service.domain.fact import Fact
from service.domain.temporal import TimeMention
from service.domain.text import CleanText
from service.language import sentences, temporal
from service.language.lexemes import lexemes
from service.language.talk import USER, Utterance, read, speech_acts

UTC_ZONE = ZoneInfo("UTC")


@dataclass(frozen=True)
class SourceSentence:
    """A sentence of a turn. `turn`: the index of its turn among all of them, the ones before the messages included."""

    turn: int
    said: Utterance
    start: int
    end: int
    words: frozenset[str]

    @property
    def text(self) -> str:
        return self.said.text[self.start : self.end]


@dataclass(frozen=True)
class SourceTurns:
    """The turns that facts are checked against. `messages`: those that facts are taken from. `before`: the last turns
    of the conversation, oldest first. `known`: memories near the messages. Relative dates are read on the wall clock of
    `zone`."""

    messages: Sequence[Utterance]
    before: Sequence[Utterance] = ()
    known: Sequence[CleanText] = ()
    zone: ZoneInfo = UTC_ZONE

    @property
    def reference(self) -> datetime:
        """The moment that the messages are read at, also when a job reads them later: when the last was said."""
        return self.messages[-1].said_at

    @property
    def turns(self) -> tuple[Utterance, ...]:
        return (*self.before, *self.messages)

    @cached_property
    def sentences(self) -> list[SourceSentence]:
        """The sentences of all turns, in order."""
        return [
            SourceSentence(index, said, start, end, content_words(said.text[start:end]))
            for index, said in enumerate(self.turns)
            for start, end in sentences.split(said.text)
        ]

    @cached_property
    def speakers(self) -> frozenset[str]:
        """The names of those who speak, casefolded."""
        return frozenset(utterance.speaker.casefold() for utterance in self.turns)

    @cached_property
    def text(self) -> str:
        """Everything that was said, with the names of the speakers."""
        return "\n".join(f"{utterance.speaker} ({utterance.role}): {utterance.text}" for utterance in self.turns)

    @cached_property
    def quotes(self) -> list[Fact]:
        """The messages that the rules keep, as they were said."""
        return read(self.messages, self.before, self.zone)

    @cached_property
    def named(self) -> frozenset[str]:
        """The words, casefolded, that a name may consist of: those that were said, and those of the known memories."""
        return frozenset(re.findall(r"[^\W_]+", "\n".join((self.text, USER, *self.known)).casefold()))

    @cached_property
    def mentions(self) -> list[tuple[int, TimeMention]]:
        """The times that the turns name, each at the time its turn was said."""
        return [
            (index, mention)
            for index, utterance in enumerate(self.turns)
            for mention in temporal.find(utterance.text, utterance.said_at, self.zone)
        ]

    def nearest(self, text: str, message: int | None = None) -> list[SourceSentence]:
        """The sentences that share most content words with a text, all of one turn; none if no sentence shares any."""
        words, named = content_words(text), None if message is None else message + len(self.before)
        ranked = [
            ((len(words & other.words), other.turn == named, not other.said.by_assistant, other.turn), other)
            for other in self.sentences
            if words & other.words
        ]
        best = max((rank for rank, _ in ranked), default=None)
        return [sentence for rank, sentence in ranked if rank == best]

    def mentions_near(self, nearest: Sequence[SourceSentence]) -> list[TimeMention]:
        """The times that the sentences name, else those that their turns do."""
        inside = [
            mention
            for turn, mention in self.mentions
            if any(sentence.turn == turn and sentence.start <= mention.start < sentence.end for sentence in nearest)
        ]
        turns = {sentence.turn for sentence in nearest}
        return inside or [mention for turn, mention in self.mentions if turn in turns]

    def is_agreed(self, sentence: SourceSentence) -> bool:
        """Whether another speaker agrees to a sentence in the turn after it: "Shall we say Friday?" / "ok"."""
        after = sentence.turn + 1
        if after >= len(self.turns) or self.turns[after].speaker == sentence.said.speaker:
            return False
        return speech_acts.agrees(self.turns[after].text) or speech_acts.answers(self.turns[after].text, sentence.text)


def content_words(text: str) -> frozenset[str]:
    """The stems of a text's content words, without the name of a user who has none."""
    return frozenset(lexemes(text)) - {USER.casefold()}
