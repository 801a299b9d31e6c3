"""Stretches of a sentence that look like names.

A run is a stretch of capitalised words ("Zelda Fitzroy", "University of Graz", "FastAPI", "GPT-4o"), cleaned of what
is capitalised for another reason: the first word of a sentence, weekdays and months, nationalities, headlines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from service.language import entity_words
from service.language.common_words import CALENDAR, FUNCTION_WORDS, is_common
from service.language.entity_words import CAPITAL_NAMES, LAST_WORDS, NAMES, PLAIN_CAPITALS, TITLES

# Links, addresses, paths, placeholders and code names may hold capitals, but no names of things.
_NOISE = re.compile(
    r"https?://\S+|www\.\S+|(?<!\S)[^\s@]+@\S+\.\w+|\[REDACTED[^\]]*\]|(?<![\w.~/-])(?:[\w.~-]*/){2,}[\w.-]*"
    r"|\b\w*_\w+|\b\w+\(\)|</?\w+>"
)
_TOKEN = re.compile(r"\.NET\b|[^\W_](?:[^\W_]|[+#](?!\w)|[-.'’&](?=[^\W_]))*", re.UNICODE)
_STARTS_ANEW = re.compile(r"[:•*>|#]\s*$|^\s*[-–—]\s*$|[\"“(\[]$|\d[.)]\s+$")
_HEADLINE_SHARE, _HEADLINE_WORDS = 0.85, 4
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
        """Whether a word is spelled like a name: Berlin, FastAPI, iPhone, .NET."""
        first = self.text[0]
        return first.isupper() or first == "." or (first.islower() and self.text[1:2].isupper() and len(self.text) > 3)


def quiet(text: str) -> str:
    """Returns the text, same length, with links, paths, placeholders and code names blotted out."""
    return _NOISE.sub(lambda match: "\x1f" * len(match.group()), text)


def tokens(text: str, start: int, end: int) -> list[Token]:
    """Returns the words of the sentence `text[start:end]` of a quiet text, possessive 's cut off."""
    sentence = text[start:end]
    read: list[Token] = []
    position = 0
    for match in _TOKEN.finditer(sentence):
        word, gap = match.group(), sentence[position : match.start()]
        bare = word[:-2] if word.endswith(("'s", "’s", "'S")) and len(word) > 2 else word
        at = start + match.start()
        initial = not read or _STARTS_ANEW.search(gap) is not None
        read.append(Token(bare, bare.casefold(), at, at + len(bare), gap, initial, bare != word))
        position = match.end()
    return read


def is_headline(sentence: list[Token]) -> bool:
    """Whether capitals say nothing here: most words carry one, ordinary words among them."""
    content = [token for token in sentence if token.lower not in FUNCTION_WORDS and token.text[0].isalpha()]
    if len(content) < _HEADLINE_WORDS or sum(t.text[0].isupper() for t in content) < _HEADLINE_SHARE * len(content):
        return False
    raised = [token for token in sentence if token.text[0].isupper() and not token.initial and len(token.text) > 1]
    return sum(is_common(t.text) and t.lower not in LAST_WORDS and t.lower not in TITLES for t in raised) > 1


def runs(sentence: list[Token]) -> Iterator[tuple[int, int]]:
    """Yields half-open index ranges of tokens that may be names, in order, without overlap."""
    headline = is_headline(sentence)
    index = 0
    while index < len(sentence):
        end = _run_end(sentence, index, headline=headline)
        if end > index:
            yield from _clean(sentence, index, end, headline=headline)
        index = max(end, index + 1)


def _run_end(sentence: list[Token], index: int, *, headline: bool) -> int:
    end = index
    while end < len(sentence) and (end == index or sentence[end].gap in (" ", "-", ". ")):
        token = sentence[end]
        if end > index and sentence[end - 1].possessive:
            break
        if headline and is_common(token.text) and token.lower not in LAST_WORDS:
            break
        if token.capital:
            end += 1
        elif end > index and _connects(sentence, end):
            end += 2 if sentence[end + 1].capital else 3
        else:
            break
    return end


