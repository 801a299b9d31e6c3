"""Whether a sentence of people's talk tells something to who was not there.

News is what its speaker, or somebody or something in particular, does, has or is. It is known by what stands in the
sentence: enough words for things, fewer where a name, a figure or a time stands beside them. A mood, praise, a wisdom
and words for the listener have none of it, however they are put.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from service.language.talk.words import EMPTY, EVALUATING, NUMBER_WORDS, TIME_WORDS
from service.language.talk.worth import (
    BY_SPEAKER,
    GENERAL,
    MYSELF,
    SPEAKER_DROPPED,
    UNSPACED,
    WORD,
    features,
    is_state,
)

NO_THINGS = EMPTY | TIME_WORDS | NUMBER_WORDS
MOOD = re.compile(
    r"\b(?:feel|feels|feeling|felt|hopeful|joy|love|loved|loving|looking forward|appreciate|cherish|stoked|pumped"
    r"|(?:so|such|super|really|very|truly) (?:an? )?\w+)\b",
    re.IGNORECASE,
)
"""How somebody feels, or an adjective made stronger."""

DEFINITE = re.compile(r"\W*(?:(?:and|but|so)\W+)?(?:the|his|her|their|an?|he|she|they|there|one)\b", re.IGNORECASE)
"""How a sentence begins that tells of somebody or something in particular, and not of all things of a kind."""

OF_A_KIND = re.compile(
    r"^\W*[^\W\d_]+s (?:are|were)\b(?! \w+(?:ed|en|pt)\b)"
    r"|^\W*\w+ing\b[^,.]*\b(?:is|are)\b|\bit's \w+ to\b"
    r"|\b(?:can(?!')|help|make|bring|give|teach|push|inspire|motivate|remind)s?\b",
    re.IGNORECASE,
)
"""What all things of a kind are, or do to people."""

IMPERSONAL = re.compile(
    r"\W*(?:(?:but|and|so) )?(?:I'm(?= (?:so |very |really )*\w+ (?:that|to (?:know|hear|see)))"
    r"|(?:it|that)(?:'s| is| was|'d be| would be|'ll be)|how)"
    r"(?: (?:always|also|really|so|very|quite|too|just|such|an?))* (\w+)"
    r"(?P<what> (?:to|how|that|when|what)\b)?",
    re.IGNORECASE,
)
SAYS_ENOUGH = 6
"""Words for things from which on a sentence tells something even where one of them is not named."""

OF_MINE = re.compile(r"\bmy\b", re.IGNORECASE)
AHEAD = re.compile(r"\b(?:will|won't|gonna|going to|wanna|want to|hope|try(?:ing)?)\b|'ll\b", re.IGNORECASE)


def is_news(text: str, names: Collection[str] = ()) -> bool:
    """Whether a bare sentence tells something. `names`: of the speakers, lower case, who are no things.

    Asked for are two words for things: one with a name, a figure, a time or in a short state ("I have a dog"); one more
    where it is coloured, and where it is not about the speaker; three more for the listener and for a wisdom.
    """
    text = text.replace("’", "'")
    found = features(text, names)
    own = BY_SPEAKER.search(text) or SPEAKER_DROPPED.match(text) or OF_MINE.search(text)
    exact = found.name or found.number or found.time
    wise = GENERAL.search(text) is not None
    particular = exact or MYSELF.search(text) or (DEFINITE.match(text) and not wise)
    if is_opinion(text) or (found.second_person and not (own and exact)):
        return False
    if not particular and (wise or OF_A_KIND.search(text)):
        return False
    coloured = MOOD.search(text) or any(word.lower() in EVALUATING for word in WORD.findall(text))
    if coloured and not (own or exact):
        return False
    state = is_state(text, found) and not (coloured or AHEAD.search(text))
    asked = 2 - bool(exact or state) + bool(coloured) + (not own)
    asked += 3 * (found.second_person + wise)
    return things(text, names) >= asked


def is_telling(text: str, names: Collection[str] = (), *, by_user: bool = False) -> bool:
    """Whether a bare sentence tells news of its speaker even where it hangs on something: with a name, a figure or a
    time, or in many words. A user alone with the service may tell them of anybody."""
    found = features(text, names)
    exact = found.name or found.number or found.time
    if by_user:
        return exact and not is_opinion(text)
    return found.first_person and is_news(text, names) and (exact or things(text, names) >= SAYS_ENOUGH)


def is_opinion(text: str) -> bool:
    """Whether a sentence begins with what its speaker thinks of the rest: "it's great to know that ..."."""
    lead = IMPERSONAL.match(text.replace("’", "'"))
    return lead is not None and bool(lead[1].lower() in EVALUATING or (lead["what"] and lead[1].endswith("ing")))


def things(text: str, names: Collection[str] = ()) -> int:
    """How many different words of a text name a thing or a doing: no time, no number, none of the words of chat."""
    words: set[str] = {word.removesuffix("'s") for word in WORD.findall(text.lower())} - NO_THINGS
    told = [word for word in words if len(word) > 2 and word[0].isalpha() and word not in names]
    pale: int = sum(word.endswith("ing") and not NO_THINGS.isdisjoint((word[:-3], f"{word[:-3]}e")) for word in told)
    return len(told) - pale + len(UNSPACED.findall(text)) // 2
