"""Secrets that are the argument of a command, of a call or of a line in a configuration file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from service.language.pii import names
from service.language.pii.findings import API_KEY, PASSWORD, Finding
from service.language.pii.values import is_hex, is_token, stands_for_something

_ARG = r"(?:\"([^\"\n]{1,200})\"|'([^'\n]{1,200})'|([^\s\"'|;&]{2,200}))"
_QUOTED = r"[\"']([^\"'\n]{1,200})[\"']"
_STRING = r"[\"'][^\"'\n]{1,80}[\"']"
_TOKEN = r"([A-Za-z0-9_+/=-]{20,200})"  # noqa: S105 - a pattern
# What stands between a command and its option is on the same line.
_LINE = r"\b[^\n|;]{0,200}?\s"
_OPTIONS = (
    rf"(?:mysql\w*|mariadb\S*|7z){_LINE}-p|mongo\w*{_LINE}-p[ =]|redis-cli{_LINE}-a\s|ldap\w+{_LINE}-w\s?|sshpass -p\s?"
    rf"|(?:(?:un)?zip|mosquitto_\w+|sqlcmd|bcp|ipmitool){_LINE}-P\s?|snmp(?:get|walk|bulk\w*|set){_LINE}-[cA]\s(?!pub|priv)"
    rf"|x?freerdp{_LINE}/p:|lftp{_LINE}-u\s[\w.@-]{{1,60}},|openssl{_LINE}-\w+\spass:|keytool{_LINE}-(?:store|key)pass\s"
)
_NETWORK = r"(?i)\b(?:wi-?fi|wlan|ssid)\b[^\n]{0,60}(?:\n[^\n]{0,20}?)?\b(?:key|schl\u00fcssel|clave|cl\u00e9)"
_SQL = r"\b(?:create|alter|grant|set)\s[^;]{1,200}?"
_CURL = rf"\bcurl{_LINE}(?:-u|-U|--user|--proxy-user)[ =]{{0,3}}"
_USER = "[^\\s:\"'<]{1,80}:"
# Words of which one must occur in the text, and the pattern whose last group is the secret.
_ARGUMENTS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (word, re.compile(pattern))
    for word, pattern in (
        ("-u", rf"\s(?:-u|--user(?:name)?)[ =]?\S+{_LINE}?(?:-p|-P)[ =]{_ARG}"),
        (" -|/p:", rf"\b(?:{_OPTIONS}){_ARG}"),
        ("snmp", rf"\bsnmp\w+{_LINE}-X\s{_ARG}"),
        ("htpasswd", rf"\bhtpasswd\s(?:-\w+\s){{1,4}}\S+\s\S+\s{_ARG}"),
        ("net use", rf"\bnet (?:use\s(?:\S+\s)?\\\\\S+\s(?!/){_ARG}|user\s[\w.-]+\s(?![/*]){_ARG}\s+/)"),
        ("echo ", rf"\becho\s+(?:-n\s)?{_ARG}\s*\|\s*(?:sudo -S|\w[^\n|;]{{0,120}}?pass\w*[ -]{{1,3}}stdin)"),
        ("sqlplus", r"\bsqlplus\s(?:-\w+\s)*[\"']?[\w$]{1,60}/([^\s@\"'/]{2,80})@"),
        ("secret", rf"--from-literal[= ]\w*(?:pass|pw|pin|key|token|secret|access)[\w.-]*={_ARG}"),
        ("chpasswd", r"\becho\s+[\"']?[\w.-]{1,40}:([^\s\"'|]{1,200})[\"']?\s*\|\s*(?:sudo\s+)?chpasswd"),
        ("%", rf"\s-U\s[\w\\.-]{{1,60}}%{_ARG}"),
        ("curl", rf"{_CURL}(?:\"{_USER}([^\"\n]{{1,200}})|'{_USER}([^'\n]{{1,200}})|{_USER}([^\s\"']{{1,200}}))"),
        ("curl", rf"{_CURL}([\"']?[^\s:\"'$<{{]{{8,200}}:[\"']?)(?!\S)"),
        # calls
        ("(", rf"(?i)(?:auth|\.login|credentials?)\s?=?\s?\(\s?{_STRING},\s?{_QUOTED}"),
        ("Pass", r"\bset\w{0,20}Pass(?:word|wd|phrase)\(\s?[\"']([^\s\"']{3,200})[\"']"),
        # databases
        ("BY '|BY \"|by '|PASS|pass", rf"(?i){_SQL}\b(?:identified[^;]{{0,40}}?\sby|password)[ =(]{{1,3}}{_QUOTED}"),
        ("IDENTIFIED BY", r"\bIDENTIFIED BY (\w[^\s;\"']{2,80})"),
        # network devices; `public` and `private` are what every device comes with
        ("snmp", rf"\bsnmp-server community (?!public|private){_ARG}"),
        ("snmp", rf"\bauth (?:md5|sha)[\d-]{{0,6}} {_ARG}"),
        ("snmp", rf"\bpriv (?:3?des|aes)(?:[ -]?\d{{3}})? {_ARG}"),
        ("neighbor", rf"\bneighbor [\d.:a-f]+ password (?:[07] )?{_ARG}"),
        ("-server |isakmp", rf"\b(?:(?:tacacs|radius)-server(?: host \S+)?|isakmp) key (?:[07] )?{_ARG}"),
        (" 0 | 5 | 7 | 8 | 9 ", r"\b(?:secret|password|key) [05789] (?=\S*\d)([^\s\"']{8,200})[ \t]*(?:$|\n)"),
        ("requirepass|community", rf"(?m)^[ \t]*(?:requirepass|r[ow]community6?)\s+(?!pub|priv){_ARG}"),
        # wireless networks, as a QR code holds them and as a note has them; a key has eight characters or more
        ("WIFI:", r"\bWIFI:[^\n]{0,100}?\bP:((?:\\.|[^;\\\n])+)"),
        ("ifi|i-|W|wlan|ssid|SSID", rf"{_NETWORK}\s?[:=]\s?([^\s,;]{{8,63}})(?=[ \t]*(?:[,;\n]|$))"),
        # user and password side by side
        ("machine ", r"\bmachine\s+\S+\s+login\s+\S+\s+password\s+(\S+)"),
        ("p:|p=|pass|pw", rf"(?i)\b(?:u|user)[:=]\s?[\w.@+-]{{2,60}}[\s,;]{{1,3}}p(?:ass|w)?[:=] ?(?!\d\.){_ARG}"),
        ("]", r"(?m)^\[[\w.-]{1,100}\]:\d{1,5}\s+[\w.@+-]{1,80}:(\S{3,200})"),
        # host:port:database:user:password, and what htpasswd or shadow wrote
        (":", r"(?m)^[\w.*-]{1,100}:(?:\d{2,5}|\*):[\w*.-]{1,64}:[\w.*-]{1,64}:(\S{1,200})[ \t]*$"),
        ("$", r"(?<![\w$])[\w.-]{1,40}:(\$(?:apr1|2[abxy]|[1567y]|argon2\w{1,2})\$[^\s:]{8,200})"),
    )
)  # fmt: skip
# Where a key may stand, but also something else: it must look generated.
_GENERATED = tuple(
    (word, re.compile(pattern))
    for word, pattern in (
        ("(", rf"(?:\bnew\s\w+|[cC]lient|[sS]earch|[aA]pi)\(\s?{_STRING},\s?[\"']{_TOKEN}[\"']"),
        ("?", rf"(?i)\b(?:key|token|secret)\b[^\n?]{{0,40}}\?\s{{1,3}}[\w.@ -]{{1,30}}:\s{{1,2}}{_TOKEN}(?!\S)"),
        ("|", r"(?<![\w|])(\d{1,12}\|[A-Za-z0-9_-]{16,200})(?![\w|])"),  # with the number of its row
        (" (", rf"(?i)(?<!\S){_TOKEN} \((?:[\w-]{{1,20}} ){{0,4}}(?:api|access|secret)[ -]?(?:key|token)\b"),
    )
)
# The name of a secret in one field and its value in the next.
_NAMED = re.compile(
    rf"""(?xm)(?:
      \b(?:name|key)["']?\s?[:=]\s?(?P<field>["']?[\w.-]{{2,60}})["']?[\s,]{{1,20}}["']?value["']?\s?[:=]\s?
    | \bvariable\s"(?P<variable>[\w.-]{{2,60}})"\s?\{{[^{{}}]{{0,200}}?\bdefault\s{{0,20}}=\s{{0,4}}
    | \bdefine\(\s?["'](?P<constant>\w{{2,60}})["'],\s?
    | ^(?:ENV|ARG)\s(?P<env>\w{{2,60}})\s
    | \bset\s(?P<set>\w{{2,60}})\s(?:--body|-b)[ =]
    ){_ARG}"""
)


def find(text: str) -> Iterator[Finding]:
    """Arguments that are passwords wherever they stand, those that look generated, and values named beside them."""
    for group, match in _matches(text, _ARGUMENTS):
        if not stands_for_something(match[group], quoted=True):
            yield Finding(match.start(group), match.end(group), PASSWORD)
    for _, match in _matches(text, _GENERATED):
        if _is_generated(match[1].rpartition("|")[2]):
            yield Finding(match.start(1), match.end(1), API_KEY)
    if any(word in text for word in ("value", "variable", "define", "ENV", "ARG", "-b")):
        for match in _NAMED.finditer(text):
            yield from _named(match)


def _matches(text: str, table: tuple[tuple[str, re.Pattern[str]], ...]) -> Iterator[tuple[int, re.Match[str]]]:
    for words, pattern in table:
        if words == "|" or any(word in text for word in words.split("|")):
            yield from ((match.lastindex or 1, match) for match in pattern.finditer(text))


def _named(match: re.Match[str]) -> Iterator[Finding]:
    strength = names.of_key(next(part for part in match.groups() if part).strip("\"'"))
    group = match.lastindex or 1
    reference = stands_for_something(match[group], quoted=match.string[match.start(group) - 1] in "\"'")
    plain = strength is names.Strength.PASSWORD and " " not in match[group]
    if strength and not reference and (plain or _is_generated(match[group])):
        yield Finding(match.start(group), match.end(group), PASSWORD)


def _is_generated(value: str) -> bool:
    return (is_hex(value) and len(value) >= 16) or is_token(value, min_chars=10, min_bits=2.8)