def _connects(sentence: list[Token], index: int) -> bool:
    """The word "of" and its like continue a name when a capital follows, "the" allowed between: "Lord of the Rings"."""
    if sentence[index].lower not in entity_words.CONNECTORS or sentence[index - 1].lower in CALENDAR:
        return False
    rest = sentence[index + 1 : index + 3]
    rest = rest[1:] if rest and rest[0].lower == "the" else rest[:1]
    if not rest or not rest[0].capital or any(token.gap != " " for token in rest):
        return False
    name = [token for token in sentence[max(0, index - 2) : index] if token.capital and not is_common(token.text)]
    belongs = len(name) > 1 or (name and re.search("[a-z][A-Z]", rest[0].text))  # "Dana Reyes of Acme", "Ann of OpenAI"
    return sentence[index].lower != "of" or sentence[index - 1].lower in LAST_WORDS or not belongs


def _clean(sentence: list[Token], start: int, end: int, *, headline: bool) -> Iterator[tuple[int, int]]:
    """Yields the run without words that are capitalised for another reason, unless no word is left."""
    while start < end and _strip_first(sentence, start, end):
        start += 1
    while start < end and (sentence[end - 1].lower in PLAIN_CAPITALS or _is_no_name(sentence[end - 1])):
        end -= 1
    if start < end and not (end - start == 1 and _is_lone_noise(sentence, start, headline=headline)):
        yield start, end


def _strip_first(sentence: list[Token], start: int, end: int) -> bool:
    token = sentence[start]
    if look_up(sentence[start:end]) or (token.lower in entity_words.FIRST_WORDS and end - start > 1):
        return False
    if _is_no_name(token):
        return True
    if end - start > 1 and token.lower in TITLES:
        return True
    if token.lower in PLAIN_CAPITALS:
        return end - start == 1 or sentence[end - 1].lower not in LAST_WORDS
    if not token.initial:
        return False
    if end - start == 2 and sentence[end - 1].lower in LAST_WORDS:  # "Green Street", but "Call Acme Corp"
        return False
    return is_common(token.text) or token.lower in entity_words.NOUNS or token.lower.endswith(_ORDINARY_ENDINGS)


def _is_no_name(token: Token) -> bool:
    return token.lower in FUNCTION_WORDS or token.lower in entity_words.CONNECTORS or token.lower in CALENDAR


def look_up(run: list[Token]) -> tuple[str, str] | None:
    """The usual spelling and the type of a run that is a name which no structure shows."""
    name = " ".join(token.lower for token in run)
    if name in CAPITAL_NAMES and run[0].capital and not (run[0].initial and is_common(name)):
        return CAPITAL_NAMES[name]
    return NAMES.get(name)


def _is_lone_noise(sentence: list[Token], index: int, *, headline: bool) -> bool:
    """Whether a single capitalised word says nothing: an ordinary one, or an unknown one whose capital is due anyway.

    At the head of a sentence an unknown word is a name only when the text treats it as a subject.
    """
    token = sentence[index]
    if look_up([token]) or any(char.isupper() or char.isdigit() for char in token.text[1:]):
        return False
    if is_common(token.text):
        return not (index and sentence[index - 1].lower in entity_words.NAMING | TITLES)
    return headline or (token.initial and not token.possessive and not _is_subject(sentence, index + 1))


def _is_subject(sentence: list[Token], end: int) -> bool:
    if end >= len(sentence):
        return False
    following = sentence[end]
    if following.lower in entity_words.AUXILIARIES or following.lower in entity_words.PERSON_AFTER:
        return following.gap == " "
    if following.gap == ": " or following.lower == "who":  # a speaker's line
        return True
    if following.lower == "and" or following.gap == ", ":
        return any(token.capital for token in sentence[end : end + 2])
    return following.gap == " " and following.lower.endswith(("s", "ed")) and is_common(following.text)
