"""Values that are secret only because of the words around them: passwords, keys of no known vendor.

A credential word comes first (names.py). What follows decides: a separator (`=`, `:`, "is", `value="`, `--token `)
and a value. How much the value must look like a secret depends on how clear the word is. After "password" nearly
anything will do; after "api key" it must look generated; after a bare "key" it must also be long and disordered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from service.language.pii import names, prose
from service.language.pii.findings import API_KEY, PASSWORD, Finding
from service.language.pii.names import Name, Strength
from service.language.pii.values import (
    entropy_bits,
    is_hex,
    is_mixed,
    is_plain_word,
    is_secretive_slug,
    is_token,
    is_uuid,
    stands_for_something,
)

_FOR_WHOM = (
    r"(?:(?:for|to|of|on|at|in|from|i|we|he|she|they|you|over|by|f\u00fcrs?|vom|von|van|zum|du|des?|del|d[io]|pour|para|d['\u2019][\w.-]{1,30})"
    r"[ ](?:[\w.@'\u2019-]{1,30}[ ]){0,5}?)"
)
_SEPARATOR = re.compile(
    rf"""(?xi)
      (?:[ ]\d{{1,2}}(?=[ ]?:|[ ]is))? (?:["'`\])}}*_]{{0,4}}(?:
        (?P<sign>(?:\s{{0,3}}|[ \t]{{0,30}})(?:\|\|:|::?=|[=!]==?|=>|->|\?=|[:=\uff1a\u2192])[*_]{{0,2}}[ \t]{{0,4}}
          (?P<line>\r?\n\s{{0,8}})?)
      | (?P<markup>>|["'][ ]{{1,3}}value\s?=\s?)
      | (?P<comma>["'],[ ]?(?=["'`]))
      )
    | [ \t]{{1,12}}(?:
        (?P<copula>{_FOR_WHOM}?(?:(?:is|was|are|were|will[ ]be|has[ ]been|reads|equals|lautet)
          (?:[ ](?:now|currently|still|(?:re)?set[ ]to|changed[ ]to|just))?|(?:changed|reset|set)[ ]to):?[ \t]{{1,3}})
      | (?P<far>{_FOR_WHOM}[\w.-]{{1,30}}[ ]?:[ \t]{{1,3}})
      | (?P<change>{_FOR_WHOM}?(?:to|as|with|into|ist|(?:c['\u2019])?est|es|[\u00e8\u00e9])[ ]?:?[ \t]{{1,3}})
      | (?P<blank>)))
    """
)
_SCHEME = re.compile(r"(?i)(?:bearer|basic|token|apikey|api-key|digest|negotiate)[ \t]{1,3}")
# A value is judged by its beginning, or a text of nothing but "key=key=" would take minutes; what is accepted grows.
_QUOTED = re.compile(
    r"(?P<open>[brf]?[\"'`]|\u201c|\u2018|\u00ab)"
    r"(?P<body>(?:[^\"'`\u201d\u2019\u00bb\n]|(?<=\w)['\u2019](?=\w)){1,200})"
)
_BARE = re.compile(r"(?=[A-Z ]*\d)[A-Z0-9]{4,6}(?: [A-Z0-9]{4,6}){3,8}(?!\w)|[^\s\"`<>\u201c\u201d]{1,80}")
_GROWN_QUOTED = re.compile(r"[^\"`\u201d\u00bb\n]*")
_GROWN_BARE = re.compile(r"(?=[A-Z ]*\d)[A-Z0-9]{4,6}(?: [A-Z0-9]{4,6}){3,8}(?!\w)|[^\s\"`<>,;&]*")
# Where a bare value ends although no blank follows: before the next field or parameter, or a closing bracket.
_BARE_END = re.compile(r"[,;&](?=$|[\"'\w.-]{1,40}\s?[=:])|[,;](?=$)|[)}\]]+[,;]?$|\\n|\\?['\"].*$")
_ASSIGNMENT = re.compile(r"[\w.-]{1,60}[:=]")
_CLAUSE_END = re.compile(r"\s*(?:$|[.,;:!?)\n]|and\b|but\b|on\b|for\b|to\b|et\b|und\b|y\b)")
_LOGIN = re.compile(
    r"(?i)\b(?:log[io]n|user\w*|account|benutzer\w*|konto|utilisateur|identifiant|usuario|cuenta|admin|root|sudo|router|"
    r"wi-?fi|wlan|vpn|server|db|nas)\b"
)
_LOGIN_LAST = re.compile(_LOGIN.pattern + "[ _-]$")
_UNIT = re.compile(
    r"(?i)\s?-?(?:char\w*|digits?|letters?|symbols?|words?|days?|hours?|minutes?|"
    r"times|attempts?|bits?|bytes?|%|or more|or less|to \d)"
)
_LICENCE = re.compile(r"(?=[A-Z -]*\d)(?:[A-Z0-9]{4,8}[ -]){3,8}[A-Z0-9]{4,8}")
_FLAG = re.compile(r"(?<![\w-])--?[\w-]{0,30}$")
_CALL = re.compile(r"\([^()\n]*$")
_ENV_NAME = re.compile(r"(?m)^\s*(?:export\s+|set\s+)?[A-Z][A-Z0-9_]*$")

# "hunter2 is my password", "use hunter2 as the admin password": anchored at the verb, the value is looked up backwards.
_REVERSED = re.compile(
    r",? (?:is|was|as|=|that's|that is|which is) (?:now )?(?:(?:my|our|his|her|their|the|a|your) )?"
    r"(?:[\w-]{1,20} ){0,2}?"
    r"(?:password|passphrase|passcode|passwd|pwd|api key|access key|secret key|token)\b"
)
_LAST_RUN = re.compile(r"[^\s\"'`(]{4,64}$")
_LAST_QUOTED = re.compile(r"[\"\u201c\u00ab]([^\"\u201c\u201d\u00ab\u00bb\n]{4,64})[\"\u201d\u00bb]$")
_PIN = re.compile(
    r"(?:\b(?:PIN|Pin)(?:[ -]?(?:code|number|Code)|/\w{2,12})?|\bpin[ -]?(?:code|number)"
    r"|\b(?:my|his|her|our|the|card|sim|phone) pin|\bpin(?='s | is\b| ?:|(?: [\w'-]{1,20}){2,6} is\b)"
    r"|(?i:\b(?:otp|one[- ]time (?:code|password|passcode)|code pin|t\u00fcrcode|(?:safe|lock\w*) comb(?:o|ination)"
    r"|(?:verification|security|2fa|mfa|access|door|gate|alarm|entry|unlock|safe|garage) code"
    r"|(?:code|codice|c\u00f3digo) (?:d['\u2019e]|del(?:la)?)(?: la)? ?(?:port|puert|entr|acc|alarm|immeuble)\w*)))"
    r"(?: (?:for|to|of|on|von|vom|f\u00fcr|de[rl]?|du|del?la) (?:[\w'-]{1,20} ){0,5}?[^\W\d][\w'-]{1,20})??"
    r"(?:\s?[:=#]|'s| is| was| are| ist| est| es| \u00e8|)(?: now| just)?"
    r"\s{0,2}[\"'(*]{0,2}(?<!\d)(\d(?:[ -]?\d){3,7})(?![\w-]|\.\d)"
)
# Codes for the day the second factor is lost; each has a digit.
_SPARE = r"(?:(?=[a-z-]{0,15}\d)[a-z0-9]{4,10}(?:-[a-z0-9]{4,10}){0,3}(?:[,;\s]{1,3}|\b)){1,16}"
_SPARE_CODES = re.compile(rf"(?i)\b(?:recovery|backup|2fa|scratch) ?-?codes?\b[^\n:]{{0,30}}[:\n]\s{{0,4}}({_SPARE})\b")
# The words that restore a wallet: twelve to twenty-four of a fixed list of short ones (BIP 39).
_SEED = re.compile(
    r"(?i)\b(?:seed|recovery|mnemonic|backup|wallet)[ -](?:phrase|words|seed)\b(?: is| are|)\W{1,4}"
    r"((?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})\b"
)
_LOGIN_PAIR = re.compile(r"[^\s,;\"'`()<>]{5,80}")
_LOGIN_REACH_CHARS = 80


@dataclass(frozen=True, slots=True)
class _Value:
    start: int
    end: int
    body: str
    quoted: bool
    schemed: bool = False  # "Bearer", "Basic" stood before it


def find(text: str) -> Iterator[Finding]:
    """Values announced by a credential word before or after them, and PINs."""
    low = names.lowered(text)
    done = 0
    for name in names.find(text, low):
        if name.start < done:
            continue
        for found in _announced(text, name):
            done = max(done, found.end)
            yield found
    if names.are_in(low):
        yield from _reversed(text, low)
    if "phrase" in low or "words" in low or "mnemonic" in low:
        for match in _SEED.finditer(text):
            yield Finding(match.start(1), match.end(1), PASSWORD)
    if any(word in low for word in ("pin", "code", "codice", "c\u00f3digo", "otp", "one-time", "one time", "comb")):
        for pattern in (_PIN, _SPARE_CODES):
            for match in pattern.finditer(text):
                yield Finding(match.start(1), match.end(1), PASSWORD)


def _reversed(text: str, low: str) -> Iterator[Finding]:
    for match in _REVERSED.finditer(low):
        begin = max(0, match.start() - 66)
        quoted = _LAST_QUOTED.search(text, begin, match.start())
        if quoted and not stands_for_something(quoted[1], quoted=True):
            yield Finding(quoted.start(1), quoted.end(1), PASSWORD)
            continue
        run = _LAST_RUN.search(text[begin : match.start()].rstrip("\"'`),"))
        if run and (is_mixed(run.group()) or (run.group().isdigit() and " as " in match.group())):
            yield Finding(begin + run.start(), begin + run.end(), PASSWORD)


def _announced(text: str, name: Name) -> Iterator[Finding]:
    separator = _SEPARATOR.match(text, name.end)
    if separator is None or separator.lastgroup is None:
        return
    kind = "sign" if separator["sign"] else "copula" if separator["far"] else separator.lastgroup
    whole = name.end - name.start == len(name.word)
    if kind == "comma" and not whole:
        return
    if name.word.startswith("cred"):
        if whole and kind in {"sign", "copula"}:
            yield from _login_pair(text, separator.end())
        return
    value = _value(text, separator.end())
    if value is None:
        return
    if kind == "blank" and _FLAG.search(text, max(0, name.start - 32), name.start):
        kind = "sign"
    if name.strength is Strength.PASSWORD:
        end = _password_end(text, name, kind, value, on_next_line=bool(separator["line"]))
        if end is not None:
            yield Finding(value.start, _grown(text, value, end), PASSWORD)
    elif _is_key(name, kind, value):
        label = PASSWORD if is_secretive_slug(value.body) else API_KEY
        yield Finding(value.start, _grown(text, value, value.end), label)


def _value(text: str, start: int) -> _Value | None:
    """The string in quotes, or the run of characters up to where it must end."""
    scheme = _SCHEME.match(text, start)
    start = scheme.end() if scheme else start
    quoted = _QUOTED.match(text, start)
    if quoted:
        inner = None if scheme else _SCHEME.match(text, quoted.start("body"), quoted.end("body"))
        begin = inner.end() if inner else quoted.start("body")
        schemed = (scheme or inner) is not None
        return _Value(begin, quoted.end("body"), text[begin : quoted.end("body")], quoted=True, schemed=schemed)
    bare = _BARE.match(text, start)
    if bare is None:
        return None
    cut = _BARE_END.search(bare.group())
    body = (bare.group()[: cut.start()] if cut else bare.group()).rstrip(".,;:?")
    return _Value(start, start + len(body), body, quoted=False, schemed=scheme is not None) if body else None


def _grown(text: str, value: _Value, end: int) -> int:
    """The end of an accepted value, when only its beginning was judged."""
    most = 200 if value.quoted else 80
    if end - value.start < most or end != value.end:
        return end
    rest = (_GROWN_QUOTED if value.quoted else _GROWN_BARE).match(text, end)
    return rest.end() if rest else end


def _login_pair(text: str, start: int) -> Iterator[Finding]:
    """Every password-like string in the clause after "credentials:", for a user name mostly comes first."""
    stop = text.find("\n", start, start + _LOGIN_REACH_CHARS)
    for match in _LOGIN_PAIR.finditer(text, start, stop if stop > 0 else min(len(text), start + _LOGIN_REACH_CHARS)):
        body = match.group().rstrip(".!?")
        if is_mixed(body) and "@" not in body[1:-1]:
            yield Finding(match.start(), match.end(), PASSWORD)


def _password_end(text: str, name: Name, kind: str, value: _Value, *, on_next_line: bool) -> int | None:
    """Where the password ends, or None when the value is none."""
    body = value.body
    if len(body) < 3 or stands_for_something(body, quoted=value.quoted):
        return None
    if name.word in {"pass", "pw", "clave"} and not _is_after_short(text, name, kind, value):
        return None  # the verb, or the opposite of a failure
    if on_next_line and _ASSIGNMENT.match(body):
        return None  # nothing was set, and the next line sets something else
    if on_next_line or kind in {"change", "comma"}:
        return value.end if is_mixed(body) or (value.quoted and not is_plain_word(body)) else None
    if kind == "blank" and value.quoted:
        ends = is_mixed(body) or _CLAUSE_END.match(text, value.end + 1)
        return value.end if ends and _is_quotable(text, name, value, kind) else None
    if kind == "blank" and name.word == "passphrase" and text[: name.start].endswith(", "):
        return prose.secret_end(text, name.start, value.start, signed=False)
    if kind == "blank":
        return value.end if is_mixed(body) and _is_typed(body) else None
    if value.quoted:
        return value.end if _is_quotable(text, name, value, kind) else None
    if body.isdigit():
        return value.end if len(body) >= 4 and not _UNIT.match(text, value.end) else None
    if is_plain_word(body):
        return _plain_end(text, name, kind, value)
    if body.replace("_", "").isalpha() and kind == "sign" and not _is_env(text, name):
        return value.end if body[0].isupper() and not _names_a_secret(body) and not _in_call(text, value) else None
    return value.end if not _UNIT.match(text, value.end) and any(map(str.isalnum, body)) else None


def _is_after_short(text: str, name: Name, kind: str, value: _Value) -> bool:
    """After "pw" or "pass", which are other words too, the value must look like one, or stand where logins stand."""
    if kind == "blank":
        placed = _LOGIN.search(text, max(0, name.start - 60), name.start) or text[: name.start].endswith("(")
        return is_mixed(value.body) and bool(placed)
    said = value.quoted or is_mixed(value.body) or name.word == "pw"
    return kind in {"sign", "copula", "change"} and (said or _LOGIN_LAST.search(text[: name.start][-16:]) is not None)


def _is_typed(body: str) -> bool:
    """Without any separator only a string with digits inside or signs is taken for a password."""
    return any(map(str.isdigit, body)) and len(body) >= 6 and not body[0].isdigit()


def _is_quotable(text: str, name: Name, value: _Value, kind: str) -> bool:
    words = value.body.split()
    if len(words) == 1:
        return kind != "copula" or not prose.is_going_on(words[0])
    return (
        prose.secret_end(value.body, 0, 0, signed=True, quoted=True) is not None
        or (len(words) <= 3 and is_mixed(words[-1]))
        or (kind == "sign" and prose.is_phrase(words, surely=name.word in {"psk", "passphrase"}))
    )


def _plain_end(text: str, name: Name, kind: str, value: _Value) -> int | None:
    if _names_a_secret(value.body) or (kind == "sign" and _in_call(text, value)):
        return None
    end = prose.secret_end(text, name.start, value.start, signed=kind != "copula")
    return end or (value.end if kind == "sign" and _is_env(text, name) else None)


def _names_a_secret(body: str) -> bool:
    """`userPassword`, `new_pw`, `apiToken`: the name of a variable, repeated."""
    return re.search(r"(?i)passw|pwd|secret|token|_?pw$|key$|hash|input|value$|param", body) is not None


def _in_call(text: str, value: _Value) -> bool:
    return _CALL.search(text, max(0, value.start - 120), value.start) is not None


def _is_env(text: str, name: Name) -> bool:
    """An environment variable or an option of a command: its value needs no look of a secret."""
    if _FLAG.search(text, max(0, name.start - 32), name.start):
        return True
    line = text.rfind("\n", 0, name.start) + 1
    return name.end - line <= 80 and _ENV_NAME.match(text[line : name.end]) is not None


def _is_key(name: Name, kind: str, value: _Value) -> bool:
    body = value.body
    if _LICENCE.fullmatch(body):
        return True
    if stands_for_something(body, quoted=value.quoted) or any(map(str.isspace, body)):
        return False
    if value.schemed and name.word.startswith("auth"):
        return len(body) >= 8 and re.fullmatch(r"[\w+/=.~-]+", body) is not None and not is_plain_word(body)
    if name.strength is Strength.WEAK:
        if kind == "copula":
            return name.word.startswith("key") and is_token(body, min_chars=20, min_bits=3.2)
        return kind in {"sign", "markup"} and _is_foreign_key(name, body)
    if kind in {"blank", "change", "comma"}:
        return is_token(body, min_chars=16, min_bits=3.0) and (name.word == "bearer" or not is_uuid(body))
    if is_uuid(body) or (is_hex(body) and len(body) >= 16):
        return entropy_bits(body) >= 2.2
    digits = sum(map(str.isdigit, body))
    short = len(body) >= 8 and body.isalnum() and 3 <= digits < len(body)
    return short or is_token(body, min_chars=10, min_bits=2.8) or is_secretive_slug(body)


def _is_foreign_key(name: Name, body: str) -> bool:
    """Under a bare "key" a hash or a path is no secret; under a vendor's name a hash is one."""
    parts = re.split(r"[^A-Za-z0-9]+", body)
    if not name.word.startswith(("key", "auth")):
        solid = is_uuid(body) or max(map(len, parts)) >= 14
        return (
            solid
            and any(map(str.isdigit, body))
            and entropy_bits(body) >= 3.0
            and is_token(body, min_chars=16, min_bits=3.0)
        )
    longest = max(parts, key=len)
    return (
        len(longest) >= 14 and not is_hex(longest) and not is_uuid(body) and is_token(body, min_chars=16, min_bits=3.3)
    )
