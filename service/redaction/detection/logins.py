"""Logins, tables and lists: the password is the cell after the user, or in a column with such a heading."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from service.redaction.detection import names, prose
from service.redaction.detection.findings import API_KEY, PASSWORD, Finding
from service.redaction.detection.value_shapes import (
    is_mixed,
    is_plain_word,
    is_token,
    names_a_secret,
    stands_for_something,
)

_LOGIN = (
    r"(?:log(?:ged|ging)?[ -]?[io]n(?:to)?|sign(?:ed)?[ -]?in|account|cred(?:ential)?s?|user(?:name)?|wi-?fi|wlan|"
    r"zugang\w*|konto|anmeldung|benutzer\w*|compte|identifiants?|utilisateur|cuenta|usuario|acceso)"
)
_LOGIN_PAIR = re.compile(
    rf"(?i)\b{_LOGIN}\b(?P<far>[^\n/|:]{{0,40}}?)(?:\s|[:=]\s{{0,3}})[\"'`]?(?P<user>[\w.+@-]{{2,64}})[\"'`]?"
    r"(?P<by>\s?[/|:]\s?|\s\+\s|,?\s(?:and|then|with|und|mit|et|y|con|avec)\s)[\"'`]?(?P<value>[^\s\"'`<>]{3,80})"
)
_KNOWN = frozenset({"admin", "administrator", "root", "guest", "demo", "test", "pi", "ubuntu", "postgres", "sa"})
_LEADS = frozenset({"", "with", "as", "is", "are", "mit", "avec", "con"})
_ADDRESS = re.compile(r"@[\w.-]{1,80}\.[a-zA-Z]{2,24}")
# A line that names what the lines below it hold.
_HEADING = re.compile(
    r"(?i)\b(?:(?P<passwords>pass(?:words|w\u00f6rter|codes)|contrase\u00f1as|mots de passe|wachtwoorden)|log-?ins"
    r"|accounts?|cred(?:ential)?s|zugangsdaten|users)\b(?: (?:for|of|on|at|in|to|are)\b[^\n:]{0,40})?:?[ \t]*$"
)
_ENTRY = re.compile(
    r"[ \t>*\u2022\d.)-]{0,6}(?P<left>[\w.@+-][\w.@+: /'\u2013-]{0,60}?)(?P<by>\s?[:=/|\u2192]\s{0,3}"
    r"|\s[-\u2013\u2014]\s|\t+|,\s?| {1,4})[\"'`]?(?P<value>[^\s\"'`]{3,64})[\"'`]?\s*$"
)
_DELIMITER = re.compile(r"[|\t,;]")
_KEY_CELL = re.compile(r"(?=.*[a-z])(?=.*[A-Z])(?=(?:\D*\d+\D){2})[\w-]{16,200}")
_GAP = re.compile(r"(?<=\S) {2,}(?=\S)")
_HEAD = re.compile(r"[\w *#/()&.+'-]{0,30}")
_AROUND = " \"'`\r\n"

# The secret part of a URL: webhooks, bots, magic links.
_URL = re.compile(r"(?i)https?://[^\s\"'<>]{10,400}")
_KEY_IN_PATH = re.compile(r"(?i)hook|/bot|/services?/|invite|magic|reset|verify|confirm")
_PART = re.compile(r"[A-Za-z0-9_-]{16,200}")


def find(text: str) -> Iterator[Finding]:
    """Passwords next to their user, in tables and lists."""
    if len(text) > 8:
        yield from _pairs(text)
    if "\n" in text or "@" in text:
        yield from _lists(text)
        yield from _columns(text)
    if "//" in text:
        yield from _links(text)


def _pairs(text: str) -> Iterator[Finding]:
    for match in _LOGIN_PAIR.finditer(text):
        user, value = match["user"], match["value"].rstrip(".,;:?)")
        if any(map(stands_for_something, (user, value))) or names_a_secret(user) or prose.is_going_on(user):
            continue
        spoken, near = match["by"].strip(" ,").isalpha(), match["far"].strip(" :") in _LEADS
        if is_plain_word(value):
            known = user.lower() in _KNOWN or re.search(r"[a-z]\w*[\d._@]", user) or (not spoken and user[0].islower())
            ended = prose.is_ended(text, match.end("value")) and not prose.is_going_on(value)
            plain = near and known and ended and value[0].islower() and match["by"] in {"/", ":", " / ", " and "}
            given = (plain and not prose.is_participle(value)) or (value.lower() == user.lower() and not spoken)
        else:
            given = is_mixed(value) or (
                near and "/" in match["by"] and value[0].isalpha() and not re.search("[/@]", value)
            )
        if given:
            yield Finding(match.start("value"), match.start("value") + len(value), PASSWORD)


def _lists(text: str) -> Iterator[Finding]:
    """Values of lines of one form, under a heading or each after a mail address."""
    heading, start = None, 0
    entries: list[tuple[int, re.Match[str]]] = []
    for line in [*text.splitlines(keepends=True), ""]:
        named = _HEADING.search(line[:160])
        entry = None if named else _ENTRY.match(line)
        if entry and (not entries or entry["by"].strip() == entries[0][1]["by"].strip()):
            entries.append((start, entry))
        else:
            yield from _entries(heading, entries)
            heading, entries = named, []
        start += len(line)


def _entries(heading: re.Match[str] | None, entries: list[tuple[int, re.Match[str]]]) -> Iterator[Finding]:
    addresses = bool(entries) and all(_ADDRESS.search(entry["left"]) for _, entry in entries)
    if not heading and not addresses:
        return
    odd = any(not is_plain_word(entry["value"].replace("-", "")) for _, entry in entries)
    for start, entry in entries:
        value, sign = entry["value"].rstrip(",;?"), entry["by"].strip()
        if prose.is_going_on(value) or stands_for_something(value) or names_a_secret(value) or "@" in value[1:-1]:
            continue
        if heading:
            given = (bool(sign) and (heading["passwords"] is not None or addresses)) or (
                is_mixed(value) and not value[0].isdigit()
            )
        elif len(entries) > 1 and (sign == "/" or odd):
            given = not value[0].isupper()
        else:
            given = sign not in {"", ":", ","} and value[0].isalpha() and not is_plain_word(value)
        if given:
            begin = start + entry.start("value")
            yield Finding(begin, begin + len(value), PASSWORD)


def _columns(text: str) -> Iterator[Finding]:
    """Cells of a table, or of comma-separated rows, in columns with a heading for secrets. Under "Key", which may head
    names, they have to look generated."""
    start, delimiter, columns, width = 0, _DELIMITER, dict[int, bool](), 0
    for line in text.splitlines(keepends=True):
        cells = _cells(line, delimiter) if width else []
        if columns and len(cells) == width:
            for column, sure in columns.items():
                begin, cell = cells[column]
                given = len(cell) >= 3 and (sure or _KEY_CELL.fullmatch(cell))
                if given and not stands_for_something(cell, quoted=True) and any(map(str.isalnum, cell)):
                    yield Finding(start + begin, start + begin + len(cell), PASSWORD)
        elif "--" not in line and (len(cells) != width or "|" not in line or not cells):  # a row heads nothing
            delimiter, columns, width = _heading(line)
        start += len(line)


def _cells(line: str, delimiter: re.Pattern[str]) -> list[tuple[int, str]]:
    """The start and content of each cell, without blanks and quotes."""
    bounds = [-1, *(match.start() for match in delimiter.finditer(line.rstrip())), len(line)]
    spans = [(line[low + 1 : high], low + 1) for low, high in itertools.pairwise(bounds)]
    return [(low + len(cell) - len(cell.lstrip(_AROUND)), cell.strip(_AROUND)) for cell, low in spans]


def _heading(line: str) -> tuple[re.Pattern[str], dict[int, bool], int]:
    found = (_DELIMITER.search(line) or _GAP.search(line)) if len(line) <= 300 else None
    if found is None:
        return _DELIMITER, {}, 0
    delimiter = re.compile(re.escape(found.group())) if found.group().strip(" ") else _GAP
    cells = [cell for _, cell in _cells(line, delimiter)]
    heads = sum(map(bool, cells)) > 1 and all(map(_HEAD.fullmatch, cells))
    named = {index: names.of_key(cell) for index, cell in enumerate(cells) if heads and 0 < len(cell.split()) <= 2}
    columns = {index: strength > names.Strength.WEAK for index, strength in named.items() if strength}
    return delimiter, columns, len(cells)


def _links(text: str) -> Iterator[Finding]:
    for url in _URL.finditer(text):
        opener = _KEY_IN_PATH.search(text, url.start(), url.end())
        for part in _PART.finditer(text, opener.end(), url.end()) if opener else ():
            if is_token(part.group(), min_chars=16, min_bits=3.0):
                yield Finding(part.start(), part.end(), API_KEY)
