"""The message that a model's fact came from, and whether it was given there as a correction.

A model gives texts. Whose words they are decides whether they can be an echo; the cue before them ("actually", "no, I
meant") decides whether what they contradict was a mistake. Both are read off the sentence that shares most of the
fact's content words; a tie goes to the user, then to the later message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from service.domain.fact import Fact
from service.domain.text import CleanText
from service.language import sentences, talk
from service.language.facts import cues, echo, person

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ASSISTANTS = frozenset({"assistant", "ai", "model", "bot"})


@dataclass(frozen=True, slots=True)
class SourceMessage:
    """One redacted message, said at an aware moment."""

    role: str
    text: CleanText
    name: str | None = None
    said_at: datetime = EPOCH

    @property
    def speaker(self) -> str:
        """The name that stands in front of what is quoted."""
        return self.name or (talk.ASSISTANT if self.by_assistant else talk.USER)

    @property
    def by_assistant(self) -> bool:
        return self.role.lower() in ASSISTANTS


@dataclass(frozen=True, slots=True)
class _Sentence:
    message: int
    words: frozenset[str]
    correction: bool
    by_user: bool


def placed(facts: Sequence[Fact], messages: Sequence[SourceMessage]) -> tuple[Fact, ...]:
    """The facts with `by_assistant`, and with `message` and `correction` where those are missing and can be found.
    Pure; some milliseconds for a long conversation."""
    if len(messages) == 1 and not _may_correct(messages[0]):
        return tuple(
            replace(fact, message=0 if fact.message is None else fact.message, by_assistant=messages[0].by_assistant)
            for fact in facts
        )
    candidates = [sentence for place, message in enumerate(messages) for sentence in _sentences(place, message)]
    return tuple(_placed(fact, candidates) for fact in facts)


def _placed(fact: Fact, candidates: Sequence[_Sentence]) -> Fact:
    words = echo.content_words(fact.text)
    near = [(len(words & each.words), each.by_user, each.message) for each in candidates]
    shared, by_user, message = max(near, default=(0, False, 0))
    if not shared:
        return fact
    if fact.message is not None:
        return replace(fact, by_assistant=not by_user)
    corrects = by_user and any(
        each.correction and each.message == message and words & each.words for each in candidates
    )
    return replace(fact, message=message, correction=fact.correction or corrects, by_assistant=not by_user)


def _may_correct(message: SourceMessage) -> bool:
    parts = (message.text[start:end] for start, end in sentences.split(message.text))
    return not message.by_assistant and any(cues.strip(person.expand(part)).correction for part in parts)


def _sentences(place: int, message: SourceMessage) -> list[_Sentence]:
    found, cue = [], False
    for start, end in sentences.split(message.text):
        bare = cues.strip(person.expand(message.text[start:end]))
        correction = bare.correction or cue
        cue = correction and not bare.text  # "No, sorry." is about what follows
        words = echo.content_words(message.text[start:end])
        found.append(_Sentence(place, words, correction, not message.by_assistant))
    return found
