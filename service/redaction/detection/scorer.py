"""Scores odd-looking tokens by their shape and by the words around them.

People give a secret away in more sentences than a list of patterns can hold: "so it's Heron#91 for the wifi upstairs".
A token with digits, signs or capitals inside is weighed by a linear model: features of its shape, of the words and
signs around it, and of the nearest words about access. `python -m bench.secret_scorer` trains the weights.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from zlib import crc32

from service.redaction.detection import names
from service.redaction.detection.findings import API_KEY, PASSWORD, Finding
from service.redaction.detection.value_shapes import entropy_bits, names_a_secret, stands_for_something

FEATURES = 16_384
STEPS_PER_UNIT = 24
"""A weight is stored in one signed byte: log odds times this."""
_WEIGHTS = memoryview(Path(__file__).with_suffix(".bin").read_bytes()).cast("b")
_LEAST_SCORE = 2 * STEPS_PER_UNIT

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
_LEFT = re.compile(r"[\w.+@-]{1,60}[=:/](?=[^/=:])")  # `user/` or `name=` in the same run
_TRIM = re.compile(r"[:=*_.-]*(?P<value>.*?)(?:(?<![\d$&#*%+~^=_])!)?[.,:?\\]*$", re.S)

_SHAPE = re.compile(
    r"""(?x)
      (?P<year>(?:19|20)\d\d) | (?P<digits>\#?\d{4,6}[\#*]?|[A-Z]\d{4}|\d{4}[A-Z]) | (?P<number>[\d -]+)
    | (?P<hex>(?:0x)?[0-9a-fA-F]{8,}) | (?P<uuid>[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})
    | (?P<measure>[vV]?\d+(?:[.,:/x-]\d+)*[a-zA-Z%\u00b0\u20ac$]{0,4}\d?)
    | (?P<id>[A-Z]{1,5}[ -]?\d+(?:[.-]?\w{1,4})?) | (?P<caps>[A-Z0-9]+(?:[_/-][A-Z0-9]+)*)
    | (?P<signed>(?=.*[^\W\d_]).*[!$&\#*%^~+?=@].*) | (?P<marks>.*[!$&\#*%^~+?=@].*)
    | (?P<snake>[a-z]+(?:_[a-z]+)+|_+\w+|\w+_) | (?P<camel>[A-Za-z]+(?:[A-Z][a-z]+)+)
    | (?P<dotted>(?:[a-z_]+\.)+[a-z_]+) | (?P<words>[a-z]+(?:-[a-z]+)+) | (?P<path>.*/.*) | (?P<file>.*\.[a-z]{2,7})
    | (?P<random>(?=.{8})(?:[A-Za-z_.-]*\d+[_.-]*[A-Za-z][A-Za-z_.-]*){2}.*)
    | (?P<mixed>(?=.*\d)(?=.*[A-Z])(?=.*[a-z]).*) | (?P<lower>.*\d.*) | (?P<other>.*)
    """
)
_FLAGS = re.compile(
    r"(?=.*(?P<inside>[^\W\d_][!$&#*%^~+?=@]+[^\W_])|)(?=(?P<first>\d)|)(?=.*(?P<last>\d)$|)(?=.*(?P<leet>[a-z]\d+[a-z])|)"
    r"(?=.*(?P<word>[A-Za-z]{5})|)(?=.*(?P<end>[^\w])$|)(?=.*(?P<hard>(?i:[bcdfghjklmnpqrstvwxz0-9]{6}))|)"
    r"(?=.*(?P<camel>[a-z].*[A-Z])|)"
)
_MADE_UP = frozenset({"signed", "mixed", "words", "other"})
"""Shapes of what people make up."""
_REPEATED = re.compile(r"(.)\1+")
_WORD = re.compile(r"\[redacted:\w+\]|\0+|[^\W_]+")
_BEFORE_CHARS, _AFTER_CHARS = 160, 60

_KIND = re.compile(
    rf"(?P<password>{names.PASSWORD_WORD}|senha|credential|creds|clave|psk|^(?:pass|mdp|pw|zugangsdaten)$)"
    r"|(?P<taken>^taken$)"
    r"|(?P<other>postal|^zip|^area|postc|^plz|error|fehler|erreur|promo|discount|coupon|booking|order|versi|model|artic"
    r"|invoice|track|country|^sort$|fisc|^ref|number|nummer|^colou?r|commit|^sha|hash|checksum|build|release|flight"
    r"|called|named|handle)"
    r"|(?P<token>token|secret|bearer|^api|^apps?id|signing|webhook|jeton)|(?P<key>^keys?$|schl\u00fcssel|^cl\u00e9$|^auth)"
    r"|(?P<code>^(?:pins?|puk|pincode|otp|tan)$|code|codice|c\u00f3digo|^kod|\u043a\u043e\u0434|combination"
    r"|geheimzahl|digit|verif)"
    r"|(?P<door>alarm|lock|^safe$|tresor|gate|^door|t\u00fcr|port(?:a$|ail|\u00e3o|on)|puert|keypad|keybox|garage|kluis|bram|domof"
    r"|haust|cancell|cadenas|immeuble|^hek$|entr[ay]|unlock|schlo[s\u00df]|barrier)"
    r"|(?P<login>log[io]n|^log$|^sign|account|user|admin|^root$|wi-?fi|wlan|ssid|network|router|vpn|zugang|konto|anmeld"
    r"|benutzer|compte|identifiant|utilisateur|cuenta|usuario|acc[e\u00e8]s|e?mail|portal|database)"
)


def find(text: str) -> Iterator[Finding]:
    """Tokens that are probably secrets. What was found by other means is blanked beforehand."""
    low = None
    for start, end in candidates(text):
        low = low or names.lowered(text)
        about = features(text, low, start, end)
        if sum(map(_WEIGHTS.__getitem__, about)) >= _LEAST_SCORE:
            generated = _shape(text[start:end])[0] in {"hex", "uuid", "random", "caps"}
            yield Finding(start, end, API_KEY if generated else PASSWORD)


def candidates(text: str) -> Iterator[tuple[int, int]]:
    """The spans of tokens with digits, signs or capitals inside."""
    for run in _RUN.finditer(text):
        body = run["run"]
        if len(body) > LONGEST_CHARS or not _ODD.search(body) or _OTHER.match(body):
            continue
        left = _LEFT.match(body)
        token = _TRIM.match(body, left.end() if left else 0)
        value = token["value"] if token else ""
        name = stands_for_something(value) or (value.isalpha() and names_a_secret(value))
        if token and len(value) >= 4 and _ODD.search(value) and not name:
            yield run.start("run") + token.start("value"), run.start("run") + token.end("value")


def features(text: str, low: str, start: int, end: int) -> set[int]:
    """The numbers of the features of a token, below FEATURES. `low` is the text in lower case.

    None for what is generated, unless there is a word about access near it: it is mostly an id.
    """
    shape, shown = _shape(text[start:end])
    before, gap = _words(low[max(0, start - _BEFORE_CHARS) : start])
    before.reverse()
    after, _ = _words(low[end : end + _AFTER_CHARS])
    access = {_kind(word) for word in (*before, *after) if word.isalpha()} - {"", "other"}
    if shape not in _MADE_UP and not access:
        return set()
    named = [*shown, f"gap {gap}", f"gap {gap}{shape}", f"then {low[end : end + 2]}", "bias"]
    named += [f"{place} {word[:7]}" for place, word in zip(("last", "second", "third"), before, strict=False)]
    named += [f"near {word[:6]}" for word in before[:8]]
    named += [f"{place} {word[:7]}" for place, word in zip(("next", "over"), after, strict=False)]
    for side, words in (("", before), ("after ", after)):
        kinds: list[str] = []
        for distance, word in enumerate(words):
            kind = _kind(word) if word.isalpha() else ""
            if kind and kind not in kinds:
                far = _bucket(distance, 0, 1, 2, 4, 8, 16)
                named += [f"{side}{kind}{far}", f"{side}{kind}{far // 2}{shape}"]
                if not kinds:
                    named += [f"{side}first {kind}{far}{gap}", f"{side}first {kind}{far}{shape}"]
                kinds.append(kind)
        kinds = sorted(kinds) or ["none"]
        named += [f"{side}all {kinds}", f"{side}all {kinds}{shape}", *(f"{side}{kind}{shape}" for kind in kinds)]
    return {crc32(name.encode()) % FEATURES for name in named}


def _shape(value: str) -> tuple[str, tuple[str, ...]]:
    """The kind of token, and the names of what its characters show."""
    match = _SHAPE.fullmatch(value)
    shape = (match and match.lastgroup) or "other"
    classes = "".join(map(_class, value[:40]))
    seen = _FLAGS.match(value)
    flags = [name for name, group in seen.groupdict().items() if group] if seen else []
    run = _REPEATED.sub(r"\1", classes)[:10]
    return shape, (
        f"shape {shape}",
        f"run {run}",
        f"chars {_bucket(len(value), 5, 7, 10, 14, 20, 32)}",
        f"holds {''.join(sorted(set(classes)))}",
        f"bits {_bucket(entropy_bits(value), 2, 2.6, 3.2, 3.8)}",
        *(f"has {name}" for name in flags),
    )


def _class(char: str) -> str:
    if char.isalpha():
        return "A" if char.isupper() else "a"
    return "9" if char.isdigit() else char if char in "-_./:@" else "!"


def _words(part: str) -> tuple[list[str], str]:
    """The words of a part of the text, and the last signs after them. What was cut out counts as a word."""
    matches = list(_WORD.finditer(part))
    gap = part[matches[-1].end() :] if matches else part
    return ["taken" if match.group()[0] in "[\0" else match.group() for match in matches], gap[-3:]


@lru_cache(maxsize=8_192)
def _kind(word: str) -> str:
    """The group of _KIND for a word about access, or nothing. Asked for words only, since the cache outlives a text."""
    match = _KIND.search(word)
    return (match and match.lastgroup) or ""


def _bucket(number: float, *bounds: float) -> int:
    return sum(number > bound for bound in bounds)
