"""Reads the facts of one text: a stored memory, or a clause of a conversation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache

from service.domain.temporal import TemporalTag
from service.language import temporal, wordlists
from service.language.facts import lists, person, salience, several, slot_table, slots, statement, talk
from service.language.facts.fact import USER, Certainty, StatedFact
from service.language.facts.slots import SlotReading
from service.language.facts.statement import Statement

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)  # tags are read from words and tense alone: no time mention is looked up
_SOON = re.compile(
    r"\b(?:from|starting|as of|beginning|effective) (?:next|tomorrow|monday|tuesday|wednesday|thursday|friday"
    r"|saturday|sunday|january|february|march|april|may|june|july|august|september|october|november|december)\b"
    r"|\b(?:next (?:week|month|year|summer|spring|fall|autumn|winter|quarter|semester|monday|tuesday|wednesday"
    r"|thursday|friday|saturday|sunday)|tomorrow|soon|in (?:a few|a couple of|two|three|four|five|six|\d+|a)"
    r" (?:days?|weeks?|months?|years?))\b",
    re.IGNORECASE,
)
# A past tense that tells how things have stood ever since.
LASTING = wordlists.words("""
    move relocate settle join become start get switch adopt buy marry graduate grow name begin promote divorce
    accept land change leave quit retire lose finish rescue migrate take turn go study major earn find come return
    fire hire transition
""")


@lru_cache(maxsize=4096)
def read(memory_text: str) -> StatedFact | None:
    """Returns what a memory told in the third person says, None where no verb is found in it."""
    parsed = statement.parse(memory_text)
    if not parsed.verb:
        return None
    return fact(memory_text.strip().rstrip("."), parsed, slots.read(parsed), "explicit")


def fact(text: str, parsed: Statement, reading: SlotReading | None, certainty: Certainty) -> StatedFact:
    """Returns the fact of a parsed sentence; `text` is kept as it is."""
    subject = parsed.subject if parsed.subject.startswith(USER) else parsed.subject.strip()
    slot, value = reading or (None, None)
    if reading and subject.startswith("user's ") and _owned_attribute(parsed, reading):
        subject = USER
    return StatedFact(
        text=text,
        subject=subject,
        slot=slot,
        value=value,
        polarity="positive" if parsed.holds or _only_in_form(parsed, slot) else "negative",
        certainty=certainty,
        temporal_tag=tag(text, parsed, lasting=reading is not None),
    )


def _only_in_form(parsed: Statement, slot: str | None) -> bool:
    """Whether "can't stand olives" denies nothing: it says what is disliked."""
    return slot == "dislikes" and parsed.verb in slots.UNBEARABLE and not parsed.ended


def _owned_attribute(parsed: Statement, reading: SlotReading) -> bool:
    """Whether the subject names an attribute of the user ("user's name"), and not somebody else ("user's sister")."""
    if parsed.verb != "be":
        return False  # "User's friend has three cats": they are not the user's
    if parsed.subject.count("'s ") > 1:
        return reading.slot.startswith(("relationship:", "pet"))
    own = ("attribute:", "favorite:", "contact:", "relationship:", "pet")
    noun = parsed.subject.removeprefix("user's ")
    return reading.slot.startswith(own) or any(noun.endswith(each) for each in _OWN_NOUNS)


_OWN_NOUNS = (
    *(noun for nouns in slot_table.ATTRIBUTES.values() for noun in nouns),
    *("job", "occupation", "profession", "job title", "role", "employer", "workplace", "position", "work", "title"),
    "company",
)


def tag(text: str, parsed: Statement, *, lasting: bool) -> TemporalTag:
    """Returns whether a statement speaks of now, of what was or of what will be, by words and tense.

    `lasting`: it gives an attribute, so that "moved to Oslo" tells where somebody lives.
    """
    if lasting and parsed.past and parsed.holds and parsed.verb in LASTING:
        return TemporalTag.CURRENT
    if parsed.past and parsed.verb not in LASTING and not re.search(r"\bborn\b|\bdiagnosed\b", parsed.rest):
        return TemporalTag.PAST
    if parsed.progressive and not parsed.past and parsed.verb in _COMING and parsed.holds:
        return TemporalTag.FUTURE
    if parsed.future or (_SOON.search(text) and not parsed.past and not parsed.ended):
        return TemporalTag.FUTURE
    if parsed.progressive and not parsed.past and _DATED.search(text):
        return TemporalTag.FUTURE
    return temporal.tag(_REASON.sub("", text), (), _EPOCH)


_REASON = re.compile(r"\s(?:because|since|when|while|after|before|until|so that)\s.*$", re.IGNORECASE)
_DATED = re.compile(
    r"\b(?:on \w+day|on the \d|this (?:weekend|summer|fall|autumn|winter|spring|evening|\w+day)|tonight)\b",
    re.IGNORECASE,
)
_COMING = wordlists.words("""
    move get start leave join marry relocate switch retire graduate adopt
