"""A linear model of sentences: how much one asks to forget something, and which of its words say what.

The weights in request_head.json are fitted by bench/forgetting_head.py on sentences written for it. A feature is a word
or a few of them in a row, hashed to a weight. To the words of a sentence comes its vector, where there is one.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import b85decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

WEIGHTS: Final = Path(__file__).with_suffix(".json")

Sort = Literal["thing", "everything", "statement", "said", "named", "unsure"]
OBJECTS: Final[tuple[Sort, ...]] = ("thing", "everything", "statement")
HEADS: Final = (*OBJECTS, "end")
"""What is weighed of a token: whether an object of one of the sorts begins with it, and whether one ends with it."""

ASKS_SIZE, HEAD_SIZE = 1 << 15, 1 << 13
"""The number of weights for features of a sentence, and for each head."""

POSSIBLE: Final = -1.5
"""Log odds by its words from which a sentence is looked at more closely, by its vector."""

PAD: Final = 3
"""Empty tokens around a sentence."""

MOST_CLASSES: Final = 12
"""Words with a class that are compared in pairs, whatever lies between them: "don't ... forget"."""

OTHER, NAME = "\u2026", "\u2026N"
"""Words that features do not know; the second one, which may be known, has no class and a capital in a sentence."""

MOST_ODDS: Final = 5.0
"""Log odds of a beginning or an end of an object are cut here, so that one does not outweigh a missing other."""

LEAST_ODDS: Final = -2.5
"""The sum of both from which a sentence names an object."""

NO_VECTOR: Final = -1.0
"""Added where no vector is known: with this, 20 of 3,437 turns of talk may ask to forget by their words, 8 surely."""

_TOKEN: Final = re.compile(
    r"\[REDACTED:\w+\]|[^\W\d_]{1,2}['\u2019](?=[^\W\d_]{2})|[^\W\d_]+(?:['\u2019-][^\W\d_]+)*|\d+|[^\w\s]"
)

_KEEPS: Final = re.compile(
    r"\bnot (?!you .*\?)(?:, (?:\w+ ){0,4}, |(?:, )?(?:word|that) (?:you|your|my|i) )?"
    r"(?:(?!keep |kept |said |i |he )\w+ ){0,7}?(?:forget|delete)\b"
    r"|\b(?:forget|delete) (?:(?:please )*not\b|(?:please |word ){0,3}not (?:(?:word )?my|,))"
    r"|\b(?:forget|delete) (?:(?!that |i |keep |kept |not )\w+ )*not(?= \W| word your|$)"
    r"|^(?:please |can you |i want you word )*keep (?!.*\b(?:not|forget|delete|gone|clear)\b)"
    r"|^(?!.*\bnot keep).*\bnot (?:(?:\w+ |,? ?word my (?:\w+ ){1,3})?gone|clear clear)\b|^your? (?:word )?forget\b"
)
"""Classes of words that want something kept, "Vergiss meine Allergie nicht", or complain: "You always forget it"."""

_UNSURE: Final = re.compile(
    r"\b(?:asked|undo)\b(?:(?! please| want).)*? (?:forget|delete|gone)\b"
    r"|\bsaid you (?:(?:word|must|that) ){1,3}(?:forget|delete)\b|^can that clear (?:word )+delete\b"
    r"|\babout (?:keep (?:my|word) (?:word )?)?(?:forget|delete|gone)\b"
    r"|^(?:(?!(?:want|must|please|glad|can you|you can) ).)*?\b(?:if|(?:word|that) you) "
    r"(?:(?!must |want |please |he )\w+ ){0,6}?(?:forget|delete|gone)\b"
)
"""Speaks of forgetting without asking for it now: "I asked you to forget it", "I would hate it if you forgot it"."""

_ORDER: Final = re.compile(
    r"((?:please |can you |i want you word )*)(?:forget|delete) (?:please )*(?:about )?"
    r"((?:my|word)(?: my| he| glad| word){0,5})(?: please| \W)*$"
)
"""A plain order: an object and nothing else. "Forget Rome", without "please", may be a changed plan."""

_ORDER_THAT: Final = re.compile(
    r"(?:(?:please |can you |i want you word )*(?:forget|delete)|(?:please )?not keep) (?:please |, )*"
    r"(?:(?P<that>that) (?P<subject>i|my|he|word) |\w+ )\w+"
)
"""The beginning of a plain order whose object is a statement: "Please forget that I smoke"."""

PLAIN: Final = 6.0
"""Log odds of a plain order to forget a statement: more than a vector takes away, whatever the statement is about."""

Weights = NDArray[np.float32]
Token = tuple[str, str]
"""A word, and the class of words that are used alike, if it has one, else the word again."""


@dataclass(frozen=True, slots=True)
class RequestWeights:
    """Weights and biases. `known`: the words that features name, with their classes; all others are alike, as what is
    to be forgotten may be anything. `patterns`: words with classes that only the patterns above know. `vector`: weights
    of a vector of `embedder`."""

    known: Mapping[str, str]
    patterns: Mapping[str, str]
    asks: Weights
    heads: Weights
    vector: Weights
    bias: Sequence[float]
    embedder: str


def load(path: Path = WEIGHTS) -> RequestWeights:
    kept = json.loads(path.read_text())
    asks, heads, vector = (
        np.frombuffer(zlib.decompress(b85decode(kept[name])), dtype=np.int8) * np.float32(kept["steps"][name])
        for name in ("asks", "heads", "vector")
    )
    heads = heads.reshape(len(HEADS), -1)
    return RequestWeights(kept["known"], kept["patterns"], asks, heads, vector, kept["bias"], kept["embedder"])


def read(text: str, least: float = -np.inf) -> tuple[float, str, Sort]:
    """The log odds that a sentence asks to forget, by its words, and from `least` on its object with its sort: what the
    model finds; else, where it may ask, what lies between unknown words; else "" and "said". The object of a plain
    order is "named", one of a sentence that may not ask for it now "unsure"."""
    words = find_spans(text)
    padded = tokens(text, words, _fitted.known)
    odds = float(_fitted.asks[sentence_features(padded)].sum()) + _fitted.bias[0]
    if odds < least or not words:
        return odds, "", "said"
    kinds = " ".join(_kind_of(text[a:b]) for a, b in words)
    if _KEEPS.search(kinds):
        return -np.inf, "", "said"
    if order := _ORDER.match(kinds):
        first = kinds.count(" ", 0, order.start(2))
        query = text[words[first][0] : words[first + order[2].count(" ")][1]]
        if order[2].startswith("my") or order[1]:
            return odds, query, "named"
        if query.istitle():
            return -np.inf, "", "said"
    scores = np.array([_fitted.heads[:, token_features(padded, at)].sum(axis=1) for at in range(len(words))])
    starts, ends = np.hsplit(np.minimum(scores + _fitted.bias[1:-1], MOST_ODDS), [len(OBJECTS)])
    pairs = np.where(np.tri(len(words), k=-1), -np.inf, starts.max(axis=1)[:, None] + ends.T)
    first, last = divmod(int(pairs.argmax()), len(words))
    sort = OBJECTS[int(starts[first].argmax())]
    is_unsure = _UNSURE.search(kinds) is not None
    if pairs[first, last] < LEAST_ODDS:
        unknown = [at for at, (word, _) in enumerate(padded[PAD:-PAD]) if word in (OTHER, NAME)]
        if not unknown or odds < POSSIBLE:
            names_last = "all" not in kinds or "said" in kinds or "that" in kinds
            return (odds, "", "said") if names_last and not is_unsure else (odds, "everything", "everything")
        first, last, sort = unknown[0], unknown[-1], "thing"
    if not is_unsure and (order := _ORDER_THAT.match(kinds)):
        subject = kinds.count(" ", 0, order.end("that")) + 1 if order["that"] else 0
        if subject and (not order["subject"].startswith("word") or text[words[subject][0]].isupper()):
            first, last, sort = subject, max(at for at, (a, _) in enumerate(words) if text[a].isalnum()), "statement"
        odds = PLAIN if sort == "statement" else odds
    return odds, text[words[first][0] : words[last][1]], "unsure" if is_unsure else sort


def class_of(word: str) -> str:
    """The class of a word as `normalise` writes it, "" for one without."""
    return _fitted.known.get(word, "")


def _kind_of(word: str) -> str:
    key = normalise(word)
    return _fitted.patterns.get(key) or class_of(key) or ("word" if word[0].isalnum() or len(word) > 1 else word)


def vector_odds(vector: NDArray[np.float32], embedder: str) -> float:
    """The log odds that the vector of a sentence adds; NO_VECTOR for those of other embedders than the fitted one."""
    return float(vector @ _fitted.vector) + _fitted.bias[-1] if embedder == _fitted.embedder else NO_VECTOR


def find_spans(text: str) -> list[tuple[int, int]]:
    """The words, numbers and signs of a sentence."""
    return [each.span() for each in _TOKEN.finditer(text)]


def normalise(text: str) -> str:
    """A word as features know it, if they do."""
    return "0" if text.isdigit() else text.casefold().replace("\u2019", "'")


def tokens(text: str, words: Sequence[tuple[int, int]], known: Mapping[str, str]) -> list[Token]:
    """The tokens of a sentence, with empty ones around them."""
    row = [("", "")] * PAD
    for start, end in words:
        word = normalise(text[start:end])
        inside = text[start:end].istitle() and row[-1][0] not in ("", ".", "!", "?")
        if (kind := known.get(word)) or (kind is not None and not inside):
            row.append((word, kind or word))
        else:
            row.append((NAME, NAME) if inside else (OTHER, OTHER))
    return row + [("", "")] * PAD


def sentence_features(padded: Sequence[Token]) -> list[int]:
    """The features of a sentence, each once, in which words that are not known in a row are one."""
    row = [token for at, token in enumerate(padded) if token[1] != OTHER or padded[at - 1][1] != OTHER]
    opening = f"{row[PAD][1]} {row[PAD + 1][1]}"
    features = []
    for at in range(PAD, len(row) - PAD + 1):
        (_, three), (two_, two), (one_, one), (word_, word) = row[at - 3 : at + 1]
        features += [f"{one} {word}", f"{two} {one} {word}", f"{two} _ {word}", f"{three} {two} {one} {word}"]
        features += [f"{three} {two} _ {word}", f"{three} _ {one} {word}", f"{one_}+{word_}", f"{two_}+{one_}+{word_}"]
        features += [word, f"+{word_}", f"{row[PAD][1]} .. {word}", f"{opening} .. {word}"]
    classes = [kind for word, kind in row if kind != word][:MOST_CLASSES]
    features += [f"{one}>{other}" for at, one in enumerate(classes) for other in classes[at + 1 :]]
    features += [f"{one}>>{other}" for one, other in zip(["", *classes], [*classes, ""], strict=True)]
    features.append(f"{min(len(row) // 10, 5)} tens")
    return [zlib.crc32(token.encode()) % ASKS_SIZE for token in dict.fromkeys(features)]


def token_features(padded: Sequence[Token], at: int) -> list[int]:
    """The features of a token for being the first or the last of an object."""
    near = padded[at : at + 2 * PAD + 1]
    features = []
    for index, (word, kind) in enumerate(near):
        following = near[index + 1] if index < 2 * PAD else ("", "")
        features += [f"{index}+{word}", f"{index}={kind}"]
        features += [f"{index}={kind} {following[1]}", f"{index}+{word}+{following[0]}"]
        if index < 2 * PAD - 1:
            features.append(f"{index}={kind} {following[1]} {near[index + 2][1]}")
    return [zlib.crc32(feature.encode()) % HEAD_SIZE for feature in features]


_fitted = load()
