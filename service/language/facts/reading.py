"""Which facts does a text hold: a stored memory read back, and one clause of a conversation?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache

from service.domain.temporal import TemporalTag
from service.language import temporal, wordlists
from service.language.facts import lists, person, slot_table, slots, statement, talk, verbs, wordbook, worth
from service.language.facts.fact import USER, Certainty, Fact
from service.language.facts.slots import Reading
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
def read(memory_text: str) -> Fact | None:
    """Returns what a memory told in the third person says, None where no verb is found in it."""
    parsed = statement.parse(memory_text)
    if not parsed.verb:
        return None
    return fact(memory_text.strip().rstrip("."), parsed, slots.read(parsed), "explicit")


def fact(text: str, parsed: Statement, reading: Reading | None, certainty: Certainty) -> Fact:
    """Returns the fact of a parsed sentence; `text` is kept as it is."""
    subject = parsed.subject if parsed.subject.startswith(USER) else parsed.subject.strip()
    slot, value = reading or (None, None)
    if reading and subject.startswith("user's ") and _owned_attribute(parsed, reading):
        subject = USER
    return Fact(
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


def _owned_attribute(parsed: Statement, reading: Reading) -> bool:
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
    """Returns whether a statement speaks of now, of what was or of what will be (R3.19), by words and tense.

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


_NUMBER_ONLY = re.compile(r"^I am (\d{1,3})(?: now)?$")
_INTRODUCED = re.compile(
    r"^(?:I am|this is|it is|name is|my name is|the name is|here is)\s+(?P<name>(?:(?<=name is )[a-z]"
    r"|[A-Z])[\w'’-]+(?: (?:[A-Z][\w'’-]*|de|van|von|da|al))*)(?P<tail>$| (?:and|from|here|again)\b.*)"
)


_HERE = re.compile(r"^(?P<name>[A-Z][\w'’-]+) here$")
_ALSO_PLACE = re.compile(
    r"^(?P<what>I am an? (?P<role>.+?))(?: and)? (?P<where>(?:(?:currently |now )?(?:based|living|located) (?:in"
    r"|near|at)|originally from|from) [\w].+)$"
)
_TURNED = re.compile(
    r"^(?P<value>(?!(?:it|this|that|he|she|there|what|who|today|tomorrow|here)\b)[\w' -]{1,40}?) (?:is|are) my"
    r" (?P<what>(?:all-time )?(?:favou?rite [\w ]{2,30}|(?:first|native|second) language|mother tongue|name|wife"
    r"|husband|boss|manager|hobby|sister|brother|dog|cat"
    r"|girlfriend|boyfriend|birthday))$",
    re.IGNORECASE,
)
_OWNS = re.compile(r"^(?P<have>(?:I|[Ww]e) (?:also |now |still )?(?:have|own|adopted|got)) (?P<list>.+)$")
_NAMED_AND_AGED = re.compile(r"^I am (?P<name>[A-Za-z]+)(?:,| and I am) (?P<age>\d{1,2})(?: years old)?$")
_WHO_IS = re.compile(
    r"^(?P<who>(?:my|our) (?:[\w-]+ ){0,3}?[\w'’-]+), who (?P<what>(?:is|has|was|lives|works|had)\b[^,]+),"
    r" (?P<main>\w.*)$",
    re.IGNORECASE,
)
_BUT_ONLY = re.compile(
    r"^I (?:(?P<be>am not )|(?:don't|do not) )"
    r"(?P<verb>(?:[a-z]+ ){1,3}?(?:to|of|in|at|for|with|on|into) |(?<!am not )[a-z]+ )"
    r"(?:[\w'-]+ ){0,2}?[\w'-]+(?P<gap>,? (?:but )?(?:just|only) )(?P<only>[\w' -]{2,40})$"
)
_SO_IS = re.compile(
    r"^(?P<main>I (?:(?P<be>am) (?P<state>[\w' -]{2,60}?)|(?P<verb>don't|can't|[a-z]+) (?P<rest>[\w' -]{2,60}?))),?"
    r" (?:and |but )?(?P<sign>so|neither|nor) (?:is|does|can|do|has) (?P<who>my (?:[\w-]+ ){0,2}[\w-]+)$"
)
_STATES = re.compile(r"^I am (?P<list>[^,]{1,40}(?:, [^,]{1,60}){1,5}|[^,]{1,40}? and [^,]{1,40})$")


def facts(heard: Heard) -> Iterator[Fact]:
    """Yields the facts of a clause: none for talk, several for a list."""
    for text in _apart(heard.text):
        yield from _facts(replace(heard, text=text))


