"""Who does what, and is it so: the skeleton of a sentence told in the third person.

"User no longer works at Acme" is about the user, its verb is "work", its rest "at Acme", and it is over. Made for the
sentences `person` writes, and for stored memories, which may leave the subject out ("works at Acme").
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from service.language import wordlists
from service.language.facts import person, verbs
from service.language.facts.fact import USER

MAX_CHARS = 600  # of a text: its first clause stands there


@dataclass(frozen=True, slots=True)
class Statement:
    """`subject`: "user", "user's sister", or a name; `verb`: base form ("" if none is seen); `rest`: what follows it.

    `negative`: denied; `ended`: it was so and is no longer; `past`: told as gone by; `future`: still to come;
    `begun`: it has just started or started again;
    `maybe`: behind "might" or "could"; `able`: behind "can"; `wish`: behind "would".
    """

    subject: str
    verb: str = ""
    rest: str = ""
    negative: bool = False
    ended: bool = False
    past: bool = False
    future: bool = False
    begun: bool = False
    maybe: bool = False
    able: bool = False
    wish: bool = False
    progressive: bool = False
    perfect: bool = False

    @property
    def holds(self) -> bool:
        """Whether it is claimed to be so, now or ahead."""
        return not (self.negative or self.ended)


def once(text: str) -> str | None:
    """Returns a sentence about what is so as one about what used to be: "User drives a bus"; None for others."""
    said = parse(text)
    if not (said.verb and said.holds) or said.past or said.future or said.perfect or said.progressive:
        return None
    before = text[: len(text) - len(said.rest)].split()
    return " ".join([*before[:-1], "used to", said.verb, said.rest]).strip() if text.endswith(said.rest) else None


_BE = wordlists.words("is are was were am isn't aren't wasn't weren't be been")
_HAVE = wordlists.words("has have had hasn't haven't hadn't having")
_DO = wordlists.words("do does did don't doesn't didn't")
_MODALS = wordlists.words("can could may might should must cannot can't couldn't shouldn't mustn't")
_OPEN = wordlists.words("could may might should")
_FINITE = _BE | _HAVE | _DO | _MODALS | wordlists.words("will would won't wouldn't used shall")
_NO_PARTICIPLES = wordlists.words("set cut read let left lost put hurt felt found cost bet split open")
_NOT_ING = wordlists.words(
    "interesting boring amazing exciting nothing something anything everything king ring evening morning"
    " outgoing challenging"
)
_SPEAKERS = wordlists.words("user client customer i we user's")
_ANY_MORE = re.compile(r"[\s,]+(?:any ?more|any longer|no more|no longer)(?=$|[\s,.])", re.IGNORECASE)
_AGAIN = re.compile(r"[\s,]+again(?=$|[\s,.])", re.IGNORECASE)
_DOUBT = re.compile(
    r"^(?:the )?(\w+) (?:thinks?|believes?|guesses|supposes?|assumes?|feels?|says?|said|mentioned|reported"
    r"|stated) (?:that )?(?:they|he|she)\b",
    re.IGNORECASE,
)
_KEYED = re.compile(r"^([A-Za-z][A-Za-z ]{2,24}):\s+(\S.*)$")
_WHILE = re.compile(
    r"(?<=\w) (?:these days|right now|at the moment|at present|nowadays|currently|now|this (?:year|month|week|season))$"
)
_FRONTED = re.compile(
    r"^(?:(?:in|on|since|from|as of|starting|until|after|before|for|at|during|every|last|next|this|these|most|by"
    r"|back in|up until|a few|two|three|one|\d+|some|when|while|now that|growing up|nowadays"
    r"|today|yesterday|tomorrow|now|currently|recently|lately|right now|these days|at the moment|originally"
    r"|usually|sometimes|actually|previously|formerly|once upon a time|as|because|although|though|even though"
    r"|once|despite|besides|apart from|with|to)\b[^,]{0,80}?,?\s+)(?=(?:the )?user\b)",
    re.IGNORECASE,
)
_NONE = re.compile(r"(?:none|neither|not one) of (?=(?:the )?user's\b)", re.IGNORECASE)


@lru_cache(maxsize=4096)
def parse(text: str) -> Statement:
    """Returns the skeleton of the first clause of a text told in the third person; a verb alone speaks of the user."""
    text = text[:MAX_CHARS]
    keyed = _KEYED.match(text)
    text = person.expand(f"User's {keyed.group(1).lower()} is {keyed.group(2)}" if keyed else text).strip(" .!\n\t")
    text = _DOUBT.sub(r"\1", text)
    text = _FRONTED.sub("", text)
    none = _NONE.match(text)
    if none:
        return replace(parse(text[none.end() :]), negative=True)
    subject, predicate = _subject(text)
    subject = _WHILE.sub("", subject)
    ended, again = _ANY_MORE.search(predicate), _AGAIN.search(predicate)
    predicate = _AGAIN.sub("", _ANY_MORE.sub("", predicate))
    found = _predicate(predicate.split(), Statement(subject))
    return replace(found, ended=found.ended or ended is not None, begun=found.begun or again is not None)


def names_user(text: str) -> bool:
    """Returns whether the user stands where the subject does; "Gives User joy" has none."""
    return (
        re.match(
            r"(?:the )?user\b|(?:both|all|some|one|two|three|most|half|none|neither|not one) (?:of )?user's\b",
            _FRONTED.sub("", _DOUBT.sub(r"\1", text)),
            re.IGNORECASE,
        )
        is not None
    )


def _subject(text: str) -> tuple[str, str]:
    """The subject, normalised, and what stands behind it."""
    words = text.split()
    if words[:1] and words[0].lower() == "the" and words[1:2] and words[1].lower() in _SPEAKERS | {"user's"}:
        words = words[1:]
    if not words:
        return USER, ""
    first = words[0].lower()
    if first in ("user's", "client's", "my", "our"):
        at = _finite_at(words, 1)
        return (
            (f"{USER}'s {' '.join(words[1:at]).lower()}", " ".join(words[at:]))
            if at
            else (USER, "" if len(words) < 4 else " ".join(words))
        )
    if first in _SPEAKERS:
        if words[1:2] == ["and"]:
            at = next(
                (
                    n
                    for n in range(4, min(len(words), 8))
                    if words[n].lower() in _FINITE or verbs.form(words[n].lower())
                ),
                0,
            )
            return USER, " ".join(words[at:] if at else words[1:])
        return USER, " ".join(words[1:])
    if _opens_predicate(words):
        return USER, " ".join(words)
    at = _finite_at(words, 1)
    if not at or at > 7:
        return USER, " ".join(words)
    head = words[1:at] if first in ("the", "a", "an", "this") else words[:at]
    return " ".join(head), " ".join(words[at:])


def _opens_predicate(words: list[str]) -> bool:
    first = words[0].lower()
    if first in _FINITE or first in ("not", "never", "no") or person.is_adverb(first):
        return True
    known = verbs.form(first)
    if known is None:
        return False
    if known.shape == "base":
        return words[0].islower() or (
            len(words) > 1 and words[1].lower() in ("in", "at", "to", "a", "an", "the", "as", "for")
        )
    return known.shape in ("third", "past", "ing") and not (len(words) > 1 and words[1].lower() in _BE)


def _finite_at(words: list[str], start: int) -> int:
    """Where the verb group begins at or after `start`, 0 when there is none within reach."""
    for at in range(start, min(len(words), start + 9)):
        low = words[at].lower().strip(",")
        known = verbs.form(low)
        if low in _FINITE or low in (
            "never",
            "no",
            "now",
            "also",
            "still",
            "currently",
            "recently",
            "not",
            "just",
            "always",
            "usually",
            "really",
        ):
            return at
        if (
            known
            and known.shape in ("third", "past")
            and at > start - 1
            and (at > start or start == 0 or words[at - 1].lower() != "user's")
        ):
            return at
        if low.endswith("ed") and at > start:
            return at
    return 0


def _predicate(words: list[str], s: Statement) -> Statement:
    """Reads auxiliaries, denials and adverbs off the front until the verb itself is reached."""
    for at, word in enumerate(words):
        low = word.lower().strip(",")
        rest = words[at + 1 :]
        following = _next(rest)
        if low in ("not", "never", "hardly", "rarely", "seldom", "neither"):
            s = replace(s, negative=True)
        elif low == "no" and following == "longer":
            return _predicate(rest[1:], replace(s, ended=True))
        elif low in ("formerly", "previously", "once"):
            s = replace(s, past=True)
        elif person.is_adverb(low) and low not in ("long", "too"):
            continue
        elif low in _DO and (low.endswith("n't") or following == "not" or _is(following, "base")):
            s = replace(s, negative=s.negative or low.endswith("n't"), past=s.past or low.startswith("did"))
        elif low in ("will", "won't", "shall"):
            s = replace(s, future=True, negative=s.negative or low == "won't")
        elif low in ("would", "wouldn't"):
            s = replace(s, wish=True, negative=s.negative or low == "wouldn't")
        elif low in _MODALS:
            s = replace(
                s, able=low.startswith("c"), maybe=low in _OPEN, negative=s.negative or low.endswith(("n't", "not"))
            )
        elif low == "used" and following == "to":
            return _predicate(rest[1:], replace(s, ended=True, past=True))
        elif low in _BE:
            s = replace(s, negative=s.negative or low.endswith("n't"), past=s.past or low in ("was", "were", "wasn't"))
            return _be(rest, s)
        elif low in _HAVE and _perfect(rest):
            s = replace(s, negative=s.negative or low.endswith("n't"), perfect=True)
        else:
            return _main(low, rest, s)
    return s


def _next(rest: list[str]) -> str:
    return next((word.lower() for word in rest if not person.is_adverb(word.lower())), "")


def _is(word: str, *shapes: str) -> bool:
    known = verbs.form(word)
    return known is not None and known.shape in shapes


def _perfect(rest: list[str]) -> bool:
    """Whether "has" is only an auxiliary here."""
    following = next(
        (w.lower() for w in rest if w.lower() not in ("not", "never") and not person.is_adverb(w.lower())), ""
    )
    if following == "cut" and {"down", "back", "out"} & set(rest[:4]):
        return True
    return following not in _NO_PARTICIPLES and (
        following == "been" or _is(following, "past", "participle") or following in ("become", "come", "run")
    )


def _be(rest: list[str], s: Statement) -> Statement:
    """Behind a form of "be": a progressive, a plan, or what somebody is."""
    while rest:
        low = rest[0].lower().strip(",")
        if low in ("not", "never"):
            s = replace(s, negative=True)
        elif low == "no" and rest[1:2] == ["longer"]:
            s, rest = replace(s, ended=True), rest[1:]
        elif not (person.is_adverb(low) and low not in ("long", "too", "originally", "both")):
            break
        rest = rest[1:]
    if not rest:
        return replace(s, verb="be")
    low = rest[0].lower()
    if low == "going" and rest[1:2] == ["to"] and len(rest) > 2 and _is(rest[2].lower(), "base"):
        return _predicate(rest[2:], replace(s, future=True))
    if low == "about" and rest[1:2] == ["to"]:
        return _predicate(rest[2:], replace(s, future=True))
    if low == "back" and rest[1:2] == ["to"] and len(rest) > 2 and _is(rest[2].lower(), "ing"):
        return replace(s, verb=verbs.lemma(rest[2].lower()), rest=" ".join(rest[3:]), begun=True)
    if low == "originally":
        return replace(s, verb="be", rest=" ".join(rest[1:]))
    if re.search(
        r"\b(?:hobby|hobbies|passion|favou?rite [\w ]+|goal|dream|interests?|pleasure|resolution|job)$", s.subject
    ):
        return replace(s, verb="be", rest=" ".join(rest))
    if low.endswith("ing") and low not in _NOT_ING and (verbs.form(low) or len(low) > 5):
        return replace(_main(low, rest[1:], s), progressive=True)
    return replace(s, verb="be", rest=" ".join(rest))


_ENDING = wordlists.words("stop quit cease finish")
_BEGINNING = wordlists.words("start begin resume continue keep restart")


def _main(low: str, rest: list[str], s: Statement) -> Statement:
    """The main verb; "stopped smoking" and "started to smoke" are about smoking."""
    verb = verbs.lemma(low)
    past = s.past or (verbs.is_past(low) and not s.perfect)
    if rest and verb in _ENDING and rest[0].lower().endswith("ing") and _is(rest[0].lower(), "ing"):
        return replace(s, verb=verbs.lemma(rest[0].lower()), rest=" ".join(rest[1:]), ended=not s.negative)
    if verb == "know" and rest[:2] == ["how", "to"] and len(rest) > 2:
        return replace(s, verb=rest[2].lower(), rest=" ".join(rest[3:]), able=True)
    if verb == "give" and rest[:1] == ["up"]:
        inner = rest[1].lower() if rest[1:] else ""
        if _is(inner, "ing"):
            return replace(s, verb=verbs.lemma(inner), rest=" ".join(rest[2:]), ended=True)
        return replace(s, verb="quit", rest=" ".join(rest[1:]), ended=True)
    if verb in _BEGINNING and rest:
        skip = 1 if rest[0] == "to" else 0
        inner = rest[skip].lower() if rest[skip:] else ""
        if _is(inner, "base" if skip else "ing"):
            return replace(s, verb=verbs.lemma(inner), rest=" ".join(rest[skip + 1 :]), begun=True)
    if verb == "cut" and rest[:2] in (["down", "to"], ["back", "to"]) and len(rest) > 2 and _is(rest[2].lower(), "ing"):
        return replace(s, verb=verbs.lemma(rest[2].lower()), rest=" ".join(rest[3:]), begun=True)
    if (
        verb in ("go", "get")
        and rest[:2] in (["back", "to"], ["back", "into"])
        and len(rest) > 2
        and _is(rest[2].lower(), "ing")
    ):
        return replace(s, verb=verbs.lemma(rest[2].lower()), rest=" ".join(rest[3:]), begun=True)
    return replace(s, verb=verb, rest=" ".join(rest), past=past, ended=s.ended or verb == "quit")
