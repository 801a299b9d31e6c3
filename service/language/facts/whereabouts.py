"""Resolves "there", and reads what it is to be "at ASML now".

"What's the weather in Oslo? I'm going there on Friday." A place is the last one named; nobody's memory is helped by
"goes there". Who left one employer or town in the same breath is at the next one to work or to live.
"""

from __future__ import annotations

import re

from service.language.facts.fact import USER, StatedFact

_PLACE = re.compile(
    r"\b(?:in|to|at|from|near|around|visit(?:ing|ed)?) (?P<place>(?:the )?[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)*)"
)
_THERE = re.compile(
    r"\b(?P<verb>(?P<go>go|goes|going|went|move|moved|moving|travel\w*|fl(?:y|ies|ying|ew)|return\w*|drive|drove|driving"
    r"|get|got|been)|live[sd]?|living|work(?:s|ed|ing)?|stay(?:s|ed|ing)?|stud(?:y|ies|ied|ying)|grew up|born|am|are|is"
    r"|was|were)(?P<way> back| over| up| down| out)? there\b(?! (?:is|are|was|were)\b)",
    re.IGNORECASE,
)
_NOW_AT = re.compile(r"^(?:now )?I am (?:now )?(?P<sign>at|with|in) (?P<where>[A-Z][^,]*?)(?: now| these days)?$")


def named(text: str) -> str | None:
    """Returns the place that a text names last, None when it names none."""
    found = list(_PLACE.finditer(text))
    return found[-1]["place"] if found else None


def resolved(text: str, place: str | None) -> str:
    """Returns a clause with the place in place of "there", as it is where none is known."""
    found = _THERE.search(text) if place else None
    if not found:
        return text
    return (
        f"{text[: found.end('verb')]}{found['way'] or ''} {'to' if found['go'] else 'in'} {place}{text[found.end() :]}"
    )


def points_there(text: str) -> bool:
    """Returns whether a clause speaks of a place that it does not name."""
    return _THERE.search(text) is not None


def settled(text: str, before: StatedFact | None) -> str:
    """Returns "I am at ASML now" as what it says behind a fact of the same breath that work or home was left."""
    found = _NOW_AT.match(text)
    if not found or before is None or before.subject != USER or before.slot not in ("job", "home"):
        return text
    if (
        before.slot == "job"
        and found["sign"] != "in"
        and re.search(r"\b(?:left|quit|lost|used to|no longer)\b", before.text)
    ):
        return f"I work at {found['where']} now"
    over = before.slot == "home" and found["sign"] == "in" and before.polarity == "negative"
    return f"I live in {found['where']} now" if over else text
