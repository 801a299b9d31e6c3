"""Recognises English, the one language that the rules read.

"Me llamo Ana" holds an English "me", "Mieszkam w Krakowie i mam kota" an "i": read as English they give nonsense. What
is no English stays a turn, and no fact is made of it.
"""

from __future__ import annotations

import re
from functools import lru_cache

from service.language import wordlists
from service.language.common_words import FUNCTION_WORDS, is_common
from service.language.facts import verbs

ENGLISH = 0.25
"""Share of its words that a sentence needs from English: running text has twice that, a list of names little less."""

_SHORT = 4  # words: "vegan btw" and "Berlin" say nothing about their language
# The commonest words of other languages, without those that are English words too ("die", "also", "me").
_FOREIGN = wordlists.words("""
    ich du er sie wir ihr und oder aber nicht kein keine keinen ein eine einen einem einer der das ist bin sind mein
    meine meinen habe hat mit für auf aus von zu wohne heiße arbeite als mag auch noch jetzt ja nein dass
    el la los las una unos unas del y en con por para que es soy eres está estoy mi mis su sus se lo le pero muy más yo
    vivo tengo trabajo llamo gusta gustan años mujer de
    je tu il elle nous vous et ou mais le les un une des du est suis sont mon ma mes avec dans sur pas ne ai habite
    io sono ho hai il gli di da che e non mia mio abito lavoro anni sul alla della nel
    eu sou tenho um uma os em com não meu minha moro trabalho sim
    ik ben heb een het van niet mijn woon werk hebben maar ook naar voor twee jaar
    jag är och att det som på har inte min mitt bor jeg er og ikke bor
    nie jest się mam i w z na mieszkam pracuję ale bir ve bu için
""") - wordlists.words("""
    a me no on i as is in do to am so us an at or my he we be it hat bin ale son con ben van les der due come par um los
""")
_WORD = re.compile(r"[^\W\d_]+")


@lru_cache(maxsize=256)  # every clause of a sentence asks for its sentence
def is_english(text: str) -> bool:
    """Returns whether a text may be English; True for a few words, which could be anything."""
    words = [word.lower() for word in _WORD.findall(text.replace("’", "'"))]
    foreign = sum(word in _FOREIGN for word in words)
    if len(words) < _SHORT and not (foreign and foreign * 2 >= len(words)):
        return True
    english = sum(_known(word) for word in words)
    return english > foreign and english >= ENGLISH * len(words)


def _known(word: str) -> bool:
    return word not in _FOREIGN and (word in FUNCTION_WORDS or is_common(word) or verbs.form(word) is not None)
