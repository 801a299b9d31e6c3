"""Finds where a new statement begins in a sentence without stops.

"we don't have a car we just use the bikes" is two statements, "I love the car we bought" one: behind a noun "we bought"
says which car. A verb with an object of its own, or a form of "be" with something behind it, starts a statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from service.language import wordlists
from service.language.facts import person, verbs

_START = re.compile(
    r"(?<=[\w'’)])(?P<gap>\s+)(?:"
    r"(?P<be>(?:I|we|he|she|they)['’](?:m|re|s)|I am|we are|my [a-z]+(?:['’]s| is| are| has))\s+(?P<state>[\w'’-]+)"
    r"|(?:I|we)(?:['’]ve)?\s+(?:(?:also|just|really|only|never|always|usually|mostly|still|then|now)\s+)*"
    r"(?P<verb>[a-z]+(?:n['’]t)?)\s+(?P<object>an?|the|my|our|two|three|four|five|\d+|to (?=[a-z]+\b)|so|no|any|some)"
    r"\s+(?P<head>[\w'’-]+))",
    re.IGNORECASE,
)
# A word that leads on to the pronoun behind it: "the way I ...", "I think I ...", "because I ...", "told me I ..."
_LEADS_ON = wordlists.words("""
    that which who whom what where when why how if whether because cause since as than while although though until till
    before after once unless so and but or like whenever wherever whatever think thought guess believe know knew say
    said says tell told hope wish feel feels felt mean means suppose realize realized realised find found decide decided
    swear bet sure afraid glad happy sad sorry aware fact way time thing things reason problem day moment year week
    night place point everything anything something nothing all only every each first last me him her them us you
    everyone people the a an my our his their this these those of in on at to for with from by about between without
    see saw hear heard notice noticed imagine pretend assume say saying says thinking hoping knowing is are was were
    not even especially just whereas seeing given provided considering maybe perhaps probably
    do does did can could should would will must may might have has had am
    actually yes yeah no well hi hey hello ok okay sometimes now then today
""")
_LAPSED = wordlists.words("other last next same way night day week weekend month year summer morning evening moment")


def starts(sentence: str) -> Iterator[tuple[int, int]]:
    """Yields the half-open gaps before a statement that nothing but a blank parts from the one before, in order."""
    found = {*_after_nouns(sentence), *(_typed(sentence) if not _CAPITAL.search(sentence) else ())}
    yield from sorted(found)


def _after_nouns(sentence: str) -> Iterator[tuple[int, int]]:
    for match in _START.finditer(sentence):
        if _led(sentence[: match.start()]):
            continue
        if match["be"]:
            begins = not _says_which(match["state"].lower())
        else:
            begins = _is_verb(match["verb"].lower()) and match["head"].lower() not in _LAPSED
        if begins:
            yield match.span("gap")


def _led(before: str) -> bool:
    """Whether the last word leads on to what follows."""
    if _WEEK.search(before):
        return False
    last = before.rsplit(None, 1)[-1].lower()
    return last.strip("'’") in _LEADS_ON or last[-1:] in ",;:"


_WEEK = re.compile(r"\b(?:last|next|this|every|per|a) (?:day|week|month|year|night|time)$", re.IGNORECASE)


_CAPITAL = re.compile(r"(?<=[^\W_])\W+(?!I\b)[A-Z]")
"""A sentence with a capital in it was typed with some care; without one, stops may be missing anywhere."""
_ADVERBS = r"(?:(?:also|just|really|only|never|always|usually|mostly|still|then|now|even|actually|both|already)\s+)*"
_WHO = re.compile(
    rf"(?<=[\w'’)])(?P<gap>\s+)(?:(?:now|then|so|but|also|plus)\s+)?(?:(?P<be>(?:i|we|he|she|they|it)['’](?:m|re|s|ve|d)"
    rf"|i am|(?:we|they) are|(?:he|she|it) (?:is|has|was)|(?:i|we|they) (?:was|were|have))"
    rf"|(?:i|we|he|she|they|(?P<it>it))\s+{_ADVERBS}(?P<verb>[a-z]+(?:n['’]t)?)"
    rf"|(?<!\bmy )(?<!\bour )(?<!\bthe )(?<!\bnew )(?<!\bold )(?<!\ba )(?:landlord|landlady|boss|wife|husband"
    rf"|kids) (?:is|are|has|says?|wants?)\b"
    rf"|(?P<mine>my) [a-z]+(?:['’]s| is| are| has| was| {_ADVERBS}(?P<does>[a-z]+(?P<denied>n['’]t)?)))"
    r"(?=(?P<rest>\s+[^\W_].*|$))",
    re.IGNORECASE,
)
# "the one i met last year", "the food i like most": what follows the verb is no object of it
_GAPPED = wordlists.words("""
    last next this yesterday today tomorrow when while before after until till since every ago recently most best more
    least lots too so much and or but is was are were has had will would can could should though because
