"""Detects sentences that merely repeat what was just recalled.

An agent that says its context back would store it again, and again. What adds a name, a figure, a denial or a content
word of its own is no echo.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from service.language import claims, contrast, sentences, wordlists
from service.language.lexemes import lexemes

COVERED = 0.9
"""Share of a sentence's content words that one memory must have for the sentence to be its echo."""

_JOINT = re.compile(r"\s*[,;]\s+(?:and |but |who |which |that )?|\s+(?:and|but|while|whereas|as well as|who|which)\s+")
_FRONT = re.compile(r"^Assistant(?:, (?:asked|after)\b[^“”]*“[^”]*”)?: ")
"""An assistant in front of a quote, with what was asked before it."""

_YOU = (
    (re.compile(r"\byou(?: are|['’]re)\b", re.I), "User is"),
    (re.compile(r"\byou(?: have|['’]ve)\b", re.I), "User has"),
    (re.compile(r"\byours?\b", re.I), "User's"),
    (re.compile(r"\byou\b", re.I), "User"),
)
_FRAME = frozenset(
    stem
    for word in wordlists.words(
        "user remember recall mention mentioned told said know note noted earlier assistant based previous"
        " according memory memories"
    )
    for stem in lexemes(word)
)


def is_echo(text: str, recalled: Sequence[str]) -> bool:
    """Returns whether every sentence of `text` is said by one of the recalled memories, or clause by clause by several
    of them; False for a blank text."""
    said = _FRONT.sub("", text)
    spoken = [_of_the_user(said[start:end]) for start, end in sentences.split(said)]
    told = [sentence for sentence in spoken if content_words(sentence)]
    memories = [(memory, content_words(memory)) for memory in recalled]
    return bool(told) and all(_said(sentence, memories) for sentence in told)


def content_words(text: str) -> frozenset[str]:
    """Stems of what a text says, without its person, its opening words and talk of remembering."""
    return frozenset(claims.read(text).words) - _FRAME


def _of_the_user(sentence: str) -> str:
    """An assistant speaks to the user: "you live in Oslo" is "User lives in Oslo"."""
    for pattern, instead in _YOU:
        sentence = pattern.sub(instead, sentence)
    return sentence


def _said(sentence: str, memories: Sequence[tuple[str, frozenset[str]]]) -> bool:
    if any(_repeats(sentence, memory, words) for memory, words in memories):
        return True
    parts = [part for part in _JOINT.split(sentence) if content_words(part)]
    each = len(parts) > 1 and all(any(_repeats(part, memory, words) for memory, words in memories) for part in parts)
    return each or _recombines(sentence, memories)


def _recombines(sentence: str, memories: Sequence[tuple[str, frozenset[str]]]) -> bool:
    """Whether several memories of the user together say it all, run on: "lives in Ghent with their beagle Otto". No
    denial may take part, and of each memory at least half must be there."""
    if claims.read(sentence).subject:  # "User's sister lives in Oslo" is none of "User lives in Oslo"
        return False
    own, here = content_words(sentence), contrast.signature(sentence)
    parts = [
        (memory, words)
        for memory, words in memories
        if len(words & own) * 2 >= len(words)
        and not claims.read(memory).subject
        and not contrast.signature(memory).negations
    ]
    together = " ".join(memory for memory, _ in parts)
    return (
        len(parts) > 1
        and not here.negations
        and own <= frozenset[str]().union(*(words for _, words in parts))
        and here.numbers <= contrast.signature(together).numbers
        and not any(contrast.tense_differs(sentence, memory) for memory, _ in parts)
    )


def _repeats(sentence: str, memory: str, words: frozenset[str]) -> bool:
    own = content_words(sentence)
    if not own or len(own & words) / len(own) < COVERED:
        return False
    here, there = contrast.signature(sentence), contrast.signature(memory)
    return (
        here.numbers <= there.numbers
        and here.negations == there.negations
        and not contrast.names_only_in(sentence, memory)
        and not contrast.tense_differs(sentence, memory)
    )
