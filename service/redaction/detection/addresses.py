"""E-mail and IP addresses."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from service.redaction.detection.findings import EMAIL, IP, Finding

# Anchored at the '@', so that a long run of letters costs nothing. The window is the 64 characters RFC 5321 allows.
_AT = re.compile(r"(?<=[\w+\-.])@(?=[\w\[])")
_DOMAIN = re.compile(r"@(?:[^\W_](?:[\w\-]{0,61}[^\W_])?\.){1,8}(?:xn--[a-z0-9\-]{2,59}|[^\W\d_]{2,24})(?![\w(])", re.I)
_SPELLED_AT = re.compile(r"[\[({] ?[aA][tT] ?[\])}]")
_SPELLED = re.compile(
    r"(?i)(?<![\w.])[a-z0-9](?:[a-z0-9._+\-]{0,40}[a-z0-9])? ?[\[({] ?at ?[\])}] ?"
    r"[a-z0-9\-]{1,40}(?: ?(?:\.|[\[({] ?dot ?[\])}]) ?[a-z0-9\-]{2,40}){1,4}(?!\w)"
)

_FOUR_NUMBERS = re.compile(r"\d\.\d{1,3}\.\d{1,3}\.\d")
_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?:/\d{1,2})?(?!\w|\.\w|[./]\d|-(?!\d{1,3}\.\d{1,3}\.)\d)")
# Words after which four numbers with dots are a version, a section or an object id.
_VERSION = re.compile(
    r"(?i)(?:(?<![a-z])v(?:er(?:sion)?s?)?_{0,2}\.?|\brelease|\bbuild|\bupgraded?(?: \w+)?(?: from| to)?|"
    r"\bsection|\bchapter|\bclause|\bfigure|\btable|§|\bfirmware|\bdriver|\bpatch|\bapi|\boid|[A-Za-z)]/|[=<>~^]=\s?|[<>~^])[\s:=\"']{0,3}$"
)
_IPV6 = re.compile(r"(?<![\w:.])(?=[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:])[0-9A-Fa-f:.]{2,60}+(?:%\w{1,15})?(?:/\d{1,3})?(?!\w)")
_IP_WORD = re.compile(
    r"(?i)\b(?:ip(?:v[46])?|host|addr(?:ess)?|server|loopback|gateway|dns|subnet|peer|ping|ssh|listen\w*)\b"
)
_SLICE = re.compile(r"[\w)\]]\[[^\]\n]{0,20}$")
_LOOK_BACK_CHARS = 40


def find(text: str) -> Iterator[Finding]:
    """E-mail addresses, also spelled `name (at) domain (dot) org`, and IP addresses with their prefix length."""
    if "@" in text:
        yield from _emails(text)
    if _SPELLED_AT.search(text):
        for match in _SPELLED.finditer(text):
            yield Finding(match.start(), match.end(), EMAIL)
    if _FOUR_NUMBERS.search(text):
        yield from _ipv4(text)
    if text.count(":") > 1:
        yield from _ipv6(text)


def _emails(text: str) -> Iterator[Finding]:
    for at in _AT.finditer(text):
        domain = _DOMAIN.match(text, at.start())
        if domain is None:
            continue
        local = _longest_local(text[max(0, at.start() - 64) : at.start()])
        if not local or (local == "git" and text[domain.end() : domain.end() + 1] == ":"):
            continue
        yield Finding(at.start() - len(local), domain.end(), EMAIL)


def _longest_local(window: str) -> str:
    """The characters before the '@' that belong to the address, without opening punctuation."""
    length = 0
    while length < len(window) and (window[-1 - length].isalnum() or window[-1 - length] in "._+-%'!#$&*=?^{|}~"):
        length += 1
    local = window[len(window) - length :]
    # 'jo@x.org and =jo@x.org: a quote or sign in front belongs to the text, not to the address
    cut = max(local.rfind(sign) for sign in "=?&'{|}^*!#$") + 1
    return local[cut:].lstrip(".-%'")


def _ipv4(text: str) -> Iterator[Finding]:
    for match in _IPV4.finditer(text):
        before = text[max(0, match.start() - _LOOK_BACK_CHARS) : match.start()]
        if _VERSION.search(before) or not _is_network(match.group()):
            continue
        yield Finding(match.start(), match.end(), IP)


def _ipv6(text: str) -> Iterator[Finding]:
    for match in _IPV6.finditer(text):
        body = match.group().rstrip(".")
        if not _is_network(body):
            body = body.rstrip(":")
        if body.count(":") < 2 or not _is_network(body):
            continue
        before = text[max(0, match.start() - _LOOK_BACK_CHARS) : match.start()]
        if _is_likely_ipv6(body, before):
            yield Finding(match.start(), match.start() + len(body), IP)


def _is_likely_ipv6(body: str, before: str) -> bool:
    """Python slices (x[1::2]) and C++ names (ab::c) are valid addresses too, so short ones need further evidence."""
    if "/" in body or body == "::1":
        return not _SLICE.search(before)
    groups = [group for group in body.split(":") if group]
    if not any(char.isdigit() for char in body):
        return False
    if len(groups) >= 3 or "." in body or (len(groups) == 2 and max(map(len, groups)) >= 3):
        return not _SLICE.search(before)
    return bool(groups) and _IP_WORD.search(before) is not None and not _SLICE.search(before)


def _is_network(body: str) -> bool:
    address, _, prefix = body.partition("/")
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return not prefix or int(prefix) <= parsed.max_prefixlen
