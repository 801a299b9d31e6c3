"""The gate that every fact passes: it claims no more than what was said, of nobody else, and at no other time.

A fact is compared with the clause that it shares most words with. It may say less than its source; it must not drop a
denial, a doubt, a question, a condition or that somebody else says so, nor bring in a name, a figure or a date.
In messages of another language than English only names, figures and dates are compared.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from enum import StrEnum

from service.curator.sourcing import PlacedClause, SourceTurns
from service.domain.temporal import Mention
from service.language import contrast, marks, opposites, quantities, temporal, wordlists
from service.language.marks import Clause, Mark
from service.language.talk import USER, Utterance, references, worth
from service.language.talk.dates import DATED_KINDS


class Refusal(StrEnum):
    """What is wrong with a fact."""

    UNSAID = "nobody said it"
    DENIAL = "its source denies it, or it denies its source"
    DOUBT = "its source doubts it"
    QUESTION = "its source asks"
    CONDITION = "its source makes a condition"
    HEARSAY = "its source says it is somebody else's word"
    NAME = "it names somebody or something that nobody named"
    SUBJECT = "it is about somebody else than its source"
    FIGURE = "it has a figure that nobody gave"
    DATE = "it has a date that its source does not have"
    TENSE = "it tells of another time than its source"


KEPT_BY: dict[Mark, frozenset[Mark]] = {
    Mark.DOUBT: frozenset({Mark.DOUBT, Mark.QUESTION, Mark.CONDITION}),
    Mark.QUESTION: frozenset({Mark.QUESTION, Mark.DOUBT}),
    Mark.CONDITION: frozenset({Mark.CONDITION, Mark.DOUBT}),
    Mark.HEARSAY: frozenset({Mark.HEARSAY}),
}
"""Marks of a fact that keep a mark of its source."""

KIN = wordlists.words("""
    mother father mom mum dad sister brother wife husband daughter son child baby grandmother grandfather grandma
    grandpa aunt uncle cousin niece nephew boss colleague friend girlfriend boyfriend fiance fiancee partner neighbour
    neighbor roommate landlord teacher doctor stepmother stepfather
""")
"""Persons without a name: a fact about one needs one in its source."""

FRONT = re.compile(r"^[^:“”\"]{1,60}(?:“[^”]*”)?:\s+")
"""The speaker in front of a quote."""

OF_SUBJECT = re.compile(
    r"^\W*(?P<owner>[^\W\d_][\w.-]*(?: [A-Z][\w.-]*)?)(?P<possessive>['’]s)?\s+(?P<rest>.*)$", re.DOTALL
)
BRACKETED = re.compile(r"\s*\([^()]*\d{4}[^()]*\)")
DAY, WEEK = timedelta(days=1), timedelta(days=7)


def refusal(text: str, sources: SourceTurns, message: int | None = None) -> Refusal | None:
    """Why a fact must not be kept as it is worded; None if it may. `message`: where it is said to come from. Pure; some
    milliseconds where times are named."""
    bare = FRONT.sub("", text) if _front(text, sources) else text
    return _stranger(bare, sources) or _wrong_date(bare, sources, message) or overclaim(text, sources, message)


def overclaim(text: str, sources: SourceTurns, message: int | None = None) -> Refusal | None:
    """The same without names, figures and dates, which a fact made of the speaker's own words has from its source."""
    if not sources.in_english or is_quoted(text, sources, message):
        return None
    bare = BRACKETED.sub("", FRONT.sub("", text) if _front(text, sources) else text)
    for clause in marks.clauses(bare):
        if not clause.words - sources.speaker_words:
            continue
        nearest = sources.nearest(clause.text, message)
        if not nearest:
            return Refusal.UNSAID
        found = next((why for each in nearest if (why := _claims_more(clause, marks.marks(bare), each, sources))), None)
        if found:
            return found
    return None


def is_quoted(text: str, sources: SourceTurns, message: int | None = None) -> bool:
    """Whether a fact is whole sentences of a message, with their speaker in front: it claims what they claim, its dates
    aside."""
    said = _bare(BRACKETED.sub("", FRONT.sub("", text)))
    own = None if message is None or not 0 <= message < len(sources.messages) else sources.messages[message]
    turns = [each for each in _front(text, sources) if own in (None, each)]
    return any(f". {said}. " in sources.told_in(each, _bare) for each in turns)


def _front(text: str, sources: SourceTurns) -> list[Utterance]:
    """The turns of the speaker whose name stands in front of a quote."""
    begin = FRONT.match(text)
    return (
        [each for each in sources.turns if text.startswith((f"{each.speaker},", f"{each.speaker}:"))] if begin else []
    )


def _bare(text: str) -> str:
    """The text with a full stop behind each sentence but the last, lower case."""
    stopped = re.sub(r"\?(?=\s|$)", "?.", re.sub(r"[.!…]++(?=\s|$)", ".", text))
    return " ".join(stopped.split()).rstrip(" .").casefold()


