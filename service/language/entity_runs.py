"""Stretches of a sentence that look like names.

A run is a stretch of capitalised words ("Zelda Fitzroy", "University of Graz", "FastAPI", "GPT-4o"), cleaned of what
is capitalised for another reason: the first word of a sentence, weekdays and months, nationalities, headlines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from service.language import entity_words
from service.language.common_words import FUNCTION_WORDS, is_common
from service.language.gazetteer import CALENDAR, FIRST_NAMES, LONGEST_NAME_WORDS, NAMES, PLAIN_CAPITALS

# Links, addresses, paths, placeholders and code names may hold capitals, but no names of things.
_NOISE = re.compile(
    r"https?://\S+|www\.\S+|(?<!\S)[^\s@]+@\S+\.\w+|\[REDACTED[^\]]*\]|(?<![\w.~/-])(?:[\w.~-]*/){2,}[\w.-]*"
    r"|\b\w*_\w+|\b\w+\(\)|</?\w+>"
)
_TOKEN = re.compile(r"\.NET\b|[^\W_](?:[^\W_]|[+#](?!\w)|[-.'’&](?=[^\W_]))*", re.UNICODE)
_STARTS_ANEW = re.compile(r"[:•*>|#]\s*$|^\s*[-–—]\s*$|[\"“(\[]$|\d[.)]\s+$")
_HEADLINE_SHARE, _HEADLINE_WORDS = 0.7, 4
_ORDINARY_ENDINGS = ("ing", "ed", "ly")


@dataclass(frozen=True, slots=True)
class Token:
    """A word with its span; `gap` is the text between the word before and this one; `initial`: capital by position."""

    text: str
    lower: str
    start: int
    end: int
    gap: str
    initial: bool
    possessive: bool

    @property
    def capital(self) -> bool:
        """Whether it is spelled like a name: Berlin, FastAPI, iPhone, .NET."""
        first = self.text[0]
        return first.isupper() or first == "." or (first.islower() and self.text[1:2].isupper() and len(self.text) > 3)


def quiet(text: str) -> str:
    """Returns the text, same length, with links, paths, placeholders and code names blotted out."""
    return _NOISE.sub(lambda match: "\x1f" * len(match.group()), text)


def tokens(text: str, start: int, end: int) -> list[Token]:
    """Returns the words of the sentence `text[start:end]` of a quiet text, possessive 's cut off."""
    sentence = text[start:end]
    found: list[Token] = []
    position = 0
    for match in _TOKEN.finditer(sentence):
        word, gap = match.group(), sentence[position : match.start()]
        bare = word[:-2] if word.endswith(("'s", "’s", "'S")) and len(word) > 2 else word
        at = start + match.start()
        initial = not found or _STARTS_ANEW.search(gap) is not None
        found.append(Token(bare, bare.casefold(), at, at + len(bare), gap, initial, bare != word))
        position = match.end()
    return found


def is_headline(sentence: list[Token]) -> bool:
    """Whether capitals say nothing here: most words carry one, ordinary words among them."""
    content = [token for token in sentence if token.lower not in FUNCTION_WORDS and token.text[0].isalpha()]
    if len(content) < _HEADLINE_WORDS or sum(t.text[0].isupper() for t in content) < _HEADLINE_SHARE * len(content):
        return False
    raised = [token for token in sentence if token.text[0].isupper() and not token.initial and len(token.text) > 1]
    return (
        sum(
            is_common(t.text) and t.lower not in entity_words.LAST_WORDS and t.lower not in entity_words.TITLES
            for t in raised
        )
        > 1
    )


def runs(sentence: list[Token]) -> Iterator[tuple[int, int]]:
    """Yields half-open index ranges of tokens that may be names, in order, without overlap."""
    headline = is_headline(sentence)
    index = 0
    while index < len(sentence):
        end = _run_end(sentence, index, headline=headline)
        if end > index:
            yield from _cleaned(sentence, index, end, headline=headline)
        index = max(end, index + 1)


def _run_end(sentence: list[Token], index: int, *, headline: bool) -> int:
    end = index
    while end < len(sentence) and (end == index or sentence[end].gap in (" ", "-", ". ")):
        token = sentence[end]
        if end > index and (sentence[end - 1].possessive or not _joins(sentence[end - 1], token)):
            break
        if headline and is_common(token.text) and token.lower not in entity_words.LAST_WORDS:
            break
        if token.capital:
            end += 1
        elif end > index and _connects(sentence, end):
            end += 2 if sentence[end + 1].capital else 3
        else:
            break
    return end


