"""The quotes of a conversation that are worth remembering: who said what, complete enough to be read alone.

A quote is a sentence as it was said, or the two or three that only together make sense, with the speaker in front and a
date behind each expression that needs one: "Ann: I moved to Lisbon last month (October 2026)." Nothing is retold, so
nothing can be told wrongly. A sentence whose pronoun hangs takes along what it hangs on: the sentence before, or what
the other one had asked.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

from service.language import sentences
from service.language.talk import blocks, references, replies, worth
from service.language.talk.dates import dated
from service.language.talk.worth import WORD

MAX_SENTENCES, MAX_CHARS = 3, 600
MIN_PIECE, MAX_PIECE = 3, 8
"""Words of the statements that a sentence is cut into."""

STRUNG = re.compile(
    r"\s*(?:[,;]\s*(?:and |but |also )?|\s(?:and|but) )(?=(?:I|I['’](?:m|ve|ll|d)|my|we|our)\b)", re.IGNORECASE
)
SUBORDINATE = re.compile(
    r"\b(?:if|when|whenever|while|because|since|as|although|though|unless|until|before|after|so|that|who|which|where"
    r"|why|how"
    r"|what|whether|think|thought|know|believe|guess|hope|wish|said|says|told)\b|\?",
    re.IGNORECASE,
)
MAX_ASKED_CHARS = 200
LONG_ANSWER_CHARS = 300
"""An answer of an assistant from which on what was asked is remembered."""

OWN_TURNS = 4
"""Turns that are looked back to for what the speaker told last."""

MAX_SHORT_QUESTION, MAX_FRAGMENT = 3, 8
"""Words of a question that says too little by itself, and of an answer that may be no sentence."""

CORRECTABLE = 6
"""Sentences of the speaker, from the last on, that a correction may be about."""

USER, ASSISTANT = "User", "Assistant"
SILENT_ROLES = frozenset({"system", "developer", "tool", "function"})
ASSISTANT_ROLES = frozenset({"assistant", "ai", "model", "bot"})
ITEM = re.compile(r"\s*(?:[-*•–+]|\d{1,2}[.)])\s+|\s*\[[ xX]?\]\s+")
KEY_VALUE = re.compile(r"^\W*[^\W\d_][\w /-]{1,30}:\s+\S", re.MULTILINE)
HEADING = re.compile(r"[^.!?]{2,80}:\s*\**$|\s*#{1,6}\s+[^.!?]{2,80}$|\*\*[^*]{2,80}\*\*:?$")
DOUBT = re.compile(
    r"\b(?:maybe|perhaps|might|could be|probably|possibly|i think|i guess|i suppose|not sure|considering"
    r"|thinking (?:of|about)|i hope|hopefully)\b",
    re.IGNORECASE,
)
CERTAIN, UNCERTAIN = 0.95, 0.5
"""Confidence of what was said outright, and of what was said with a doubt."""

PAST = re.compile(
    r"\b(?:was|were|had|did|went|got|took|made|met|found|bought|started|lost|came|gave|saw|\w{3,}ed)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Utterance:
    """A redacted message. `speaker`: the name in front of a quote. `said_at`: aware, the moment relative dates mean."""

    role: str
    text: str
    speaker: str
    said_at: datetime

    @property
    def by_assistant(self) -> bool:
        return self.role.lower() in ASSISTANT_ROLES


@dataclass(frozen=True, slots=True)
class Quote:
    """A fact: `text` as readers see it; `message` and the half-open span say where it was said. `confidence` 0..1.

    `said_before`: message and span of what another one said that it quotes as well, where that is in the same request.
    """

    text: str
    message: int
    start: int
    end: int
    speaker: str
    confidence: float = CERTAIN
    correction: bool = False
    said_before: tuple[int, int, int] | None = None


@dataclass(frozen=True, slots=True)
class _Context:
    """What another one said before a quote, as it is put into brackets; `place`: which turn, with its span."""

    text: str
    place: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Unit:
    """A sentence or list item. `heading`: the line it stands under. `speaker`: whom it quotes, None for the sender.
    `listed`: one of several lines of the form "key: value", or an item under a heading."""

    start: int
    end: int
    text: str
    heading: str = ""
    speaker: str | None = None
    listed: bool = False

    @property
    def readable(self) -> str:
        return f"{self.heading} {self.text}" if self.heading else self.text


def read(said: Sequence[Utterance], before: Sequence[Utterance], zone: ZoneInfo) -> list[Quote]:
    """The quotes of `said`, in order. `before`: the last turns of the conversation, only looked back to. Pure."""
    everything = [*before, *said]
    names = _names(everything)
    found: list[Quote] = []
    for place in range(len(before), len(everything)):
        quotes = _Reader(everything, place, names, zone).quotes()
        for quote in quotes:
            found = [each for each in found if not _is_corrected(each, quote, said, place - len(before))]
            found.append(_placed(quote, place, len(before)))
    return found


def _placed(quote: Quote, place: int, before: int) -> Quote:
    """The quote with its places counted from the first message of the request."""
    told = quote.said_before
    inside = told is not None and told[0] >= before
    earlier = (told[0] - before, *told[1:]) if told is not None and inside else None
    return replace(quote, message=place - before, said_before=earlier)


def _names(turns: Sequence[Utterance]) -> frozenset[str]:
    """The speakers' names in lower case, with what they may be called for short ("Mel")."""
    full = {part.casefold() for each in turns for part in each.speaker.split()[:1]}
    return frozenset(name[:length] for name in full for length in range(min(3, len(name)), len(name) + 1))