""")


@dataclass(frozen=True, slots=True)
class Heard:
    """A bare first-person clause on its way to facts. `names`: people introduced so far, lower-case."""

    text: str
    speaker: str
    certainty: Certainty
    names: frozenset[str] = frozenset()
    attributes_only: bool = False
    hearer: str = "the assistant"


_INTRODUCED = re.compile(
    r"^(?:I am|this is|it is|name is|my name is|the name is|here is)\s+(?P<name>(?:(?<=name is )[a-z]"
    r"|[A-Z])[\w'’-]+(?: (?:[A-Z][\w'’-]*|de|van|von|da|al))*)(?P<tail>$| (?:and|from|here|again)\b.*)"
)


_HERE = re.compile(r"^(?P<name>[A-Z][\w'’-]+) here$")


def facts(heard: Heard) -> Iterator[StatedFact]:
    """Yields the facts of a clause: none for talk, several for a list."""
    for text in several.statements(heard.text):
        yield from _facts(replace(heard, text=text))


def _facts(heard: Heard) -> Iterator[StatedFact]:
    text = several.NUMBER_ONLY.sub(r"I am \1 years old", heard.text)
    name = introduced(text)
    if name:
        subject = f"{heard.speaker}'s name is {name}"
        yield fact(subject, statement.parse(subject), SlotReading("name", name), heard.certainty)
        return
    if not talk.statement(text):
        return
    told = person.third_person(_time_last(text), heard.speaker, heard.hearer)
    parsed = statement.parse(_as_user(told, heard.speaker))
    reading = slots.read(parsed)
    if reading and slots.is_single(reading.slot) and ", not " in told:
        told = told.partition(", not ")[0]
        parsed = statement.parse(_as_user(told, heard.speaker))
        reading = slots.read(parsed)
    of_speaker = parsed.subject.startswith(USER)
    if (reading is None and heard.attributes_only) or (
        of_speaker and not statement.names_user(_as_user(told, heard.speaker))
    ):
        return
    if salience.keeps(parsed, reading, heard.names) and not _redacted(reading):
        for each in _listed(told, parsed, reading, heard.certainty):
            yield each if heard.speaker == "User" else _renamed(each, heard.speaker)


_TIME_FIRST = re.compile(
    r"^(?P<when>(?:now|these days|nowadays|currently|today|tonight|tomorrow|yesterday|recently|lately|at the moment"
    r"|right now|growing up|as an? (?:kid|child|teenager|teen|student)"
    r"|so far|for now|(?:once|twice) an? \w+|most \w+|every other \w+|(?:\d+|an?|two|three|four|five|a few) \w+ ago"
    r"|(?:from|until|till|since|by|in|on|at|during|last|next|every|starting|as of|for the (?:last|past)|back in)"
    r"(?: (?!(?:I|my|we|our)\b)[\w'’-]+){1,4}?)),? (?=(?:I|my|we|our|me)\b)",
    re.IGNORECASE,
)


_SETTING = re.compile(r"so far|for now|now|these days|nowadays|currently|at the moment", re.IGNORECASE)


def _time_last(text: str) -> str:
    """ "Now I am in Hamburg" gives "I am in Hamburg now"."""
    found = _TIME_FIRST.match(text)
    if not found or ("," in text[found.end() :] and not _SETTING.fullmatch(found["when"])):
        return text
    return f"{text[found.end() :]} {found['when'][:1].lower()}{found['when'][1:]}"


def introduced(text: str, *, greeted: bool = False) -> str | None:
    """Returns the name in "I am Bob"; not in "I am German" or "I am Retired"."""
    found = _INTRODUCED.match(text) or _HERE.match(text)
    if not found:
        bare = re.match(r"^I am (?P<name>[a-z]{3,12})$", text) if greeted else None
        return bare["name"].capitalize() if bare and salience.could_be_name(bare["name"].capitalize()) else None
    name = found["name"]
    said_so = "name is" in text
    if said_so and name.islower():
        name = name.title()
    return name if said_so or salience.could_be_name(name) else None


def _redacted(reading: SlotReading | None) -> bool:
    """Whether all that the fact would tell has been taken out by the PII stage."""
    return reading is not None and re.fullmatch(r"\W*\[?REDACTED[:\w ]*\]?\W*", reading.value) is not None


def _as_user(told: str, speaker: str) -> str:
    return told if speaker == "User" else re.sub(rf"\b{re.escape(speaker)}\b", "User", told)


def _renamed(each: StatedFact, speaker: str) -> StatedFact:
    subject = each.subject.replace(USER, speaker, 1) if each.subject.startswith(USER) else each.subject
    return StatedFact(each.text, subject, each.slot, each.value, each.polarity, each.certainty, each.temporal_tag)


def _listed(told: str, parsed: Statement, reading: SlotReading | None, certainty: Certainty) -> Iterator[StatedFact]:
    """One fact, or one for each part of a list."""
    parts = lists.items(reading.slot, reading.value) if reading else []
    if reading is None or len(parts) < 2 or told.count(reading.value) != 1:
        yield fact(told, parsed, reading, certainty)
        return
    before, _, after = told.partition(reading.value)
    for part in parts:
        yield fact(f"{before}{part}{after}", parsed, SlotReading(reading.slot, part), certainty)
