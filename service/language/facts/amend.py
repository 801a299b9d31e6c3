"""Corrections such as "I meant Thursday", applied to what was said before.

A correction is mostly no sentence: it gives the right value and leaves it to the hearer to see what it replaces. What
is of the same kind gives way: a day to a day, a relative to a relative, a name to a name, else the object of the verb.
"""

from __future__ import annotations

import re

from service.language import wordlists
from service.language.common_words import FUNCTION_WORDS
from service.language.facts import statement, verbs, wordbook
from service.language.gazetteer import NAMES

_LEAD = re.compile(
    r"^(?:it is|it was|that is|they are|it's|in|at|on|to|with|from|for|is|was|as|not|the|called|named|i said|we said"
    r"|make (?:that|it)|more like|rather|about|around|only|(?:I|we) (?:have|had|need|want|am|are)(?= \S+$))\s+",
    re.IGNORECASE,
)
_NOT = re.compile(
    r"^(?:not (?P<old>[^,]+?)(?:,? but(?: rather)?|,) (?P<new>.+)|(?P<new2>.+?),? (?:and )?(?:not|instead of"
    r"|rather than)"
    r" (?P<old2>.+))$",
    re.IGNORECASE,
)
_MAX_WORDS = 6
_DAY = r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?"
_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_SMALL = r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_UNIT = (
    r"mg|mcg|ml|kg|g|km|cm|mm|m|l|lbs?|k|hours?|hrs?|minutes?|mins?|days?|weeks?|months?|years?|euros?|dollars?|pounds?"
)
_CLOCK = (
    rf"(?:quarter|half|ten|five|twenty|twenty-five) (?:past|to) {_SMALL}|half {_SMALL}|{_SMALL} (?:thirty|fifteen"
    rf"|o'clock)"
    r"|\d{1,2}(?::\d\d)? ?(?:am|pm)\b|\d{1,2}:\d\d|noon|midnight"
)
_RELATIVES = "|".join(sorted(wordbook.KIN, key=len, reverse=True))
_KIN = rf"(?:(?:step|grand|half|great|older|younger|big|little|twin|ex)[- ]?)?(?:{_RELATIVES})"
_COLOUR = r"red|blue|green|yellow|black|white|grey|gray|orange|purple|pink|brown|silver|gold|beige|turquoise|navy"
_KINDS = tuple(
    re.compile(rf"(?<![\w.]){pattern}" + ("" if "$" in pattern else r"(?!\w)"), re.IGNORECASE)
    for pattern in (
        rf"(?:{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?|\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH})",
        rf"{_DAY}(?:(?:, | and |, and ){_DAY})*",
        _MONTH,
        r"(?:(?:the )?day after tomorrow|tomorrow|today|tonight|yesterday"
        r"|(?:next|this|last) (?:week|weekend|month|year|spring|summer|autumn|fall|winter|\w+day))",
        rf"(?:{_CLOCK})",
        r"\d{1,2}(?:st|nd|rd|th)",
        rf"\d+(?:[.,]\d+)? ?(?:{_UNIT}|%)",
        rf"(?:[$€£]?\d+(?:[.,]\d+)*(?:(?=(?:{_UNIT})\b)|%|(?!\w))|{_SMALL}(?!\w))",
        rf"(?:{_KIN})(?: in law)?",
        rf"(?:{_COLOUR})",
        r"(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth)",
    )
)
_HOUR = re.compile(rf"(?<=\bat )(?:\d{{1,2}}|{_SMALL})\b|(?<=\baround )\d{{1,2}}\b", re.IGNORECASE)
_NAME = re.compile(r"(?<![.!?] )(?<!^)\b(?!User\b)[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)*")
_OBJECT = re.compile(r"(?P<article>(?:an?|the|their|no|some|my) )?(?P<noun>[^\W\d][\w'’-]*(?: [\w'’-]+){0,2}?)")
_BEHIND = (
    r"(?=$|,| (?:every|in|on|at|with|for|of|when|since|each|twice|once|from|to|by|after|before|and|as|about|now"
    r"|today|per"
    r"|near|until|because|called|named)\b)"
)
_OBJECTS = re.compile(_OBJECT.pattern + _BEHIND)
_NO_NOUNS = FUNCTION_WORDS | wordlists.words(
    "sorry autocorrect typo really right wrong true complicated different old good bad fine thank kidding"
)


