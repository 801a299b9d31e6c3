"""Secrets in arguments of commands, calls and statements, and in headers.

Most options, parameters and settings have a telling name and are found by secret_contexts.py. This module covers the
others: an option of one letter, a position, the second argument of a call, the dialects of SQL and of network devices.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from service.redaction.detection import prose
from service.redaction.detection.findings import API_KEY, PASSWORD, Finding
from service.redaction.detection.value_shapes import is_plain_word, is_token, stands_for_something

_ARG = r"(?:\"([^\"\n]{1,200})\"|'([^'\n]{1,200})'|([^\s\"'|;&(){}]{2,200}))"
_QUOTED = r"N?(?:\"([^\"\n]{1,200})\"|'([^'\n]{1,200})')"
_STRING = r"b?[\"'][^\"'\n]{1,80}[\"']"
_GENERATED = r"(?=[^\s\"']*[a-z])(?=[^\s\"']*[A-Z])(?=(?:[^\s\"'\d]*\d){2})(?![^\s\"']*[a-z]{7})"
# The text between a command and its option is on the same line.
_LINE = r"\b[^\n|;]{0,200}?\s"
_OPTIONS = (
    rf"(?:mysql\w*|mariadb\S*|7z|rar){_LINE}-p|rar{_LINE}-hp|mongo\w*{_LINE}-p[ =]"
    rf"|redis-cli{_LINE}-a\s|ldap\w+{_LINE}-w\s?|sshpass -p\s?"
    rf"|(?:(?:un)?zip|mosquitto_\w+|sqlcmd|bcp|ipmitool){_LINE}-P\s?|snmp(?:get|walk|bulk\w*"
    rf"|set){_LINE}-[cA]\s(?!pub|priv)"
    rf"|x?freerdp{_LINE}/p:|schtasks{_LINE}/rp\s|lftp{_LINE}-u\s[\w.@-]{{1,60}},|openssl{_LINE}-\w*pass(?:in|out)?\spass:"
)
_NETWORK = r"(?i)\b(?:wi-?fi|wlan|ssid)\b[^\n]{0,60}(?:\n[^\n]{0,20}?)?\b(?:key|schl\u00fcssel|clave|cl\u00e9)"
_SQL = r"\b(?:create|alter|grant|set|options)\b[^;]{1,200}?"
_CURL = rf"\bcurl{_LINE}(?:-u|-U|--user|--proxy-user)[ =]{{0,3}}"
_USER = "[^\\s:\"'<]{1,80}:"
# Words, one of which must occur in the text, and a pattern whose last group is the secret.
_ARGUMENTS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (word, re.compile(pattern))
    for word, pattern in (
        # options of one letter, and positions
        (" -", rf"(?m)^(?![^\n]*\b(?:mysql|mariadb|psql|ps)\b)[^\n]*?\s(?:-[uUD]"
            rf"|--user(?:name)?)[ =]?[^\s:]+{_LINE}?(?:-p|-P|-w|-pw)[ =](?!\d+(?:\s|$)|/){_ARG}"),
        (" -|/p:|/rp", rf"\b(?:{_OPTIONS}){_ARG}"),
        (" -", rf"\s-\w[ =][\"']?{_GENERATED}(\w[\w+/-]{{22,200}}={{0,2}})(?![^\s\"'])"),
        ("net u", rf"\bnet use\s(?:\S+\s)?\\\\\S+\s(?:/user:\S+\s)?(?!/){_ARG}"),
        ("echo ", rf"\becho\s+(?:-n\s)?{_ARG}\s*\|\s*(?:sudo -S|kinit|smbpasswd|cryptsetup|\w[^\n"
            rf"|;]{{0,120}}?pass\w*[ -]{{1,3}}stdin)"),
        ("<<<", rf"\b(?:sudo -S|kinit|smbpasswd|cryptsetup|pass\w*[ -]{{1,3}}stdin)\b[^\n|;]{{0,80}}?<<<\s?{_ARG}"),
        ("machine ", rf"\bmachine\s\S+\s+login\s\S+\s+password\s{_ARG}"),
        ("/", r"\b(?:jdbc:oracle:\w+:|(?:sqlplus|(?:exp|imp)(?:dp)?|sqlldr|rman target)\s(?:-\w+\s)*)[\"']?"
            r"[\w$]{1,60}/([^\s@\"'/]{2,80})@"),
        ("secret", rf"--from-literal[= ]\w*(?:pass|pw|pin|key|token|secret|access)[\w.-]*={_ARG}"),
        ("chpasswd", r"\becho\s+[\"']?[\w.-]{1,40}:([^\s\"'|]{1,200})[\"']?\s*\|\s*(?:sudo\s+)?chpasswd"),
        ("ecure", rf"\bConvertTo-SecureString\s[^\n)|\"']{{0,40}}?{_QUOTED}|{_QUOTED}\s\|\sConvertTo-SecureString"),
        ("alias set", rf"\balias set \S+ https?://\S+ {_ARG}"),
        ("curl", rf"{_CURL}(?:\"{_USER}([^\"\n]{{1,200}})|'{_USER}([^'\n]{{1,200}})|{_USER}([^\s\"']{{1,200}}))"),
        ("curl", rf"{_CURL}([\"']?[^\s:\"'$<{{]{{8,200}}:[\"']?)(?!\S)"),
        ("|", r"(?<![\w|.])(\d{1,12}\|(?=\d*[A-Za-z])[A-Za-z0-9]{16,200})(?![\w|])"),  # with the id of its row
        # calls
        ("ind", rf"(?i)\b(?:simple_)?bind(?:_s)?\(\s?[\"'][^\"'\n]{{1,80}}\w=\w[^\"'\n]{{1,80}}[\"'],\s?{_QUOTED}"),
        ("login ", rf"\blogin[ ]{_GENERATED}(\w{{20,200}})(?!\S)"),
        ("(", rf"(?i)(?:auth|log[io]n|authenticate|sign_?in|credentials?|wifi\.begin"
            rf"|unlock|decrypt|(?:vault|keepass|keystore|keyring|wallet)(?:::|\.)(?:open|load))(?:\]::new)?\s?=?\s?\(\s?{_STRING},\s?@?{_QUOTED}"),
        ("lient(|New(|Api(|API(", rf"(?:lient|New|Api|API)\(\s?[\"']{_GENERATED}(\w[\w-]{{13,200}})[\"']\s?\)"),
        ("ass", rf"(?i)(?:check|set|verify|compare|change|reset)_?pass\w*\(\s?[a-z][\w.]{{0,40}},\s?{_QUOTED}"),
        ("\U0001f511|\U0001f510", r"[\U0001f510\U0001f511](?: \w{1,20}:)?:? (?=\S*[a-zA-Z])(?=\S*\d)(\S{6,64})"),
        ("onn", rf"\b(?:\w*[cC]onnect|getConnection)\(\s?[^,()\n]{{1,80}},\s?{_STRING},\s?{_QUOTED}"),
        ("PDO(", rf"\bPDO\(\s?[^,()\n]{{1,80}},\s?{_STRING},\s?{_QUOTED}"),
        ("mac|AES|Fernet", rf"\b(?:(?:hmac\.new|AES\.new|Fernet)\(\s?b?|[cC]reateHmac\(\s?{_STRING},\s?){_QUOTED}"),
        ("jwt|JWT", rf"(?i)\bjwt\.(?:sign|verify|\w+code)\((?:[^()\n{{]|\{{[^{{}}\n]{{,99}}\}}){{1,99}}?,\s?{_QUOTED}"),
        # databases
        (
            "BY|by|PASS|pass",
            rf"(?i){_SQL}\b(?:identified[^;]{{0,40}}?\sby|password)(?:\s(?:for"
            rf"|from)\s[^;=]{{1,60}}?)?[ =(]{{1,3}}(?:\w{{1,12}}\()?{_QUOTED}",
        ),
        ("dentified by|IDENTIFIED BY", rf"(?i){_SQL}\bidentified by (?!the\b|values?\b)(\w[^\s;\"']{{2,80}})"),
        # network devices; `public` and `private` are what every device comes with
        ("snmp", rf"\bsnmp-server community (?!public|private){_ARG}"),
        # wireless networks, as a QR code holds them and as a note has them; a key has eight characters or more
        ("WIFI:", r"\bWIFI:[^\n]{0,100}?\bP:((?:\\.|[^;\\\n])+)"),
        ("ifi|i-|W|wlan|ssid|SSID", rf"{_NETWORK}\s?[:=]\s?([^\s,;]{{8,63}})(?=[ \t]*(?:[,;\n]|$))"),
        # host:port:database:user:password
        (":", r"(?m)^[\w.*-]{1,100}:(?:\d{2,5}|\*):[\w*.-]{1,64}:[\w.*-]{1,64}:(\S{1,200})[ \t]*$"),
    )
)  # fmt: skip
# Authorization, X-Api-Key, X-Vault-Token: a name, a colon, perhaps a scheme, the value.
_HEADER = re.compile(
    r"""(?xi)(?<![\w-])
    (?:(?:proxy-)?authorization | (?![\w-]*(?:idempotency|surrogate|cache|public|socket)-)
      (?:[a-z]\w{0,30}-){1,4}(?:key|token|secret|auth|password|signature))
    (?:["'\]]{0,2}\s{0,3}[:=]|["'],(?=[ ]?["'](?:[a-z][\w-]{2,20}[ ])?[^"'\s]*\d))[ \t]{0,3}["']?
    (?:[a-z][\w-]{2,20}[ \t]{1,3}(?=[^\s"']{4}))?
    (?P<value>[^\s"'`,;<>]{4,400})"""
)


_COOKIES = re.compile(r"(?i)\bcookie[\"']?:[ \t\"']{0,3}(?P<pairs>[^\s=;]{1,80}=[^\"'\n]{16,4000})")
_COOKIE = re.compile(r"=([^;\s]{16,})")


def find(text: str) -> Iterator[Finding]:
    """Arguments that are always passwords, headers, and cookies that look generated."""
    for words, pattern in _ARGUMENTS:
        if words != "|" and not any(word in text for word in words.split("|")):
            continue
        for match in pattern.finditer(text):
            group = match.lastindex or 1
            if not stands_for_something(match[group], quoted=True):
                yield Finding(match.start(group), match.end(group), PASSWORD)
    if any(sign in text for sign in (":", "=", '",', "',")):
        yield from _headers(text)
    if "ookie" in text:
        yield from _cookies(text)


def _cookies(text: str) -> Iterator[Finding]:
    for header in _COOKIES.finditer(text):
        for cookie in _COOKIE.finditer(text, header.start("pairs"), header.end("pairs")):
            if is_token(cookie[1], min_chars=16, min_bits=3.0):
                yield Finding(cookie.start(1), cookie.end(1), API_KEY)


def _headers(text: str) -> Iterator[Finding]:
    for match in _HEADER.finditer(text):
        value = match["value"].rstrip(".)")
        quoted = text[match.end() : match.end() + 1] in {'"', "'"}
        ended = quoted or text[match.end() : match.end() + 1] in {"", "\n"}
        if not stands_for_something(value) and (not is_plain_word(value) or (ended and not prose.is_going_on(value))):
            yield Finding(match.start("value"), match.start("value") + len(value), API_KEY)
