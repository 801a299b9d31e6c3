"""How does "I meant Thursday" change what was said before it?"""

from __future__ import annotations

import re

_LEAD = re.compile(r"^(?:it is|it was|that is|it's|in|at|on|to|with|from|for|is|was|as|not|the)\s+", re.IGNORECASE)
_NOT = re.compile(
    r"^(?:not (?P<old>[^,]+?)(?:,? but(?: rather)?|,) (?P<new>.+)|(?P<new2>.+?),? (?:and )?(?:not|instead of"
    r"|rather than)"
    r" (?P<old2>.+))$",
    re.IGNORECASE,
)
_MAX_WORDS = 6
_DAY = r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?"
_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_UNIT = (
    r"mg|mcg|ml|kg|g|km|cm|mm|m|l|lbs?|k|hours?|hrs?|minutes?|mins?|days?|weeks?|months?|years?|euros?|dollars?|pounds?"
)
_KINDS = (
    re.compile(rf"\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?\b|\b\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}\b"),
    re.compile(rf"\b{_DAY}\b", re.IGNORECASE),
    re.compile(rf"\b{_MONTH}\b"),
    re.compile(r"\b\d{1,2}(?::\d\d)? ?(?:am|pm)\b|\b\d{1,2}:\d\d\b|\bnoon\b|\bmidnight\b", re.IGNORECASE),
    re.compile(r"\b\d{1,2}(?:st|nd|rd|th)\b", re.IGNORECASE),
    re.compile(rf"\b\d+(?:[.,]\d+)? ?(?:{_UNIT})\b|\b\d+(?:[.,]\d+)? ?%", re.IGNORECASE),
    re.compile(r"[$€£]?\b\d[\d.,]*\b|\b(?:one|two|three|four|five|six|seven|eight|nine|ten)\b", re.IGNORECASE),
)


def amended(earlier: str, value: str | None, fragment: str) -> str | None:
    """Returns the earlier statement with the fragment in place of what it corrects, None when nothing fits.

    `value` is the earlier statement's own, which gives way when nothing of the fragment's kind (a day, a time, a
    figure) stands in the statement.
    """
    old, new = _parts(fragment)
    if not new or len(new.split()) > _MAX_WORDS:
        return None
    if old:
        return _put(earlier, old, new) if old.lower() in earlier.lower() else None
    for kind in _KINDS:
        if kind.fullmatch(new):
            found = kind.search(earlier)
            return earlier[: found.start()] + new + _counted(new, earlier[found.end() :]) if found else None
    described = re.match(r"(?P<what>[\w-]+) (?P<head>[\w-]+)$", new)
    if described and (found := re.search(rf"\b(?:the|an?) (?P<was>[\w-]+) {re.escape(described['head'])}\b", earlier)):
        return earlier[: found.start("was")] + described["what"] + earlier[found.end("was") :]
    names = re.findall(r"[A-Z][\w'-]+", new)
    if value and (names or len(new.split()) <= 2) and not re.match(r"(?:I|my|we|the assistant)\b", new, re.IGNORECASE):
        bare = re.sub(r"^(?:an?|the) ", "", value)
        return _put(earlier, bare, new) if bare in earlier and bare != new else None
    return None


def _counted(figure: str, rest: str) -> str:
    """What is counted, in the singular behind "one"."""
    return re.sub(r"^( [a-z]+[^s\W])s\b", r"\1", rest) if figure.lower() in ("one", "1") else rest


def _parts(fragment: str) -> tuple[str, str]:
    text = fragment.strip(" .,!")
    both = _NOT.match(text)
    if both:
        old, new = both["old"] or both["old2"], both["new"] or both["new2"]
        return _LEAD.sub("", old.strip()), _LEAD.sub("", _LEAD.sub("", new.strip()))
    return "", _LEAD.sub("", _LEAD.sub("", text))


def _put(text: str, old: str, new: str) -> str:
    return re.sub(re.escape(old), lambda _match: new, text, count=1, flags=re.IGNORECASE)