""")
_PREPOSED = wordlists.words("in on at to with from for about of into by near")
# "flat in leicester need bigger place": one place needs nothing without an s
_WANTS = re.compile(
    r"(?<=[^\W\ds])(?P<gap>\s+)(?P<verb>need|want|love|hate|live|work|prefer|like|been|got|never|dont|don['’]t)"
    r"(?=\s+(?P<rest>[^\W_].*))",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"\W*(?:do|does|did|can|could|will|would|should|what|who|how|why|where|when|which|let|make|help|if)\b"
)
_BEEN = re.compile(r"(?:\w+ing|here|there|together|sober|off|in|at|with|to|on)\b", re.IGNORECASE)
_OPINION = re.compile(r"\b(?:think|know|hope|guess|say|says|said|believe|wish|see|hear|watch|make|makes|let|to|help)\b")
_I = re.compile(r"\b(?:i|we|my)\b", re.IGNORECASE)


def _typed(sentence: str) -> Iterator[tuple[int, int]]:
    """The gaps in a sentence typed without capitals and stops: "dont like the gym i swim instead"."""
    for match in _WHO.finditer(sentence):
        before, rest = sentence[: match.start()], match["rest"].lower()
        verb = (match["verb"] or match["does"] or "").lower()
        taken = (match["mine"] or match["it"]) and _takes(before)  # "I love my dog", "I need it"
        if _led(before) or taken or (_gapped(rest) if rest else not match["denied"]):
            continue
        if match["be"] or not verb or _is_finite(verb):
            yield match.span("gap")
    for match in _WANTS.finditer(sentence):
        before = sentence[: match.start()]
        last = before.rsplit(None, 1)[-1].lower()
        if match["verb"].lower() == "never" and not _takes(before):
            continue
        if match["verb"].lower() == "been" and not _BEEN.match(match["rest"]):  # "a shop been open two years"
            continue
        stands = (
            (_I.search(before) or _is_past(before.split()[0].lower()))
            and not (_ASKS.match(before) or _OPINION.search(before))
            and len(before.split()) > 2
        )
        if (
            stands
            and "'" not in last
            and not (last in _NO_END or person.is_adverb(last) or _gapped(match["rest"].lower()))
        ):
            yield match.span("gap")


_NO_END = _LEADS_ON - {"me", "him", "her", "it"} | wordlists.words("i we they not don't dont didn't didnt can't cant")


def _gapped(rest: str) -> bool:
    """Whether what follows a verb is none of its objects, so that the clause may tell which thing is meant."""
    words = [*rest.split()[:4], "", ""]
    ends = (next_ in _GAPPED or not next_ or _is_third(next_) for word, next_ in pairwise(words) if word in _PREPOSED)
    return words[0] in _GAPPED or any(ends)


def _takes(before: str) -> bool:
    """Whether the last word is a verb that may have what follows for its object."""
    known = verbs.form(before.rsplit(None, 1)[-1].lower())
    return known is not None and known.shape != "ing"


def _is_third(word: str) -> bool:
    known = verbs.form(word)
    return known is not None and known.shape == "third"


def _is_past(word: str) -> bool:
    known = verbs.form(word)
    return known is not None and known.shape == "past"


def _is_finite(word: str) -> bool:
    known = verbs.form(word)
    return word.endswith("n't") or (known is not None and known.shape in ("base", "past", "third"))


def _says_which(word: str) -> bool:
    """Whether "I'm dating", "I'm proud of" may belong to the noun before: a participle in -ing or a word of time."""
    known = verbs.form(word)
    return (known is not None and known.shape == "ing") or word in _LAPSED or word in ("today", "now", "in", "at", "on")


def _is_verb(word: str) -> bool:
    known = verbs.form(word)
    return word.endswith("n't") or (known is not None and known.shape in ("base", "past"))
