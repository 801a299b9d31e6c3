"""Facts of a conversation without a model: each message worth keeping, as it was said.

"Ann: I moved to Lisbon last month (October 2026)." A message that cannot be understood alone follows a quotation of
what it refers to: "Assistant asked: Shall we say Friday? User: ok". Nothing is cut out of a sentence and nothing
reworded, so nothing is misreported; dates are added in brackets where the words say which day is meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from service.domain.fact import Fact
from service.domain.text import CleanText
from service.language import sentences, text_values
from service.language.lexemes import lexemes
from service.language.talk import speech_acts
from service.language.talk.dates import date_expressions
from service.language.talk.passages import Passage, passages

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
USER, ASSISTANT = "User", "Assistant"
SILENT_ROLES = frozenset({"system", "developer", "tool", "function"})
ASSISTANT_ROLES = frozenset({"assistant", "ai", "model", "bot"})


@dataclass(frozen=True, slots=True)
class Utterance:
    """One redacted message. `said_at`: aware, the moment that relative dates mean. `stands_alone`: it is kept without a
    quotation of what it refers to."""

    role: str
    text: CleanText
    name: str | None = None
    said_at: datetime = EPOCH
    stands_alone: bool = False

    @property
    def speaker(self) -> str:
        """The name in front of a kept message."""
        return self.name or (ASSISTANT if self.by_assistant else USER)

    @property
    def by_assistant(self) -> bool:
        return self.role.lower() in ASSISTANT_ROLES

    @property
    def is_silent(self) -> bool:
        """Whether the message comes from a system or a tool, so that nobody says it."""
        return self.role.lower() in SILENT_ROLES


_BLANKS: Final = re.compile(" {2,}")

_SPEAKER: Final = r"(?P<name>[^\W\d_][\w .'\u2019-]{0,60}?)"
_SAYS: Final = r" (?:asked|said): "
_SPOKEN: Final = re.compile(rf"{_SPEAKER}(?:{_SAYS}|: )")
_REFERS: Final = re.compile(
    rf"{_SPEAKER}{_SAYS}(?P<context>.*?) (?P<by>[^\W\d_a-z][\w'\u2019-]*(?: [^\W\d_a-z][\w'\u2019-]*)*): ", re.DOTALL
)
MAX_QUOTED_CHARS = 1_000
"""Characters among which the quotation in front of a text ends."""

OWN_TURNS = 6
"""The number of turns in which the speaker's last statements are looked for."""

OWN_PARTS = 50
"""Parts of those turns, at most: a pasted message may have thousands."""

SAME_TALK = timedelta(minutes=30)
"""How long after another turn a message may still refer to it."""


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """A passage, the index of its turn among all of them, and its words with who said them."""

    turn: int
    passage: Passage
    utterance: Utterance

    @property
    def text(self) -> str:
        return self.utterance.text


@dataclass(frozen=True, slots=True)
class Quotation:
    """What a message refers to, as it is quoted in front of the message, and its span in its turn."""

    text: str
    turn: int
    start: int
    end: int


def _quote_referent(before: Sequence[Said], said: Said) -> Quotation:
    """The quotation of a turn that a reply refers to, after the quotation that this turn needs itself."""
    start, end = speech_acts.find_referent(said.text)
    text = said.text[start:end]
    quoted, index = _attribute(said, text), before.index(said)
    if index and (speech_acts.names_nobody(text) or speech_acts.replies(text)):
        earlier = before[index - 1]
        left, right = speech_acts.find_referent(earlier.text)
        quoted = f"{_attribute(earlier, earlier.text[left:right])} {quoted}"
    return Quotation(quoted, said.turn, said.passage.start + start, said.passage.start + end)


def _attribute(said: Said, text: str) -> str:
    verb = "asked" if speech_acts.asks(text) else "said"
    return f"{said.utterance.speaker} {verb}: {' '.join(text.split())}"


def read(said: Sequence[Utterance], before: Sequence[Utterance], zone: ZoneInfo) -> list[Fact]:
    """The facts of `said`, in order. `before`: the last turns of the conversation, only looked back to. Pure."""
    turns = [
        part
        for index, utterance in enumerate((*before, *said))
        if not utterance.is_silent
        for part in _parts(index, utterance)
    ]
    facts: list[Fact] = []
    kept = set[str]()
    for at, part in enumerate(turns):
        quote = _quote(turns[max(0, at - OWN_PARTS) : at], part, kept, zone, first=len(before))
        if quote is not None:
            kept |= speech_acts.content_words(quote.text)
            if part.turn >= len(before):
                sender = said[part.turn - len(before)]  # also of a transcript in which somebody else speaks
                facts.append(replace(quote, by_assistant=sender.by_assistant))
    return facts


