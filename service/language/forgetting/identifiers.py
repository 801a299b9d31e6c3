"""Words and identifiers of a text, in a form in which two ways to write one thing are equal.

An identifier is whole or it is another one: 70215 is not 702153, AA:BB:CC:00:11 not AA:BB:CC:00:11:22. Case, accents,
quotation marks, the separators of a MAC address, the @ of a handle and the country code of a phone number do not
matter. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final, Literal

from service.language import sentences

Kind = Literal["word", "number", "phone", "email", "handle", "code", "masked"]

_LETTERS: Final = str.maketrans(
    {"đ": "d", "ð": "d", "ø": "o", "ł": "l", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "ß": "ss", "ħ": "h"}
)
_QUOTES: Final = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'", "\u201c": '"', "\u201d": '"'})
_OUTER: Final = ".,;:!?()[]{}<>\"'«»„…*`|\u2019\u2018\u02bc\u201c\u201d"
_SEVERAL_WORDS: Final = re.compile(
    r"(?P<masked>\[REDACTED:\w+\])"
    r"|(?P<email>(?i:(?<![\w.+-])[\w.+-]++(?:"
    r"\s*+[\[({]\s*+at\s*+[\])}]\s*+[\w-]++(?:\s*+(?:\.|[\[({]\s*+dot\s*+[\])}])\s*+[\w-]++)+|"
    r"\sat\s[\w-]++(?:\sdot\s[\w-]++)+)))"
    r"|(?P<phone>(?<![\w.@:/-])(?:\+\d{1,3}[ .-]?)?(?:\(\d{1,5}\)[ .-]?)?\d{1,5}(?:[ .-]\d{2,7}){1,5}"
    r"(?![\w@:/]|[.-]\w)|(?<![\w.@:/-])\+\d{7,15}(?!\w))"
)
"""Redacted words, e-mail addresses that are spelt out, and numbers with blanks in them, which may be phone numbers."""

_SPELT_SIGN: Final = re.compile(r"(?<!\s)(?:\s*+[\[({]\s*+|\s++)(at|dot)(?:\s*+[\])}]\s*+|\s++)", re.IGNORECASE)
_CODE_NAME: Final = re.compile(r"(?=.*\d)(?=.*[A-Z])[A-Z0-9]+(?:[-_][A-Z0-9]+)*")
_SCHEME: Final = re.compile(r"^https?://(?:www\.)?")
_DATE: Final = re.compile(r"(?:19|20)\d\d[ .-]\d{1,2}[ .-]\d{1,2}|\d{1,2}[ .-]\d{1,2}[ .-](?:19|20)\d\d")
_YEARS: Final = re.compile(r"(?:19|20)\d\d-(?:19|20)\d\d")
_ADDRESS: Final = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_PIECE: Final = re.compile(r"\S+")
_TWO_WORDS: Final = re.compile(
    r"(?!\S*://)(?P<label>[^\W\d]{2,}+(?>(?:-[^\W\d]+)*))[:=#]\S+|(?P<one>[^/.\d]+)/[^/.\d]+"
)
"""One piece between blanks that is two words: "id:17", "Bob/Robert"."""

_MAC: Final = re.compile(r"[0-9a-f]{2}(?:[:-][0-9a-f]{2}){2,}")
_MAC_IN_FOURS: Final = re.compile(r"[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}")
_VERSION: Final = re.compile(r"v(?=\d)")
_POSSESSIVE: Final = re.compile(r"'s?$")
_HOST: Final = re.compile(r"[\w-]+(?:\.[\w-]+)*\.[a-z]\w+")
_WEAK: Final = re.compile(
    r"(?:19|20)\d\d|\d+(?:st|nd|rd|th)|\d{1,2}:\d\d(?:am|pm)?|\d{1,2}(?:am|pm)|[$€£]\d[\d.,]*[km]?|\d[\d.,]*[%€£]|"
    r"(?:19|20)\d\d-\d\d?(?:-\d\d?)?|(?:19|20)\d\d-(?:19|20)\d\d|\d+(?:km|kg|mg|ml|cm|mm|min|h)"
)

FULL_NUMBER: Final = 9
"""Digits from which a phone number is whole without its country code."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word or identifier of a text. `raw` without the punctuation around it, `key` is what is compared; `start` and
    `end` tell where it stands."""

    raw: str
    key: str
    kind: Kind
    start: int
    end: int

    @property
    def is_capital(self) -> bool:
        return self.raw[:1].isupper()


def fold(text: str) -> str:
    """The text without case, accents and kinds of quotation marks."""
    flat = unicodedata.normalize("NFKD", text.translate(_QUOTES).casefold())
    return "".join(char for char in flat if not unicodedata.combining(char) or char > "\u036f").translate(_LETTERS)


def split_words(text: str) -> list[Word]:
    """The words and identifiers of the text, in order."""
    words: list[Word] = []
    at = 0
    for match in _SEVERAL_WORDS.finditer(text):
        raw = match[0]
        if match["masked"]:
            word = Word(raw, raw, "masked", *match.span())
        elif match["email"]:
            word = Word(raw, _join_spelt(raw), "email", *match.span())
        elif _is_phone(raw):
            word = Word(raw, re.sub(r"\D", "", raw), "phone", *match.span())
        else:
            continue
        words += [*_split_pieces(text, at, word.start), word]
        at = word.end
    return words + _split_pieces(text, at, len(text))


def are_same(one: Word, other: Word) -> bool:
    """Whether two words are the same identifier (or the same word)."""
    if one.key == other.key:
        return True
    if one.kind == other.kind == "code" and any(_CODE_NAME.fullmatch(each.raw.lstrip("#")) for each in (one, other)):
        return re.sub("[-_]", "", one.key) == re.sub("[-_]", "", other.key)
    if {one.kind, other.kind} <= {"phone", "number"} and "phone" in (one.kind, other.kind):
        return _same_phone(one, other)
    return False


def is_weak(word: Word) -> bool:
    """Whether a word with digits is a time or an amount, and not an identifier."""
    return bool(_WEAK.fullmatch(fold(word.raw)))


def _is_phone(written: str) -> bool:
    if _DATE.fullmatch(written) or _YEARS.fullmatch(written) or _ADDRESS.fullmatch(written):
        return False
    digits = len(re.sub(r"\D", "", written))
    groups = len(re.findall(r"\d+", written))
    if not 7 <= digits <= 15:
        return False
    plain = re.fullmatch(r"\d{3}[ .-]\d{4}|0\d{2,5}[ .-]\d{4,7}", written)
    return written.startswith("+") or "(" in written or groups >= 3 or plain is not None


def _split_pieces(text: str, first: int, last: int) -> list[Word]:
    words = []
    for piece in _PIECE.finditer(text, first, last):
        for start, end in _cut(text, piece.start(), piece.end()):
            left, right = sentences.trim(text, start, end, _OUTER)
            if left < right:
                raw = text[left:right]
                key, kind = _read(raw)
                words.append(Word(raw, key, kind, left, right))
    return words


def _cut(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The words of a piece between blanks: one, or two."""
    start, end = sentences.trim(text, start, end, _OUTER)
    two = _TWO_WORDS.fullmatch(text, start, end)
    if two is None or _MAC.fullmatch(text[start:end].casefold()):
        return [(start, end)]
    middle = max(two.end("label"), two.end("one"))
    return [(start, middle), (middle + 1, end)]


