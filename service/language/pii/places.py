"""Secrets known by the place they stand in, whatever they look like.

A header that carries credentials, the second half of a login, the argument of an option for passwords, a setting named
like a secret, a column headed "password", a line of .netrc or .pgpass: what stands there opens something, even when it
is a plain word. Only what stands for a value (`$TOKEN`, `<your-key>`) is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from service.language.pii import names
from service.language.pii.findings import API_KEY, PASSWORD, Finding
from service.language.pii.values import is_mixed, is_plain_word, is_token, stands_for_something

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
    ["']?\s{0,3}(?:=|:=?|=>)[ \t]{0,3}
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

# Arguments that are passwords. What stands between a command and its option is on the same line.
_VALUE = r"(?:\"([^\"\n]{1,200})\"|'([^'\n]{1,200})'|([^\s\"'|;&]{2,200}))"
_LINE = r"\b[^\n|;]{0,200}?\s"
_ARGUMENTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("-u", re.compile(rf"\s(?:-u|--user(?:name)?)[ =]?\S+{_LINE}?(?:-p|-P)[ =]{_VALUE}")),
    ("-p", re.compile(rf"\b(?:mysql\w*|mariadb\S*|7z\w?){_LINE}-p{_VALUE}|\bsshpass\s+-p\s?{_VALUE}")),
    (" -a ", re.compile(rf"\bredis-cli{_LINE}-a\s{_VALUE}")),
    ("zip ", re.compile(rf"\b(?:un)?zip{_LINE}-P\s?{_VALUE}")),
    ("htpasswd", re.compile(rf"\bhtpasswd\s(?:-\w+\s){{1,4}}\S+\s\S+\s{_VALUE}")),
    ("pass:", re.compile(rf"\bopenssl{_LINE}-\w+\spass:{_VALUE}")),
    ("net use", re.compile(rf"\bnet use\s(?:\S+\s){{1,2}}(?!/){_VALUE}")),
    ("%", re.compile(rf"\s-U\s[\w\\.-]{{1,60}}%{_VALUE}")),
    ("chpasswd", re.compile(r"\becho\s+[\"']?[\w.-]{1,40}:([^\s\"'|]{1,200})[\"']?\s*\|\s*(?:sudo\s+)?chpasswd")),
    ("machine ", re.compile(r"\bmachine\s+\S+\s+login\s+\S+\s+password\s+(\S+)")),
    ("curl", re.compile(rf"\bcurl{_LINE}(?:-U|--user|--proxy-user)[ =]?[\"']?[^\s:\"']{{1,80}}:([^\s\"']{{1,200}})")),
    ("uth", re.compile(r"(?i)\b\w*auth\s?=?\s?\(\s?[\"'][^\"'\n]{1,80}[\"'],\s?[\"']([^\"'\n]{1,200})[\"']")),
    # host:port:database:user:password, and what htpasswd or shadow wrote
    (":", re.compile(r"(?m)^[\w.*-]{1,100}:(?:\d{2,5}|\*):[\w*.-]{1,64}:[\w.*-]{1,64}:(\S{1,200})[ \t]*$")),
    ("$", re.compile(r"(?<![\w$])[\w.-]{1,40}:(\$(?:apr1|2[abxy]|[1567y]|argon2\w{1,2})\$[^\s:]{8,200})")),
)
# A token of a framework, with the number of its row.
_NUMBERED = re.compile(r"(?<![\w|])\d{1,12}\|([A-Za-z0-9_-]{16,200})(?![\w|])")
# The part of an address that is the key to it: webhooks, bots, magic links.
_URL = re.compile(r"(?i)https?://[^\s\"'<>]{10,400}")
_KEY_IN_PATH = re.compile(r"(?i)hook|/bot|/services?/|invite|magic|reset|verify|confirm")
_PART = re.compile(r"[A-Za-z0-9_-]{16,200}")
_DELIMITER = re.compile(r"[|\t,;]")


def find(text: str) -> Iterator[Finding]:
    """Secrets in headers, settings, logins, arguments, tables, numbered tokens and addresses that open something."""
    for signs, finder in _FINDERS:
        if any(sign in text for sign in signs):
            yield from finder(text)
    for word, pattern in _ARGUMENTS:
        if word in text:
            for match in pattern.finditer(text):
                group = match.lastindex or 1
                if not stands_for_something(match[group], quoted=True):
                    yield Finding(match.start(group), match.end(group), PASSWORD)


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
    start, delimiter, columns, width = 0, "", list[int](), 0
    for line in text.splitlines(keepends=True):
        cells = line.rstrip("\r\n").split(delimiter) if delimiter else []
        if columns and len(cells) == width:
            for column in columns:
                cell = cells[column].strip(" \"'`")
                if len(cell) >= 3 and not stands_for_something(cell, quoted=True) and any(map(str.isalnum, cell)):
                    begin = start + len(delimiter.join(cells[:column])) + bool(column) + cells[column].index(cell)
                    yield Finding(begin, begin + len(cell), PASSWORD)
        else:
            delimiter, columns, width = _heading(line)
        start += len(line)


def _heading(line: str) -> tuple[str, list[int], int]:
    found = _DELIMITER.search(line) if len(line) <= 300 else None
    if found is None:
        return "", [], 0
    cells = line.split(found.group())
    secret = [index for index, cell in enumerate(cells) if len(cell) <= 30 and _heads_secrets(cell.strip(" \"'`\r\n"))]
    return found.group(), secret, len(cells)


def _heads_secrets(cell: str) -> bool:
    strength = names.of_key(cell) if cell and len(cell.split()) <= 2 else None
    return strength is not None and strength >= names.Strength.KEY


def _numbered(text: str) -> Iterator[Finding]:
    for match in _NUMBERED.finditer(text):
        if is_token(match[1], min_chars=16, min_bits=3.0):
            yield Finding(match.start(), match.end(), API_KEY)


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
    ("\n", _columns),
    ("|", _numbered),
    ("/", _links),
)
