"""Facts implied by a question or a request.

"What should I cook for my wife Ann, as a vegetarian?" asks, and tells that the author is vegetarian and has a wife
named Ann.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from service.language.facts import wordbook
from service.language.facts.clauses import Clause


class Aside(NamedTuple):
    """A statement, in the first person, and the half-open span of the message it was taken from.

    `attribute`: it counts only when it gives an attribute we know.
    """

    text: str
    start: int
    end: int
    attribute: bool = True


_NAME = r"(?P<name>[A-Z][a-z]+(?: [A-Z][a-z]+)?)"
_KIN_WORD = r"(?:[\w-]+ ){0,2}?(?P<noun>[\w-]+)"
_NAMED = re.compile(rf"\b(?:[Mm]y|[Oo]ur) (?P<phrase>{_KIN_WORD}),? {_NAME}(?![\w])")
_NAME_FIRST = re.compile(
    rf"\b{_NAME}, (?:[Mm]y|[Oo]ur) (?P<phrase>{_KIN_WORD})\b(?=[,.!?]|$| (?:and|who|is|has|was)\b)"
)
_OWNED = re.compile(
    r"\b(?:my|our) (?P<phrase>(?:\d+[- ]years?[- ]old |(?:two|three|four|five|\d+) |little |older |younger |new "
    r"|elderly |teenage"
    r" )?(?P<noun>[\w-]+))(?P<mark>['’]s)?\b",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"\b(?:since|because|as|given that|now that|considering(?: that)?|seeing as|cause|cuz|although|though"
    r"|while)\s+(?P<said>(?:I|we|my \w+)(?:['’](?:m|ve|d|re|s))?\s.+?)(?=[,?!;]|$| (?:what|can|could|how|which"
    r"|where|do|is)\b)",
    re.IGNORECASE,
)
_TELLING = re.compile(
    r"\b(?:tell(?:ing)?|explain to|hide from|admit to|announce to|let)\s+(?:(?:my|our|the|his|her)(?: [\w-]+){1,3}?"
    r"|him|her|them"
    r"|people|everyone)(?: know)? (?:that )?(?P<said>(?:I|we)(?: am| are|['’]?m|['’]re|['’]ve| have)\s.+?)(?=[,?!;]|$)",
    re.IGNORECASE,
)
_IS_IT = re.compile(
    r"\bis it (?:\w+ )?(?:bad|normal|ok|okay|weird|wrong|unhealthy|strange|rude|safe|fine) that (?P<said>(?:I|we"
    r"|my \w+)\s.+?)"
    r"(?=[,?!;]|$)",
    re.IGNORECASE,
)
_AS = re.compile(
    r"\b(?:as|being)\s+(?P<said>an? (?P<noun>[\w -]{3,40}?))(?=\s*[,?!.]|\s+(?:I|what|how|which|can|could|should"
    r"|do|who)\b|$)",
    re.IGNORECASE,
)
_WHO = re.compile(
    r"\b(?:for|to) (?:someone|somebody|a person|people|us|me),? who (?P<said>(?:is|am|has|have|likes|lives|can't"
    r"|cannot|doesn't|works) .+?)(?=[,?!.]|$)",
    re.IGNORECASE,
)
_KEPT = wordbook.SPOUSES | frozenset({"son", "daughter", "kids", "children", "baby", "twins", "toddler"})


def asides(clause: Clause, *, asking: bool) -> Iterator[Aside]:
    """Yields what a clause tells beside its point; from a statement only names ("my wife Ann"): it tells the rest."""
    found: set[str] = set()
    for match in (*_NAMED.finditer(clause.text), *_NAME_FIRST.finditer(clause.text)):
        kind = wordbook.kin(match["noun"]) or wordbook.animal(match["noun"])
        told = re.search(r"\b(?:named?|called?)\b", clause.text, re.IGNORECASE)
        if kind and not (told and not asking) and match["name"].split()[0] not in ("And", "Is", "The"):
            found.add(match["noun"].lower())
            yield _aside(clause, match, f"My {match['phrase']} is named {match['name']}")
    if not asking:
        yield from (aside for aside in _roles(clause) if not clause.text[: aside.start - clause.start].strip())
        for match in _REASON.finditer(clause.text):
            if (
                re.match(r"(?:I|we)(?:['’]m|['’]ve)? (?:am|have|got)\b|I['’](?:m|ve)\b|I am\b", match["said"])
                and clause.text[: match.start()].strip()
            ):
                yield _aside(clause, match, match["said"])
        return
    for match in (*_REASON.finditer(clause.text), *_TELLING.finditer(clause.text), *_IS_IT.finditer(clause.text)):
        yield _aside(clause, match, match["said"])._replace(attribute=False)
    yield from _roles(clause)
    for match in _OWNED.finditer(clause.text):
        noun = match["noun"].lower()
        if noun not in found and (noun in _KEPT or wordbook.animal(noun)):
            found.add(noun)
            many = noun.endswith("s") or noun in ("children", "fish")
            article = "" if many else "an " if match["phrase"][0].lower() in "aeiou8" else "a "
            yield _aside(clause, match, f"I have {article}{match['phrase'].lower()}")


def _roles(clause: Clause) -> Iterator[Aside]:
    """ "As a nurse, ..."; not "works as a nurse", which is a statement by itself."""
    for match in _AS.finditer(clause.text):
        before = clause.text[: match.start()].rstrip().rsplit(None, 1)[-1:]
        told = before and re.match(
            r"(?:work\w*|job|start\w*|serv\w*|career|employed|hired|\w+ed|such|same|role|position|experience|background|training|well|just|\w+ing)$",
            before[0].strip(","),
            re.IGNORECASE,
        )
        head = re.split(r" (?:at|for|in|with|of|who|working|living) ", match["noun"])[0]
        diet = head.split()[-1].lower() in wordbook.DIETS
        if not told and (wordbook.is_role(head) or diet):
            yield _aside(clause, match, f"I am {match['said']}")


def _aside(clause: Clause, match: re.Match[str], text: str) -> Aside:
    return Aside(text, clause.start + match.start(), clause.start + match.end())
