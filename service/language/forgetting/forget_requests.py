"""Requests to forget in what a user says: "Please forget that I have a cat", "Bitte speichere meine Adresse nicht".

Only an order to the keeper of the memories counts: not "Don't forget to call", "I forgot my keys", "Forget it", nor
what is quoted or pasted. An order is a verb with nothing before it but politeness, or, in German and Dutch, with
nothing after it; which words its object means is another matter (forget_query.py). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from service.language import sentences
from service.language.common_words import word_set
from service.language.talk.passages import passages

Sort = Literal["statement", "everything", "thing", "said"]


@dataclass(frozen=True, slots=True)
class ForgetWish:
    """The half-open span of the sentence that asks, and the words that say what to forget. `sort`: a statement ("that I
    have a cat"), everything about something, a thing, or what was just said."""

    start: int
    end: int
    query: str
    sort: Sort


_FORGET: Final = (
    r"forget(?:ting)?|unlearn|vergiss(?:t|est)?|vergesst|vergessen|oubli(?:e[rzs]?|ies)|olvid(?:a|e|es|ar)|dimentica(?:re|te)?|esque[cç](?:a|e|er)"
    r"|vergeet|vergeten"
)
_DELETE: Final = (
    r"delete|remove|erase|wipe|purge|l[öo]sch(?:e|en)?|entfernen?|supprime[rz]?|efface[rz]?|borr(?:a|e|es|ar)"
    r"|elimin(?:a|e|es|ar|are)|cancell(?:a|are)|apag(?:a|ar|ue)|verwijder(?:en)?|wis(?:sen)?"
)
_CLEAR: Final = r"get rid of|drop|clear|strike|scrub|cut|take|leave|keep"
"""Verbs that ask to forget only with the memory named ("take that off your notes")."""

_KEEP: Final = (
    r"stor(?:e|ing)|sav(?:e|ing)|keep(?:ing)?|remember(?:ing)?|record(?:ing)?|not(?:e|ing)|log|retain|memori[sz]e"
    r"|hold on to|(?:ab)?speicher[en]?|merk(?:e|en)?(?:\s+dir)?|behalten?|gard(?:e[rz]?|es)|enregistre[rz]?|retiens"
    r"|m[ée]morise[rz]?|guard(?:a|e|es|ar)|recuerdes?|recordar|salv(?:a|e|ar|are)|ricordare|onthoud(?:en)?|bewaar"
    r"|bewaren|opslaan"
)
_VERB: Final = re.compile(
    rf"(?<![\w-])(?:(?P<forget>{_FORGET})|(?P<delete>{_DELETE})|(?P<keep>{_KEEP})|(?P<clear>{_CLEAR}))(?![\w-])", re.I
)
_POLITE: Final = word_set("""
    please pls kindly bitte favor favore plaît plait alsjeblieft alstublieft
""")
_ASKS_YOU: Final = word_set("""
    you du sie tu te vous usted você je jij peux-tu pouvez-vous pourrais-tu puedes podrías puoi potresti podes poderia
    kannst könntest kun
""")
_BEFORE: Final = (
    _POLITE
    | _ASKS_YOU
    | word_set("""
    oh ok okay hey hi hello hallo also and und so well actually now sorry thanks wait assistant just can could would
    will mind i i'd id want like need to should must may ich möchte dass kan wil s'il por per pode quiero que je veux
""")
)
_NOT: Final = word_set("""
    don't dont not never stop didn't wouldn't shouldn't needn't nicht niet ne n' pas no non não
""")
_NEGATED: Final = _BEFORE | _NOT | word_set("do rather prefer if that it we we'd need")
_MEMORY: Final = re.compile(
    r"\s*\b(?:from|in|out\s+of|off|aus|de|da|dalla|della|uit)\s+(?:(?:your|the|dein\w*|ta|tu|tua|je|sua|la)\s+)?"
    r"(?:memory|memories|mind|records?|notes|gedächtnis|speicher|mémoire|memoria|memória|geheugen)\b.*$",
    re.IGNORECASE | re.DOTALL,
)
_STATEMENT: Final = re.compile(r"^(?:the\s+fact\s+)?(?:that|dass|daß|que|qu['\u2019]|che|dat)\s*(?=\S+\s+\S)", re.I)
_EVERYTHING: Final = re.compile(
    r"^(?:everything|anything|all|what(?:ever)?|alles|was|tout|todo|tutto|tudo|wat|that\s+i\s+(?:told\s+you|mentioned))\b"
    r"[^.?!]{0,40}?\b(?:about|on|of|regarding|concerning|über|von|zu|sur|propos\s+de|sobre|acerca\s+de|su|di|over)\s+"
    r"(?P<about>\S.*)$",
    re.IGNORECASE | re.DOTALL,
)
_OWN: Final = re.compile(
    r"^(?:about\s+)?(?:my|our|mein\w{0,2}|unser\w{0,2}|mon|ma|mes|mi|mis|(?:(?:il|la|i|le|o|a|os|as)\s+)?"
    r"(?:mio|mia|miei|mie|meus?|minhas?)|mijn|onze?)\s+(?P<thing>\S.*)$",
    re.IGNORECASE | re.DOTALL,
)
_ABOUT: Final = re.compile(
    r"^(?P<thing>the\s+(?:thing|stuff|story|part|bit|business)\s+)?(?:about|with)\s+", re.IGNORECASE
)
_SAID: Final = re.compile(
    r"^(?:about\s+)?(?:it|that|this|any\s+of\s+(?:it|that|this)|(?:that|this)\s+(?:one|message)|das|es|ça|cela|eso|esto|questo|isso"
    r"|dat|what\s+i\s+(?:just\s+)?(?:said|told\s+you|wrote)|was\s+ich\s+(?:gerade\s+)?gesagt\s+habe)$",
    re.IGNORECASE,
)
_NO_OBJECT: Final = re.compile(
    r"^(?:me\s+not|to\b.*|(?:not|nicht|pas|niet)\b.*|(?:who|how|when)\b.*|.*\b(?:instructions?|prompts?|above|previous|rules)\b.*)$",
    re.IGNORECASE | re.DOTALL,
)
_NEVER_MIND: Final = re.compile(
    r",\s*(?:let['\u2019]?s|we|i|you|just|how|what|instead|try|do|use|go)\b|\binstead\b", re.IGNORECASE
)
_WHY: Final = re.compile(
    r"(?:\s*,)?\s+(?:because|since\s+(?:i|it|we|he|she|they)|weil|denn|parce\s+que|porque|perché|omdat)\b.*$"
    r"|,\s+(?:please\b.*|i|it|we|he|she|they|that|this)(?:['\u2019]\w+)?\s.*$|\s+[-\u2013\u2014]\s.*$|;.*$"
    r"|\b(?:please|bitte),.*$",
    re.IGNORECASE | re.DOTALL,
)
_TAIL: Final = re.compile(
    r"(?:[\s,]*\b(?:please|pls|thanks|thank\s+you|for\s+me|again|any\s*more|anywhere|now|bitte|danke|por\s+favor|per"
    r"\s+favore|s['\u2019]il\s+(?:te|vous)\s+pla[iî]t|alsjeblieft|nicht|niet|pas|(?:gesagt|erzählt)\s+habe))*[\s,.!?]*$",
    re.IGNORECASE,
)
_LEADING: Final = re.compile(
    r"^(?:[\s,:]|(?:please|bitte|alsjeblieft|por\s+favor|any\s+(?:record|note|trace|memory)\s+of)\b)*", re.IGNORECASE
)
_ELSEWHERE: Final = re.compile(r"\b(?:from|in|on|at|to|under|into)\s+\S", re.IGNORECASE)
_CLAUSE: Final = re.compile(
    r"[,;\u2013\u2014-]\s+(?:(?:but|and|so|though|aber|und|mais|pero|ma|mas|maar)\s+)?(?=(?:please|kindly|bitte|don['\u2019]t"
    r"|do\s+not|i['\u2019]d\s+rather|i\s+don['\u2019]t\s+want|ne|no|non|não|por\s+favor|per\s+favore|merk|speicher\w*)\b)",
    re.IGNORECASE,
)
"""Where a request begins that ends a sentence: "I live in Elm Road, but please don't store that." """

_QUOTE: Final = "\"'\u201c\u2018\u00ab>`"
_WORD: Final = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")

MOST_CHARS: Final = 500
"""A longer sentence states something and is not an order."""

_GAP: Final = 20
"""The number of characters before a sentence that are searched for a quotation mark or a colon."""


def find(text: str) -> list[ForgetWish]:
    """The requests in a message of a user, in order."""
    return [wish for start, end in own_sentences(text) if (wish := _in_sentence(text, start, end)) is not None]


def masked(text: str, spans: list[tuple[int, int]]) -> str:
    """The text with the spans blanked out: requests, which are not facts, and what they refer to."""
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def own_sentences(text: str) -> Iterator[tuple[int, int]]:
    """The sentences that are the sender's own words."""
    for part in passages(text):
        if part.label is None and part.role == "user":
            for start, end in sentences.split(text[part.start : part.end]):
                yield part.start + start, part.start + end


def _in_sentence(text: str, start: int, end: int) -> ForgetWish | None:
    begins = (start, *(clause.end() for clause in _CLAUSE.finditer(text, start, min(end, start + MOST_CHARS))))
    return next((wish for begin in begins if (wish := _read(text, begin, end)) is not None), None)


def _read(text: str, start: int, end: int) -> ForgetWish | None:
    before = text[max(0, start - _GAP) : start].rstrip()
    if end - start > MOST_CHARS or text[start] in _QUOTE or (before and before[-1] in ":\u201c\"'"):
        return None
    said = text[start:end]
    for verb in _VERB.finditer(said):
        found = _ordered(said, verb)
        if found is not None:
            return ForgetWish(start, end, *found)
    return None


def _ordered(said: str, verb: re.Match[str]) -> tuple[str, Sort] | None:
    """What a sentence orders the service to forget with this verb; None if it gives no such order."""
    before, after = _words(said[: verb.start()]), said[verb.end() :]
    rest = _TAIL.sub("", after)
    if not rest and len(before) > 1:  # "Kannst du bitte meine Adresse löschen?"
        lead = re.match(r"(?:\W*\b(?:bitte|alsjeblieft|kannst|k[öo]nntest|kun|kan|du|je)\b)*\W*", said, re.IGNORECASE)
        begin = lead.end() if lead else 0
        before, rest = _words(said[:begin]), _TAIL.sub("", said[begin : verb.start()])
        denied = bool(re.search(r"\b(?:nicht|niet)\W*$", said[: verb.start()], re.IGNORECASE))
        after = "nicht" if denied else ""
        if not (before or denied):
            return None
    asked = bool(_ASKS_YOU & set(before))
    denied = bool(_NOT & {*before, *_words(after)[:1], *_words(after)[-3:]})
    allowed = _NEGATED if verb["keep"] and denied else _BEFORE
    if not set(before) <= allowed or ({"i", "ich", "we", "je"} & set(before) and not asked):
        return None
    if before[:2] == ["you", "don't"] and before[2:] != ["need", "to"]:
        return None
    if before[:1] == ["you"] and before[1:2] not in (["can"], ["should"], ["must"], ["may"], ["needn't"], ["don't"]):
        return None
    if said.rstrip().endswith("?") and not (asked and before[:1] != ["don't"]):
        return None
    sure = _MEMORY.search(rest) is not None
    rest = re.sub(r"^\W*(?:pas|nicht|niet)\b\W*", "", rest) if verb["keep"] else rest
    wanted = _LEADING.sub("", _TAIL.sub("", _MEMORY.sub("", rest)))
    if (verb["keep"] and not denied and not sure) or (verb["clear"] and not sure):
        return None
    polite = asked or sure or denied or bool(_POLITE & set(_words(said)))
    found = _object(wanted, polite=polite)
    if found is None or verb["forget"] or sure:
        return found
    about = _ABOUT.match(wanted)
    own = found[1] != "thing" or _OWN.match(wanted) is not None or (about is not None and about["thing"] is not None)
    return found if own and not _ELSEWHERE.search(found[0] if found[1] == "thing" else "") else None


def _words(text: str) -> list[str]:
    return [word.casefold().replace("\u2019", "'") for word in _WORD.findall(text)]


def _object(wanted: str, *, polite: bool) -> tuple[str, Sort] | None:
    """The object of an order to forget; None if one would have to guess it."""
    plain = _TAIL.sub("", _WHY.sub("", wanted))
    if _SAID.match(plain):
        return ("", "said") if polite or plain.casefold().startswith("wha") else None
    if not plain or _NO_OBJECT.match(plain):
        return None
    if everything := _EVERYTHING.match(plain):
        return f"everything about {everything['about']}", "everything"
    if statement := _STATEMENT.match(plain):
        return plain[statement.end() :], "statement"
    if _NEVER_MIND.search(wanted) and not polite:
        return None
    if own := _OWN.match(plain):
        return own["thing"], "thing"
    thing = _ABOUT.match(plain)
    return (_ABOUT.sub("", plain), "thing") if polite or (thing and thing["thing"]) else None