def _parts(turn: int, said: Utterance) -> Iterator[Said]:
    for passage in passages(said.text):
        if passage.role == "system":
            continue
        text = CleanText(said.text[passage.start : passage.end])
        role = passage.role if passage.role == "assistant" else said.role
        name = passage.label or (said.name if role == said.role else None)
        yield Said(turn, passage, replace(said, role=role, name=name, text=text))


def _quote(before: Sequence[Said], said: Said, kept: Set[str], zone: ZoneInfo, *, first: int) -> Fact | None:
    """The fact that a passage states, None if it is not kept. Messages count from the turn `first`."""
    if said.utterance.by_assistant:
        context = None
        if not speech_acts.is_report(said.text, kept):
            return None
    else:
        context = None if said.utterance.stands_alone else _find_antecedent(before, said)
        if not speech_acts.is_worth_keeping(said.text, answers_something=context is not None):
            return None
    own = date_expressions(said.text, said.utterance.said_at, zone) if said.turn >= first else said.text
    if said.utterance.stands_alone:  # a request was blanked out
        own = _BLANKS.sub(" ", own.strip())
    own = f"{said.passage.heading} {own}" if said.passage.heading else own
    text = f"{said.utterance.speaker}: {own}"
    text = f"{context.text} {text}" if context is not None else text
    also = (context.turn - first, context.start, context.end) if context and context.turn >= first else None
    return Fact(
        text=CleanText(text),
        confidence=speech_acts.rate_confidence(said.text),
        correction=speech_acts.corrects(said.text),
        message=said.turn - first,
        start=said.passage.start,
        end=said.passage.end,
        also=(also,) if also else (),
    )


def _find_antecedent(before: Sequence[Said], message: Said) -> Quotation | None:
    """The earlier passage a message needs: the one it corrects or answers, or that names the "he" or "she" in it."""
    if message.passage.heading or not before or (before[-1].turn == message.turn and not message.passage.label):
        return None
    last = before[-1]
    other = last.utterance.speaker != message.utterance.speaker
    near = message.utterance.said_at - last.utterance.said_at <= SAME_TALK
    fragment = other and near and speech_acts.is_fragment(message.text)
    asked = speech_acts.asks(last.text)
    corrects = speech_acts.corrects(message.text)
    if corrects or (fragment and not asked):
        replaced = _find_replaced(before, message)
        if replaced is not None:
            return replaced
    topics = [topic for _, topic in speech_acts.find_topics(message.text) if not speech_acts.refers(topic)]
    if corrects and not asked and any(map(lexemes, topics)):
        return None
    if fragment or (other and (speech_acts.replies(message.text) or speech_acts.answers(message.text, last.text))):
        return _quote_referent(before, last)
    if speech_acts.names_nobody(message.text):
        if other and near:
            return _quote_referent(before, last)
        named = next((one for one in _own_statements(before, message) if text_values.names(f"x {one.text}")), None)
        return _quote_referent(before, named) if named is not None else None
    return None


def _own_statements(before: Sequence[Said], message: Said) -> list[Said]:
    """The last statements of the same speaker, the latest first."""
    own = [one for one in before if one.utterance.speaker == message.utterance.speaker]
    return [one for one in reversed(own) if message.turn - one.turn <= OWN_TURNS and not speech_acts.asks(one.text)]


def _find_replaced(before: Sequence[Said], message: Said) -> Quotation | None:
    """The last sentence that has one value of the kind that the message gives, of the same thing. The value is left out
    if the message corrects it. An assistant may repeat it, so the speaker's own last statement comes first."""
    topics, own = speech_acts.find_topics(message.text), _own_statements(before, message)
    for one in (*own[:1], *before[-1:], *own[1:]):
        for start, end in sentences.split(one.text):
            sentence = one.text[start:end]
            given = [value for value, topic in topics if speech_acts.is_about(topic, sentence)]
            wrong = text_values.find_replacement(given, sentence)
            if wrong is not None:
                if not speech_acts.corrects(message.text):
                    return _quote_referent(before, one)
                text = f"{sentence[: wrong.start]}\u2026{sentence[wrong.end :]}"
                begin = one.passage.start
                return Quotation(_attribute(one, text), one.turn, begin + start, begin + end)
    return None


@dataclass(frozen=True, slots=True)
class KeptText:
    """A kept text taken apart: the words that are quoted in front, if any, and where the quotation ends; who speaks, if
    anybody is named; and where the speaker's own words begin."""

    context: str
    context_end: int
    speaker: str | None
    start: int


def take_apart(text: str) -> KeptText:
    """The parts of a text such as `read` makes, or of any other: "Ann said: ... User: ok"."""
    if refers := _REFERS.match(text, 0, MAX_QUOTED_CHARS):
        return KeptText(refers["context"], refers.start("by"), refers["by"], refers.end())
    spoken = None if speech_acts.LEAD.match(text) else _SPOKEN.match(text)
    return KeptText("", 0, spoken["name"], spoken.end()) if spoken else KeptText("", 0, None, 0)