def _apart(text: str) -> list[str]:
    """ "I am 29, married and a nurse" and "I am a nurse based in Rome" say several things of the one who speaks."""
    relative = _WHO_IS.match(text)
    if relative:
        return [f"{relative['who']} {relative['what']}", *_apart(f"{relative['who']} {relative['main']}")]
    turned = _TURNED.match(text)
    if turned:
        return [f"My {turned['what']} is {turned['value']}"]
    both = _ALSO_PLACE.match(text)
    if both and wordbook.is_role(re.split(r" (?:at|for|in|with|of) ", both["role"])[0]):
        return [both["what"], f"I am {both['where']}"]
    too = _SO_IS.match(text)
    if too:
        return [too["main"], _of_another(too)]
    contrast = _BUT_ONLY.match(text)
    if contrast:
        return [
            text[: contrast.start("gap")],
            f"{'I am' if contrast['be'] else 'I'} {contrast['verb']}{contrast['only']}",
        ]
    introduced_as = _listed_states(text)
    if introduced_as:
        return introduced_as
    owned = _OWNS.match(text)
    if owned:
        parts = re.split(
            r",? (?:and|or) (?=(?:an?|no|one|two|three|four|five|\d+|some) )|, (?=(?:an?|no|one|two|three|four|five"
            r"|\d+|some) )",
            owned["list"],
        )
        if len(parts) > 1 and all(could_be_read(f"User has {part}") for part in parts):
            return [f"{owned['have']} {part}" for part in parts]
    named = _NAMED_AND_AGED.match(text)
    if named and worth.could_be_name(named["name"].capitalize()):
        return [f"My name is {named['name']}", f"I am {named['age']}"]
    return [text]


def _of_another(too: re.Match[str]) -> str:
    """What "and so is my sister" says in full."""
    verb, rest = (too["verb"], too["rest"]) if too["verb"] else (too["be"], too["state"])
    if too["be"]:
        denied = " not" if too["sign"].lower() in ("neither", "nor") and not re.match(r"not\b", rest) else ""
        return f"{too['who']} is{denied} {rest}"
    told = verb if re.search(r"n't$", verb) else verbs.third(verb.lower())
    return f"{too['who']} {re.sub(r'^don', 'doesn', told)} {rest}"


def _listed_states(text: str) -> list[str]:
    """ "I am Ben, 41, divorced, two kids": a name, an age, what somebody is and has; [] where a part is none."""
    listed = _STATES.match(text)
    if not listed:
        return []
    parts = [re.sub(r"^(?:and )?(?:also )?", "", part) for part in re.split(r", (?:and )?| and ", listed["list"])]
    told = []
    for number, part in enumerate(parts):
        aged = number == 0 and len(parts) > 1 and parts[1].isdigit()  # "im sam, 27"
        if number == 0 and (part[:1].isupper() or aged) and part.isalpha() and worth.could_be_name(part.capitalize()):
            told.append(f"My name is {part}")
        elif _NUMBER_ONLY.match(f"I am {part}") or could_be_read(f"User is {part}"):
            told.append(f"I am {part}")
        elif re.match(r"(?:an?|one|two|three|four|five|\d+) ", part) and could_be_read(f"User has {part}"):
            told.append(f"I have {part}")
        else:
            return []
    return told


def could_be_read(text: str) -> bool:
    """Whether a sentence in the third person gives an attribute we know."""
    return slots.read(statement.parse(text)) is not None


def _facts(heard: Heard) -> Iterator[Fact]:
    text = _NUMBER_ONLY.sub(r"I am \1 years old", heard.text)
    name = introduced(text)
    if name:
        subject = f"{heard.speaker}'s name is {name}"
        yield fact(subject, statement.parse(subject), Reading("name", name), heard.certainty)
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
    if worth.keeps(parsed, reading, heard.names) and not _redacted(reading):
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


def _time_last(text: str) -> str:
    """ "Now I am in Hamburg" gives "I am in Hamburg now"."""
    found = _TIME_FIRST.match(text)
    if not found or "," in text[found.end() :]:
        return text
    return f"{text[found.end() :]} {found['when'][:1].lower()}{found['when'][1:]}"


def introduced(text: str, *, greeted: bool = False) -> str | None:
    """Returns the name in "I am Bob"; not in "I am German" or "I am Retired"."""
    found = _INTRODUCED.match(text) or _HERE.match(text)
    if not found:
        bare = re.match(r"^I am (?P<name>[a-z]{3,12})$", text) if greeted else None
        return bare["name"].capitalize() if bare and worth.could_be_name(bare["name"].capitalize()) else None
    name = found["name"]
    said_so = "name is" in text
    if said_so and name.islower():
        name = name.title()
    return name if said_so or worth.could_be_name(name) else None


def _redacted(reading: Reading | None) -> bool:
    """Whether all that the fact would tell has been taken out by the PII stage."""
    return reading is not None and re.fullmatch(r"\W*\[?REDACTED[:\w ]*\]?\W*", reading.value) is not None


def _as_user(told: str, speaker: str) -> str:
    return told if speaker == "User" else re.sub(rf"\b{re.escape(speaker)}\b", "User", told)


def _renamed(each: Fact, speaker: str) -> Fact:
    subject = each.subject.replace(USER, speaker, 1) if each.subject.startswith(USER) else each.subject
    return Fact(each.text, subject, each.slot, each.value, each.polarity, each.certainty, each.temporal_tag)


def _listed(told: str, parsed: Statement, reading: Reading | None, certainty: Certainty) -> Iterator[Fact]:
    """One fact, or one for each part of a list."""
    parts = lists.items(reading.slot, reading.value) if reading else []
    if reading is None or len(parts) < 2 or told.count(reading.value) != 1:
        yield fact(told, parsed, reading, certainty)
        return
    before, _, after = told.partition(reading.value)
    for part in parts:
        yield fact(f"{before}{part}{after}", parsed, Reading(reading.slot, part), certainty)
