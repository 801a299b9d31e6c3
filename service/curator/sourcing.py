"""What a model's facts are held against: the messages, the turns before them, who speaks, and what is known.

A model gives texts. Where one came from is read off the clause that shares most of its content words; a tie goes to the
message that the model named, then to the user, then to the later message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from zoneinfo import ZoneInfo

from service.domain.temporal import Mention
from service.domain.text import CleanText
from service.language import marks, sentences, temporal
from service.language.common_words import FUNCTION_WORDS
from service.language.marks import Clause
from service.language.talk import USER, Utterance, replies, worth

UTC_ZONE = ZoneInfo("UTC")

CORRECTABLE = 6
"""Clauses of the speaker, from the last on, that a correction may be about."""

ENGLISH_SHARE, TELLING_WORDS = 0.15, 4
"""Share of function words from which a text is English; shorter ones are taken for English."""


@dataclass(frozen=True, slots=True)
class PlacedClause:
    """A clause of a turn. `place`: of the turn among all of them, the ones before the messages included."""

    place: int
    said: Utterance
    clause: Clause
    correction: bool = False


@dataclass(frozen=True)
class SourceTurns:
    """`messages`: what facts are taken from. `before`: the last turns of the conversation, oldest first. `known`:
    memories near the messages. Relative dates are read on the wall clock of `zone`."""

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
    def clauses(self) -> list[PlacedClause]:
        """The clauses of all turns, in order, and with a yes or no to a question the statement that it makes."""
        turns = self.turns
        found = [each for place, said in enumerate(turns) for each in _of_turn(place, said)]
        for place, (asking, said) in enumerate(pairwise(turns), 1):
            found.extend(PlacedClause(place, said, clause) for clause in _declared(asking, said))
        for at, each in enumerate(found):
            if each.correction:
                found.extend(_corrected(each, found[:at]))
        return found

    @cached_property
    def clauses_with(self) -> dict[str, list[int]]:
        """Where in `clauses` each content word stands."""
        found: dict[str, list[int]] = {}
        for at, each in enumerate(self.clauses):
            for word in each.clause.words:
                found.setdefault(word, []).append(at)
        return found

    @cached_property
    def speakers(self) -> frozenset[str]:
        """The names of those who speak, casefolded."""
        return frozenset(each.speaker.casefold() for each in self.turns)

    @cached_property
    def speaker_words(self) -> frozenset[str]:
        """The stems of their names."""
        return marks.content_words(" ".join([USER, *dict.fromkeys(each.speaker for each in self.turns)]))

    @cached_property
    def _told(self) -> dict[Utterance, str]:
        return {}

    def told_in(self, turn: Utterance, bare: Callable[[str], str]) -> str:
        """The bare text of a turn between full stops, made once."""
        if turn not in self._told:
            self._told[turn] = f". {bare(turn.text)}. "
        return self._told[turn]

    @cached_property
    def text(self) -> str:
        """Everything that was said, with the names of who said it."""
        return "\n".join(f"{each.speaker} ({each.role}): {each.text}" for each in self.turns)

    @cached_property
    def mentions(self) -> list[tuple[int, Mention]]:
        """The times that the turns name, each at the time its turn was said."""
        return [
            (place, mention)
            for place, each in enumerate(self.turns)
            if temporal.may_have_time(each.text)
            for mention in temporal.find(each.text, each.said_at, self.zone)
        ]

    @cached_property
    def in_english(self) -> bool:
        """Whether enough of the messages' words are function words of English."""
        words = [word.lower() for each in self.messages for word in worth.WORD.findall(each.text.replace("’", "'"))]
        return len(words) < TELLING_WORDS or sum(map(FUNCTION_WORDS.__contains__, words)) >= ENGLISH_SHARE * len(words)

    def nearest(self, text: str, message: int | None = None) -> list[PlacedClause]:
        """The clauses that share most content words with a text, all of one turn; none if no clause shares any."""
        words = marks.content_words(text)
        if (words, message) not in self._nearest:
            self._nearest[words, message] = self._rank(words, message)
        return self._nearest[words, message]

    @cached_property
    def _nearest(self) -> dict[tuple[frozenset[str], int | None], list[PlacedClause]]:
        return {}

    def _rank(self, words: frozenset[str], message: int | None) -> list[PlacedClause]:
        named = None if message is None else message + len(self.before)
        ranked = [
            ((len(words & each.clause.words), each.place == named, not each.said.by_assistant, each.place), each)
            for each in (
                self.clauses[at] for at in sorted({at for word in words for at in self.clauses_with.get(word, ())})
            )
        ]
        best = max((rank for rank, _ in ranked), default=None)
        return [each for rank, each in ranked if rank == best]

    def mentions_near(self, nearest: Sequence[PlacedClause]) -> list[Mention]:
        """The times that the clauses name, else those that their turns do."""
        inside = [
            mention
            for place, mention in self.mentions
            if any(each.place == place and each.clause.start <= mention.start < each.clause.end for each in nearest)
        ]
        places = {each.place for each in nearest}
        return inside or [mention for place, mention in self.mentions if place in places]


def _of_turn(place: int, said: Utterance) -> list[PlacedClause]:
    found: list[PlacedClause] = []
    corrected = False
    for start, end in sentences.split(said.text):
        sentence = said.text[start:end]
        corrects = corrected or (not said.by_assistant and replies.is_correction(sentence))
        corrected = corrects and not marks.content_words(
            replies.LEAD.sub("", sentence)
        )  # "No, sorry." is about what follows
        for clause in marks.clauses(sentence):
            moved = Clause(
                start + clause.start, start + clause.end, clause.text, clause.words, clause.denials, clause.marks
            )
            anew = corrects or (not said.by_assistant and replies.is_correction(clause.text))
            found.append(PlacedClause(place, said, moved, anew))
    return found


def _corrected(correction: PlacedClause, told: Sequence[PlacedClause]) -> list[PlacedClause]:
    """What the speaker said before, with the value that the correction names."""
    own = [each for each in told if each.said.speaker == correction.said.speaker and not each.correction]
    meant = (replies.corrected(each.clause.text, correction.clause.text) for each in reversed(own[-CORRECTABLE:]))
    stated = next((each for each in meant if each), None)
    clauses: Sequence[Clause] = marks.clauses(stated) if stated else ()
    return [PlacedClause(correction.place, correction.said, clause) for clause in clauses]


def _declared(asking: Utterance, said: Utterance) -> Sequence[Clause]:
    """The statement that a yes or no makes of the question before it."""
    if asking.speaker == said.speaker:
        return []
    spans, first = sentences.split(asking.text)[-1:], sentences.split(said.text)[:1]
    if not spans or not first:
        return []
    stated = replies.declared(asking.text[slice(*spans[0])], said.text[slice(*first[0])])
    return marks.clauses(stated) if stated else []