def amended(earlier: str, value: str | None, fragment: str, *, nouns: bool = True) -> str | None:
    """Returns the earlier statement with the fragment in place of what it corrects, None when nothing fits.

    `value` is the earlier statement's own, which gives way when nothing of the fragment's kind (a day, a time, a
    figure) stands in the statement. `nouns`: a common noun may take the place of another.
    """
    old, new = _parts(fragment)
    if not new or len(new.split()) > _MAX_WORDS:
        return None
    if old:
        return _put(earlier, old, new) if re.search(rf"\b{re.escape(old)}(?!\w)", earlier, re.IGNORECASE) else None
    found = _same_kind(earlier, re.sub(r"^(?:my|our|their|an?) | one$", "", new))
    if found is not None:
        return found or None
    graded = re.fullmatch(r"(?P<head>[a-z]+) \d+", new)  # "year 4"
    if graded and (was := re.search(rf"\b{graded['head']} \d+\b", earlier)):
        return earlier[: was.start()] + new + earlier[was.end() :]
    described = re.match(r"(?P<what>[\w-]+) (?P<head>[\w-]+)$", new)
    if described and (was := re.search(rf"\b(?:the|an?) (?P<was>[\w-]+) {re.escape(described['head'])}\b", earlier)):
        return earlier[: was.start("was")] + described["what"] + earlier[was.end("was") :]
    if _states(new):
        return None
    new = re.sub(r"^(?:an?|my|our) ", "", new, flags=re.IGNORECASE)
    named = re.match(r"[A-Z]", new) is not None
    if value and (named or (nouns and len(new.split()) <= 2)):
        bare = re.sub(r"^(?:an?|the) ", "", value)
        if bare in earlier and bare != new and (named or not re.search(r"[A-Z\d]", bare)):
            which = re.fullmatch(r"(?P<name>[A-Z][\w-]+) [a-z-]+", bare)  # "a Siamese cat", "Persian"
            return _put(earlier, which["name"] if which and named else bare, _as_written(new, bare))
    return (named and _renamed(earlier, new)) or (_another_object(earlier, new) if nouns else None)


def _as_written(new: str, old: str) -> str:
    """A noun at the head of a sentence in small letters again, where what it replaces has them and it is no name."""
    plain = old[:1].islower() and new[:1].isupper() and new[1:].islower()
    return new.lower() if plain and new.casefold() not in NAMES and new not in wordbook.FIRST_NAMES else new


_WHOSE = re.compile(r"(?!User\b)\b[A-Z][\w-]+['’]s \w+")


def _same_kind(earlier: str, new: str) -> str | None:
    """The statement with the value of the same kind replaced; "" where the fragment has a kind and it has not."""
    new = f"the {new}" if new.startswith("day after") else new
    for kind in _KINDS:
        if kind.fullmatch(new):
            found = kind.search(earlier) or (_HOUR.search(earlier) if re.match(rf"(?:{_CLOCK})$", new, re.I) else None)
            return earlier[: found.start()] + new + _counted(new, earlier[found.end() :]) if found else ""
    return None


def _states(new: str) -> bool:
    """Whether a fragment is a statement by itself, or no value at all."""
    words = new.lower().split()
    verb = any(word in ("is", "are", "was", "has", "have") or word in verbs.finite() for word in words[1:])
    pronoun = re.match(r"(?:I|my|we|our|he|she|they|it|there|that|this|what|you|your|the assistant)\b", new, re.I)
    return verb or pronoun is not None or all(word in _NO_NOUNS for word in words)


def _renamed(earlier: str, new: str) -> str | None:
    """Another name in place of the last one, where the statement has any."""
    names = list((_WHOSE if "'s " in new else _NAME).finditer(earlier))
    return earlier[: names[-1].start()] + new + earlier[names[-1].end() :] if names else None


def _another_object(earlier: str, new: str) -> str | None:
    """Another noun in place of the verb's object: "plays the oboe", "clarinet"."""
    said = statement.parse(earlier)
    rest = said.rest
    found = _OBJECTS.match(rest) if said.verb != "be" or rest.isalpha() else None
    bare = re.sub(r"^(?:an?|the|some|my) ", "", new)
    if not found or not earlier.endswith(rest) or len(bare.split()) > 2 or bare.split()[0].lower() in _NO_NOUNS:
        return None
    bare, article = _as_written(bare, found["noun"]), found["article"] or ""
    if article in ("a ", "an "):
        article = "an " if bare[0].lower() in "aeiou" else "a "
    return f"{earlier[: len(earlier) - len(rest)]}{article}{bare}{rest[found.end('noun') :]}"


def _counted(figure: str, rest: str) -> str:
    """What is counted, in the singular behind "one", in the plural behind more."""
    if figure.lower() in ("one", "1"):
        return re.sub(r"^( [a-z]+[^s\W])s\b", r"\1", rest)
    many = re.fullmatch(rf"\d+|{_SMALL}", figure, re.IGNORECASE) and re.match(r" (?P<noun>[a-z]+)$", rest)
    return f"{rest}s" if many and wordbook.kin(many["noun"]) and not rest.endswith(("s", "child", "ren")) else rest


def _parts(fragment: str) -> tuple[str, str]:
    text = fragment.strip(" .,!*")
    both = _NOT.match(text)
    if both:
        old, new = both["old"] or both["old2"], both["new"] or both["new2"]
        return _bare(old), _bare(new)
    return "", _bare(text)


def _bare(text: str) -> str:
    for _ in range(3):
        text = _LEAD.sub("", text.strip())
    return text


def _put(text: str, old: str, new: str) -> str:
    return re.sub(rf"\b{re.escape(old)}(?!\w)", lambda _match: new, text, count=1, flags=re.IGNORECASE)