def _read(raw: str) -> tuple[str, Kind]:
    key = _POSSESSIVE.sub("", fold(raw)).replace('"', "").removeprefix("mailto:")
    if "@" in key.strip("@"):
        return key, "email"
    if key.startswith("@"):
        return key.lstrip("@"), "handle"
    if _MAC.fullmatch(key):
        return key.replace("-", ":"), "code"
    if _MAC_IN_FOURS.fullmatch(key):
        plain = key.replace(".", "")
        return ":".join(plain[at : at + 2] for at in range(0, 12, 2)), "code"
    if any(char.isdigit() for char in key):
        plain = key.lstrip("#").removeprefix("no.")
        if re.fullmatch(r"\d{1,3}(?:,\d{3})+|\d+", plain):
            return plain.replace(",", ""), "number"
        return _VERSION.sub("", _SCHEME.sub("", plain)).rstrip("/"), "code"
    if not any(map(str.isalnum, key)):
        return key, "word"
    if key.startswith(("/", "~/", "#", "./")) or key.count("/") > 1 or "\\" in key or _HOST.fullmatch(key):
        return _SCHEME.sub("", key).rstrip("/") or key, "code"
    return key, "word"


def _join_spelt(written: str) -> str:
    """An address with its signs: "mia (at) mail (dot) test"."""
    signs = {"at": "@", "dot": "."}
    return re.sub(r"\s", "", _SPELT_SIGN.sub(lambda found: signs[found[1].casefold()], fold(written)))


def _same_phone(one: Word, other: Word) -> bool:
    short, long = sorted((one.key.lstrip("0"), other.key.lstrip("0")), key=len)
    if short == long:
        return True
    return len(short) >= FULL_NUMBER and 1 <= len(long) - len(short) <= 3 and long.endswith(short)
