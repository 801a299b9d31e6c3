"""Resolves pronouns, and the subject of a clause that leaves it out."""

from __future__ import annotations

import re
from typing import NamedTuple

from service.language import wordlists
from service.language.facts import verbs, wordbook


class About(NamedTuple):
    """Whom was spoken of last: "my sister", and the gender of pronouns for them: m, f, n (an animal) or ? (either)."""

    phrase: str
    gender: str


_LATELY = re.compile(
    r"^(?P<when>now|currently|lately|recently|these days|nowadays|since then) (?=(?:he|she|they|it)\b)", re.IGNORECASE
)
_BECAUSE = re.compile(r"^because (?=(?:I|my|we|our)\b)", re.IGNORECASE)
_THEY = re.compile(r"^(?P<who>he|she|they|it|his|her|their|its|who)\b", re.IGNORECASE)
_HIM = re.compile(r"\b(?P<who>him|his|her|it|its)\b(?= ?(?P<noun>\w*))")
_GENDER = {"he": "m", "his": "m", "him": "m", "she": "f", "her": "f", "it": "n", "its": "n"}
_ENDS_NOUN_PHRASE = frozenset({""}) | wordlists.words("""
    and or but to in on at for with every when because a the so very from last yesterday
""")
_OTHERS = re.compile(r"\b(?:[Mm]y|[Oo]ur|an?|the)\b [\w ]+$|[A-Z][a-z]")
_COMPANY = "|".join(sorted(wordbook.KIN | wordbook.ANIMALS, key=len, reverse=True))
_MENTION = re.compile(
    rf"\b(?:[Mm]y|[Oo]ur) (?P<phrase>(?:(?!(?:{_COMPANY}|is|are|was|has|had|and|or|with|for|to|in|on|at|of|who|when)\b)"
    r"[\w-]+ ){0,2}(?P<noun>[\w-]+)(?:[ -]in[ -]law)?(?P<name> [A-Z]\w+)?)"
)
_HAS = re.compile(
    r"\bI (?:\w+ )?(?:have|adopted|got|bought|rescued|own|married|am married to|am dating) (?:an?|any|my) (?:\w+"
    r" ){0,2}?"
    r"(?P<noun>[\w-]+)\b"
)
_OWN = re.compile(r"^(?:[^,]{0,60}?,\s*)?(?:.{0,80}?\b)?(?:I|[Ww]e|[Mm]y|[Oo]ur|[Mm]e)\b")
_DROPPED = re.compile(
    r"^(?:(?:really|absolutely|just|recently|also|still|currently|now|always|never|usually|not) )*(?:love|hate|prefer"
    r"|like|enjoy|live|work (?:at|for|as|in|from|with|on|nights|full|part|remotely)|can't stand"
    r"|don't (?:like|eat|drink|have|own)|need (?:an?|to|more|new|bigger|another|\d)|have (?:a|an|two|three|\d)"
    r"|am)\b",
    re.IGNORECASE,
)
_DENIES = re.compile(
    r"^(?:(?:still|also|just|really|sadly) )*(?:(?:haven't|hadn't|can't|cannot|couldn't|didn't|won't|wasn't"
    r"|no longer|used to)"
    r" \w|don't (?:have|own|know|drive|smoke|drink|eat|speak|live|work|like|want|need|do)\b"
    r"|never (?:been|had|seen|learnt|learned|liked|lived|worked|did|drove|met|tried|owned|went|smoked|drank|ate)\b)",
    re.IGNORECASE,
)
_EARLIER = re.compile(
    r"^(?:finally|just|recently|already|also|only just"
    r"|eventually) (?P<verb>[a-z]+)\b",
    re.IGNORECASE,
)
_BARE_STATE = re.compile(
    r"^(?:(?:not a )?(?:big |huge )?fan of|allergic to|based in|born in|married|vegetarian|vegan|fluent in"
    r"|originally from|(?:new )?(?:mom|dad|father|mother) of|\d{1,2} years old)\b",
    re.IGNORECASE,
)
_FINITE = re.compile(rf"\b(?:is|are|was|were|has|have|had|will|would|can|could|{'|'.join(verbs.finite())})\b")
_NO_ORDERS = frozenset({"am", "last", "long", "back"})
_ORDERS = frozenset({"give", "let's", "don't", "suggest", "translate", "summarize", "summarise", "generate", "list"})


def with_subject(text: str, about: About | None) -> str | None:
    """Returns a bare clause with its subject: "he" resolved, a dropped "I" put back; None for an order, or when it
    speaks of somebody unknown or of the one addressed."""
    lead = _LATELY.match(text)
    if lead:
        text = f"{text[lead.end() :]} {lead['when'].lower()}"
    because = _BECAUSE.match(text)  # "I said no because I have choir": the reason is a statement by itself
    if because and "," not in text:
        text = text[because.end() :]
    pointing = _THEY.match(text)
    if pointing:
        return _resolved(text, pointing.group("who"), about)
    first = text.split()[0]
    if first.lower() in ("please", "you", "your"):
        return None
    headless = _headless(text)
    if headless:
        return headless
    dropped = _without_subject(text)
    if dropped:
        return dropped
    if _OWN.match(text) and not _is_order(first):
        return _object_resolved(text, about)
    if _BARE_STATE.match(text):
        return f"I am {text[0].lower()}{text[1:]}"
    lead = _EARLIER.match(text)
    if lead and (known := verbs.form(lead["verb"].lower())) and known.shape == "past" and len(text.split()) > 2:
        return f"I {text[0].lower()}{text[1:]}"
    known = verbs.form(first.lower())
    long = len(text.split()) > 2
    if _DROPPED.match(text) or (known and known.shape == "past" and long):
        return f"I {first.lower()}{text[len(first) :]}"
    return None if _is_order(first) else text


