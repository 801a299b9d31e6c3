"""Finds what a short message refers to: the earlier question, offer or statement it cannot be understood without."""

from __future__ import annotations

import re

from service.language import sentences, text_values

MAX_CONTEXT_CHARS = 240
"""Maximum length of the text that a message refers to and that is put before it."""


SHORT_WORDS, ANSWER_WORDS = 8, 25
"""Words of a message that rarely says all by itself, and of one that answers a question."""

_WORD = re.compile(r"[^\W_]+(?:['\u2019.:,-]?[^\W_]+)*")
_QUESTION = re.compile(r"[?\uff1f\u061f]\W*$")
_AGREES = re.compile(
    r"(?i)^\W*(?:(?:yes|yep|yup|yeah|ya|ok|okay|k|sure|deal|agreed|correct|exactly|indeed|true|nope|nah|ja|nein"
    r"|doch|genau"
    r"|stimmt|oui|non|s\u00ed)\b|(?:fine|right|perfect|great|good|si|no|never|absolutely)(?=\W*$|[,.!;:])"
    r"|(?:please do|do (?:it|that|so)|sounds good|works|go ahead|of course|not (?:really|yet|at all))\b)"
)
_YES = re.compile(
    r"(?i)\W*(?:(?:yes|yep|yup|yeah|ok|okay|correct|exactly|indeed|true|right|that['\u2019]s (?:right|it)|absolutely"
    r"|ja|genau|stimmt|oui|s[i\u00ed]|thanks|thank you)\W*)+"
)
CORRECTS = re.compile(
    r"(?i)^\W*(?:(?:no|nope|wait|oh|oops|sorry|hmm?|hm)\b[\s,.!:-]*)*(?:actually|correction|i (?:meant|mean"
    r"|was wrong|misread"
    r"|misspoke)"
    r"|that(?:['\u2019]s| is| was) (?:wrong|not right|a mistake)|scratch that|my mistake|make (?:it|that)"
    r"|it(?:['\u2019]s| is) spel(?:led|t)|not \S+(?: \S+)?,? but)\b"
    r"|^\W*(?:no|nope|sorry|oops|wait)\b[\s,.!:-]+(?:it|that|the|my|he|she|i|we|they|this|on|at|not)\b"
    r"|[.!?\s](?:no,? sorry|sorry,? no|i mean(?:t)?)\b|, (?:actually|i misread|my mistake)\W*$"
)
"""How a correction begins, or announces itself."""

_HANGS = re.compile(
    r"(?i)^\W*(?:(?:and|but|so|also|then|well|yes|no|ok|okay)\b[\s,]*)*"
    r"(?:he|she|they|him|her|them|his|hers|their|it(?!['\u2019]?s? (?:rain|snow|seems|looks|takes|took))|its|that|those"
    r"|these)(?:['\u2019](?:s|re|ll|d|ve))?\b"  # the "it" of weather and impressions names nothing
)
_FIRST_PERSON = re.compile(r"(?i)^\W*(?:(?:and|so|also|but)\s+)?(?:i|we|my|our)\b")
_PERSON = re.compile(r"(?i)\b(?:he|she|him|her|his|hers)\b")


def is_fragment(message: str) -> bool:
    """Whether a message has few words and does not begin with its speaker ("I", "we")."""
    return 0 < len(_WORD.findall(message)) <= SHORT_WORDS and not _FIRST_PERSON.match(message)


def replies(message: str) -> bool:
    """Whether a message agrees, denies or takes something back."""
    return agrees(message) or corrects(message)


def agrees(message: str) -> bool:
    """Whether a message begins as a yes or a no."""
    return _AGREES.match(message) is not None


def only_agrees(message: str) -> bool:
    """Whether a message is a yes and nothing else."""
    return _YES.fullmatch(message) is not None


def names_nobody(message: str) -> bool:
    """Whether a message speaks of a person whom it does not name: "He owes me 60 euros." """
    match = _PERSON.search(message)
    return match is not None and not text_values.names(f"x {message[: match.start()]}")


def corrects(message: str) -> bool:
    """Whether a message takes back something that was said before."""
    return CORRECTS.search(message) is not None


def refers(message: str) -> bool:
    """Whether a message begins with a pronoun for somebody or something that it does not name."""
    return _HANGS.match(message) is not None


def answers(message: str, before: str) -> bool:
    """Whether a message answers a question that `before` ends with."""
    return _QUESTION.search(before) is not None and 0 < len(_WORD.findall(message)) <= ANSWER_WORDS


def find_referent(before: str) -> tuple[int, int]:
    """The span of `before` that a reply refers to: its last question, with the sentence before where that question
    names too little, else its beginning."""
    spans = sentences.split(before)
    if not spans:
        return 0, 0
    asking = [index for index, (start, end) in enumerate(spans) if _QUESTION.search(before[start:end])]
    if asking:
        last = asking[-1]
        brief = len(_WORD.findall(before[slice(*spans[last])])) <= SHORT_WORDS and last > 0
        start = (
            spans[last - 1][0] if brief and spans[last][1] - spans[last - 1][0] <= MAX_CONTEXT_CHARS else spans[last][0]
        )
        return start, spans[last][1]
    end = spans[0][1]
    for _, stop in spans[1:]:
        if stop - spans[0][0] > MAX_CONTEXT_CHARS:
            break
        end = stop
    return spans[0][0], end


def is_question(text: str) -> bool:
    """Whether a text ends with a question mark."""
    return _QUESTION.search(text) is not None
