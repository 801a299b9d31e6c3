"""Where does a sentence without stops begin anew?

"we don't have a car we just use the bikes" is two statements, "I love the car we bought" one: behind a noun "we bought"
says which car. A verb with an object of its own, or a form of "be" with something behind it, starts a statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from service.language import wordlists
from service.language.facts import verbs

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
    actually yes yeah no well hi hey hello ok okay sometimes now then today
""")
_LAPSED = wordlists.words("other last next same way night day week weekend month year summer morning evening moment")


def starts(sentence: str) -> Iterator[tuple[int, int]]:
    """Yields the half-open gaps before a statement that nothing but a blank parts from the one before."""
    for match in _START.finditer(sentence):
        before = sentence[: match.start()].rsplit(None, 1)[-1].lower()
        if before.strip("'’") in _LEADS_ON or before[-1:] in ",;:":
            continue
        if match["be"]:
            begins = not _says_which(match["state"].lower())
        else:
            begins = _is_verb(match["verb"].lower()) and match["head"].lower() not in _LAPSED
        if begins:
            yield match.span("gap")


def _says_which(word: str) -> bool:
    """Whether "I'm dating", "I'm proud of" may belong to the noun before: a participle in -ing or a word of time."""
    known = verbs.form(word)
    return (known is not None and known.shape == "ing") or word in _LAPSED or word in ("today", "now", "in", "at", "on")


def _is_verb(word: str) -> bool:
    known = verbs.form(word)
    return word.endswith("n't") or (known is not None and known.shape in ("base", "past"))
