"""A question as the statement that answers it: "Where did Ana go in May?" becomes "Ana did go in May".

Stored texts are statements, so the question as a statement lies nearer to them in vector space. Rules for English,
some microseconds; None where no rule fits. Pure.
"""

from __future__ import annotations

import re

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
    found = _turned(_SHORT.sub(r"\1 is ", _PREPOSED.sub("", text)))
    if found is None or (not asks and not re.match(rf"^(?:{_ASKS}|which|whose)\b", text, re.IGNORECASE)):
        return None
    found = " ".join(found.split())
    return found[:1].upper() + found[1:] if found and found != text else None


def _turned(text: str) -> str | None:
    inverted = _INVERTED.match(text)
    if (match := _DEFINED.match(text)) and not (inverted and _VERBAL.match(inverted["rest"])):
        return f"{match['what']} {match['be'].casefold()}"
    if match := inverted:
        return f"{match['subject']} {_spoken(match['aux'])} {match['rest']}"
    if match := _WHICH.match(text):
        return f"{match['subject']} {_spoken(match['aux'])} {match['rest'] or ''} {match['thing']}"
    if match := _SUBJECT.match(text):
        return match["rest"] if _PRONOUN.match(match["rest"]) else f"somebody {match['rest']}"
    return None


def _spoken(auxiliary: str) -> str:
    return "" if auxiliary.casefold() in _SILENT else auxiliary.casefold()