def _claims_more(
    fact: Clause, fact_marks: frozenset[Mark], source: PlacedClause, sources: SourceTurns
) -> Refusal | None:
    said = source.clause
    for mark, keeping in KEPT_BY.items():
        if mark in said.marks and not keeping & fact_marks:
            return Refusal[mark.name]
    if _turned_round(fact, said):
        return Refusal.DENIAL
    if contrast.tense_differs(fact.text, said.text):
        return Refusal.TENSE
    return Refusal.SUBJECT if _another_subject(fact, source, sources) else None


def _turned_round(fact: Clause, said: Clause) -> bool:
    """Whether one denies what the other states; the opposite of a word denies it."""
    opposed = opposites.opposed(sorted(fact.words), sorted(said.words)) or any(
        word.removeprefix(prefix) in said.words
        for word in fact.words - said.words
        for prefix in ("un", "non", "in", "dis")
        if word.startswith(prefix)
    )
    return (fact.denials + said.denials + opposed) % 2 == 1


def _another_subject(fact: Clause, source: PlacedClause, sources: SourceTurns) -> bool:
    """Whether a fact tells of another speaker, or of what is his, what its source tells of somebody else."""
    begin = OF_SUBJECT.match(fact.text)
    if begin is None:
        return False
    said = source.clause
    owner = begin["owner"].casefold()
    speakers = sources.speakers
    first_person = worth.FIRST_PERSON.search(said.text) is not None and not worth.SECOND_PERSON.search(said.text)
    if first_person and owner in speakers and owner not in (source.said.speaker.casefold(), USER.casefold()):
        return owner not in said.text.casefold()
    if first_person and owner == USER.casefold() and source.said.by_assistant:
        return True
    live = references.PRONOUNS & set(references.EXPLETIVE.sub(" ", said.text.casefold()).split())
    if not begin["possessive"] or live:
        return False
    first, *more = worth.WORD.findall(begin["rest"])[:2] or [""]
    person = [word for word in more if word.casefold() in KIN]  # "User's younger sister"
    owned = marks.content_words(" ".join(person or [first]))
    elsewhere = any(word in sources.clauses_with for word in owned)  # else it is what a value is called: "name"
    return elsewhere and not owned & said.words


def _stranger(text: str, sources: SourceTurns) -> Refusal | None:
    """A name, person or figure of a fact that nobody gave; those of dates are looked at as dates."""
    told = f"{sources.text}\n{USER} {USER.lower()}"
    undated = _without(text, _mentions(text, sources))
    if any(not _is_known(name, sources) for name in contrast.names_only_in(undated, told)):
        return Refusal.NAME
    kin = " ".join(_words(text) & KIN)
    if sources.in_english and not marks.content_words(kin) <= marks.content_words(sources.text):
        return Refusal.NAME
    years = {str(at.astimezone(sources.zone).year) for _, each in sources.mentions if (at := each.begins_at)}
    if not set(quantities.numbers(undated)) <= {*quantities.numbers(sources.text), *years}:
        return Refusal.FIGURE
    return None


def _is_known(name: str, sources: SourceTurns) -> bool:
    """Whether a memory that is near names it, and has a word in common with what was said beside it."""
    said = frozenset(word for each in sources.clauses for word in each.clause.words)
    return any(name in each.casefold() and marks.content_words(each) & said for each in sources.known)


def _mentions(text: str, sources: SourceTurns) -> list[Mention]:
    """The dates of a text; times of day, durations and what recurs are figures."""
    if not temporal.may_have_time(text):
        return []
    found = temporal.find(text, sources.messages[-1].said_at, sources.zone)
    return [each for each in found if each.kind in DATED_KINDS and (each.begins_at or each.ends_at)]


def _without(text: str, mentions: list[Mention]) -> str:
    for each in reversed(mentions):
        text = f"{text[: each.start]} {text[each.end :]}"
    return text


def _wrong_date(text: str, sources: SourceTurns, message: int | None) -> Refusal | None:
    """A date that the words of the messages do not mean: those of the nearest clause, else of its turn, else of all."""
    dates = [each for each in _mentions(text, sources) if not _words(each.text) <= _words(sources.text)]
    if not dates:
        return None
    nearest = sources.nearest(_without(text, dates), message)
    near = sources.mentions_near(nearest)
    said = near or [mention for _, mention in sources.mentions]
    for date in dates:
        today = not near and any(_covers(date, each.said_at) for each in sources.messages)
        if not today and not any(_agree(date, other) for other in said):
            return Refusal.DATE
    return None


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


def _agree(mention: Mention, said: Mention) -> bool:
    """Whether a date is the one that was said, or a longer time around it, or its first or last day."""
    if mention.begins_at is None or said.begins_at is None:
        return mention.ends_at is not None and mention.ends_at == said.ends_at
    ends, end = mention.ends_at or mention.begins_at + DAY, said.ends_at or said.begins_at + DAY
    around = mention.begins_at <= said.begins_at and end <= ends
    day = said.begins_at <= mention.begins_at and ends in (said.begins_at + DAY, end)
    about = (
        "week" in said.text.lower()
        and abs(mention.begins_at - said.begins_at) < WEEK
        and ends - mention.begins_at <= WEEK
    )
    return around or (day and ends - mention.begins_at <= DAY) or about


def _covers(mention: Mention, moment: datetime) -> bool:
    begins = mention.begins_at
    return begins is not None and begins <= moment < (mention.ends_at or begins + DAY)
