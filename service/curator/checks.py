"""Checks of a model's answer about a fact and a memory, by comparing the texts.

What cannot be checked is left to the model: it may know that a vegan no longer likes steak, the rules do not.
"""

from __future__ import annotations

from collections.abc import Sequence

from service.curator import offline
from service.language import contrast, facts
from service.language.facts import StatedFact
from service.language.facts.echo import content_words

MAX_ADDED_CHARS = 500
"""How much longer than the fact and the memory together a text that unites them may be."""


def is_grounded(text: str, fact: str, memory: str) -> bool:
    """Whether a written text speaks of the fact, or of the memory it replaces ("" for none), and is not
    too long."""
    if len(text) > len(fact) + len(memory) + MAX_ADDED_CHARS:
        return False
    known = content_words(fact) | content_words(memory)
    return not known or bool(known & content_words(text))


def overwrites(text: str, fact: str, memory: str) -> bool:
    """Whether an update leaves nothing of a memory about something else: "moved to Porto" does not
    replace "owns a dog"."""
    return apart(fact, memory) and not content_words(text) & content_words(memory)


def is_news(fact: StatedFact, memory: str, similarity: float, shown: Sequence[str]) -> bool:
    """Whether a fact is no repetition of the memory that is said to hold it: it has a figure that none of those shown
    has, is about something else, or says otherwise."""
    if not contrast.keeps_figures(" ".join(shown), fact.text) or apart(fact.text, memory):
        return True
    return offline.contradicts(fact, offline.ShownMemory(0, memory, similarity))


def apart(fact: str, memory: str) -> bool:
    """Whether both are known to be about different attributes, or persons, and have no word in common."""
    here, there = facts.read(fact), facts.read(memory)
    if here is None or there is None or not here.slot or not there.slot:
        return False
    return (here.subject, here.slot) != (there.subject, there.slot) and not content_words(fact) & content_words(memory)
