"""The statement that a question leaves open.

"What time do you usually get up?" is "I usually get up at ...", "What kind of music are you into?" is "I am into ...".
"""

from __future__ import annotations

import re

from service.language import wordlists
from service.language.facts import verbs

_ASKS = re.compile(
    r"\b(?P<wh>what time|what (?:kind|sort|type)s? of (?P<kind>[\w ]{2,30}?)|how (?:many (?P<many>[\w ]{2,30}?)|much"
    r"|often|long|far)|(?:what|which)(?: (?!do\b|did\b|are\b|is\b|was\b|have\b|can\b|will\b)(?P<noun>[\w ]{2,30}?))?"
    r"|where|when|who|how)\s?(?P<aux>do|did|are|were|have|will)\s+(?P<who>you|your (?:[\w-]+ ){1,2}?)\s*"
    r"(?P<rest>\b[^?]*)\?\W*$",
    re.IGNORECASE,
)
_POSSESSED = re.compile(r"\bwhat(?:['’]s| is| are|['’]re) your (?P<noun>[\w' -]{3,40}?)\?\W*$", re.IGNORECASE)
_ANY = re.compile(
    r"^\W*(?:do you have |have you got )?any (?P<noun>(?:[\w-]+ ){0,2}(?:restrictions?|preferences?|hobbies|conditions?"
    r"|phobias?|plans))\b",
    re.IGNORECASE,
)
_LAST = re.compile(
    r"\s+(?:tonight|today|tomorrow|yesterday|every \w+|most|these days|right now|at the moment|currently|nowadays"
    r"|usually|(?:in|on|at|for|during|after|before|with|from) (?!\s*$)[\w' ]+)$",
    re.IGNORECASE,
)
_DURATION = re.compile(
    r"(?:about |around |almost |over |nearly )?(?:\d+|an?|one|two|three|four|five|six|seven|eight|nine|ten|a few|many"
    r"|several) (?:years?|months?|weeks?|days?|hours?|minutes?)\b",
    re.IGNORECASE,
)
_PLACED = re.compile(
    r"(?:in|at|on|to|from|near|by|with|around|about|outside|over|under|behind|between|before|after|since|for|during"
    r"|every|next|last|this|tomorrow|tonight|home|abroad|online|usually|once|twice)\b",
    re.IGNORECASE,
)
_POINTING = re.compile(r"\b(?:it|that|this|there|them|these|those|see|mean|need|want|think|say)\b", re.IGNORECASE)
_GOING = wordlists.words("go going move moving travel travelling traveling fly flying head heading")
_BE = {"are": "am", "were": "was", "have": "have", "will": "will"}


def statement(question: str, fragment: str) -> str | None:
    """Returns the first-person statement that `fragment` makes of the question, None where it is no open one.

    `question`: an assistant's, with its question mark; `fragment`: a reply without a subject of its own.
    """
    own = _POSSESSED.search(question) or _ANY.match(question)
    if own:
        noun = re.sub(r"\s+(?:called|named|again|like|now|right now|at the moment)$", "", own["noun"].strip())
        return f"My {noun} {'are' if _plural(noun) else 'is'} {fragment}"
    asked = _ASKS.search(question)
    if asked is None or not asked["rest"].strip() or _POINTING.search(asked["rest"]):
        return None
    told = _told(asked)
    return told and _with(told, asked, fragment)


def _plural(noun: str) -> bool:
    return noun.endswith("s") and not noun.endswith(("ss", "us", "is"))


def _told(asked: re.Match[str]) -> str | None:
    """ "do you usually get up" gives "I usually get up"."""
    aux, words = asked["aux"].lower(), asked["rest"].split()
    mine = re.sub(r"^your\b", "my", asked["who"].strip(), flags=re.IGNORECASE)
    subject = "I" if mine.lower() == "you" else mine
    if subject != "I" and aux not in ("are", "do"):
        return None
    said = re.sub(r"\byour\b", "my", re.sub(r"\byou\b", "me", " ".join(words)))
    if aux == "did":
        at = next((n for n, word in enumerate(words) if verbs.form(word.lower())), None)
        if at is None:
            return None
        return " ".join([subject, *words[:at], verbs.past(verbs.lemma(words[at].lower())), *said.split()[at + 1 :]])
    if aux == "do":
        return f"{subject} {said}" if any(verbs.form(word.lower()) for word in words[:3]) else None
    return f"{subject} {_BE[aux] if subject == 'I' else aux} {said}"


def _with(told: str, asked: re.Match[str], fragment: str) -> str | None:
    """The statement with the reply where it belongs: before a time or place at its end."""
    wh = asked["wh"].lower()
    going = {word.lower() for word in told.split()} & _GOING
    if asked["many"]:
        fragment = f"{fragment} {asked['many']}" if len(fragment.split()) <= 2 else fragment
    elif asked["noun"] and re.fullmatch(r"[\d.,]+", fragment):
        fragment = f"{asked['noun']} {fragment}"
    elif wh == "what time" and not _PLACED.match(fragment):
        fragment = f"at {fragment}"
    elif wh == "where" and not _PLACED.match(fragment):
        fragment = f"{'to' if going else 'in' if fragment[:1].isupper() else 'at'} {fragment}"
    elif wh == "how long" and not re.match(r"(?:since|for|until)\b", fragment, re.IGNORECASE):
        if not _DURATION.match(fragment):
            return None
        fragment = f"for {fragment}"
    elif wh == "how" and not _PLACED.match(fragment):
        return None
    elif wh == "when" and not _PLACED.match(fragment):
        fragment = f"on {fragment}" if re.match(r"\w+day\b|\w+ \d|the \d", fragment) else f"in {fragment}"
    last = _LAST.search(told) if wh not in ("where", "when", "what time", "how long", "how often", "how") else None
    if last and len(told[: last.start()].split()) > 1:
        return f"{told[: last.start()]} {fragment}{last.group()}"
    return f"{told} {fragment}"