def _without_subject(text: str) -> str | None:
    """ "Haven't slept", "not working", "had to put our dog down": what only the speaker can say without an "I"."""
    if _DENIES.match(text):
        return f"I {text[0].lower()}{text[1:]}"
    lead, words = _LEADING.match(text), text.split()
    if re.match(r"not \w+ing\b", text, re.IGNORECASE):
        return f"I am {text[0].lower()}{text[1:]}"
    at = len(lead.group().split()) if lead else 0
    known = verbs.form(words[at].lower()) if len(words) > at + 2 else None
    if len(words) > at + 2 and words[at].endswith("ed") and words[at + 1].lower() in ("my", "our", "the", "a", "an"):
        return f"I {text[0].lower()}{text[1:]}"  # no list of verbs is complete
    if (
        known
        and known.shape == "past"
        and words[at + 1].isalnum()
        and words[at + 1].lower() not in ("i", "we", "he", "she", "they", "it", "you")
    ):
        return f"I {text[0].lower()}{text[1:]}"
    return None


_LEADING = re.compile(r"(?:(?:finally|just|recently|already|also|only|eventually) )+", re.IGNORECASE)
_THING = re.compile(
    r"\b[Mm]y (?P<phrase>(?:[\w-]+ ){0,2}?(?P<noun>[\w-]+))(?=[?,.!]|$| (?:is|was|got|will|starts?|ends?|expires)\b)"
)
_OF_THING = re.compile(
    r"^it (?P<said>(?:is|was) (?:on|at|in|from|until|next|now|due|the \d|\d)\b.*|(?:is|was|got|has been) (?:moved"
    r"|cancell?ed|postponed|rescheduled|delayed|pushed|changed)\b.*|(?:starts?|ends?|expires?|costs?)\b.*)$",
    re.IGNORECASE,
)


def thing(text: str) -> str | None:
    """Returns what a clause of the speaker's says about which of their things, "my birthday"; None for people."""
    found = list(_THING.finditer(text))
    last = found[-1] if found else None
    if last is None or last["noun"].lower() in wordbook.KIN or last["noun"].lower() in wordbook.ANIMALS:
        return None
    return f"my {last['phrase']}"


def of_thing(text: str, about: str | None) -> str:
    """Returns "it got moved to Thursday" with the thing last spoken of in place of "it"."""
    found = _OF_THING.match(text) if about else None
    return f"{about} {found['said']}" if found else text


def _headless(text: str) -> str | None:
    """ "Been together with my boyfriend", "living with my parents": the "I have" or "I am" is left out."""
    first, *more = text.split()
    if not more or re.search(r"\b(?:I|we)\b", text, re.IGNORECASE):
        return None
    if first.lower() == "been":
        return f"I have been{text[4:]}"
    known = verbs.form(first.lower())
    if known and known.shape == "ing" and len(more) > 1 and not _FINITE.search(" ".join(more[1:])):
        return f"I am {first.lower()}{text[len(first) :]}"
    return None


def _is_order(first: str) -> bool:
    """Whether a clause opens with a verb in its base form: "Tell me ...", "Write ..."."""
    known = verbs.form(first.lower())
    return (known is not None and known.shape == "base" and first.lower() not in _NO_ORDERS) or first.lower() in _ORDERS


def _fits(who: str, about: About) -> bool:
    wanted = _GENDER.get(who.lower(), "p")
    return who.lower() == "who" or wanted == about.gender or (about.gender in ("?", "n") and wanted in ("m", "f"))


def _resolved(text: str, who: str, about: About | None) -> str | None:
    """Puts the one last spoken of in place of a pronoun at the head of a clause."""
    if about is None or not _fits(who, about):
        return None
    mark = "'s" if who.lower() in ("his", "her", "its", "their") else ""
    return f"{about.phrase}{mark}{text[len(who) :]}"


def _object_resolved(text: str, about: About | None) -> str:
    """ "I am her caregiver" after "my mom": the pronoun gives way where nobody else in the clause can be meant."""
    found = _HIM.search(text)
    if about is None or found is None or _OTHERS.search(text[2 : found.start()]) or not _fits(found["who"], about):
        return text
    owns = found["who"] in ("his", "its") or (found["who"] == "her" and found["noun"].lower() not in _ENDS_NOUN_PHRASE)
    return text[: found.start()] + (f"{about.phrase}'s" if owns else about.phrase) + text[found.end() :]


def spoken_of(text: str) -> About | None:
    """Returns the relative or animal that a clause, in the first person, speaks of last; None when of none."""
    people = [(match["noun"].lower(), match["phrase"]) for match in _MENTION.finditer(text)]
    people += [(match["noun"].lower(), match["noun"]) for match in _HAS.finditer(text)]
    for noun, phrase in reversed(people):
        if noun in wordbook.KIN or noun in wordbook.ANIMALS:
            return About(f"my {phrase}", _gender(noun))
    return None


def _gender(noun: str) -> str:
    if noun in wordbook.FEMALE:
        return "f"
    if noun in wordbook.MALE:
        return "m"
    return "n" if noun in wordbook.ANIMALS else "?"
