"""Recognises what a question asks for. Cue lists for English, no parser; some microseconds each.

- `kind` and `holds`: a name or a figure, and whether a text has one. Only these: nearly every text holds a place or a
  reason, and a day may be the one on which it was said.
- `is_request`: an action ("Book me a flight to Rome") is answered by what its author likes, and hardly a word of it
  stands there. "What did you recommend?" and "Find out when I moved" ask for what was said: those are questions.
- `statement`: "Where did Ana go in May?" as "Ana did go in May". Stored texts are statements, so it lies nearer to them
  in vector space.
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Final, Literal

from service.language.common_words import CALENDAR, is_common
from service.language.lexemes import lexemes

Kind = Literal["name", "figure"]

_ASKS_NAME: Final = re.compile(r"\bwho(?:m|se)?\b|\bnames?\b|\bcalled\b|\btitles?\b", re.IGNORECASE)
_ASKS_FIGURE: Final = re.compile(
    r"\bhow (?:much|old|long|far|tall|big|large|heavy|deep|high|often)\b"
    r"|\b(?:price|costs?|salary|rent|fee|budget|deposit|age|number)\b",
    re.IGNORECASE,
)
_FIGURE: Final = re.compile(
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty"
    r"|hundred|thousand|million|dozen|half|once|twice)\b",
    re.IGNORECASE,
)
_CAPITALISED: Final = re.compile(r"\b[A-Z\u00c0-\u00de][\w\u2019'-]+")


def kind(question: str) -> Kind | None:
    """What an answer to the question contains; None if unknown."""
    if _ASKS_NAME.search(question):
        return "name"
    return "figure" if _ASKS_FIGURE.search(question) else None


def holds(asked: Kind, text: str, known: Set[str]) -> bool:
    """Whether a text has a figure, or a name without a lexeme of `known`: the question itself has those."""
    if asked == "figure":
        return _FIGURE.search(text) is not None
    return any(
        not is_common(word) and word.casefold() not in CALENDAR and known.isdisjoint(lexemes(word))
        for word in _CAPITALISED.findall(text)
    )


_DO: Final = (
    r"(?:arrange|bake|book|bring|build|buy|choose|compose|cook|create|design|draft|explain|find(?!\s+out)|fix|get|help"
    r"|invite|make|order|organi[sz]e|pack|pick|plan|play|prepare|proofread|propose|put|recommend|redecorate|rent|reserve"
    r"|schedule|set\s+up|spend|suggest|write)"
)
_REQUEST: Final = re.compile(
    rf"^\W*(?:(?:please|hey|hi|hello|ok|okay|so|now|and|then)\W+)*"
    rf"(?:(?:can|could|would|will)\s+(?:you|we)\s+(?:please\s+)?|let['\u2019]?s\s+|let\s+us\s+)?{_DO}\b"
    r"|\b(?:should|shall|could|can)\s+(?:i|we)\b"
    r"|^\W*(?:i|we)(?:['\u2019](?:m|re|d)|\s+am|\s+are|\s+would)?\s+"
    r"(?:need|want|like|looking\s+for|looking\s+to|thinking\s+of|planning|trying)\b"
    r"|\b(?:any|some)\s+(?:good\s+)?(?:ideas?|suggestions?|tips|recommendations?)\b"
    r"|\b(?:for|suits?|fits?)\s+(?:me|us)\W*$",
    re.IGNORECASE,
)
_SAID: Final = re.compile(
    r"\b(?:did|have|had|was|were)\s+(?:i|you|we)\b|\b(?:i|you|we)\s+(?:\w+ly\s+)?(?:said|told|gave|mentioned|suggested"
    r"|recommended|advised|proposed|asked|talked|wrote)\b",
    re.IGNORECASE,
)
_PRESENT: Final = re.compile(
    r"\b(?:now|nowadays|current(?:ly)?|at\s+(?:the\s+moment|present)|presently|these\s+days|latest|newest"
    r"|most\s+recent(?:ly)?|so\s+far)\b",
    re.IGNORECASE,
)


_WHEN: Final = re.compile(
    r"^\W*(?:(?:and|so|since|until|by|from)\s+)*when\b|\b(?:what|which)\s+(?:dates?|days?|weeks?|months?|years?|time)\b"
    r"|\bhow\s+long\s+ago\b",
    re.IGNORECASE,
)


def is_request(text: str) -> bool:
    """Returns whether something is to be done, chosen or proposed for its author."""
    return _REQUEST.search(text) is not None and _SAID.search(text) is None


def asks_when(text: str) -> bool:
    """Returns whether it asks at which time something was or will be."""
    return _WHEN.search(text) is not None


def asks_the_present(text: str) -> bool:
    """Returns whether a question asks for the present state, so that the newest statement about it answers."""
    return _PRESENT.search(text) is not None


_POLITE = re.compile(
    r"^\s*(?:(?:please|hey|hi|so|and|but|ok(?:ay)?|well)[,\s]+)*"
    r"(?:(?:can|could|would|will) you (?:please )?)?"
    r"(?:(?:tell|remind) me|do you (?:remember|know|recall)|i (?:want|would like|need) to know|i wonder|remember)"
    r"\s+(?:of |about |again )?(?=(?:who|whom|whose|what|which|when|where|why|how|if|whether)\b)",
    re.IGNORECASE,
)
_AUXILIARY = (
    r"(?P<aux>do|does|did|is|are|was|were|am|has|have|had|will|would|can|could|should|shall|might|may|must"
    r"|isn't|aren't|wasn't|weren't|doesn't|don't|didn't|hasn't|haven't|won't|can't)"
)
_ASKS = r"(?:who|whom|what|when|where|why|how(?: (?:often|long|many times|much|far|old|soon))?)"
_INVERTED = re.compile(
    rf"^(?P<wh>{_ASKS}\s+)?{_AUXILIARY}\s+(?P<subject>{{subject}})\s+(?P<rest>.+)$".replace(
        "{subject}", r"(?:(?:the|a|an|my|your|his|her|their|our|its)\s+)?(?:[\w'\u2019-]+)(?:\s+and\s+[\w'\u2019-]+)?"
    ),
    re.IGNORECASE,
)
_WHICH = re.compile(
    rf"^(?:what|which|whose|how many|how much)\s+(?P<thing>[\w'\u2019-]+(?:\s+(?:of\s+)?[\w'\u2019-]+){{0,4}}?)\s+"
    rf"{_AUXILIARY}\s+(?P<subject>[\w'\u2019-]+)(?:\s+(?P<rest>.+))?$",
    re.IGNORECASE,
)
_DEFINED = re.compile(
    r"^(?:what|who|where|when|how)\s+(?P<be>is|are|was|were|'s|\u2019s)\s+(?P<what>.+)$", re.IGNORECASE
)
_SUBJECT = re.compile(r"^(?:who|what)\s+(?P<rest>[\w'\u2019-]+.*)$", re.IGNORECASE)
_SHORT = re.compile(r"^(what|who|where|when|how)(?:'s|\u2019s)\s", re.IGNORECASE)
_PREPOSED = re.compile(
    r"^(?:in|on|at|for|with|from|to|of|by|about|during|since)\s+(?=(?:what|which|whose|whom|how)\b)", re.IGNORECASE
)
_PRONOUN = re.compile(r"^(?:i|you|he|she|we|they|it)\b", re.IGNORECASE)
_VERBAL = re.compile(
    r"(?:\w+(?:ed|ing)|kept|made|held|born|sold|built|found|put|done|won|lost|\w+(?:own|ought|aught))\b"
)
_SILENT = frozenset({"do", "does", "did"})


def statement(question: str) -> str | None:
    """Returns the question as a statement without its answer; None if it is not a question or no rule fits."""
    text = _POLITE.sub("", question.strip()).strip()
    asks = text.endswith("?") or text != question.strip()
    text = text.rstrip("?!. ")
    turned = _turn(_SHORT.sub(r"\1 is ", _PREPOSED.sub("", text)))
    if turned is None or (not asks and not re.match(rf"^(?:{_ASKS}|which|whose)\b", text, re.IGNORECASE)):
        return None
    turned = " ".join(turned.split())
    return turned[:1].upper() + turned[1:] if turned and turned != text else None


def _turn(text: str) -> str | None:
    inverted = _INVERTED.match(text)
    if (match := _DEFINED.match(text)) and not (inverted and _VERBAL.match(inverted["rest"])):
        return f"{match['what']} {match['be'].casefold()}"
    if match := inverted:
        return f"{match['subject']} {_say_auxiliary(match['aux'])} {match['rest']}"
    if match := _WHICH.match(text):
        return f"{match['subject']} {_say_auxiliary(match['aux'])} {match['rest'] or ''} {match['thing']}"
    if match := _SUBJECT.match(text):
        return match["rest"] if _PRONOUN.match(match["rest"]) else f"somebody {match['rest']}"
    return None


def _say_auxiliary(auxiliary: str) -> str:
    return "" if auxiliary.casefold() in _SILENT else auxiliary.casefold()
