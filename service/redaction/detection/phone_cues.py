"""Words around digits that make them a telephone number, or something else.

"Fax:", "call me at", "... mobile" on the one side; "order number", "... ms" on the other. Cues must stand right before
or right after the digits: a text that merely mentions a phone somewhere proves nothing.
"""

from __future__ import annotations

import re

LOOK_BACK_CHARS = 60

_DEVICE = (
    r"(?:tele?(?:phone)?|phone|mobile|mob|cell(?:phone|ular)?|fax|whats[ ]?app|signal|imessage|landline|hotline"
    r"|helpline|toll[- ]free|pager|handy|telefon|mobil|t[e\u00e9]l[e\u00e9]fono?|t[e\u00e9]l(?:[e\u00e9]phone)?"
    r"|portable|celular|sms|ph|contact|emergency|switchboard|voicemail|call)"
)
_PLACE = r"(?:office|home|work|desk|business|direct|main|private|personal|day|evening)"
_WHOSE = r"(?:my|his|her|their|our|your|whose|new|old|other|contact|direct|different|following|this)"
_WHOM = (
    r"(?:[ ](?:me|us|him|her|them|you|back|someone|somebody|support|mum|mom|dad|home|now|anytime"
    r"|(?:mr|mrs|ms|dr)\.?[ ]\w+|(?-i:[A-Z][a-z]+))){0,3}"
)
_DIAL = r"(?:call|ring|dial|phone|text|message|whatsapp|sms|fax|buzz)"
_DIALLED = (
    r"(?:call(?:s|ed|ing)?|rang|ringing|dial(?:s|l?ed|l?ing)?|phon(?:ed|ing)|text(?:s|ed|ing)?|messag(?:es?|ed|ing)"
    r"|fax(?:ed)?|reach(?:ed|able|es)?|contact(?:ed|able)?|answer(?:s|ed|ing)?|available|sms)"
)
_BEFORE = re.compile(
    rf"""(?xi)(?:
      \b{_DEVICE}[ ]?(?:number|num|no|nr|\#|line|contact)?s?\b["'*_)\]]{{0,3}}
        (?:[ ]?(?:is|was|are|at|on|via|under|to|of|for[ ]\w+))?
    | \b{_PLACE}(?:[ ](?:number|no|line|phone|tel))?["'*_)]{{0,3}}[ ]?(?=[:=]|is\b)(?:is)?
    | \b{_WHOSE}[ ](?:new[ ]|old[ ]|other[ ]|current[ ]|direct[ ])?(?:number|digits)(?:[ ](?:is|was|at|on))?
    | \bregistered(?:[ ](?:number|phone|mobile|at|on|under|with))?
    | \b{_DIAL}{_WHOM}(?:[ ](?:at|on|under|via|to))?
    | \b{_DIALLED}{_WHOM}[ ](?:at|on|under|via|to|from|by)(?:[ ](?:the[ ])?(?:number|phone|mobile|cell))?
    )[\s:=.?#"'\u2019>(\[*_`-]{{0,6}}$"""
)
# Parts of the words above: without one of them the costly pattern need not be tried.
_STEMS = (
    "tel", "phon", "mob", "cel", "fax", "what", "sign", "imes", "line", "free", "page", "hand", "port", "sms", "ph",
    "cont", "emer", "board", "mail", "call", "offi", "home", "work", "desk", "busi", "dire", "main", "priv", "pers",
    "day", "even", "numb", "digi", "regi", "ring", "rang", "dial", "text", "mess", "buzz", "reac", "answ", "avai",
    "t\u00e9l",
)  # fmt: skip
_AFTER = re.compile(
    r"""(?xi)[ ]?[-,(\[/\u2013]?[ ]?
    (?:office|fax|mobile|cell|home|work|landline|desk|tel|phone|whatsapp|direct|main)
    (?=\W{0,2}(?:$|[\n,;.)\\|\]])|[ ](?:phone|number|line)\b)"""
)
_UNIT_AFTER = re.compile(
    r"(?i)\s?(?:ms|ns|us|s|sec\w*|minutes?|hours?|times|bytes?|[kmgt]i?b|rows?|users?|people|items?|requests?|calls?"
    r"|tokens?|records?|events?|lines?|dollars?|euros?|usd|eur|gbp|percent|points?|steps?|messages?|followers|views)\b"
)
_OTHER_NUMBER = re.compile(
    r"""(?xi)(?:\b(?:order|invoice|tracking|isbn(?:-1[03])?|issn|ticket|case|ref(?:erence)?|serial|account|acct|part|sku
      |model|version|build|bug|issue|pr|commit|pid|port|zip|postcode|vat|iban|card|policy|licen[cs]e|passport|flight
      |customer|member|employee|student|patient|booking|confirmation|tax|routing|claim|doi|rfc|iso|page|pp|lot|batch
      |id|uid|timestamp|epoch|hash|range|from|between)(?:[ ]?(?:id|no|nr|num|number|code))?(?:[ ](?:is|was))?|\#)
      [\s\#:.="'(-]{0,5}$"""
)


def speak_for(text: str, start: int, end: int) -> bool:
    """True when the words before `start` or after `end` say that the digits between them can be dialled."""
    if _UNIT_AFTER.match(text, end):
        return False
    before = text[max(0, start - LOOK_BACK_CHARS) : start]
    low = before.lower()
    if any(stem in low for stem in _STEMS) and _BEFORE.search(before):
        return True
    return _AFTER.match(text, end) is not None


def speak_against(text: str, start: int) -> bool:
    """True when the words before name another kind of number."""
    return _OTHER_NUMBER.search(text[max(0, start - LOOK_BACK_CHARS) : start]) is not None
