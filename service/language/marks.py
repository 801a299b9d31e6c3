"""The clauses of a text with the marks that limit what they claim: denial, doubt, question, condition, hearsay.

A clause is what has a subject of its own. A mark is a word, never a phrase with a topic, and too many marks do less
harm than too few: who compares a retold sentence with its source then keeps the source.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from service.language import opposites, sentences, wordlists
from service.language.lexemes import lexemes
from service.language.talk import worth


class Mark(StrEnum):
    """What makes a clause less than a plain statement. Denials are counted apart."""

    DOUBT = "doubt"
    QUESTION = "question"
    CONDITION = "condition"
    HEARSAY = "hearsay"


@dataclass(frozen=True, slots=True)
class Clause:
    """A half-open span of a text. `words`: its content words as stems, synonyms levelled, without those that deny.
    `denials`: how often it denies; one denial of another is none."""

    start: int
    end: int
    text: str
    words: frozenset[str]
    denials: int
    marks: frozenset[Mark]


def _stems(words: str) -> frozenset[str]:
    return frozenset(stem for word in wordlists.words(words) for stem in lexemes(word))


DENYING = _stems("""
    cannot dont doesnt didnt cant wont isnt arent wasnt werent havent hasnt hadnt couldnt wouldnt shouldnt not no
    never none nobody nothing nowhere neither nor without hardly barely rarely seldom lack lacking refuse stop
    stopped quit quitting cease avoid avoiding dislike hate despise loathe detest unable fail failed former formerly
    ex cancel cancelled leave left lose lost abandon deny unlike except drop dropped reject decline