def _is_corrected(earlier: Quote, quote: Quote, said: Sequence[Utterance], place: int) -> bool:
    """Whether a quote of the same request is the wrong statement that the new one corrects."""
    if not quote.correction or earlier.speaker != quote.speaker:
        return False
    same = set(WORD.findall(earlier.text.casefold())) & set(WORD.findall(quote.text.casefold()))
    return len(same) * 3 >= len(set(WORD.findall(quote.text.casefold()))) * 2


class _Reader:
    """One message with the turns before it."""

    def __init__(self, turns: Sequence[Utterance], place: int, names: Collection[str], zone: ZoneInfo) -> None:
        self.turns, self.place, self.names, self.zone = turns, place, names, zone
        self.said = turns[place]
        self.units = _units(self.said.text)

    def quotes(self) -> list[Quote]:
        if self.said.role.lower() in SILENT_ROLES:
            return []
        found: list[Quote] = []
        answered = self._answer()
        at = 0
        if answered is not None:
            found.append(answered)
            at = 1
        while at < len(self.units):
            if replies.is_correction(self.units[at].text) and (corrected := self._corrected(at)) is not None:
                found.append(corrected)
                at += 1
            elif self._is_kept(at):
                end = self._end_of_group(at)
                quote = self._quote(at, end)
                found.extend([quote] if quote else [])
                at = end
            else:
                at += 1
        asked = self._asked()
        return [*found, asked] if asked else found

    def _is_kept(self, at: int) -> bool:
        unit = self.units[at]
        if self.said.by_assistant and not unit.speaker:
            return self._is_kept_of_assistant(unit)
        if unit.listed:
            return worth.features(unit.text, self.names).topics > 0 and worth.is_statement(unit.text, self.names)
        from_worth = worth.KEPT_FROM_USER if self.said.speaker == USER else worth.KEPT_FROM
        return worth.is_worth_keeping(unit.readable, self.names, from_worth)

    def _is_kept_of_assistant(self, unit: _Unit) -> bool:
        """What an assistant did or promised itself, in few words: "I've booked your flight for 3 May."; no advice."""
        found = worth.features(unit.text, self.names)
        brief = len(self.said.text) < LONG_ANSWER_CHARS and found.first_person
        concrete = found.number or found.name or found.time
        return brief and concrete and worth.is_worth_keeping(unit.readable, self.names)

    def _end_of_group(self, at: int) -> int:
        """The end of the run of sentences that belong together, from the kept one at `at`."""
        end, chars = at + 1, len(self.units[at].text)
        while end < len(self.units) and end - at < MAX_SENTENCES:
            last, unit = self.units[end - 1], self.units[end]
            chars += len(unit.text)
            kept = self._is_kept(end)
            tells_more = references.hangs(unit.text) and worth.is_statement(unit.text, self.names)
            if chars > MAX_CHARS or unit.speaker != last.speaker or unit.heading or replies.is_correction(unit.text):
                break
            if not (kept and self._belong_together(last, unit)) and not (
                tells_more and not kept and self._is_telling(unit)
            ):
                break
            end += 1
        return end

    def _belong_together(self, last: _Unit, unit: _Unit) -> bool:
        """Whether a kept sentence goes on with the one before: it refers to it, or both tell what happened."""
        bare = worth.bare(unit.text, self.names)
        if references.continues(bare) or (PAST.search(last.text) and PAST.search(bare)):
            return True
        found = worth.features(bare, self.names)
        return found.words > worth.MAX_STATE_WORDS and not (found.name or found.number or found.time)

    def _is_telling(self, unit: _Unit) -> bool:
        """Whether a sentence below the threshold still adds something to the one before ("She works nights")."""
        return worth.features(worth.bare(unit.text, self.names), self.names).topics >= 2

    def _quote(self, at: int, end: int) -> Quote | None:
        """The sentences from `at` to `end` as a quote, with what their first one hangs on; None without."""
        context = None
        if not self.units[at].heading and references.hangs(self._bare(self.units[at])):
            begin = self._begin_of(at)
            context = self._context() if begin is None else None
            if begin is None and context is None and not self._names_something(self.units[at]):
                return None
            at = at if begin is None else begin
        units = self.units[at:end]
        text = units[0].readable if len(units) == 1 else self._between(units)
        first = text if units[0].heading else worth.bare(text, self.names)
        return self._as_quote(first, units[0].start, units[-1].end, context, units[0].speaker)

    def _bare(self, unit: _Unit) -> str:
        return worth.bare(unit.text, self.names)

    def _begin_of(self, at: int) -> int | None:
        """The sentence before `at`, of the same voice, from which on the text can stand alone; None without one."""
        for begin in range(at - 1, max(at - MAX_SENTENCES, -1), -1):
            unit = self.units[begin]
            if unit.speaker != self.units[at].speaker or unit.heading or worth.is_question(unit.text):
                return None
            if len(WORD.findall(self._bare(unit))) >= 2 and not references.hangs(self._bare(unit)):
                return begin
        return None

    def _between(self, units: Sequence[_Unit]) -> str:
        """What was said from the first unit to the last, as it stands in the message."""
        said = self.said.text[units[0].start : units[-1].end]
        return f"{units[0].heading} {said}" if units[0].heading else said

    def _names_something(self, unit: _Unit) -> bool:
        found = worth.features(unit.text, self.names)
        return found.name or found.number or (found.time and found.topics >= 2)

    def _context(self) -> _Context | None:
        """What the message goes on with: the question of the turn before, or what was told last; None without.

        A question that cannot stand alone ("Which line?") has what the speaker had told before in front.
        """
        question = self._question_before()
        told = self._told_before()
        if question is None:
            return told
        asked = self._as_context(self.place - 1, [question])
        standing = len(WORD.findall(question.text)) > MAX_SHORT_QUESTION and not references.hangs(self._bare(question))
        if standing or told is None or told.place == self.place - 1:
            return asked if standing else None
        return replace(told, text=f"{told.text}, {asked.text}")

    def _told_before(self) -> _Context | None:
        """The last statement that can stand alone: the speaker's own of the last turns, else of the turn before."""
        places = list(range(self.place - 1, max(self.place - OWN_TURNS - 1, -1), -1))
        own = [place for place in places if self.turns[place].speaker == self.said.speaker]
        for place in [*own, *places[:1]]:
            if self.turns[place].role.lower() in SILENT_ROLES:
                continue
            units = [unit for unit in _units(self.turns[place].text) if worth.is_statement(unit.text, self.names)]
            for begin in range(len(units) - 1, max(len(units) - 1 - MAX_SENTENCES, -1), -1):
                bare = self._bare(units[begin])
                if len(WORD.findall(bare)) >= 2 and not references.hangs(bare):
                    return self._as_context(place, units[begin:])
        return None

    def _as_context(self, place: int, units: Sequence[_Unit]) -> _Context:
        """Sentences of a turn before as what was said before a quote."""
        other = self.turns[place]
        told = worth.bare(other.text[units[0].start : units[-1].end], self.names)[:MAX_ASKED_CHARS]
        question = worth.is_question(units[-1].text)
        by = "" if other.speaker in (self.said.speaker, ASSISTANT) else f"{other.speaker} "
        verb = "asked by " if question and by else "asked " if question else "after "
        return _Context(f"{verb}{by}“{' '.join(told.split())}”", place, units[0].start, units[-1].end)

    def _question_before(self) -> _Unit | None:
        """The question that the turn before ends with, if another one asked it."""
        if not self.place or self.turns[self.place - 1].speaker == self.said.speaker:
            return None
        units = _units(self.turns[self.place - 1].text)
        return units[-1] if units and worth.is_question(units[-1].text) else None

    def _answer(self) -> Quote | None:
        """The first sentence as the answer to the question before, where it does not stand by itself."""
        question = self._question_before()
        if question is None or not self.units or self.said.by_assistant:
            return None
        first = self.units[0]
        declared = replies.declared(question.text, first.text)
        if declared is not None:
            more = self._bare(first)
            telling = len(first.text.split()) > 3 and worth.worth(more, self.names) >= 1
            return self._as_quote(f"{declared} {more}" if telling else declared, first.start, first.end)
        context = self._context() if self._answers(first, question.text) else None
        return self._as_quote(first.text, first.start, first.end, context) if context else None

    def _answers(self, first: _Unit, question: str) -> bool:
        """Whether a sentence that cannot stand alone tells what the question asks for."""
        bare = self._bare(first)
        found = worth.features(bare, self.names)
        if replies.is_offer(question) or not worth.is_statement(first.text, self.names):
            return False
        if not (found.topics > 1 or found.number or found.rare) or not replies.OPEN_QUESTION.search(question):
            return False
        alone = self._is_kept(0) and not references.hangs(bare) and worth.OF_SPEAKER.match(bare) is not None
        return not alone and (found.words <= MAX_FRAGMENT or references.hangs(bare))

    def _corrected(self, at: int) -> Quote | None:
        """The statement that the sentence at `at` corrects, as it should have been."""
        unit = self.units[at]
        own = [each.text for each in self.units[:at]]
        earlier = [
            each.text
            for turn in self.turns[: self.place]
            if turn.speaker == self.said.speaker
            for each in _units(turn.text)
        ]
        for sentence in reversed([*earlier, *own][-CORRECTABLE:]):
            bare = worth.bare(sentence, self.names)
            meant = replies.corrected(bare, unit.text) if worth.is_statement(sentence, self.names) else None
            if meant is not None and meant != bare:
                return replace(self._as_quote(meant, unit.start, unit.end), correction=True)
        rest = replies.LEAD.sub("", unit.text)
        if not worth.is_worth_keeping(rest, self.names):
            return None
        return replace(self._as_quote(rest, unit.start, unit.end), correction=True)

    def _asked(self) -> Quote | None:
        """What a user asked an assistant who answered at length."""
        after = self.turns[self.place + 1] if self.place + 1 < len(self.turns) else None
        if self.said.by_assistant or after is None or not after.by_assistant or len(after.text) < LONG_ANSWER_CHARS:
            return None
        spans = sentences.split(self.said.text)
        asking = [span for span in spans if not worth.is_statement(self.said.text[slice(*span)], self.names)]
        for start, end in [*asking, *spans]:
            text = worth.bare(self.said.text[start:end], self.names)
            if worth.features(text, self.names).topics >= 2:
                return Quote(f"{self.said.speaker} asked: {text[:MAX_ASKED_CHARS]}", 0, start, end, self.said.speaker)
        return None

    def _as_quote(
        self, text: str, start: int, end: int, context: _Context | None = None, quoted: str | None = None
    ) -> Quote:
        """The quote as readers see it. `quoted`: who said it, where the message itself quotes somebody."""
        speaker = quoted or self.said.speaker
        text = " ".join(text.split())
        text = text[:1].upper() + text[1:]
        shown = dated(text, self.said.said_at, self.zone) if quoted is None else text
        named = text.casefold().startswith(speaker.casefold()) and text[len(speaker) : len(speaker) + 1] in (
            " ",
            "'",
            "’",
        )
        front = f"{speaker}, {context.text}: " if context else "" if named else f"{speaker}: "
        confidence = UNCERTAIN if DOUBT.search(text) else CERTAIN
        place = (context.place, context.start, context.end) if context else None
        return Quote(f"{front}{shown}", 0, start, end, speaker, confidence, said_before=place)


