"""Secrets known by the place they stand in, whatever they look like.

A header that carries credentials, the second half of a login, the argument of an option for passwords, a setting named
like a secret, a column headed "password", a line of .netrc or .pgpass: what stands there opens something, even when it
is a plain word. Only what stands for a value (`$TOKEN`, `<your-key>`) is left alone.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator

from service.language.pii import arguments, names, prose
from service.language.pii.findings import API_KEY, PASSWORD, Finding
from service.language.pii.values import is_hex, is_mixed, is_plain_word, is_token, is_uuid, stands_for_something

# Authorization, X-Api-Key, X-Vault-Token: a name, a colon, perhaps a scheme, the value.
_HEADER = re.compile(
    r"""(?xi)(?<![\w-])
    (?:(?:proxy-)?authorization | (?:[a-z]\w{0,30}-){1,4}(?:key|token|secret|auth|password|signature))
    ["'\]]{0,2}\s{0,3}[:=][ \t]{0,3}["']? (?:[a-z][\w-]{2,20}[ \t]{1,3}(?=[^\s"']{4}))?
    (?P<value>[^\s"'`,;<>]{4,400})"""
)
_COOKIE = re.compile(r"(?i)\bcookie[\"']?\s{0,3}:[^\n\"']{0,400}")
_COOKIE_VALUE = re.compile(r"=([^\s;\"',]{12,400})")

# A name in the shape of a variable or setting, and its value.
_SETTING = re.compile(
    r"""(?x)(?<![\w$./-]) (?P<name>[A-Za-z][A-Za-z0-9]{0,30}(?:[_.-][A-Za-z0-9]{1,30}){1,6})
    ["']?(?:\s{0,3}|[ \t]{0,30})(?:=|:=?|=>)[ \t]{0,3}
    (?:(?P<quote>["'`])(?P<quoted>[^"'`\n]{4,300})(?P=quote) | (?P<bare>[^\s"'`]{4,300}))"""
)
_SECRET_NAME = re.compile(
    r"(?i)[_.-](?:(?P<password>pass(?:word|wd|phrase|code)?s?|pwd|pw|psk|creds?|credentials?)|(?P<login>login|auth)|"
    r"(?P<key>tokens?|secrets?|(?:api|access|secret|private|signing|encryption|master|license|deploy|account)[_.-]?key)|"
    r"(?P<bare_key>key))$"
)

_LOGIN = (
    r"(?:log(?:ged|ging)?[ -]?[io]n(?:to)?|sign(?:ed)?[ -]?in|account|cred(?:ential)?s?|user(?:name)?|access|"
    r"zugang\w*|konto|anmeldung|benutzer\w*|compte|identifiants?|utilisateur|cuenta|usuario|acceso)"
)
_LOGIN_WORD = re.compile(rf"(?i)\b{_LOGIN}\b")
_LOGIN_PAIR = re.compile(
    rf"(?i)\b{_LOGIN}\b[^\n/|:]{{0,40}}?(?:\s|[:=]\s{{0,3}})[\"'`]?(?P<user>[\w.+-]{{2,64}})[\"'`]?\s?[/|:]\s?"
    r"[\"'`]?(?P<value>[^\s\"'`<>]{3,80})"
)
_ADDRESS_PAIR = re.compile(
    r"(?<!\bgit)@[\w.-]{1,80}\.[a-zA-Z]{2,24}(?P<sign>:|\s{0,2}[/|]\s{0,2}|\s{1,2}[-\u2013\u2014]\s{1,2}|,?\s{1,2})"
    r"[\"'`(]{0,2}(?P<value>[^\s\"'`<>]{4,80})"
)

# The part of an address that is the key to it: webhooks, bots, magic links.
_URL = re.compile(r"(?i)https?://[^\s\"'<>]{10,400}")
_KEY_IN_PATH = re.compile(r"(?i)hook|/bot|/services?/|invite|magic|reset|verify|confirm")
_PART = re.compile(r"[A-Za-z0-9_-]{16,200}")
_DELIMITER = re.compile(r"[|\t,;]")
_GAP = re.compile(r"(?<=\S) {2,}(?=\S)")
_HEAD = re.compile(r"[\w *#/()&.+'-]{0,30}")
_AROUND = " \"'`\r\n"
# "user ann, password X", "ann@example.org, password X", "'ann' with password X"
_TOLD = re.compile(
    r"""(?xi)(?:\b(?:user(?:[ -]?name)?|login|benutzer(?:name)?|usuario|utilisateur)\s?[:=]?\s(?P<user>[\w.+-]{2,60})
    | ["'`](?P<quoted>[\w.+-]{2,40})["'`](?=\s(?:with|mit|con|avec)\b) | @[\w.-]{1,80}\.[a-z]{2,24})
    (?:,|\s?(?P<slash>/)|\s(?:and|und|with|mit|y|et|con|avec))\s(?:the\s)?
    (?:pass(?:word|wort|wd|phrase)?|kennwort|contrase\u00f1a|mot[ ]de[ ]passe|pw)\s(?P<value>[^\s"'`,;:<>=()]{4,80})"""
)
# Keys listed under a heading or after one that was announced; what these words speak of opens nothing.
_LISTED = re.compile(r"(?<![^\s\"'`(=:])[A-Za-z0-9_-]{32,200}(?![^\s\"'`),.;])")
_LIST = re.compile(r"(?i)\b(?:keys?|tokens?|secrets?|cred(?:ential)?s)\b(?P<heading>[^\n.?!]{0,60}:\s*\n)?")
_INNOCENT = re.compile(r"(?i)public|finger|sha-?\d|md5|hash|checksum|commit|digest|\bids?\b|ssh-|address|\n\n")


def find(text: str) -> Iterator[Finding]:
    """Secrets in headers, settings, logins, arguments, tables, lists and addresses that open something."""
    for signs, finder in _FINDERS:
        if any(sign in text for sign in signs):
            yield from finder(text)
    yield from arguments.find(text)


def _headers(text: str) -> Iterator[Finding]:
    for match in _HEADER.finditer(text):
        value = match["value"].rstrip(".)")
        quoted = text[match.end() : match.end() + 1] in {'"', "'"}
        if not stands_for_something(value) and (quoted or not is_plain_word(value)):
            yield Finding(match.start("value"), match.start("value") + len(value), API_KEY)
    for cookie in _COOKIE.finditer(text):
        for match in _COOKIE_VALUE.finditer(text, cookie.start(), cookie.end()):
            if is_token(match[1], min_chars=12, min_bits=3.0):
                yield Finding(match.start(1), match.end(1), API_KEY)


def _settings(text: str) -> Iterator[Finding]:
    for match in _SETTING.finditer(text):
        name = _SECRET_NAME.search(match["name"])
        if name is None or names.is_harmless_key(match["name"]):
            continue
        group = "quoted" if match["quoted"] else "bare"
        in_query = text[max(0, match.start() - 1) : match.start()] in {"?", "&"}
        value = (match[group].partition("&")[0] if in_query else match[group]).rstrip(".,;)")
        if _is_set(name, value, quoted=group == "quoted"):
            label = API_KEY if name["key"] or name["bare_key"] else PASSWORD
            yield Finding(match.start(group), match.start(group) + len(value), label)


def _is_set(name: re.Match[str], value: str, *, quoted: bool) -> bool:
    """Whether this is a secret that is set: how much it must look like one depends on what the name promises."""
    if len(value) < 4 or stands_for_something(value, quoted=quoted) or (value.isdigit() and len(value) < 6):
        return False
    if name["bare_key"]:
        return is_token(value, min_chars=10, min_bits=2.5)
    return not name["login"] or is_mixed(value) or ":" in value or "/" in value


def _pairs(text: str) -> Iterator[Finding]:
    for match in _LOGIN_PAIR.finditer(text):
        value = match["value"].rstrip(".,;:?)")
        same = value.lower() == match["user"].lower()
        if (same or is_mixed(value)) and not stands_for_something(match["user"]):
            yield Finding(match.start("value"), match.start("value") + len(value), PASSWORD)


def _told(text: str) -> Iterator[Finding]:
    for match in _TOLD.finditer(text):
        value, user = match["value"].rstrip(".?"), match["user"] or match["quoted"] or ""
        if prose.is_going_on(value.rstrip("!")) or prose.is_going_on(user) or stands_for_something(value):
            continue
        told = match["quoted"] or match["slash"] or not user.isalpha() or value.endswith("!")
        if is_mixed(value) or (told and prose.secret_end(text, 0, match.start("value"), signed=False)):
            yield Finding(match.start("value"), match.start("value") + len(value), PASSWORD)


def _listed(text: str) -> Iterator[Finding]:
    for match in _LISTED.finditer(text) if _LIST.search(text) else ():
        begin = max(0, match.start() - 300)
        headings = list(_LIST.finditer(text, begin, match.start()))
        if not headings or _INNOCENT.search(text, max(begin, headings[0].start() - 20), match.start()):
            continue
        plain = is_hex(match.group()) or is_uuid(match.group())
        if is_token(match.group(), min_chars=32, min_bits=3.0) and (headings[0]["heading"] or not plain):
            yield Finding(match.start(), match.end(), API_KEY)


def _address_pairs(text: str) -> Iterator[Finding]:
    for match in _ADDRESS_PAIR.finditer(text):
        value = match["value"].rstrip(".,;:?)")
        if "@" in value[1:-1] or stands_for_something(value) or value.replace("-", "").isdigit():
            continue
        sign, tight = match["sign"].strip(" ,"), not match["sign"].endswith(" ")
        asked = _LOGIN_WORD.search(text, max(0, match.start() - 100), match.start()) is not None
        if (sign or asked) if is_mixed(value) else ((tight and sign in {":", "|"}) or (asked and sign in {"/", "|"})):
            yield Finding(match.start("value"), match.start("value") + len(value), PASSWORD)


def _columns(text: str) -> Iterator[Finding]:
    """Cells of a table or of comma-separated rows in the columns that are headed like a secret."""
    start, delimiter, columns, width = 0, _DELIMITER, list[int](), 0
    for line in text.splitlines(keepends=True):
        cells = _cells(line, delimiter) if width else []
        if columns and len(cells) == width:
            for begin, cell in (cells[column] for column in columns):
                if len(cell) >= 3 and not stands_for_something(cell, quoted=True) and any(map(str.isalnum, cell)):
                    yield Finding(start + begin, start + begin + len(cell), PASSWORD)
        elif "--" not in line and (len(cells) != width or "|" not in line or not cells):  # a row heads nothing
            delimiter, columns, width = _heading(line)
        start += len(line)


def _cells(line: str, delimiter: re.Pattern[str]) -> list[tuple[int, str]]:
    """Where each cell begins and what it holds, without blanks and quotes."""
    bounds = [-1, *(match.start() for match in delimiter.finditer(line.rstrip())), len(line)]
    spans = [(line[low + 1 : high], low + 1) for low, high in itertools.pairwise(bounds)]
    return [(low + len(cell) - len(cell.lstrip(_AROUND)), cell.strip(_AROUND)) for cell, low in spans]


def _heading(line: str) -> tuple[re.Pattern[str], list[int], int]:
    found = (_DELIMITER.search(line) or _GAP.search(line)) if len(line) <= 300 else None
    if found is None:
        return _DELIMITER, [], 0
    delimiter = re.compile(re.escape(found.group())) if found.group().strip(" ") else _GAP
    cells = [cell for _, cell in _cells(line, delimiter)]
    heads = sum(map(bool, cells)) > 1 and all(map(_HEAD.fullmatch, cells))
    return delimiter, [index for index, cell in enumerate(cells) if heads and _heads_secrets(cell)], len(cells)


def _heads_secrets(cell: str) -> bool:
    strength = names.of_key(cell) if cell and len(cell.split()) <= 2 else None
    return strength is not None and strength >= names.Strength.KEY


def _links(text: str) -> Iterator[Finding]:
    for url in _URL.finditer(text):
        opener = _KEY_IN_PATH.search(text, url.start(), url.end())
        for part in _PART.finditer(text, opener.end(), url.end()) if opener else ():
            if is_token(part.group(), min_chars=16, min_bits=3.0):
                yield Finding(part.start(), part.end(), API_KEY)


_FINDERS: tuple[tuple[str, Callable[[str], Iterator[Finding]]], ...] = (
    (":=", _headers),
    (":=", _settings),
    ("/|:", _pairs),
    ("@", _address_pairs),
    ("aeiou", _told),
    ("aeiou", _listed),
    ("\n", _columns),
    ("/", _links),
)
