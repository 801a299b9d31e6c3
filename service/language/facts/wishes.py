"""How the user wants to be answered from now on.

"Please always answer in German", "keep it short", "no emojis": lasting wishes about the conversation, told as what
the user wants. An order for this one answer is none.
"""

from __future__ import annotations

import re

from service.language.facts import salience

_LASTING = re.compile(
    r"^\W*(?:please |and |also |but )*(?P<when>always|never|from now on|going forward|in (?:the )?future|by"
    r" default|don't ever|do not ever|every time|whenever)\b[, ]*(?P<what>.+)$",
    re.IGNORECASE,
)
_LASTING_END = re.compile(
    r"^\W*(?:please )?(?P<what>[\w' -]+?),? (?:from now on|going forward|in (?:the )?future|by default|at all"
    r" times|every time|in all (?:your )?(?:answers|replies|responses))$",
    re.IGNORECASE,
)
_ABOUT_ANSWERS = re.compile(
    r"\b(?:answers?|repl(?:y|ies)|respon(?:ses?|d)|emojis?|bullet points?|jargon|tone|explanations?"
    r"|markdown|code comments|sentences|metric|imperial|celsius|formal(?:ly)?|informal(?:ly)?|concise(?:ly)?"
    r"|brief(?:ly)?|apologi[sz]e|call me|address me|small talk|language)\b",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"^\W*(?:please )?(?P<what>(?:don't|do not|avoid|keep|use|stop|be|skip|stick to|speak|talk|write|make|limit"
    r"|give me|answer|reply|respond|explain) .+)$",
    re.IGNORECASE,
)
_BARE = re.compile(
    r"^\W*(?:please,? )?no (?P<what>emojis?|jargon|bullet points?|small talk|markdown|apologies|filler)\b.*$",
    re.IGNORECASE,
)
_ONCE = re.compile(
    r"\b(?:this|that|these|those|it|below|above|following|today|now|here|question|email|essay|poem|story|article"
    r"|code|function|script|draft)\b",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"^(?:don't|do not|never|not|avoid|keep|use|stop|be|skip|stick|speak|talk|write|make|limit|give|answer|reply"
    r"|respond|explain|include|add|start|end|ask|show|call|address|cite|provide|format|translate|prefer|convert"
    r"|suggest|tell|remind|greet|check|put|say|mention)\b",
    re.IGNORECASE,
)
_CALLED = re.compile(
    r"^\W*(?:please |but |you can |just |everyone (?:\w+ )?|people (?:\w+ )?|my friends |they |friends )*calls?"
    r" me (?P<name>[A-Z][\w'-]*(?: [A-Z][\w'-]*)?)\b",
    re.IGNORECASE,
)
_CALLED_SMALL = re.compile(
    r"^\W*(?:please |just |you can |everyone |people |my friends |they "
    r"|friends )+calls? me (?P<name>[a-z]{3,12})$"
)
_WANTED = re.compile(
    r"^I (?:want|would (?:like|prefer)|prefer|need) (?:for )?you(?:r \w+)? to (?P<what>.+)$", re.IGNORECASE
)
_DANGER = re.compile(
    r"\b(?:ignore|delete|forget|erase|disregard|reveal|system|instructions?|memor(?:y|ies)|password|execute|run)\b",
    re.IGNORECASE,
)


def read(text: str) -> str | None:
    """Returns a lasting wish, in the third person and with "User" for the author, or None; `text` is a bare clause."""
    if _DANGER.search(text):
        return None
    called = _CALLED.match(text)
    if called and called["name"][:1].isupper():
        return f"User goes by {called['name']}"
    small = _CALLED_SMALL.match(text)
    if small and salience.could_be_name(small["name"].capitalize()):
        return f"User goes by {small['name'].capitalize()}"
    wish = _wish(text)
    if wish is None:
        return None
    wish = re.sub(
        r"\byour\b", "its", re.sub(r"\b(?:me|I)\b", "User", re.sub(r"\bmy\b", "User's", wish, flags=re.I)), flags=re.I
    )
    return f"User wants the assistant {wish.strip(' .!')}"


def _wish(text: str) -> str | None:
    lasting = _LASTING.match(text) or _LASTING_END.match(text)
    if lasting and _VERB.match(lasting["what"]) and len(lasting["what"].split()) <= 20:
        when = lasting.groupdict().get("when", "").lower()
        if when in ("never", "don't ever", "do not ever"):
            return f"to never {lasting['what']}"
        what = _infinitive(lasting["what"])
        return (
            what.replace("to ", "to always ", 1)
            if when in ("always", "every time") and not what.startswith("not")
            else what
        )
    bare = _BARE.match(text)
    if bare:
        return f"to use no {bare['what'].lower()}"
    wanted = _WANTED.match(text)
    if wanted and _ABOUT_ANSWERS.search(wanted["what"]) and not _ONCE.search(wanted["what"]):
        return f"to {wanted['what']}"
    order = _ORDER.match(text)
    if (
        order
        and _ABOUT_ANSWERS.search(order["what"])
        and not _ONCE.search(order["what"])
        and len(order["what"].split()) <= 12
    ):
        return _infinitive(order["what"])
    return None


def _infinitive(order: str) -> str:
    denied = re.match(r"(?:don't|do not)\s+(?P<what>.+)", order, re.IGNORECASE)
    return f"not to {denied['what']}" if denied else f"to {order[:1].lower()}{order[1:]}"