def _units(text: str) -> list[_Unit]:
    """The sentences and list items of the spoken blocks of a message."""
    found: list[_Unit] = []
    heading = ""
    several = len(KEY_VALUE.findall(text)) > 1
    for block in blocks.spoken(text):
        for left, right in sentences.split(text[block.start : block.end]):
            start, end = block.start + left, block.start + right
            sentence = text[start:end]
            if HEADING.match(sentence):
                heading = sentence.strip(" *#")
                continue
            item = ITEM.match(sentence)
            pair = KEY_VALUE.match(sentence)
            if item is None and not pair:
                heading = ""
            start += item.end() if item else 0
            if (item and heading) or (pair and several):
                found.append(_Unit(start, end, text[start:end], heading, block.speaker, listed=True))
                continue
            pieces = _statements(text[start:end])
            found.extend(
                _Unit(start + a, start + b, text[start + a : start + b], heading, block.speaker) for a, b in pieces
            )
    return found


def _statements(sentence: str) -> list[tuple[int, int]]:
    """The spans of the short statements that a sentence strings together, each with its own "I" or "my" in front, so
    that each can change by itself; else the whole."""
    cuts = [0, *(found.end() for found in STRUNG.finditer(sentence)), len(sentence)]
    ends = [*(found.start() for found in STRUNG.finditer(sentence)), len(sentence)]
    pieces = [(start, end) for start, end in zip(cuts, ends, strict=False)]
    short = all(MIN_PIECE <= len(WORD.findall(sentence[a:b])) <= MAX_PIECE for a, b in pieces)
    alone = all(not references.hangs(sentence[a:b]) for a, b in pieces)
    if len(pieces) == 1 or not short or not alone or SUBORDINATE.search(sentence):
        return [(0, len(sentence))]
    return pieces
