"""Texts that announce a secret which cannot be cut out.

"My password" and "the api key is" announce a value that is missing, or not where it would be found. Such a text is
rejected. "I reset my password" and "password manager" only mention one and pass.
"""

from __future__ import annotations

import re

_TAIL_CHARS = 200

_SURE = (
    r"(?:passwords?|passwd|passphrase|passcode|passwort|kennwort|contrase\u00f1a|mot de passe|pwd|credentials|creds|"
    r"pin(?: code| number)?|(?:api|access|secret|private|ssh|encryption|master)[ _-]?keys?|apikey|"
    r"(?:api|access|auth(?:entication)?|bearer|refresh|session|personal access|bot)[ _-]?token|client[ _-]?secret|"
    r"(?:credit )?card number|social security number|ssn|cvv|iban)"
)
_WORD = rf"(?:{_SURE}|token|secret)"
_OWNER = r"(?:das|mein|le|mon|mi|my|our|your|his|her|their|the|[\w.-]{1,30}['\u2019]s)"
# Words before it that say whose or which it is; "the kind of token" is something else.
_OF_WHAT = (
    r"(?:(?!(?:the|my|our|your|his|her|its|their|of|for|and|or|a|an|to|with|without|by|is|in)\b)[\w.&'-]{1,30} ){0,3}"
)
_ALSO = (
    r"(?:new|old|current|default|admin|root|user|database|db|wifi|wi-fi|wlan|email|e-mail|mail|login|account|bank|router|"
    r"server|master|staging|production|prod|test|github|gitlab|google|gmail|netflix|aws|openai|stripe|slack)"
)
_INTRO = (
    r"(?:(?:here(?:[' \u2019]?s| is| are)|this is|that(?:'s| is)|it(?:'s| is)|"
    r"remember|note|save|store|keep|memori[sz]e)[:,]? )?"
)

_SPACED_SURE = re.sub(r"(?<!\[) ", "[ ]", _SURE)
_SPACED_WORD = rf"(?:{_SPACED_SURE}|token|secret)"

# "password:", "api_key =", "my password is" at the very end, quotes open or not.
_OPEN_END = re.compile(
    rf"""(?xi)(?<![a-z])(?:
      {_SPACED_WORD}["'`*_]{{0,4}}\s{{0,3}}(?::=|=>|(?<!:):(?!:)|={{1,3}}|\uff1a)
    | (?:{_SPACED_SURE}|{_OWNER}[ ](?:token|secret))
      (?:[ ](?:for|to|of|on|at)[ ](?:[\w.'-]{{1,30}}[ ]){{0,4}}[\w.'-]{{1,30}})?[ ](?:is|was|are)(?:[ ]now)?\s?:?
    )[\s*]{{0,6}}["'`]?\s{{0,3}}$"""
)
# Only the credential word, as the whole last sentence.
_BARE_END = re.compile(
    rf"(?i)(?:^|[.!?]\s|\n)[\s\"'*-]{{0,6}}(?:user: |human: |assistant: )?{_INTRO}"
    rf"(?:{_OWNER} {_OF_WHAT}{_SURE}|(?:my|our|his|her) {_OF_WHAT}{_WORD}|(?:{_ALSO} ){{0,3}}{_SURE})"
    rf"[\s\"'.!*]{{0,4}}$"
)
# A block of code that opens with a test of the variable.
_CODE_LINE = re.compile(
    r"[ \t]*(?:if|elif|while|for|with|def|class|except|case|match|async|assert|else|unless|until)\b"
)
# Cheap checks of the last characters, which settle nearly every text.
_OPEN_LAST = re.compile(r"(?:[:=>\uff1a]|\b(?:is|was|are|now))[\s*:\"'`]{0,12}$")
_BARE_LAST = re.compile(rf"(?i){_WORD}[\s\"'.!*]{{0,4}}$")
_ASKED = re.compile(r"(?i)\b(?:what|where|which|whose|how|whatever|wherever|who|know|if|whether)\b[^.!?\n]{0,60}$")


def is_unbounded(text: str, *, bare: bool = True) -> bool:
    """True if the redacted text ends in a credential word, or in one with `is`, `:` or `=` and nothing after it.

    `bare=False` ignores the word by itself: as a tag, a title or the value of a field it is a name.
    """
    tail = text[-_TAIL_CHARS:]
    match = _OPEN_END.search(tail) if _OPEN_LAST.search(tail[-20:]) else None
    if match and not (_is_a_question(tail, match.start()) or _is_code(tail, match.start()) or _is_prompt(tail, match)):
        return True
    if not bare or not _BARE_LAST.search(tail[-48:]):
        return False
    return _BARE_END.search(tail if len(text) == len(tail) else "-" + tail) is not None


def _is_a_question(tail: str, start: int) -> bool:
    """Whether a secret is asked for, not given, as in "I forgot what my password is"."""
    return tail.rstrip().endswith(("is", "was", "are")) and _ASKED.search(tail, 0, start) is not None


def _is_prompt(tail: str, match: re.Match[str]) -> bool:
    """Whether the words are the prompt of a program: "Enter password:"."""
    return re.search(r"(?i)\b(?:enter|type|retype|confirm)\b[^\n]{0,24}$", tail[: match.start()]) is not None


def _is_code(tail: str, start: int) -> bool:
    return _CODE_LINE.match(tail, tail.rfind("\n", 0, start) + 1) is not None
