"""Recognises secrets by their context, whatever they look like.

A credential word comes first (names.py); what follows determines the kind of place. In a field (`name=`, `"name": "`,
an option, a parameter, an argument) any value is a secret, except a stand-in (`$TOKEN`, `<your-key>`, a call, a
variable, a type). After a word of speech ("is", "to") prose.py distinguishes a value from a sentence that continues.
With nothing in between, the value must look like a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from service.redaction.detection import names, prose
from service.redaction.detection.findings import API_KEY, PASSWORD, Finding
from service.redaction.detection.names import Name, Strength
from service.redaction.detection.value_shapes import (
    entropy_bits,
    is_attribute,
    is_hex,
    is_mixed,
    is_plain_word,
    is_token,
    is_uuid,
    names_a_secret,
    stands_for_something,
)

_FOR_WHOM = (
    r"(?:(?:for|to|of|on|at|in|from|with|between|shared|i|we|he|she|they|you|over|by|f\u00fcrs?|vom|von|van"
    r"|voor|zum|za|na|ke?|til|du|des?|del|d[aio]|pour|para|per|till|"
    r"od|o\u0442|d['\u2019][\w.-]{1,30})[ ](?:[\w.@'\u2019-]{1,30}[ ]){0,5}?)"
)
_ADVERB = (
    r"(?:now|currently|still|always|just|simply|literally|actually|probably|again|apparently|basically|only"
    r"|jetzt|nun|immer|noch|weiterhin|toujours|encore|maintenant|ahora|siempre|ancora|sempre|adesso|ainda|nog|steeds"
    r"|siendo|sendo|essendo|fortfarande|stadig|fremdeles|nadal|wci\u0105\u017c|st\u00e1le|tot|h\u00e2l\u00e2"
    r"|(?:re)?set[ ]to|changed[ ]to)"
)
# Words that may follow the credential word: "the password there is", "contrase\u00f1a nueva:".
_THERE = r"(?:[ ](?:there|here|everywhere|protected|nuev[oa]|actual|wi-?fi|wlan|now))?"
_COPULA = (
    rf"(?:is|was|are|were|will[ ]be|ha[sd][ ](?:{_ADVERB}[ ])?been|remains?|remained|stays|reads|equals|"
    r"(?P<foreign>lautet|bleibt|reste|sigue|continua|ist|war|est|c['\u2019]est|es|era|\u00e8|\u00e9|rimane|este"
    r"|jest|je|\u00e4r|er|blijft|to|l\u00e0|adalah|(?<=salasana[ ])on)|(?:changed|reset|set)[ ]to)"
)
_SEPARATOR = re.compile(
    rf"""(?xi)
      (?:[ ]\d{{1,2}}(?=[ ]?:|[ ]is))? {_THERE} (?:["'`\])}}*_]{{0,4}}(?:
        (?P<sign>(?:\s{{0,3}}|[ \t]{{0,30}})(?:[?]?:\s?[\w.|<>]{{1,30}}(?:\s\|\s\w{{1,12}})?\s?(?==\s?["'`]))?
          (?:\|\|:|<-|::?=|[=!]==?|=>|->|\?=|:(?!\?)|[=\u2192])[*_]{{0,2}}[ \t]{{0,4}}
          (?:(?<==)\[(?=[^\s\[\]-]{{3,60}}\](?:[,\s)}}]|$)))?
          (?P<line>\r?\n\s{{0,8}})?)
      | (?P<markup>>(?![@:/])|["'](?:[ ]{{1,3}}(?:\w{{1,12}}=["'][\w-]{{0,30}}["'][ ]){{0,2}}value\s?=\s?
          |[ ](?:with|to)[ ](?=["'])))
      | (?P<comma>["'],[ ]?(?=["'`]) | ["']\)\.(?:type|fill|val|set_?value|send_?keys)\((?=["'`]))
      )
    | (?P<cjk>(?<=[\u3040-\uffff])[ ]?(?:(?:\u8fd8|\u4ecd\u7136)?\u662f|\u4e3a|\u70ba|\u306f|\ub294|\uc740)[ ]?)
    | (?P<which>(?:[ ]{_FOR_WHOM}[\w.-]{{1,30}})?,[ ]
        (?:(?:which|that)[ ](?:is|was)|it(?:['\u2019]s|[ ]is)|c['\u2019]est|(?:das|es)[ ]ist|\u00e8|es)
        (?:[ ]{_ADVERB})?[ ])
    | {_THERE}[ \t]{{1,12}}(?:
        (?P<copula>{_FOR_WHOM}?{_COPULA}(?:[ ]{_ADVERB}){{0,3}}(?:[ ]\w{{1,12}}[ ]words(?=:))?:?[ \t]{{1,3}})
      | (?P<far>{_FOR_WHOM}[\w.-]{{1,30}}[ ]?[:=][ \t]{{1,3}})
      | (?P<blank>)))
    """
)
_SCHEME = re.compile(r"(?i)(?:bearer|basic|token|apikey|api-key|digest|negotiate)[ \t]{1,3}")
# A value is judged by its beginning, or a text of only "key=key=" would take minutes; accepted values are then
# extended.
_QUOTED = re.compile(
    r"(?P<open>(?:[brfuN]|@)?(?:\"{3}|'{3}|[\"'`])|[\u201c\u201e\u2018]|\u00ab[ ]?)"
    r"(?P<body>(?:[^\"'`\u201c\u201d\u2019\u00bb\n]|(?<=\w)['\u2019](?=\w)){1,200})"
)
_BARE = re.compile(r"(?=[A-Z ]*\d)[A-Z0-9]{4,6}(?: [A-Z0-9]{4,6}){3,8}(?!\w)|[^\s\"`<>\u201c\u201d]{1,80}")
_GROWN_QUOTED = re.compile(r"[^\"`\u201c\u201d\u00bb\n]*")
_GROWN_BARE = re.compile(r"(?=[A-Z ]*\d)[A-Z0-9]{4,6}(?: [A-Z0-9]{4,6}){3,8}(?!\w)|[^\s\"`<>,;&]*")
# The end of a bare value without a blank: before the next field or parameter, or a closing bracket.
_BARE_END = re.compile(
    r"[,;&](?=$|[\"'\w.-]{1,40}\s?[=:])|[,;](?=$)|[)}\]]+[,;]?$|\\n|\\?['\"].*$|[\u3067\u3002\uff0c\uc785].*$"
)
_PARAMETER = re.compile(r"[^;\"'\n]{3,80}(?=;)")  # of a connection string: blanks are part of it
_ASSIGNMENT = re.compile(r"[\w.-]{1,60}[:=]")
_LOGIN = re.compile(
    r"(?i)\b(?:log[io]n|user\w*|account|benutzer\w*|konto|utilisateur|identifiant|usuario|cuenta|admin|root"
    r"|sudo|router|"
    r"wi-?fi|wlan|ssid|vpn|server|db|nas|zip|pdf|archive)\b"
)
_USED = re.compile(
    r"(?i)\b(?:use[sd]?|using|ha(?:ve|s|d)|type|enter|try|tried|got|give|gave|with) (?:the )?(?:(?!an? )\w{1,12} )?$"
)
_LICENCE = re.compile(r"(?=[A-Z -]*\d)(?:[A-Z0-9]{4,8}[ -]){3,8}[A-Z0-9]{4,8}")
_GROUPS = re.compile(r"(?:[A-Z0-9]{4,8}-){3,8}[A-Z0-9]{4,8}|(?=[A-Z-]*\d)(?:[A-Z0-9]{4,8}-){2}[A-Z0-9]{4,8}")
_SHOWN = frozenset({"sign", "markup", "comma", "copula", "far", "cjk"})  # places that announce a value
_FLAG = re.compile(r"(?<![\w/-])(?:--?|/)[\w-]{0,30}$")
_FIELD = re.compile(r"(?m)^[\s\"'*{-]*(?:export\s+|set\s+)?[\w. -]*$")
_ENV_NAME = re.compile(r"(?m)^\s*(?:export\s+|set\s+)?[A-Z][A-Z0-9_]*$")


@dataclass(frozen=True, slots=True)
class _Value:
    start: int
    end: int
    body: str
    quoted: bool


@dataclass(frozen=True, slots=True)
class _Place:
    """The text between the name and the value."""

    kind: str  # a group of _SEPARATOR
    sign: str
    strict: bool = False  # an option or an environment variable: anything there is the value
    foreign: bool = False
    next_line: bool = False


def find(text: str) -> Iterator[Finding]:
    """Values of credential words, before or after them."""
    low = names.lower(text)
    done = 0
    for name in names.find(text, low):
        if name.start < done:
            continue
        for finding in _find_announced(text, name):
            done = max(done, finding.end)
            yield finding
    yield from prose.find(text, low)


def _find_announced(text: str, name: Name) -> Iterator[Finding]:
    separator = _SEPARATOR.match(text, name.end)
    if separator is None:
        return
    kind = next(
        kind
        for kind in ("sign", "markup", "comma", "cjk", "which", "copula", "far", "blank")
        if separator[kind] is not None
    )
    if kind == "comma" and not (text[name.end + 1] == ")" or _has_quoted_start(text, name)):
        return
    if name.word.startswith("cred") and kind not in {"comma", "markup"} and name.end - name.start == len(name.word):
        return  # a user name usually comes first
    value = _value(text, separator.end(), name, separator["sign"])
    if value is None or len(value.body) < 3 - ("phrase" in name.word) or value.body[0] in " \t;,)":
        return
    if separator["line"] and _ASSIGNMENT.match(value.body):
        return  # no value was set, and another name follows
    flag = _FLAG.search(text, max(0, name.start - 32), name.start) is not None
    if flag and kind in {"blank", "sign"} and text[value.start : value.start + 1] != "-":
        kind = "sign"
    strict = kind == "sign" and (flag or _is_env(text, name))
    place = _Place(
        kind, (separator["sign"] or "").strip(), strict, _is_foreign(name, separator), bool(separator["line"])
    )
    if name.strength is Strength.PASSWORD:
        end = _password_end(text, name, place, value)
        if end is not None:
            yield Finding(value.start, _grow(text, value, end), PASSWORD)
    elif _is_key(text, name, place, value):
        label = PASSWORD if names_a_secret(value.body) and "-" in value.body else API_KEY  # my-secret-password-9
        yield Finding(value.start, _grow(text, value, value.end), label)


def _is_foreign(name: Name, separator: re.Match[str]) -> bool:
    return separator["foreign"] is not None or not name.word.startswith(("pass", "pw", "psk", "pre", "wi", "network"))


def _has_quoted_start(text: str, name: Name) -> bool:
    """Whether the quotes contain only the identifier: ("db.password", "...")."""
    return re.search(r"\(\s?[\"'][\w.#=\[\-]{0,60}$", text[max(0, name.start - 64) : name.start]) is not None


def _value(text: str, start: int, name: Name, sign: str | None) -> _Value | None:
    """The quoted string, or the characters up to where the value must end."""
    scheme = _SCHEME.match(text, start)
    start = scheme.end() if scheme else start
    quoted = _QUOTED.match(text, start)
    if quoted:
        inner = None if scheme else _SCHEME.match(text, quoted.start("body"), quoted.end("body"))
        begin = inner.end() if inner else quoted.start("body")
        body = text[begin : quoted.end("body")].rstrip(" ")
        return _Value(begin, begin + len(body), body, quoted=True)
    parameter = _PARAMETER.match(text, start) if sign == "=" and text[name.start - 1 : name.start] == ";" else None
    if parameter:
        return _Value(start, parameter.end(), parameter.group(), quoted=True)
    bare = _BARE.match(text, start)
    if bare is None:
        return None
    cut = _BARE_END.search(bare.group())
    body = (bare.group()[: cut.start()] if cut else bare.group()).rstrip(".,;:" if "=" in (sign or "") else ".,;:?")
    return _Value(start, start + len(body), body, quoted=False) if body else None


def _grow(text: str, value: _Value, end: int) -> int:
    """The end of an accepted value, only whose beginning was judged."""
    most = 200 if value.quoted else 80
    if end - value.start < most or end != value.end:
        return end
    rest = (_GROWN_QUOTED if value.quoted else _GROWN_BARE).match(text, end)
    return rest.end() if rest else end


def _password_end(text: str, name: Name, place: _Place, value: _Value) -> int | None:
    """The end of the password, or None if the value is not one."""
    body = value.body
    known = r"[A-Za-z0-9]" if place.kind == "cjk" and not value.quoted else r"[^\W_]"
    aside = body.startswith("(") and not value.quoted
    if aside or stands_for_something(body, quoted=value.quoted) or not re.search(known, body):
        return None
    if name.word in {"pass", "pw", "clave"} and not _is_after_short_word(text, name, place, value):
        return None  # the verb, or the opposite of a failure
    if place.next_line and is_plain_word(body) and _is_field(text, name):
        alone = text[value.end : value.end + 1] in {"", "\n"} and body[0].islower()
        return value.end if alone and not prose.is_going_on(body) else None
    if place.next_line:
        return value.end if is_mixed(body) or (value.quoted and not is_plain_word(body)) else None
    if value.quoted:
        bound = text[name.end : value.start - 1] == " :" and body.isidentifier()  # a variable of psql
        return value.end if not bound and _is_quotable(text, place, value) else None
    if place.kind == "blank":
        return _blank_end(text, name, value)
    if body.isdigit():
        return value.end if len(body) >= 4 else None
    if is_mixed(body):
        return value.end
    if place.kind == "comma":
        return None
    if place.strict or place.kind == "markup":
        return value.end if not (names_a_secret(body) and is_attribute(body)) else None
    field = place.kind == "sign" and "=" in place.sign
    if names_a_secret(body):
        return None
    if is_plain_word(body) and not (field and place.sign == "=" and text[value.start - 1] == "="):
        phrase = "phrase" in name.word
        sure = place.kind in {"sign", "cjk"} or (phrase and place.kind == "far")
        return prose.secret_end(text, name.start, value.start, sure=sure, foreign=place.foreign, phrase=phrase)
    if field and is_attribute(body) and text[value.start - 1] == " ":
        return None  # password = form.field
    return value.end if not prose.is_going_on(body) else None


def _blank_end(text: str, name: Name, value: _Value) -> int | None:
    """The end of a value without a separator, which must look like a secret."""
    body = value.body
    if prose.is_going_on(body) or names_a_secret(body) or is_attribute(name.word):
        return None
    before = text[max(0, name.start - 60) : name.start]
    near = _LOGIN.search(before) is not None
    alone = before.endswith(("(", '", ', "', ")) or (before.endswith(", ") and (near or name.word == "passphrase"))
    alone = alone or (before.endswith((", ", "; ")) and is_mixed(body) and prose.is_ended(text, value.end))
    if alone or _USED.search(before):
        return prose.secret_end(text, name.start, value.start, sure=False) if is_plain_word(body) else value.end
    odd = not is_plain_word(body) or "-" in body or (body[0].isupper() and text[name.start].islower())
    shown = near or name.word == "passphrase"
    given = odd and shown and len(body) >= 6 and body[0].isalpha() and prose.is_ended(text, value.end)
    return value.end if given else None


def _is_field(text: str, name: Name) -> bool:
    """Whether only the name of a field is on the line so far."""
    line = text.rfind("\n", max(0, name.start - 80), name.start) + 1
    return name.end - line <= 80 and _FIELD.match(text[line : name.end]) is not None


def _is_after_short_word(text: str, name: Name, place: _Place, value: _Value) -> bool:
    """Whether a value may be a password even after "pw" or "pass". These have other meanings, so it must look like a
    password or be in the place of a login."""
    if name.end - name.start > len(name.word) or text[name.start - 1 : name.start] in {"_", ".", "-", "$"}:
        return True
    if name.word == "clave" and not is_mixed(value.body):
        of_what = text[name.end : value.start]  # "del wifi:" announces one, "del \u00e9xito:" does not
        return re.match(r" es | ?:", of_what) is not None or (":" in of_what and bool(_LOGIN.search(of_what)))
    if name.word == "pw" and place.kind == "blank" and value.quoted:
        return not is_plain_word(value.body)
    announced = place.strict or value.quoted or is_mixed(value.body) or name.word == "pw"
    before = text[max(0, name.start - 40) : name.start]
    placed = before[-1:].isalpha() or re.search(r"(?:^|\n)[ \t]*[\"']?$", before)
    return place.kind not in {"comma", "blank"} and (announced or bool(placed))


def _is_quotable(text: str, place: _Place, value: _Value) -> bool:
    words = value.body.split()
    if place.kind in {"blank", "comma"} and len(words) == 1 and is_plain_word(value.body):
        if place.kind == "comma":
            return not names_a_secret(value.body) and value.body[0].islower()
        return place.kind == "blank" and prose.is_ended(text, value.end + 1) and not prose.is_going_on(value.body)
    if len(words) == 1:
        return place.kind != "copula" or not prose.is_going_on(words[0])
    if place.strict or place.kind == "markup":
        return not names_a_secret(value.body)
    return prose.is_phrase(value.body) or (len(words) <= 3 and is_mixed(words[-1]) and place.kind == "sign")


def _is_env(text: str, name: Name) -> bool:
    line = text.rfind("\n", 0, name.start) + 1
    return name.end - line <= 80 and _ENV_NAME.match(text[line : name.end]) is not None


def _is_key(text: str, name: Name, place: _Place, value: _Value) -> bool:
    body, kind = value.body, place.kind
    if _LICENCE.fullmatch(body) or (kind == "sign" and _GROUPS.fullmatch(body)):
        return True
    if stands_for_something(body, quoted=value.quoted):
        return False
    before, first = text[name.start - 1 : name.start], text[name.start]
    compound = before in {"_", ".", "-"} or (first.isupper() and before.islower())
    if name.strength is Strength.WEAK:
        return _is_weak_key(name, place, value, before, compound=compound)
    if any(map(str.isspace, body)):
        shown = kind in _SHOWN | {"blank"} and _is_quotable(text, place, value)
        return value.quoted and (compound or name.word == "secret") and shown
    coded = is_uuid(body) or (is_hex(body) and len(body) >= 16)
    generated = entropy_bits(body) >= 2.2 if coded else is_token(body, min_chars=10, min_bits=2.8)
    if kind not in _SHOWN:
        shown = kind == "blank" and value.quoted and compound and prose.is_ended(text, value.end + 1)
        sure = (coded and len(body) >= 32) or "_" in text[name.start - 1 : name.end]
        given = kind == "blank" and generated and sure
        return given or (shown and not prose.is_going_on(body))
    if coded or generated:
        return generated
    if names_a_secret(body):
        return (is_mixed(body) and "-" in body) or (
            place.strict and "=" in place.sign and len(body) > 12 and body.isalpha()
        )
    if len(body) < 6 or body.isdigit() or prose.is_going_on(body):
        return False
    return _is_plain_key(text, name, place, value, compound=compound)


def _is_plain_key(text: str, name: Name, place: _Place, value: _Value, *, compound: bool) -> bool:
    """Words instead of a key count only where there must be a value."""
    body = value.body
    if value.quoted:
        return compound or place.kind == "sign"
    if body.isalpha():
        ends = compound and name.end - name.start == len(name.word)
        tight = text[value.start - 1] == "=" or (place.sign == ":" and _is_field(text, name))
        return place.kind == "sign" and ((place.strict and ":" not in place.sign) or (ends and tight) or body.isupper())
    if any(map(str.isdigit, body)):
        return place.kind == "sign" or len(body) >= 8
    goes_on = any(map(prose.is_going_on, re.split(r"[-_]", body)))  # out-of-date
    return compound and not goes_on and (place.kind == "sign" or prose.is_ended(text, value.end))


def _is_weak_key(name: Name, place: _Place, value: _Value, before: str, *, compound: bool) -> bool:
    """Whether a value is a secret even after a bare "key": it must look generated; a hash or a path does not count."""
    body = value.body
    if any(map(str.isspace, body)):
        return False
    if place.kind == "copula":
        return name.word.startswith("key") and is_token(body, min_chars=16, min_bits=3.0)
    if place.kind not in {"sign", "markup"}:
        return False
    if compound:
        return is_token(body, min_chars=10, min_bits=2.5) or (
            not name.word.startswith("key") and name.end - name.start == len(name.word) and is_mixed(body)
        )
    longest = max(re.split(r"[^A-Za-z0-9]+", body), key=len)
    parameter = place.strict or before in {"?", "&"}
    if name.word == "login" or is_uuid(body) or (is_hex(longest) and not parameter):
        return False
    if parameter or before == "(":
        return len(longest) >= 12 and is_token(body, min_chars=12, min_bits=2.9)
    return len(longest) >= 14 and is_token(body, min_chars=16, min_bits=3.3)
