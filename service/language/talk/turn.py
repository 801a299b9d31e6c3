"""One message, read with the turns before it: which of its sentences are kept, and what each hangs on."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

from service.domain.text import CleanText
from service.language import attributes
from service.language.talk import references, replies, worth
from service.language.talk.dates import dated
from service.language.talk.units import Unit, units
from service.language.talk.worth import WORD

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
USER, ASSISTANT = "User", "Assistant"
SILENT_ROLES = frozenset({"system", "developer", "tool", "function"})
ASSISTANT_ROLES = frozenset({"assistant", "ai", "model", "bot"})

MAX_SENTENCES, MAX_CHARS, MAX_ASKED_CHARS = 3, 600, 200
LONG_ANSWER_CHARS = 300
"""An answer of an assistant from which on what was asked is remembered."""

MIN_ASKED_TOPICS = 2
MAX_REACTION = 2
"""Topic words that what was asked, or said in reply, has at least; and sentences of a reply."""

TELLING = 2.0
"""Worth from which on a statement explains another one; a mood explains nothing."""

MAX_SHORT_QUESTION, MAX_FRAGMENT = 3, 8
"""Words of a question that says too little by itself, and of an answer that may be no sentence."""

CORRECTABLE = 6
"""Sentences of the speaker, from the last on, that a correction may be about."""

THANKS = re.compile(r"\b(?:thanks|thank you|thx|cheers|congrats|congratulations)\b", re.IGNORECASE)
OWN_THING = re.compile(r"\b(?:your|the) \w{3,}|\w or \w", re.IGNORECASE)
"""What a short question is about, or lets one choose."""

DOUBT = re.compile(
    r"\b(?:maybe|perhaps|might|could be|probably|possibly|i think|i guess|i suppose|not sure|considering|thinking (?:of"
    r"|about)|i hope|hopefully)\b",
    re.IGNORECASE,
)
CERTAIN, UNCERTAIN = 0.95, 0.5
"""Confidence of what was said outright, and of what was said with a doubt."""

PAST = re.compile(
    r"\b(?:was|were|had|did|went|got|took|made|met|found|bought|started|lost|came|gave|saw"
    r"|(?!named|called|based|married|divorced|located|interested|retired)\w{3,}ed)\b",
    re.IGNORECASE,
)

JOINED = re.compile(r"^(?:and|plus)\b,? (?=\S+ \S)", re.IGNORECASE)
"""What only joins a sentence to the one before."""

Span = tuple[int, int, int]
"""The place of a turn, and a half-open span of its characters."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """One redacted message. `said_at`: aware, the moment that relative dates mean."""

    role: str
    text: CleanText
    name: str | None = None
    said_at: datetime = EPOCH

    @property
    def speaker(self) -> str:
        """The name that stands in front of what is quoted."""
        return self.name or (ASSISTANT if self.by_assistant else USER)

    @property
    def by_assistant(self) -> bool:
        return self.role.lower() in ASSISTANT_ROLES


@dataclass(frozen=True, slots=True)
class Context:
    """What was said before a piece, as it is put between speaker and words."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Piece:
    """Sentences of one speaker, said at `spans`, the first their own.

    `context`: what stands between the speaker and them. `goes_on`: they say too little alone: they hang on something
    that was told before (`hangs`), are a mood, or true of everybody. `own`: they tell of the speaker himself. `tells`:
    they are worth a fact where there is nothing to go on with. `replied`: the other one's reply stands in them.
    `retold`: they are not whole sentences as they were said.
    """

    speaker: str
    body: str
    spans: tuple[Span, ...]
    context: str = ""
    goes_on: bool = False
    hangs: bool = False
    own: bool = True
    tells: bool = True
    replied: bool = False
    retold: bool = False
    correction: bool = False
    confidence: float = CERTAIN

    @property
    def place(self) -> int:
        return max(place for place, _, _ in self.spans)

    @property
    def text(self) -> str:
        if self.context:
            return f"{self.speaker}, {self.context}: {self.body}"
        named = re.match(rf"{re.escape(self.speaker)}(?:['’]s?)? ", self.body, re.IGNORECASE)
        return self.body if named else f"{self.speaker}: {self.body}"

    def followed_by(self, piece: Piece) -> Piece:
        """This piece with one that goes on with it behind; in brackets what another one replied."""
        spans = (*self.spans, *piece.spans)
        if piece.speaker != self.speaker:
            retold = self.retold or piece.retold
            return replace(self, body=f"{self.body} ({piece.text})", spans=spans, replied=True, retold=retold)
        asked = f" ({piece.context})" if piece.context else ""
        body, confidence = f"{self.body}{asked} {piece.body}", min(self.confidence, piece.confidence)
        return replace(self, body=body, spans=spans, confidence=confidence, retold=self.retold or piece.retold)

    def behind(self, context: Context) -> Piece:
        """This piece with what was said before."""
        told = f"{context.text}, {self.context}" if self.context else context.text
        return replace(self, context=told, spans=(*self.spans, context.span), goes_on=False)


