"""Turns the first person into the third: "I moved to Oslo with my wife" as somebody else would report it.

"User moved to Oslo with their wife": pronouns of the speaker are resolved and the verbs behind them agree. Word by
word, no parser. The speaker's possessions are "their" behind the speaker's name, else "User's".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from service.language import wordlists
from service.language.facts import verbs

ADVERBS = wordlists.words("""
    also just really always never often usually still even now then currently recently lately sometimes already actually
    probably maybe mostly mainly generally normally typically kinda sorta definitely certainly absolutely totally
    completely simply rather quite soon finally once both all ever pretty very too so only almost nearly hardly barely
    rarely seldom perhaps instead again not honestly personally especially particularly primarily previously formerly
    originally first officially apparently luckily sadly today tonight long
""")
_NO_ADVERBS = wordlists.words("rely apply supply reply fly multiply comply family bully july italy imply")
MODALS = wordlists.words("""
    will would can could should must may might shall won't wouldn't can't couldn't shouldn't cannot mustn't ought had
    hadn't did didn't
""")
_WORD = re.compile(r"[^\W_](?:[^\W_]|[-'](?=[^\W_]))*")
_PREPARED = (
    (r"[’`´]", "'"),
    (r"\b[Ii]\s?'?m\b", "I am"),
    (r"\b(?:[Ii]'ve|[Ii]ve)\b", "I have"),
    (r"\b[Ii]'ll\b", "I will"),
    (r"\b(I|we|they|you|he|she)'d (?=(?:been|had|gone|better|already|never|just)\b)", r"\1 had "),
    (r"\b(I|we|they|you|he|she)'d\b", r"\1 would"),
    (r"\b(we|you|they)'(?:re)\b", r"\1 are"),
    (r"\b(we|you|they)'ve\b", r"\1 have"),
    (r"\b(we|you|they|he|she|it)'ll\b", r"\1 will"),
    (r"\b(he|she|it|that|there|who|here)'s (?=(?:been|got|had)\b)", r"\1 has "),
    (r"\b(he|she|it|that|there|who|here)'s\b", r"\1 is"),
    (r"\b(I|we) been\b", r"\1 have been"),
    (r"\bgonna\b", "going to"),
    (r"\bwanna\b", "want to"),
    (r"\b(?:got to|gotta)(?= \w)", "have to"),
    (r"\b(dont|doesnt|didnt|cant|isnt|wasnt|arent|havent|hasnt|couldnt|wouldnt|shouldnt)\b", ""),
    (r"\bi am ain't|\bI ain't\b", "I am not"),
    (r"\b(have|has) got (?!to\b|into\b|better\b|worse\b|married\b|used\b)", r"\1 "),
    (r"\b(favou?rite (?:\w+ )?\w+)'s (?!\w+ (?:is|was))", r"\1 is "),
    (r"\b(name|birthday|job|hobby|email|number|address|age|deadline|budget|goal)'s\b", r"\1 is"),
    (
        r"\b((?:my|our) (?:[\w-]+ ){0,2}[\w-]+)'s (?=(?:an?|the|in|at|on|from|not|called|named|really|so|very|now|also"
        r"|about|allergic|going|\d+|(?!wedding|morning|evening|meeting|building|painting|feeling|clothing"
        r"|upbringing|spelling|ring|king|wing|savings?|earrings?|housing|training|string|spring|ceiling"
        r"|being)\w+ing|vegetarian|vegan|pregnant|due|sick|retired|married|divorced|c(?:o)?eliac|diabetic|autistic|asthmatic|deaf|blind"
        r"|dyslexic|gay|lesbian|trans|bisexual|disabled|unemployed|epileptic|single|engaged|pescatarian)\b)",
        r"\1 is ",
    ),
    (r"(?<![\w'.])i(?![\w'.])", "I"),
    (r"\bI are\b", "I am"),
)
_EXPANSIONS = tuple((re.compile(pattern, re.IGNORECASE), instead) for pattern, instead in _PREPARED)
_COUPLE = re.compile(
    r"^(?:(?:my|our) ((?:[\w-]+ ){0,2}?[\w-]+) and (?:I|me)|(?:me|I) and my ((?:[\w-]+ ){0,2}?[\w-]+))\b", re.I
)
_NAMED_COUPLE = re.compile(r"^(?:(?P<a>[A-Z][\w'-]+) and (?:I|me)|(?:[Mm]e|I) and (?P<b>[A-Z][\w'-]+))\b(?! [A-Z])")
_SAME_IN_PAST = wordlists.words("put cut hit set let read bet cost shut spread split")
_PAST_TIME = re.compile(
    r"\b(?:ago|yesterday|last (?:\w+)|in (?:19|20)\d\d|once|when I was|as a (?:kid|child))\b", re.IGNORECASE
)
_IRREGULAR_DENIALS = {"don't": "doesn't", "haven't": "hasn't", "weren't": "wasn't", "aren't": "isn't", "ain't": "isn't"}


def expand(text: str) -> str:
    """Returns the text with contractions of pronouns spelt out: "im gonna" gives "I am going to"."""
    for pattern, instead in _EXPANSIONS:
        text = pattern.sub(instead or _with_apostrophe, text)
    return text


def _with_apostrophe(match: re.Match[str]) -> str:
    return match.group()[:-1] + "'" + match.group()[-1]


def is_adverb(word: str) -> bool:
    """Returns whether a lower-case word may stand between a subject and its verb."""
    return word in ADVERBS or (word.endswith("ly") and word not in _NO_ADVERBS and len(word) > 4)


@dataclass(slots=True)
class _State:
    """What has been read of the clause. `awaits`: for whom the next verb must agree, "" when for nobody."""

    speaker: str
    hearer: str
    leads: bool
    named: bool = False
    awaits: str = ""
    agreed: bool = False
    past: bool = False


def third_person(clause: str, speaker: str = "User", hearer: str = "the assistant") -> str:
    """Returns an expanded first-person clause as told of `speaker`, capitalised, without its end punctuation.

    `hearer`: who "you" is.
    """
    text, couple = clause.strip().rstrip(".!,;: "), _COUPLE.match(clause.strip())
    named = None if couple else _NAMED_COUPLE.match(text)
    state = _State(
        speaker, hearer, (couple or named) is not None or _speaker_leads(text), past=_PAST_TIME.search(text) is not None
    )
    start = ""
    if couple:
        start = f"{speaker} and their {couple.group(1) or couple.group(2)}"
        text, state.named, state.awaits = text[couple.end() :], True, "they"
    if named:
        start = f"{speaker} and {named['a'] or named['b']}"
        text, state.named, state.awaits = text[named.end() :], True, "they"
    pieces: list[str] = []
    at = 0
    for match in _WORD.finditer(text):
        pieces += [text[at : match.start()], _word(match.group(), state, nothing_before=not pieces and not start)]
        at = match.end()
    told = start + "".join(pieces) + text[at:]
    told = told.replace(f" {speaker} {speaker} ", f" {speaker} that {speaker} ")
    return told[:1].upper() + told[1:]


def _speaker_leads(text: str) -> bool:
    """Whether the speaker is the subject of the main verb: no finite verb stands before the first "I"."""
    for match in _WORD.finditer(text):
        word = match.group().lower()
        if word in ("i", "we"):
            return True
        known = verbs.form(word)
        if word in ("is", "are", "was", "were", "has", "have") or (known and known.shape in ("third", "past")):
            return False
    return False


def _word(word: str, state: _State, *, nothing_before: bool) -> str:
    low = word.lower()
    if low in ("i", "we") and (low == "we" or word == "I"):
        return _subject(state)
    if state.awaits:
        if is_adverb(low) or low in ("no", "longer"):
            return word
        told_past = state.past and low in _SAME_IN_PAST
        agreed, state.awaits = word if told_past else _agreeing(word, low, state.awaits), ""
        state.agreed = agreed != word
        return agreed
    if low in ("and", "or") and state.agreed:
        state.awaits = "coordinated"
        state.agreed = False
        return word
    state.agreed = False
    return _pronoun(word, low, state, nothing_before=nothing_before)


def _subject(state: _State) -> str:
    again = state.named and state.leads
    state.named, state.awaits = True, "they" if again else "he"
    return "they" if again else state.speaker


def _agreeing(word: str, low: str, subject: str) -> str:
    """The verb in the form that goes with "User" ("he"), with "they", or behind "works and" ("coordinated")."""
    known = verbs.form(low)
    if subject == "coordinated":
        return verbs.third(low) if known and known.shape == "base" and low not in MODALS else word
    if subject == "they":
        return {"am": "are", "was": "were", "wasn't": "weren't", "is": "are"}.get(low, word)
    if low in MODALS or low in ("quit", "hurt") or (verbs.is_past(low) and low != "were"):
        return word
    if low in _IRREGULAR_DENIALS:
        return _IRREGULAR_DENIALS[low]
    if known and known.shape in ("third", "ing"):
        return word
    return verbs.third(low)


def _pronoun(word: str, low: str, state: _State, *, nothing_before: bool) -> str:
    if low in ("my", "our"):
        return "their" if state.leads and not nothing_before else f"{state.speaker}'s"
    if low in ("me", "us"):
        return state.speaker
    if low in ("myself", "ourselves"):
        return "themselves"
    if low in ("mine", "ours"):
        return f"{state.speaker}'s"
    if low in ("you", "yourself"):
        return state.hearer
    return f"{state.hearer}'s" if low in ("your", "yours") else word
