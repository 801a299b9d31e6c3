"""Does a turn merely repeat what was just recalled to it?

An agent that says its context back would store it again, and again. What adds a name, a figure, a denial or a content
word of its own is no echo.
"""

from __future__ import annotations

from collections.abc import Sequence

from service.language import contrast, sentences, wordlists
from service.language.facts import cues, person
from service.language.lexemes import lexemes
from service.language.opposites import canonical

COVERED = 0.9
"""Share of a sentence's content words that one memory must have for the sentence to be its echo."""

_FRAME = frozenset(
    stem
    for word in wordlists.words(
        "user remember recall mention mentioned told said know note noted earlier assistant based previous"
        " according memory memories"
    )
    for stem in lexemes(word)
)


def is_echo(text: str, recalled: Sequence[str]) -> bool:
    """Returns whether every sentence of `text` is said by one of the recalled memories; False for a blank text."""
    spoken = [text[start:end] for start, end in sentences.split(text)]
    told = [sentence for sentence in spoken if _content(sentence)]
    memories = [(memory, _content(memory)) for memory in recalled]
    return bool(told) and all(any(_repeats(sentence, memory, words) for memory, words in memories) for sentence in told)


def _repeats(sentence: str, memory: str, words: frozenset[str]) -> bool:
    own = _content(sentence)
    if not own or len(own & words) / len(own) < COVERED:
        return False
    here, there = contrast.signature(sentence), contrast.signature(memory)
    return (
        here.numbers <= there.numbers
        and here.negations == there.negations
        and not contrast.names_only_in(sentence, memory)
    )


def _content(text: str) -> frozenset[str]:
    bare = cues.strip(person.expand(text)).text
    return frozenset(canonical(lexemes(bare))) - _FRAME