def _joins(before: Token, token: Token) -> bool:
    """A full stop inside a name belongs to a title or an initial: "Dr. Meyer", "J. Doe"."""
    return token.gap != ". " or before.lower in entity_words.TITLES or len(before.text) == 1


def _connects(sentence: list[Token], index: int) -> bool:
    """ "of" and its like continue a name when a capital follows, "the" allowed between: "Lord of the Rings"."""
    if sentence[index].lower not in entity_words.CONNECTORS or sentence[index - 1].lower in CALENDAR:
        return False
    rest = sentence[index + 1 : index + 3]
    rest = rest[1:] if rest and rest[0].lower == "the" else rest[:1]
    return bool(rest) and rest[0].capital and all(token.gap == " " for token in rest)


def _cleaned(sentence: list[Token], start: int, end: int, *, headline: bool) -> Iterator[tuple[int, int]]:
    """The run without what is capitalised for another reason; nothing when that leaves nothing."""
    while start < end and _strip_first(sentence, start, end):
        start += 1
    while start < end and _is_plain(sentence[end - 1]) and not _listed(sentence, start, end):
        end -= 1
    if start < end and not (end - start == 1 and _is_lone_noise(sentence, start, headline=headline)):
        yield start, end


def _strip_first(sentence: list[Token], start: int, end: int) -> bool:
    token = sentence[start]
    if _listed(sentence, start, end) or (token.lower in entity_words.FIRST_WORDS and end - start > 1):
        return False
    if token.lower in CONNECTORS_AND_FUNCTIONS or token.lower in CALENDAR:
        return True
    if end - start > 1 and token.lower in entity_words.TITLES:
        return True
    if token.lower in PLAIN_CAPITALS:
        return end - start == 1 or sentence[end - 1].lower not in entity_words.LAST_WORDS
    if not token.initial or token.lower in FIRST_NAMES:
        return False
    if end - start == 2 and sentence[end - 1].lower in entity_words.LAST_WORDS:  # "Green Street", but "Call Acme Corp"
        return False
    return is_common(token.text) or token.lower in entity_words.NOUNS or token.lower.endswith(_ORDINARY_ENDINGS)


CONNECTORS_AND_FUNCTIONS = FUNCTION_WORDS | entity_words.CONNECTORS


def _is_plain(token: Token) -> bool:
    return token.lower in CALENDAR or token.lower in PLAIN_CAPITALS or token.lower in CONNECTORS_AND_FUNCTIONS


def _listed(sentence: list[Token], start: int, end: int) -> bool:
    if end - start > LONGEST_NAME_WORDS:
        return False
    name = " ".join(token.lower for token in sentence[start:end])
    known = NAMES.get(name)
    if known is None:
        return False
    single_common = end - start == 1 and known.capital_only and sentence[start].initial and is_common(name)
    return not single_common and (not known.name.isupper() or sentence[start].text.isupper())


def _is_lone_noise(sentence: list[Token], index: int, *, headline: bool) -> bool:
    """Whether a single capitalised word says nothing: an ordinary one, or an unknown one whose capital is due anyway.

    At the head of a sentence an unknown word is a name only when the text treats it as a subject.
    """
    token = sentence[index]
    if _listed(sentence, index, index + 1) or any(char.isupper() or char.isdigit() for char in token.text[1:]):
        return False
    if token.lower in FIRST_NAMES:
        return token.initial and is_common(token.text) and not _is_subject(sentence, index + 1)
    if is_common(token.text):
        return not (index and sentence[index - 1].lower in entity_words.NAMING | entity_words.TITLES)
    opening = token.initial and not token.possessive and not _is_subject(sentence, index + 1)
    return headline or opening


def _is_subject(sentence: list[Token], end: int) -> bool:
    if end >= len(sentence):
        return False
    following = sentence[end]
    if following.lower in entity_words.AUXILIARIES or following.lower in entity_words.PERSON_AFTER:
        return following.gap == " "
    if following.lower == "and":
        return sentence[end + 1].capital if end + 1 < len(sentence) else False
    return following.gap == " " and following.lower.endswith(("s", "ed")) and is_common(following.text)
