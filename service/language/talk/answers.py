"""What a short message takes up: the question, offer or statement before it that it cannot be understood without."""

from __future__ import annotations

import re

from service.language import sentences, values

MAX_CONTEXT_CHARS = 240
"""Maximum length of the text that a message refers to and that is put before it."""

SHORT_WORDS, ANSWER_WORDS = 8, 25
"""Words of a message that may be no sentence, and of one that answers a question."""

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
_CHOOSES = re.compile(
    r"(?i)\b(?:let['\u2019]s (?:take|go|do|use|say|make)|(?:i|we)(?:['\u2019]ll| will) (?:take|go with|have)|then"
    r"|it is)\b"
    r"|\b(?:the )?(?:first|second|third|last|former|latter|other|both|neither)(?: one)?\b|\bworks\b"
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
    r"(?i)^\W*(?:(?:and|but|so|also|then|well|yes|no|ok|okay|she|he)\b[\s,]*)*"
    r"(?:he|she|they|him|her|them|his|hers|their|it(?!['\u2019]?s? (?:rain|snow|seems|looks|takes|took))|its|that"
    r"|those|these"
    r"|this(?! (?:morning|week|month|year|evening|afternoon|weekend|summer|winter|spring|autumn|is|time)))"
    r"(?:['\u2019](?:s|re|ll|d|ve))?\b(?! (?:said|means?) that)"
)
_PERSON = re.compile(r"(?i)\b(?:he|she|him|her|his|hers)\b")
_SUBJECTLESS = re.compile(
    r"(?i)^\W*(?:cancel|forget|scrap|drop|skip|postpone|move|change|call off)\s+(?:that|it|this|them)\b"
)
_FINITE = re.compile(
    r"(?i)\b(?:i|we|you|he|she|it|they|there|my|our|who)\b|\b(?:is|are|was|were|am|has|have|had|do|does|did|will"
    r"|would|can"
    r"|could|should|must|may|might)\b|['\u2019](?:s|m|re|ve|ll|d)\b|\w{3,}(?:ed|es)\b"
)


def takes_up(message: str) -> bool:
    """Whether a message agrees, denies, chooses, corrects or is not a sentence, so that it needs what precedes it."""
    return replies(message) or refers(message)


def replies(message: str) -> bool:
    """Whether a message only makes sense as a reply."""
    words = len(_WORD.findall(message))
    if words == 0:
        return False
    if words <= ANSWER_WORDS and (_AGREES.match(message) is not None or corrects(message)):
        return True
    return words <= SHORT_WORDS and (not _FINITE.search(message) or _CHOOSES.search(message) is not None)


def agrees(message: str) -> bool:
    """Whether it begins as a yes or a no."""
    return _AGREES.match(message) is not None


def only_agrees(message: str) -> bool:
    """Whether it is a yes and nothing else."""
    return _YES.fullmatch(message) is not None


def names_nobody(message: str) -> bool:
    """Whether it speaks of a person whom it does not name: "He owes me 60 euros." """
    found = _PERSON.search(message)
    return found is not None and not values.names(f"x {message[: found.start()]}")


def corrects(message: str) -> bool:
    """Whether a message takes back something that was said before."""
    return CORRECTS.search(message) is not None


def refers(message: str) -> bool:
    """Whether it begins with a pronoun for somebody or something that it does not name."""
    return _HANGS.match(message) is not None or _SUBJECTLESS.match(message) is not None


def answers(message: str, before: str) -> bool:
    """Whether a message answers a question that `before` ends with."""
    return _QUESTION.search(before) is not None and 0 < len(_WORD.findall(message)) <= ANSWER_WORDS


def asked_or_said(before: str) -> tuple[int, int]:
    """The span of `before` that a reply takes up: its last question, with the sentence before where that question names
    too little, else its beginning."""
    spans = sentences.split(before)
    if not spans:
        return 0, 0
    asking = [place for place, (start, end) in enumerate(spans) if _QUESTION.search(before[start:end])]
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
    """Whether it ends with a question mark."""
    return _QUESTION.search(text) is not None
