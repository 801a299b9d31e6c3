"""The BM25 terms of a text.

One analyser for documents and queries, so both sides always agree:

- a word is case-folded, stemmed (Snowball) and loses its accents after the stem: "Cafés" and "cafe" meet
- a contraction is spelt out ("don't" is "do not"); function words are dropped, negations and prepositions that
  decide a meaning (not, without, before, off) are not; "IT" in capitals is no "it"
- a compound gives its parts and itself: snake_case, camelCase, node.js, e-mail (email), 3pm; a decimal number is one
  term, 1,000 is 1000
- scripts without spaces (Chinese, Japanese, Korean, Thai ...) give their bigrams, Chinese characters also themselves
- an emoji is a term, without its skin tone

All words are stemmed as English; words of other languages have no stop words here: their IDF is low anyway.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from Stemmer import Stemmer  # type: ignore[import-not-found]  # of C, without stubs

from service.domain import bm25

MAX_CHARS: Final = 200_000
"""Only so much of a text is analysed, and only as far as its MAX_TERMS-th different token: at worst 0.5 s of a core."""

MAX_TERMS: Final = 4_000
"""Different terms kept per text, the first ones. A sparsevec may hold 16,000."""

MAX_TERM_ID: Final = 1_000_000_000
"""The largest dimension of a sparsevec, and below 2^31."""

MAX_PARTS: Final = 8
"""A compound of more parts is an id or a hash: its fragments would only match by accident."""

CACHED_CHARS: Final = 64
"""Longer tokens (base64, Chinese sentences) do not come again: no place in the cache for them."""

_ENGLISH = """
a about also am an and any are as at be because been being but by can could did do does doing done each for from get
gets got had has have having he her hers herself him himself his how i if in into is it its itself just let me mine
must my myself of oh on onto or our ours ourselves own shall she should so some such than that the their theirs them
themselves then there these they this those though through to too upon us very was we were what when where which while
who whom whose why will with would you your yours yourself yourselves
"""
STOP_WORDS: Final = frozenset(_ENGLISH.split())
"""Without negations, "before", "after", "off" and the like, which decide a meaning, and without "may", a month."""

NEGATIONS: Final = frozenset({"not", "never", "no", "without", "neither", "nor", "cannot", "none", "nobody", "nothing"})

SUFFIXES: Final = {"n't": "not", "'ll": "will", "'ve": "have", "'re": "are", "'m": "am", "'d": "would", "'s": ""}
IRREGULAR: Final = {"can't": "can not", "won't": "will not", "shan't": "shall not", "let's": "let us"}

APOSTROPHES: Final = "\u2019\u02bc\u2018"
SILENT: Final = (
    "\xad\u0640\u200c\u200e\u200f\u2060\ufe0e\ufe0f\ufeff\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
"""Soft hyphens, joiners, direction marks, tatweel and variation selectors carry no letter."""

CLEAN: Final = str.maketrans(APOSTROPHES, "'" * len(APOSTROPHES), SILENT)

# Vowel signs of Indic and other scripts are letters to a reader but not to \w: without them words fall apart.
MARKS: Final = "".join(chr(at) for at in range(0x300, 0x3100) if unicodedata.category(chr(at)) in ("Mn", "Mc"))
HAN: Final = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
UNSPACED: Final = HAN + "\u3040-\u30ff\u31f0-\u31ff\uac00-\ud7af\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"

PICTURE: Final = "[\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]"
TONE: Final = "[\U0001f3fb-\U0001f3ff]"
EMOJI: Final = re.compile(f"[\U0001f1e6-\U0001f1ff]{{2}}|{PICTURE}{TONE}?(?:\u200d{PICTURE}{TONE}?)*")
TONES: Final = re.compile(TONE)

TOKEN: Final = re.compile(
    EMOJI.pattern
    + r"|[A-Za-z](?:\+\+|\#)(?!\w)"  # C++, C#
    + r"|\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\w)"  # 1,000
    + rf"|[\w{MARKS}]+(?:[.'\-][\w{MARKS}]+)*"
)
RUN: Final = re.compile(f"[{UNSPACED}]+|[^{UNSPACED}]+")
IS_UNSPACED: Final = re.compile(f"[{UNSPACED}]")
IS_HAN: Final = re.compile(f"[{HAN}]")
JOINT: Final = re.compile(r"[.'\-_]+")
HUMP: Final = re.compile(
    r"(?<=[a-z\xdf-\xff])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])"
)
NUMBER: Final = re.compile(r"\d[\d.,]*")
ACCENTS: Final = re.compile("[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670]")  # not those of India


def lexemes(text: str) -> list[str]:
    """Returns the terms of the text in their order, repeated as often as they occur; about 1 µs per known word."""
    return [lexeme for token in _tokens(text) for lexeme in _read(token)]


def count_negations(terms: Iterable[str]) -> int:
    """Returns how many of a text's terms deny."""
    return sum(term in NEGATIONS for term in terms)


