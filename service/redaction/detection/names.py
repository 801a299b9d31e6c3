"""Words that announce a secret, and how strongly.

`db_password`, `ClearTextPassword`, "API key" and `oktaKey` do; `password_policy`, `max_tokens`, `primaryKey`,
"tokenizer" and "monkey" do not. A name is judged as a whole identifier: the part before and the part after the
credential word can both take its meaning away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from service.redaction.detection.folding import fold


class Strength(IntEnum):
    """How reliably the word announces a secret."""

    WEAK = 1  # key, auth, login: a secret only if what follows looks generated
    KEY = 2  # api key, token, secret
    PASSWORD = 3


@dataclass(frozen=True, slots=True)
class Name:
    """A credential word at a half-open span; `end` is the end of the whole identifier."""

    start: int
    end: int
    strength: Strength
    word: str


# "Password" in many languages; words with inflected endings come last.
_FOREIGN = (
    "mots? de passe|phrases? (?:secr\u00e8te|de passe)|frase (?:segreta|secreta|de paso)|contrase\u00f1as?"
    "|palavra-passe|m\u1eadt kh\u1ea9u|kata sandi"
)
_CJK = "\u5bc6\u7801|\u5bc6\u78bc|\u53e3\u4ee4|\u30d1\u30b9\u30ef\u30fc\u30c9|\ube44\ubc00\ubc88\ud638|\uc554\ud638"
_DECLINED = (
    "wachtwoord|has\u0142|l\u00f6senord|adgangskode|kodeord|passord|salasan|parol|hesl|jelsz|\u043f\u0430\u0440\u043e\u043b|"
    "\u015fifre|lozin[ck]|gesl[oa]|slapta\u017eod|\u03ba\u03c9\u03b4\u03b9\u03ba\u03cc"
)
PASSWORD_WORD = fold(
    r"(?:pass(?:word| ?phrase|code)s?|(?:secret|code) ?word|passwd|passw(?:ort|\u00f6rter)|kennwort|pwd"
    rf"|pre-?shared[ _-]?key|(?:wi-?fi|wpa2?|wlan|network)(?:['\u2019]s)?[ _-]?(?:key|schl\u00fcssel)|{_FOREIGN}|{_CJK}"
    rf"|(?<![^\W_])(?:{_DECLINED})\w{{0,4}})"
)[0]
"""A pattern, for text in lower case that was folded."""
# Matched in lower case; longer words come before their own prefixes.
_STEM = re.compile(
    rf"(?P<PASSWORD>{PASSWORD_WORD}|senhas?|credentials?|creds|clave(?! (?:de )?api)|psk|passw?|p/w(?:or)?d?|pswd|pword"
    "|mdp|pw)|(?P<KEY>access[_ -]?key[_ -]?ids?|tokens?|secrets?|bearer|jeton"
    "|api[- ]?(?:schl\u00fcssel|sleutel|nyckel|n\u00f8gle|\u5bc6\u94a5)"
    "|(?:cl\u00e9|clave|chi?ave) (?:d(?:e|a|i|ella|ell['\u2019]|['\u2019])? ?)?api)"
    "|(?P<WEAK>keys?|licen[cs]e|authorization|auth|login|app[_-]?id"
    "|unlocks?|entsperrt?|d\u00e9verrouille|desbloquea|sblocca)"
)
_STEMS = tuple(
    fold(stem)[0]
    for stem in (
        "pass", "pswd", "code word", "codeword", "p/w", "pwd", "pw", "key", "token", "secret", "cred", "auth", "bearer",
        "kennwort", "contrase", "senha", "login", "mot de", "mots de", "phrase", "frase", "clave", "psk", "mdp",
        "jeton", "sleutel", "nyckel", "n\u00f8gle", "ave ", "\u5bc6\u94a5",
        "schl\u00fcssel", "cl\u00e9 ", "licen", "appid", "app_id", "app-id",
        "unlock", "entsperr", "verrouille", "desbloquea", "sblocca",
         *_DECLINED.split("|")[:10],
        "\u043f\u0430\u0440\u043e\u043b", "\u015fifre", "lozin", "gesl", "slapta", "\u03ba\u03c9\u03b4\u03b9\u03ba",
        "m\u1eadt", "sandi", *_CJK.split("|"),
    )
)  # fmt: skip
# Words before "key" that make it a secret.
_OPENS = (
    "api", "access", "secret", "private", "account", "subscription", "encryption", "signing", "session", "master",
    "license", "licence", "client", "consumer", "unseal", "recovery", "shared", "hmac", "auth", "authentication",
    "integration", "root", "deploy", "webhook", "service", "app", "admin", "ingest", "activation", "product",
)  # fmt: skip
# These are parts of too many other words, so they do not count inside a word.
_SHORT = frozenset(
    "pass pw key keys auth authorization senha creds clave psk mdp login appid app_id app-id".split()  # noqa: SIM905
)
# `storepass` and `rootpw` end in the word all the same.
_GLUED = re.compile(r"(?<![a-z])(?!com|by|tres|sur|over|under|encom|im)[a-z]{2,10}\d?$")
# "key" and "token" after these are not secrets.
_HARMLESS_LIST = """
primary foreign public publishable cache sort partition idempotency unique dict index routing group row composite
natural surrogate shard object bucket redis lookup max min num count total input output prompt completion stop page
next known map hot arrow enter escape shift answer metric feature config setting json translation locale react
order dedup dedupe deduplication s3 file registry major minor piano low new extra socket pad eos bos unk mask sep cls
"""
_HARMLESS_BEFORE = frozenset(_HARMLESS_LIST.split())
_PART_BEFORE = re.compile(r"(?:[A-Z]?[a-z0-9]{1,20}|[A-Z0-9]{1,20})(?=[ _.-]?$)")
_TAIL = re.compile(r"[\w-]{0,40}")
_HARMLESS_AFTER = re.compile(
    r"(?i)[_-]?(?:ids?|names?|count|counter|len(?:gth)?|size|type|files?|path|stdin|dir|url|uri|endpoint|limit|usage|budget"
    r"|policy|expir\w*|ttl|field|input|prompt|hint|reset|manager|min|max|format|class|provider|service|store|version"
    r"|column|label|at|age|strength|rules?|error|exception|index|map|spec|ref|arn|alias|algorithm|alg|method|header"
    r"|scheme|mode|hash\w*|(?:min|max)?_?length|rotation|management|required|encryption|context|s?_per_\w+|ized?|izer)\d*$"
)


def find(text: str, low: str) -> Iterator[Name]:
    """Credential words with the rest of their identifier. `low`: see lowered."""
    if are_in(low):
        for match in _STEM.finditer(low):
            name = _judge(text, low, match)
            if name is not None:
                yield name


def are_in(low: str) -> bool:
    """False when the lower-case text cannot hold a credential word; most texts cannot."""
    return any(stem in low for stem in _STEMS)


def lower(text: str) -> str:
    """The text in lower case with every character at its place (a dotted capital I would become two)."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(char.lower()[:1] for char in text)