@dataclass(frozen=True, slots=True)
class ReadTurns:
    """The turns that are read, each with its units, and the names of their speakers, lower case."""

    turns: Sequence[Utterance]
    names: Collection[str]
    units: Sequence[Sequence[Unit]]

    @classmethod
    def of(cls, turns: Sequence[Utterance], names: Collection[str]) -> ReadTurns:
        return cls(turns, names, [units(turn.text) for turn in turns])


def said_before(talk: ReadTurns, place: int, *, by: str, look_back: int) -> Context | None:
    """The last thing that a speaker told before a turn, or asked an assistant, and that can stand alone, if it tells
    something."""
    turns, names = talk.turns, talk.names
    with_assistant = place > 0 and turns[place - 1].by_assistant
    for earlier in range(place - 1, max(place - look_back - 1, -1), -1):
        if turns[earlier].speaker != by:
            continue
        said = talk.units[earlier]
        told = [unit for unit in said if worth.is_statement(unit.text, names)] or (said if with_assistant else [])
        for begin in range(len(told) - 1, max(len(told) - 1 - MAX_SENTENCES, -1), -1):
            bare = worth.bare(told[begin].text, names)
            whole = turns[earlier].text[told[begin].start : told[-1].end]
            if worth.worth(whole, names) >= TELLING and not references.hangs(bare):
                return context_of(turns[earlier], earlier, told[begin:], names, turns[place].speaker)
    return None


def context_of(turn: Utterance, place: int, said: Sequence[Unit], names: Collection[str], to: str) -> Context:
    """Sentences of an earlier turn as context of what `to` says."""
    start, end = said[0].start, said[-1].end
    text = " ".join(worth.bare(turn.text[start:end], names)[:MAX_ASKED_CHARS].split())
    question = worth.is_question(said[-1].text)
    by = "" if turn.speaker in (to, ASSISTANT) else f"{turn.speaker} "
    verb = "after " if not question else "after asking " if turn.speaker == to else "asked by " if by else "asked "
    return Context(f"{verb}{by}“{text}”", (place, start, end))


