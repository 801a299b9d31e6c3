"""Recognises sentences about a single instance of what another one says is usual. Pure; doubtful pairs are not matched.

"Ran the slow tests before deploying billing" is an example of "Usually runs tests before deploying": it has all of its
content words, in the same order, and as many negations.
"""

from __future__ import annotations

from typing import Final

from service.language.lexemes import count_negations, lexemes, term_id

MIN_WORDS: Final = 3
"""The least number of content words of a pattern: with fewer, any sentence would be an example."""

FREQUENCY: Final = frozenset(
    lexemes("usually typically tend tends often consistently generally commonly frequently normally")
)
"""Words that say that something is usual; an example need not repeat them."""

FREQUENCY_TERMS: Final = sorted(term_id(each) for each in FREQUENCY)


def share(text: str, pattern: str) -> float | None:
    """How much of the text is the pattern (0..1), if it is an example of it; else None, as for a question."""
    usual = [term for term in lexemes(pattern) if term not in FREQUENCY]
    said = lexemes(text)
    rest = iter(said)
    if len(set(usual)) < MIN_WORDS or text.rstrip().endswith("?") or not all(each in rest for each in usual):
        return None
    if count_negations(said) != count_negations(usual):
        return None
    return len(set(usual)) / len(set(said))