""")
"""Stems that turn a statement round, or end what it says."""

DENYING_PHRASE = re.compile(
    r"\bused to (?!it\b|this\b|that\b|the\b|my\b|\w+ing\b)|\bg(?:ive|ives|iving|ave|iven) up\b|\bnon-(?=\w)"
    r"|\binstead of\b|\brather than\b",
    re.IGNORECASE,
)
NOT_DENYING = re.compile(r"\bnot (?:only|just)\b|(?:\bnot|n['’]t) (?:\w+ )?(?:sure|certain)\b", re.IGNORECASE)

DOUBT = re.compile(
    r"\b(?:might|maybe|perhaps|possibl[ey]|probabl[ey]|presumably|apparently|supposed(?:ly)?|allegedly|reportedly"
    r"|likely|seem\w*|guess\w*|suspect\w*|unsure|uncertain|unclear|undecided|whether|wonder\w*|consider\w*"
    r"|debat(?:e|es|ing)|hop(?:e|es|ed|ing)|hopefully|wish\w*|want\w*|plan(?:s|ned|ning)?|intend\w*|aim(?:s|ing)? to"
    r"|tempted|thought of|think(?:s|ing)? (?:of|about)"
    r"|(?:I|I['’]d|we) (?:\w+ )?(?:think|thought|believe|suppose|reckon)|would be|could (?:be|have)"
    r"|(?:would|['’]d) (?:\w+ )?(?:like|love|prefer|rather)|dream(?:s|ed|ing)? of"
    r"|look(?:s|ing) (?:like|to)|(?:not|n['’]t) (?:\w+ )?(?:sure|certain|know)"
    r"|(?<!in )(?<!of )(?<!since )(?<!this )(?<!next )(?<!last )may (?=[a-z]))",
    re.IGNORECASE,
)
CONDITION = re.compile(
    r"(?<!\bas )(?<!\beven )\bif\b|\b(?:unless|in case|provided|providing|assuming|supposing|as long as"
    r"|depend(?:s|ing)|otherwise|would have)\b",
    re.IGNORECASE,
)
HEARSAY = re.compile(
    r"(?<!\bI )(?<!\bI've )(?<!\bwe )(?<!\balways )\b(?:says?|said|claims?|claimed|told (?:me|us|him|her|them)"
    r"|tells (?:me|us)|thinks|believes|reckons|insists|insisted|swears|swore|accord(?:s|ing) to|rumou?r\w*)\b"
    r"|\b(?:I|we) (?:just )?heard\b",
    re.IGNORECASE,
)
ASKED = re.compile(
    r"\b(?:ask(?:s|ed|ing)?|wonder\w*|question\w*|inquir\w*|wants? to (?:know|learn|find out))\b|\?", re.IGNORECASE
)
TAG = re.compile(
    r",\s*(?:right|correct|yes|yeah|ok|okay|no|huh|eh|(?:is|are|do|does|did|was|were|have|has)n['’]t \w+)\?\W*$",
    re.IGNORECASE,
)
"""What turns a statement into a question that only wants a nod."""

SUBJECT = (
    r"(?:(?:I|we|he|she|they|there)\b|(?:it|that|this)(?:['’]s| (?:is|was|has|will)\b)"
    r"|(?:my|our|his|her|their) \w+ (?:is|was|are|were|has|had|will)\b)"
)
CUT = re.compile(
    r"\s*[;—–]\s*|\s+-\s+|,?\s+(?:but|because|although|though|whereas|while)\s+|,\s+(?=(?:and |but )?(?:not?|never) )"
    r"|\s+(?:and|or)\s+(?=(?:not?|never) )|\s+(?=(?:nor|instead of|rather than)\b)|,\s+(?=actually\b)"
    rf"|,\s+(?:(?:and|or|so|then|also)\s+)?(?={SUBJECT})|,?\s+(?:and|so)\s+(?={SUBJECT})",
    re.IGNORECASE,
)
ANEW = re.compile(r"[;—–]|\b(?:but|because|although|though|whereas|while)\b", re.IGNORECASE)
"""A cut behind which a doubt or hearsay no longer holds."""


@lru_cache(maxsize=2_048)  # the turns before are read with every new message
def clauses(text: str) -> tuple[Clause, ...]:
    """The clauses of a text, in order."""
    return tuple(clause for start, end in sentences.split(text) for clause in _of_sentence(text[start:end], start))


@lru_cache(maxsize=2_048)
def content_words(text: str) -> frozenset[str]:
    """Stems of the words that carry a meaning, synonyms levelled, without those that deny."""
    return frozenset(opposites.canonical(stem for stem in lexemes(opposites.levelled(text)) if stem not in DENYING))


def marks(text: str) -> frozenset[Mark]:
    """The marks of a text, wherever they stand in it."""
    forms = {Mark.DOUBT: DOUBT, Mark.QUESTION: ASKED, Mark.CONDITION: CONDITION, Mark.HEARSAY: HEARSAY}
    return frozenset(mark for mark, form in forms.items() if form.search(text))


def denials(text: str) -> int:
    """How often a text denies."""
    bare = NOT_DENYING.sub(" ", text)
    return sum(stem in DENYING for stem in lexemes(bare)) + len(DENYING_PHRASE.findall(bare))


def _of_sentence(sentence: str, at: int) -> list[Clause]:
    begin = len(sentence) - len(worth.bare(sentence))  # "No, I live in Berlin" denies nothing
    cuts = [(found.start(), found.end()) for found in CUT.finditer(sentence, begin) if found.start() > begin]
    starts = [begin, *(end for _, end in cuts)]
    ends = [*(start for start, _ in cuts), len(sentence)]
    condition = frozenset({Mark.CONDITION}) if CONDITION.search(sentence) else frozenset()
    asked = worth.is_question(sentence) and TAG.search(sentence) is None
    carried: frozenset[Mark] = frozenset()
    found = []
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        text = sentence[start:end]
        if number and ANEW.search(sentence[ends[number - 1] : start]):
            carried = frozenset()
        carried |= marks(text) & {Mark.DOUBT, Mark.HEARSAY}
        own = carried | condition
        if asked and (number == len(starts) - 1 or worth.OF_SPEAKER.match(sentence[begin:]) is None):
            own |= {Mark.QUESTION}
        found.append(Clause(at + start, at + end, text, content_words(text), denials(text), own))
    return found