class TurnReader:
    """One message with the turns before it."""

    def __init__(self, talk: ReadTurns, place: int, zone: ZoneInfo) -> None:
        self.talk, self.place, self.zone = talk, place, zone
        self.turns, self.names, self.said = talk.turns, talk.names, talk.turns[place]
        self.units = () if self.said.role.lower() in SILENT_ROLES else talk.units[place]

    def pieces(self) -> list[Piece]:
        """What is kept of the message, in order."""
        answer, at = self._answer()
        found: list[Piece] = [answer] if answer else []
        told = at
        while at < len(self.units):
            piece, end = self._corrected(at), at + 1
            if piece is None and self._is_kept(at):
                end = self._end_of_group(at)
                piece = self._piece(at, end, told)
            told = end if piece else told
            found.extend([piece] if piece else [])
            at = end
        other = None if found else self._asked() or self._reaction()
        return [other] if other else found

    def _is_kept(self, at: int) -> bool:
        unit = self.units[at]
        if self.said.by_assistant and not unit.speaker:
            return self._is_kept_of_assistant(unit)
        if unit.listed:
            return worth.features(unit.text, self.names).topics > 0 and worth.is_statement(unit.text, self.names)
        least = worth.KEPT_FROM if self.said.speaker == USER or unit.speaker else worth.MENTIONED_FROM
        return worth.is_worth_keeping(unit.readable, self.names, least=least)

    def _is_kept_of_assistant(self, unit: Unit) -> bool:
        """What an assistant did or promised itself, in few words: "I've booked your flight for 3 May."; no advice."""
        found = worth.features(unit.text, self.names)
        brief = len(self.said.text) < LONG_ANSWER_CHARS and found.first_person
        concrete = found.number or found.name or found.time
        return brief and concrete and worth.is_worth_keeping(unit.readable, self.names)

    def _end_of_group(self, at: int) -> int:
        """The end of the run of sentences that belong together, from the kept one at `at`."""
        end = at + 1
        while end < len(self.units) and end - at < MAX_SENTENCES and self._joins(end):
            if self.units[end].end - self.units[at].start > MAX_CHARS:
                break
            end += 1
        return end

    def _joins(self, at: int) -> bool:
        """Whether a sentence goes on with the one before: it refers to it, both tell what happened, or it only
        elaborates; a short one ("I'm vegan.") may be a state of its own, which can change."""
        last, unit, bare = self.units[at - 1], self.units[at], self._bare(self.units[at])
        if unit.speaker != last.speaker or unit.heading or unit.listed or replies.is_correction(unit.text):
            return False
        found = worth.features(bare, self.names)
        verbless = found.words > 1 and not attributes.clause(bare).verb
        if verbless and found.number and found.topics < 2 and worth.is_statement(unit.text):
            return True  # "870 altogether"
        if not self._is_kept(at):
            return references.hangs(bare) and worth.is_statement(unit.text, self.names) and found.topics >= 2
        told = PAST.search(last.text) is not None and PAST.search(bare) is not None
        elaborates = found.words > worth.MAX_STATE_WORDS and not (found.name or found.number or found.time)
        goes_on = references.continues(bare) or references.says_what_is_now(self._bare(last), bare)
        no_subject = PAST.match(bare) is not None  # "Started on the 1st"
        return told or elaborates or goes_on or no_subject

    def _bare(self, unit: Unit) -> str:
        return worth.bare(unit.text, self.names)

    def _piece(self, at: int, end: int, told: int) -> Piece | None:
        """The sentences from `at` to `end`, with what the first hangs on. Those before `told` are kept already."""
        unit = self.units[at]
        hangs = not unit.heading and (references.hangs(self._bare(unit)) or self._chooses(unit))
        begin = self._begin_of(at) if hangs else None
        if hangs and begin is None and at and not self._is_first_of_voice(at):
            return None
        known = begin is not None and begin < told
        said = self.units[at if begin is None or known else begin : end]
        whole = self.said.text[said[0].start : said[-1].end] if len(said) > 1 else said[0].text
        text = f"{said[0].heading} {whole}" if said[0].heading else worth.bare(whole, self.names)
        faint = not any(worth.is_statement(each.text, self.names) and not self._is_faint(each) for each in said)
        own = self.said.speaker == USER or worth.is_own(text)
        hangs = hangs and begin is None
        context = self._question() if hangs or (faint and own and self._is_first_of_voice(at)) else None
        clear = context is not None and self._is_clear(context)
        context = context if hangs or clear else None
        made = self._made(text, said[0].start, said[-1].end, context, said[0].speaker)
        made = replace(made, retold=any(each.cut for each in said))
        return self._leaning(made, hangs=hangs) if known or ((hangs or faint) and not clear) else made

    def _chooses(self, unit: Unit) -> bool:
        """Whether a sentence takes up what an assistant just offered: "I'll go with the second one"."""
        offered = self.place > 0 and self.turns[self.place - 1].by_assistant and not self.said.by_assistant
        return offered and worth.INTENDS.match(self._bare(unit)) is not None

    def _leaning(self, made: Piece, *, hangs: bool) -> Piece:
        """A piece that says too little alone."""
        found = worth.features(made.body, self.names)
        own = self.said.speaker == USER or worth.is_own(made.body)
        concrete = found.name or found.number or found.time
        enough = concrete and (own or found.first_person)
        clear = own and not references.hangs(made.body)
        tells = enough or (clear and worth.worth(made.body, self.names) >= worth.ALONE_FROM)
        return replace(made, goes_on=True, hangs=hangs, own=own, tells=bool(tells))

    def _is_faint(self, unit: Unit) -> bool:
        """Whether people only tell one another how they feel, or what is true of everybody."""
        if self.said.speaker == USER or unit.speaker or unit.listed:
            return False
        return worth.is_faint(self._bare(unit), self.names)

    def _reaction(self) -> Piece | None:
        """What people say to one another's words, where the message tells nothing of its own."""
        if self.said.by_assistant:
            return None
        told = [unit for unit in self.units if self._reacts(unit)][:MAX_REACTION]
        if not told or told[-1].end - told[0].start > MAX_CHARS:
            return None
        said = " ".join(self._bare(unit) for unit in told)
        made = self._made(said, told[0].start, told[-1].end, self._question())
        return replace(made, goes_on=True, own=False, tells=False)

    def _reacts(self, unit: Unit) -> bool:
        """Whether a sentence says something of what it replies to."""
        enough = worth.features(self._bare(unit), self.names).topics >= MIN_ASKED_TOPICS
        return enough and not unit.speaker and worth.is_statement(unit.text, self.names)

    def _begin_of(self, at: int) -> int | None:
        """The sentence before `at`, of the same voice, from which on the text can stand alone; None without one."""
        for begin in range(at - 1, max(at - MAX_SENTENCES, -1), -1):
            unit = self.units[begin]
            if unit.speaker != self.units[at].speaker or unit.heading:
                return None
            if worth.is_question(unit.text):  # "Klára? She passed!"
                return begin if self._names_topic(unit) else None
            stands = not references.hangs(self._bare(unit)) and worth.is_statement(unit.text, self.names)
            if stands and len(WORD.findall(self._bare(unit))) >= 2:
                return begin
        return None

    def _names_topic(self, unit: Unit) -> bool:
        """Whether a question only names what the speaker goes on about."""
        found = worth.features(unit.text, self.names)
        return found.words <= MAX_SHORT_QUESTION and bool(found.name or found.topics)

    def _is_first_of_voice(self, at: int) -> bool:
        """Whether nothing that tells something stands before a sentence in the message."""
        return all(worth.worth(self._bare(unit), self.names) < 1 for unit in self.units[:at])

    def _question(self) -> Context | None:
        """The question that the turn before ends with, if another one asked it; with what the asker told of himself
        before where it hangs on that ("I'll write you a letter. When do you need it?")."""
        if not self.place or self.turns[self.place - 1].speaker == self.said.speaker:
            return None
        other, asked = self.turns[self.place - 1], self.talk.units[self.place - 1]
        if not asked or not worth.is_question(asked[-1].text):
            return None
        told = worth.OF_SPEAKER.match(self._bare(asked[-2:][0])) is not None
        begin = -2 if told and references.hangs(self._bare(asked[-1])) else -1
        return context_of(other, self.place - 1, asked[begin:], self.names, self.said.speaker)

    def _is_clear(self, question: Context) -> bool:
        """Whether a question says by itself what it is about; "Which line?" and "Where was it?" do not, "What's your
        budget?" does."""
        place, start, end = question.span
        bare = worth.bare(self.turns[place].text[start:end], self.names)
        named = len(WORD.findall(bare)) > MAX_SHORT_QUESTION or OWN_THING.search(bare) is not None
        return named and not references.hangs(bare)

    def _answer(self) -> tuple[Piece | None, int]:
        """The first sentences as the answer to the question before, where they do not stand by themselves, and how many
        they are."""
        question = self._question() if self.units and not self.said.by_assistant else None
        if question is None:
            return None, 0
        first, asked = self.units[0], self.turns[self.place - 1].text[slice(*question.span[1:])]
        declared = replies.declared(asked, first.text)
        if declared is not None:
            more = self._bare(first)
            telling = len(first.text.split()) > MAX_SHORT_QUESTION and worth.worth(more, self.names) >= 1
            made = self._made(f"{declared} {more}" if telling else declared, first.start, first.end)
            return replace(made, retold=True), 1
        agreed = replies.agrees(asked, first.text)
        if not agreed and not self._answers(first, asked):
            return None, 0
        end = 1
        while end < min(len(self.units), MAX_SENTENCES) and self._describes_answer(end):
            end += 1
        until = self.units[end - 1].end
        made = self._made(self.said.text[first.start : until], first.start, until, question)
        return (made if agreed or self._is_clear(question) else self._leaning(made, hangs=True)), end

    def _describes_answer(self, at: int) -> bool:
        """Whether a sentence tells more of what was answered: "Alan. He's an electrician"."""
        bare = self._bare(self.units[at])
        return references.hangs(bare) and worth.is_statement(self.units[at].text, self.names)

    def _answers(self, first: Unit, question: str) -> bool:
        """Whether a sentence that cannot stand alone tells what the question asks for."""
        bare = self._bare(first)
        found = worth.features(bare, self.names)
        if replies.is_offer(question) or not worth.is_statement(first.text, self.names):
            return False
        telling = found.topics or found.number or found.name
        if not telling or THANKS.search(first.text):
            return False
        clear = not references.hangs(question) and not attributes.clause(bare).verb
        affirmed = clear and replies.YES.match(first.text.strip()) is not None
        fragment = references.FRAGMENT.match(bare) or (affirmed and (found.time or found.number or found.name))
        if not replies.OPEN_QUESTION.search(question) and not fragment and not replies.chooses(question, bare):
            return False
        alone = self._is_kept(0) and not references.hangs(bare) and worth.OF_SPEAKER.match(bare) is not None
        return not alone and (found.words <= MAX_FRAGMENT or references.hangs(bare))

    def _corrected(self, at: int) -> Piece | None:
        """The statement that the sentence at `at` corrects or restates, as it is now; None when it does not."""
        unit = self.units[at]
        corrects = replies.is_correction(unit.text)
        if self.said.by_assistant or not (corrects or references.hangs(self._bare(unit))):
            return None
        if corrects and (offered := self._offer_corrected(at)):
            return offered
        for sentence in islice(self._told_before(at), CORRECTABLE if corrects else 1):
            bare = self._bare(sentence)
            if not worth.is_statement(sentence.text, self.names) or references.hangs(bare):
                continue
            if corrects and not replies.may_correct(bare, unit.text):
                continue
            meant = replies.corrected(bare, unit.text) if corrects else None
            meant = meant or replies.restated(bare, unit.text)
            if meant is not None and meant != bare:
                return replace(self._made(meant, unit.start, unit.end), correction=True, retold=True)
        rest = replies.LEAD.sub("", unit.text)
        if not corrects or not worth.is_worth_keeping(rest, self.names):
            return None
        return replace(self._made(rest, unit.start, unit.end), correction=True, retold=True)

    def _offer_corrected(self, at: int) -> Piece | None:
        """The sentence at `at` as the answer to a question that has a figure of its own: "Shall I order 10 tins?"
        "Actually make it 12" corrects nothing that the speaker said."""
        question, unit = self._question(), self.units[at]
        if question is None:
            return None
        asked = self.turns[question.span[0]].text[slice(*question.span[1:])]
        value = replies.value_put(asked, unit.text)
        if value is None or any(value in sentence.text for sentence in islice(self._told_before(at), CORRECTABLE)):
            return None
        return self._made(unit.text, unit.start, unit.end, question)

    def _told_before(self, at: int) -> Iterator[Unit]:
        """What the speaker said before a sentence, the last first."""
        yield from reversed(self.units[:at])
        for earlier in range(self.place - 1, -1, -1):
            if self.turns[earlier].speaker == self.said.speaker:
                yield from reversed(self.talk.units[earlier])

    def _asked(self) -> Piece | None:
        """What a user asked an assistant who answered at length, where the message tells nothing else."""
        after = self.turns[self.place + 1] if self.place + 1 < len(self.turns) else None
        if self.said.by_assistant or after is None or not after.by_assistant or len(after.text) < LONG_ANSWER_CHARS:
            return None
        for unit in self.units:
            text = self._bare(unit)
            if worth.features(text, self.names).topics >= MIN_ASKED_TOPICS and not worth.is_statement(text, self.names):
                span = (self.place, unit.start, unit.end)
                return Piece(self.said.speaker, f"{self.said.speaker} asked: {text[:MAX_ASKED_CHARS]}", (span,))
        return None

    def _made(
        self,
        text: str,
        start: int,
        end: int,
        context: Context | None = None,
        quoted: str | None = None,
    ) -> Piece:
        """A piece with its dates. `quoted`: who said it, where the message itself quotes somebody."""
        text = JOINED.sub("", " ".join(text.split()))
        text = text[:1].upper() + text[1:]
        body = text if quoted else dated(text, self.said.said_at, self.zone)
        return Piece(
            quoted or self.said.speaker,
            body,
            ((self.place, start, end), *([context.span] if context else [])),
            context.text if context else "",
            confidence=UNCERTAIN if DOUBT.search(text) else CERTAIN,
        )
