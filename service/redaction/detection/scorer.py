"""Scores tokens by their shape and by the words around them.

People give a secret away in more sentences than a list of patterns can hold: "so it's Heron#91 for the wifi upstairs".
A token with digits, signs or capitals inside, or a plain word near one that announces a secret, is weighed by a linear
model of its shape, the words and signs around it, and the nearest words about access. `bench.secret_scorer` trains it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from service.redaction.detection import names
from service.redaction.detection.findings import API_KEY, PASSWORD, Finding
from service.redaction.detection.prose import is_ended, is_going_on
from service.redaction.detection.value_shapes import entropy_bits, names_a_secret, stands_for_something

FEATURES = 262_144
STEPS_PER_UNIT = 24
"""A weight is stored in one signed byte: log odds times this."""
_WEIGHTS = memoryview(Path(__file__).with_suffix(".bin").read_bytes()).cast("b")
_LEAST_SCORE, _LEAST_SCORE_OF_PLAIN = STEPS_PER_UNIT / 2, 2 * STEPS_PER_UNIT

_RUN = re.compile(
    r"(?:(?<=[\0\]])[/:])?"  # after a mail address that was cut out
    r"(?P<run>[^\s\"'`<>(){}\[\],;|\0\u00ab\u00bb\u201c\u201d\u201e\u2018\u2192\u3000-\u9fff\uac00-\ud7af]{4,}+)"
)
LONGEST_CHARS = 72
_ODD = re.compile(
    r"\d|[^\W_][^\w\s.,:;?)/-]+[^\W_]|[^\W_](?:[!*#$%&~^=]|\+\S)|[a-z][A-Z]|_|[a-z]{3}[-.][a-z]{3,20}[-.][a-z]{3,20}(?:[-.]|$)"
)
# Options, paths, variables, mail and web addresses: other modules look into these.
_OTHER = re.compile(
    r"-|\.{0,2}/|~/|[$%\\]|[^@]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+[.:]?$|.*(?:://|sha\d+:)|[a-z_]+=$", re.I
)
_LEFT = re.compile(r"[\w.+@-]{1,60}(?:==|[=:/])(?=[^/=:])")  # `user/` or `name=` in the same run
_PARTED = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}:\w{2,3}[.,]?$|[a-z]{2,8}:\d{2,8}:\w{12,}")  # keys with colons
_TRIM = re.compile(r"[:=*_.-]*(?P<value>.*?)(?:(?<![\d$&#*%+~^=_])!)?[.,:?\\]*(?:\*\*[.,:?]?)?$", re.S)

_SHAPE = re.compile(
    r"""(?x)
      (?P<year>(?:19|20)\d\d) | (?P<digits>\#?\d{4,6}[\#*]?|[A-Z]\d{4}|\d{4}[A-Z]) | (?P<number>[\d -]+)
    | (?P<hex>(?:0x)?[0-9a-fA-F]{8,}) | (?P<uuid>[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})
    | (?P<measure>[vV]?\d+(?:[.,:/x-]\d+)*[a-zA-Z%\u00b0\u20ac$]{0,4}\d?)
    | (?P<id>[A-Z]{1,5}[ -]?\d+(?:[.-]?\w{1,4})?) | (?P<caps>[A-Z0-9]+(?:[_/-][A-Z0-9]+)*)
    | (?P<base>(?=.*\d)(?=.*[A-Z])(?=.*[a-z])[A-Za-z0-9+/]{20,}=*)
    | (?P<signed>(?=.*[^\W\d_]).*[!$&\#*%^~+?=@].*) | (?P<marks>.*[!$&\#*%^~+?=@].*)
    | (?P<snake>[a-z]+(?:_[a-z]+)+|_+\w+|\w+_) | (?P<camel>[A-Za-z]+(?:[A-Z][a-z]+)+)
    | (?P<dotted>(?:[a-z_]+\.)+[a-z_]+) | (?P<words>[a-z]+(?:-[a-z]+)+) | (?P<path>.*/.*) | (?P<file>.*\.[a-z]{2,7})
    | (?P<random>(?=.{8})(?:[A-Za-z_.-]*\d+[_.-]*[A-Za-z][A-Za-z_.-]*){2}.*) | (?P<numbered>[^\W\d_]*\d{1,3}[^\W\d_]*)
    | (?P<mixed>(?=.*\d)(?=.*[A-Z])(?=.*[a-z]).*) | (?P<lower>.*\d.*) | (?P<other>.*)
    """
)
_FLAGS = re.compile(
    r"(?=.*(?P<inside>[^\W\d_][!$&#*%^~+?=@]+[^\W_])|)(?=(?P<first>\d)|)(?=.*(?P<last>\d)$|)(?=.*(?P<leet>[a-z]\d+[a-z])|)"
    r"(?=.*(?P<word>[A-Za-z]{5})|)(?=.*(?P<end>[^\w])$|)(?=.*(?P<hard>(?i:[bcdfghjklmnpqrstvwxz0-9]{6}))|)"
    r"(?=.*(?P<camel>[a-z].*[A-Z])|)"
)
_MADE_UP = frozenset({"signed", "mixed", "words", "other"})
_LONGEST_MADE_UP_CHARS = 40
"""Shapes of what people make up, and how long it gets."""
_GENERATED = frozenset({"hex", "uuid", "random", "caps", "base"})
_REPEATED, _ONE = re.compile(r"(.)\1+"), r"\1"
_WORD = re.compile(r"\[redacted:\w+\]|\0+|[^\W_]+")
_WORDS_BEFORE, _WORDS_AFTER, _DISTANCES = 24, 12, (0, 1, 2, 4, 8, 16)
# A plain word is weighed only near a word that announces a secret.
_PLAIN = re.compile(r"(?<![\w.@-])[^\W\d_]{4,30}+(?>(?:[.'-][^\W\d_]{2,20}){0,3})(?![\w@/]|[.'!#$%&*+~^=-]\w)")
_CHARS_BEFORE_NAME, _CHARS_AFTER_NAME = 40, 80

_KIND = re.compile(
    rf"(?P<password>{names.PASSWORD_WORD}|senha|credential|creds|clave|psk|^(?:passe?|mdp|pw|zugangsdaten)$)"
    r"|(?P<taken>^taken$)"
    r"|(?P<other>postal|^zip|^area|postc|^plz|error|fehler|erreur|promo|discount|coupon|booking|order|versi|model|artic"
    r"|invoice|track|country|^sort$|fisc|^ref|number|nummer|^colou?r|commit|^sha|hash|checksum|build|release|flight"
    r"|called|named|handle)"
    r"|(?P<token>token|secret|bearer|^api|^apps?id|signing|webhook|jeton|cookie|session)|(?P<key>^keys?$|schl\u00fcssel|^cl\u00e9$|^auth|^chi?ave$|^llave$|sleutel|klucz|nyckel)"
    r"|(?P<code>^(?:pins?|puk|pincode|otp|tan)$|code|codice|c\u00f3digo|^kod|\u043a\u043e\u0434|combination"
    r"|geheimzahl|digit|verif)"
    r"|(?P<door>alarm|lock|^safe$|vault|tresor|coffre|gate|^door|t\u00fcr|port(?:a$|ail|\u00e3o|on)|puerta|keypad|keybox|garage|kluis|bram|domof"
    r"|haust|cancell|cadenas|immeuble|^hek$|entr[ay]|unlock|schlo[s\u00df]|barrier)"
    r"|(?P<typed>^typ(?:e[ds]?|ing)$|tipp|^tecle|eingeben$|^enter|^(?:digit[ao]|tape[rz]?|opens?|\u00f6ffnet"
    r"|ouvre|abre|apre|asks?|prompt|decrypts?)$)"
    r"|(?P<login>log(?:[io]n|gen$|ga$)|^log$|^sign|account|user|admin|^root$|wi-?fi|wlan|ssid|network|router|vpn|zugang|konto|anmeld"
    r"|benutzer|compte|identifiant|utilisateur|cuenta|usuario|acc[e\u00e8]s|e?mail|portal|database)"
)


class Suspect(NamedTuple):
    """A token and all that its score depends on: the signs and words around it, the nearest first."""

    value: str
    shape: str
    gap: str
    then: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    ended: bool


Labels = dict[Suspect, str | None]
"""What each token was judged to be, None for no secret: when a text is searched again, most are as they were."""


def find(text: str, labels: Labels) -> Iterator[Finding]:
    """Tokens that are probably secrets. What was found by other means is blanked beforehand."""
    for start, end, suspect in suspects(text):
        if suspect not in labels:
            least = _LEAST_SCORE_OF_PLAIN if suspect.shape == "plain" else _LEAST_SCORE
            is_secret = sum(map(_WEIGHTS.__getitem__, features(suspect))) >= least
            labels[suspect] = (API_KEY if suspect.shape in _GENERATED else PASSWORD) if is_secret else None
        if label := labels[suspect]:
            end += text[end : end + 1] == "!"  # of the secret or of the sentence
            yield Finding(start, end, label)


def suspects(text: str) -> Iterator[tuple[int, int, Suspect]]:
    """Tokens with digits, signs or capitals inside, and words near one that announces a secret, with start and end."""
    low = names.lower(text)
    spans = list(_spans(text, low))
    found = list(_WORD.finditer(low)) if spans else []
    words = ["taken" if match[0][0] in "[\0" else match[0] for match in found]  # what was cut out counts as a word
    for start, end in spans:
        shape = shape_of(text[start:end])
        first = bisect_left(found, start, key=re.Match.start)
        last = bisect_left(found, end, first, key=re.Match.start)
        before = tuple(words[max(0, first - _WORDS_BEFORE) : first][::-1])
        after = tuple(words[last : last + _WORDS_AFTER])
        gap, then = text[found[first - 1].end() if first else 0 : start][-3:], text[end : end + 2]
        ended = shape == "plain" and is_ended(text, end)
        yield start, end, Suspect(text[start:end], shape, gap, then, before, after, ended)


def _spans(text: str, low: str) -> Iterator[tuple[int, int]]:
    for run in _RUN.finditer(text):
        body = run["run"]
        if len(body) > LONGEST_CHARS or not _ODD.search(body) or _OTHER.match(body):
            continue
        left = _LEFT.match(body) if not _PARTED.match(body) else None
        token = _TRIM.match(body, left.end() if left else 0)
        value = token["value"] if token else ""
        name = stands_for_something(value) or (value.replace("_", "").isalpha() and names_a_secret(value))
        if token and len(value) >= 4 and _ODD.search(value) and not name:
            yield run.start("run") + token.start("value"), run.start("run") + token.end("value")
    done = 0
    for name in names.find(text, low):
        for word in _PLAIN.finditer(text, max(done, name.start - _CHARS_BEFORE_NAME), name.end + _CHARS_AFTER_NAME):
            value = word.group()
            if not (_ODD.search(value) or is_going_on(value) or stands_for_something(value) or names_a_secret(value)):
                yield word.span()
            done = word.end()


def features(suspect: Suspect) -> set[int]:
    """The numbers of the features of a token, below FEATURES.

    None for what is generated or a name with a number ("Pixel8"), unless a word about access is near or a bar before.
    """
    value, shape, gap, then, before, after, ended = suspect
    kinds, kinds_after = _kinds(before), _kinds(after)
    made_up = shape in _MADE_UP and len(value) <= _LONGEST_MADE_UP_CHARS
    if not (made_up or (shape not in _MADE_UP and (gap == "|" or not {*kinds, *kinds_after} <= {"other"}))):
        return set()
    named = [*_own(value, shape), "bias", f"gap {gap}", f"gap {gap}{shape}", f"then {then}", f"then {then}{shape}"]
    named += [f"last {word[:7]}" for word in before[:1]] + [f"next {word[:7]}" for word in after[:1]]
    named += [f"near {word[:6]}" for word in before[:8]]
    named += [*_place("", before, kinds, gap, shape), *_place("after ", after, kinds_after, then, shape)]
    if shape == "plain":
        named += [f"ended {ended}", f"ended {ended}{gap}"]
        named += [f"plain {place} {word[:7]}" for place, word in zip(("last", "second"), before, strict=False)]
    return {crc32(name.encode()) % FEATURES for name in named}


def _kinds(words: Sequence[str]) -> dict[str, int]:
    """The kinds of the words, and how many words away the nearest of each is."""
    found: dict[str, int] = {}
    for distance, word in enumerate(words):
        if word.isalpha() and (kind := _kind(word)):
            found.setdefault(kind, distance)
    return found


def _place(side: str, words: Sequence[str], kinds: dict[str, int], gap: str, shape: str) -> Iterator[str]:
    """Where a token is in relation to the words about access on one side of it."""
    for kind, distance in kinds.items():
        far = bisect_left(_DISTANCES, distance)
        yield from (f"{side}{kind}{far}", f"{side}{kind}{far // 2}{shape}", f"{side}{kind}{shape}")
    if kinds:
        kind, distance = next(iter(kinds.items()))
        far = bisect_left(_DISTANCES, distance)
        yield from (f"{side}first {kind}{far}{gap}", f"{side}first {kind}{far}{shape}")
        if distance < 4:
            between = " ".join(words[:distance])
            yield from (f"{side}between {kind}{between}", f"{side}between {shape == 'plain'}{between}{gap}")
    every = sorted(kinds) or ["none"]
    yield from (f"{side}all {every}", f"{side}all {every}{shape}")
    if not kinds:
        yield f"{side}none{shape}"


def shape_of(value: str) -> str:
    """The kind of a token: a group of _SHAPE, or "plain". An exclamation mark after an id belongs to the sentence."""
    if not _ODD.search(value):
        return "plain"
    bare, match = _SHAPE.fullmatch(value.rstrip("!")), _SHAPE.fullmatch(value)
    if bare and bare.lastgroup in _GENERATED:
        return bare.lastgroup
    return (match and match.lastgroup) or "other"


def _own(value: str, shape: str) -> Iterator[str]:
    """What the characters of a token show."""
    yield f"shape {shape}"
    if shape == "plain":
        low = value.lower()
        yield from (f"self {low[:9]}", f"tail {low[-3:]}", f"case {value[0].isupper()} {value.isalpha()}")
        return
    classes = "".join(map(_class, value[:40]))
    yield f"run {_REPEATED.sub(_ONE, classes)[:10]}"
    yield f"chars {bisect_left((5, 7, 10, 14, 20, 32), len(value))}"
    yield f"holds {''.join(sorted(set(classes)))}"
    yield f"bits {bisect_left((2, 2.6, 3.2, 3.8), entropy_bits(value))}"
    seen = _FLAGS.match(value)
    yield from (f"has {name}" for name, group in (seen.groupdict().items() if seen else ()) if group)


def _class(char: str) -> str:
    if char.isalpha():
        return "A" if char.isupper() else "a"
    return "9" if char.isdigit() else char if char in "-_./:@" else "!"


@lru_cache(maxsize=8_192)
def _kind(word: str) -> str:
    """The group of _KIND for a word about access, or nothing. Asked for words only, since the cache outlives a text."""
    match = _KIND.search(word)
    return (match and match.lastgroup) or ""