def of_key(key: str) -> Strength | None:
    """The strongest credential word that ends the name of a field, or None."""
    found = [name.strength for name in find(key, lower(key)) if not key[name.end :].strip("\"' :=")]
    return max(found, default=None)


def _judge(text: str, low: str, match: re.Match[str]) -> Name | None:
    start, word = match.start(), match.group()
    strength = Strength[match.lastgroup or "WEAK"]
    if not word[-1].isascii() and word[-1] > "\u3000":  # no blanks between words
        return Name(start, match.end(), strength, word)
    end = _end(text, match.end())
    rest = text[match.end() : end]
    if _continues(text[start : match.end()], rest) or _HARMLESS_AFTER.match(rest):
        return None
    before = low[max(0, start - 16) : start]
    if word in {"key", "keys"} and before.rstrip(" _.-").endswith(_OPENS):
        strength = Strength.KEY
    elif word in _SHORT and _is_inside_a_word(text, start):
        if word not in {"pass", "pw"} or rest or not _GLUED.search(before):
            return None
    elif word.startswith(("key", "token")) and _part_before(text, start) in _HARMLESS_BEFORE:
        return None
    return Name(start, end, strength, word)


def _end(text: str, position: int) -> int:
    tail = _TAIL.match(text, position)
    return tail.end() if tail else position


def _is_inside_a_word(text: str, start: int) -> bool:
    """monkey, compass, APIKEY, x1pw? A capital after a small letter starts a new word (oktaKey)."""
    before = text[start - 1 : start]
    return before.isalnum() and not (before.islower() and text[start].isupper())


def _continues(word: str, rest: str) -> bool:
    """True for tokenizer, keyboard, AUTHOR: letters follow in the same case, so it is another word."""
    return rest[:1].isalpha() and (rest[0].islower() or (word[-1].isupper() and len(word) > 1))


def _part_before(text: str, start: int) -> str:
    """The word in front, also inside an identifier: `nextPageToken` gives page."""
    part = _PART_BEFORE.search(text, max(0, start - 22), start)
    return part.group().lower() if part else ""