@lru_cache(maxsize=32_768)
def term_id(lexeme: str) -> int:
    """Returns the number of a term, 1..10^9, the same for ever: a value of `terms`, an index (from 1) of `bm25`."""
    return int.from_bytes(blake2b(lexeme.encode("utf-8", "replace"), digest_size=8).digest(), "big") % MAX_TERM_ID + 1


def weights(text: str, *, average_length: float = bm25.AVERAGE_LENGTH) -> dict[int, float]:
    """Returns the weight of each term of the text by term id: the document's side of BM25 (domain/bm25.py).

    `average_length`: terms of an average text of this kind, > 0.
    """
    words = lexemes(text)
    norm = bm25.length_norm(len(words), average_length)
    counts = Counter(map(term_id, words))
    return {term: bm25.term_weight(count, norm) for term, count in list(counts.items())[:MAX_TERMS]}


def _tokens(text: str) -> list[str]:
    text = text[:MAX_CHARS]
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(CLEAN)
    tokens = TOKEN.findall(text)
    return tokens if len(tokens) <= MAX_TERMS else _first_different(tokens)


def _first_different(tokens: list[str]) -> list[str]:
    """Returns the tokens before the one that would be too many: stemming a word never seen costs 50 µs."""
    seen: set[str] = set()
    for at, token in enumerate(tokens):
        if token not in seen:
            if len(seen) == MAX_TERMS:
                return tokens[:at]
            seen.add(token)
    return tokens


def _read(token: str) -> tuple[str, ...]:
    return _known(token) if len(token) <= CACHED_CHARS else _analyse(token)


def _analyse(token: str) -> tuple[str, ...]:
    if not token.isascii():
        if EMOJI.match(token):
            return (TONES.sub("", token) or token,)
        if IS_UNSPACED.search(token):
            return _analyse_unspaced(token)
    stop = STOP_WORDS if not (token.isupper() and len(token) > 1) else frozenset()
    return tuple(_fold(_stem(word)) for word in _words(token) if word not in stop)


_known = lru_cache(maxsize=32_768)(_analyse)


def _analyse_unspaced(token: str) -> tuple[str, ...]:
    terms: list[str] = []
    for run in RUN.findall(token):
        if not IS_UNSPACED.match(run):
            terms.extend(lexemes(run))
            continue
        terms.extend(letter for letter in run if len(run) == 1 or IS_HAN.match(letter))
        terms.extend(run[at : at + 2] for at in range(len(run) - 1))
    return tuple(terms)


def _words(token: str) -> list[str]:
    """Returns the case-folded words of a token: one, or the parts of a compound and the compound itself."""
    word = token.casefold()
    if "'" in word:
        spelt = _spelt_out(word)
        if spelt is not None:
            return spelt
    if word.isalpha() and (token.islower() or not HUMP.search(token)):
        return [word]
    if NUMBER.fullmatch(word):
        return ["".join(str(unicodedata.digit(c)) if c.isdecimal() else c for c in word.replace(",", ""))]
    parts = [part.casefold() for piece in JOINT.split(token) for part in HUMP.split(piece) if part]
    if not 1 < len(parts) <= MAX_PARTS:
        return [word.strip("_")] if parts else []
    bare = word.replace("-", "").replace("'", "")
    return [*parts, bare if bare.isalpha() else word.strip("_")]


def _spelt_out(word: str) -> list[str] | None:
    if word in IRREGULAR:
        return IRREGULAR[word].split()
    for suffix, meaning in SUFFIXES.items():
        if word.endswith(suffix) and word[: -len(suffix)].isalpha():
            return [word[: -len(suffix)], meaning] if meaning else [word[: -len(suffix)]]
    return None


def _stem(word: str) -> str:
    if len(word) > CACHED_CHARS or not word.isalpha():
        return word
    # A stemmer keeps the word it works on in itself: one per word is safe in threads, and cheaper than a lock.
    return str(Stemmer("english").stemWord(word))


def _fold(word: str) -> str:
    if word.isascii():
        return word
    return unicodedata.normalize("NFC", ACCENTS.sub("", unicodedata.normalize("NFD", word)))
