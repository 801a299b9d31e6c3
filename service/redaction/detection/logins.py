"""Logins, tables and lists: the password is the cell after the user, or in a column with such a heading."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from service.redaction.detection import names, prose
from service.redaction.detection.findings import API_KEY, PASSWORD, Finding
from service.redaction.detection.value_shapes import (
    is_hex,
    is_mixed,
    is_plain_word,
    is_token,
    is_uuid,
    names_a_secret,
    stands_for_something,
)

_LOGIN = (
    r"(?:log(?:ged|ging)?[ -]?[io]n(?:to)?|sign(?:ed)?[ -]?in|account|cred(?:ential)?s?|user(?:name)?|wi-?fi|wlan|"
    r"zugang\w*|konto|anmeldung|benutzer\w*|compte|identifiants?|utilisateur|cuenta|usuario|acceso)"
)
_LOGIN_WORD = re.compile(rf"(?i)\b{_LOGIN}\b")
_LOGIN_PAIR = re.compile(
    rf"(?i)\b{_LOGIN}\b(?P<far>[^\n/|:]{{0,40}}?)(?:\s|[:=]\s{{0,3}})[\"'`]?(?P<user>[\w.+@-]{{2,64}})[\"'`]?"
    r"(?P<by>\s?[/|:]\s?|,?\s(?:and|then|with|und|mit|et|y|con|avec)\s)[\"'`]?(?P<value>[^\s\"'`<>]{3,80})"
)
_KNOWN = frozenset({"admin", "administrator", "root", "guest", "demo", "test", "pi", "ubuntu", "postgres", "sa"})
_LEADS = frozenset({"", "with", "as", "is", "are", "mit", "avec", "con"})
_ADDRESS_PAIR = re.compile(
    r"(?<!\bgit)@[\w.-]{1,80}\.[a-zA-Z]{2,24}(?P<sign>:|\s{0,2}[/|]\s{0,2}|\s{1,2}[-\u2013\u2014]\s{1,2}|,?\s{1,2})"
    r"[\"'`(]{0,2}(?P<value>[^\s\"'`<>]{4,80})"
)
# Similar lines under a heading that names passwords or logins.
_HEADING = re.compile(
    r"(?im)^[^\n:]{0,60}?\b(?:(?P<passwords>pass(?:words|w\u00f6rter|codes)|contrase\u00f1as|mots de passe"
    r"|wachtwoorden)|log-?ins|accounts?|cred(?:ential)?s|"
    r"zugangsdaten|users|(?P<keys>(?:secrets?|keys|tokens)))\b(?P<rest>(?: (?:for|of|on|at|in|to"
    r"|are)\b[^\n:]{0,40})?):?[ \t]*\n(?P<lines>(?:[^\n]{3,120}(?:\n|$)){1,40})"
)
_ENTRY = re.compile(
    r"(?m)^[ \t>*\u2022\d.)-]{0,6}(?P<left>[\w.@+-][\w.@+: /'-]{0,60}?)(?P<by>\s?[:=/|\u2192]\s{0,3}"
    r"|\s[-\u2013\u2014]\s|\t+|,\s?| {1,4})[\"'`]?(?P<value>[^\s\"'`]{3,64})[\"'`]?[ \t]*$"
)
_ALIKE = re.compile(
    r"(?m)^(?:[^\n/@]{1,40}?[\s:])?(?P<user>[\w.@+-]{2,60})"
    r"(?P<by> [/|:\u2192\u2014-] |: ?|\t+| {1,4})(?P<value>[^\s\"'<>]{3,64})[ \t]*$"
)
_INSERT = re.compile(r"(?i)\binsert\s+into\s[^()\n]{1,80}\(([^()]{1,300})\)\s*values\s*\(([^()]{1,500})\)")
_DELIMITER = re.compile(r"[|\t,;]")
_GAP = re.compile(r"(?<=\S) {2,}(?=\S)")
_HEAD = re.compile(r"[\w *#/()&.+'-]{0,30}")
_AROUND = " \"'`\r\n"
# The secret part of a URL: webhooks, bots, magic links.
_URL = re.compile(r"(?i)https?://[^\s\"'<>]{10,400}")
_KEY_IN_PATH = re.compile(r"(?i)hook|/bot|/services?/|invite|magic|reset|verify|confirm")
_PART = re.compile(r"[A-Za-z0-9_-]{16,200}")
# Keys listed under a heading or after an announced one; things with these words open nothing.
_LISTED = re.compile(r"(?<![^\s\"'`(=:])[A-Za-z0-9_-]{32,200}(?![^\s\"'`),.;])")
_LIST = re.compile(r"(?i)\b(?:keys?|tokens?|secrets?|cred(?:ential)?s)\b(?P<heading>[^\n.?!]{0,60}:\s*\n)?")
_INNOCENT = re.compile(r"(?i)public|finger|sha-?\d|md5|hash|checksum|commit|digest|\bids?\b|ssh-|address|\n\n")


def find(text: str) -> Iterator[Finding]:
    """Passwords next to their user, in tables and lists; listed keys; URLs that grant access."""
    if len(text) > 8:
        yield from _pairs(text)
        yield from _listed(text)
    if "@" in text:
        yield from _address_pairs(text)
    if "\n" in text:
        yield from _entries(text)
        yield from _alike(text)
        yield from _columns(text)
    if "(" in text:
        yield from _inserts(text)
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


def _address_pairs(text: str) -> Iterator[Finding]:
    for match in _ADDRESS_PAIR.finditer(text):
        value = match["value"].rstrip(".,;:?)")
        if "@" in value[1:-1] or stands_for_something(value) or value.replace("-", "").isdigit():
            continue
        alone = match.end() == len(text) or text[match.end()] == "\n"
        sign, tight = match["sign"].strip(" ,"), not match["sign"].endswith(" ")
        asked = _LOGIN_WORD.search(text, max(0, match.start() - 100), match.start()) is not None
        if (
            (sign or asked or alone)
            if is_mixed(value)
            else ((tight and sign in {":", "|"}) or (asked and sign in {"/", "|"}))
        ):
            yield Finding(match.start("value"), match.start("value") + len(value), PASSWORD)


def _alike(text: str) -> Iterator[Finding]:
    """`user / value` on two lines or more, with the same separator."""
    lines = list(_ALIKE.finditer(text))
    signs = {match["by"].strip() for match in lines}
    if len(lines) < 2 or len(signs) > 1:
        return
    addresses = all("@" in match["user"] for match in lines)
    odd = any(is_mixed(match["value"]) or not is_plain_word(match["value"].replace("-", "")) for match in lines)
    known = prose.is_about_secrets(text) or any(match["user"].lower() in _KNOWN for match in lines)
    for match in lines if addresses or (known and signs == {"/"}) else ():
        value = match["value"].rstrip(",;")
        plain = (
            addresses and (signs == {"/"} or odd or known) and not value[0].isupper() and not prose.is_going_on(value)
        )
        if (is_mixed(value) or plain) and "@" not in value and not stands_for_something(value):
            yield Finding(match.start("value"), match.start("value") + len(value), PASSWORD)


def _inserts(text: str) -> Iterator[Finding]:
    """The value of an SQL row in the column of the password."""
    for match in _INSERT.finditer(text):
        cells = _cells(match[2], _DELIMITER)
        for column, (start, cell) in zip(match[1].split(","), cells, strict=False):
            quoted = text[match.start(2) + start - 1] in "\"'"
            if quoted and names.of_key(column.strip(_AROUND)) and not stands_for_something(cell, quoted=True):
                yield Finding(match.start(2) + start, match.start(2) + start + len(cell), PASSWORD)


def _entries(text: str) -> Iterator[Finding]:
    for heading in _HEADING.finditer(text):
        begin, end = heading.span("lines")
        blank = text.find("\n\n", begin, end)
        lines = text[begin : blank if blank > 0 else end].rstrip("\n").split("\n")
        entries = [match for line in lines if (match := _ENTRY.match(line))]
        if (
            _INNOCENT.search(text, heading.start(), begin)
            or len(entries) != len(lines)
            or len({match["by"].strip() for match in entries}) > 1
        ):
            continue
        place = begin
        for line, match in zip(lines, entries, strict=True):
            value = match["value"].rstrip(",;")
            if heading["keys"]:
                key = match["by"].strip() == "|" or is_token(value, min_chars=10, min_bits=2.8)
                if key and len(value) >= 8 and not is_plain_word(value) and not stands_for_something(value):
                    yield Finding(place + match.start("value"), place + match.start("value") + len(value), API_KEY)
                place += len(line) + 1
                continue
            plain = heading["passwords"] and match["by"].strip() and not prose.is_going_on(value)
            odd = (
                ("@" in match["left"] and match["by"].strip()) or (is_mixed(value) and not value[0].isdigit())
            ) and not prose.is_going_on(value)
            if (plain or odd) and not (stands_for_something(value) or names_a_secret(value)) and "@" not in value[1:-1]:
                yield Finding(place + match.start("value"), place + match.start("value") + len(value), PASSWORD)
            place += len(line) + 1


def _columns(text: str) -> Iterator[Finding]:
    """Cells of a table, or of comma-separated rows, in columns with a heading for secrets."""
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
    """The start and content of each cell, without blanks and quotes."""
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


def _listed(text: str) -> Iterator[Finding]:
    for match in _LISTED.finditer(text) if _LIST.search(text) else ():
        begin = max(0, match.start() - 300)
        headings = list(_LIST.finditer(text, begin, match.start()))
        if not headings or _INNOCENT.search(text, max(begin, headings[0].start() - 20), match.start()):
            continue
        plain = is_hex(match.group()) or is_uuid(match.group())
        if is_token(match.group(), min_chars=32, min_bits=3.0) and (headings[0]["heading"] or not plain):
            yield Finding(match.start(), match.end(), API_KEY)
