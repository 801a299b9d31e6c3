"""The checks on a model's fact: it claims no more than was said, and about nobody else.

Names, figures and dates occur in what was said; polarity, question and hedge are those of the sentence it comes from;
its subject is the speaker or somebody named there; and what it names is in the order of its source. A fact that fails
is replaced by the message itself, so a check may be strict.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from enum import StrEnum

from service.domain.temporal import Mention
from service.language import temporal, text_values
from service.language.lexemes import lexemes
from service.language.talk import USER, keeping
from service.language.talk.dates import DATED_KINDS, as_said
from service.understanding.compare import OVER_WORDS
from service.understanding.sourcing import SourceSentence, SourceTurns, content_words


class Refusal(StrEnum):
    """Why a fact fails the checks."""

    UNSAID = "nobody said it"
    NAME = "it names somebody or something that nobody named"
    FIGURE = "it has a figure that nobody gave"
    DATE = "it has a date that its source does not have"
    DENIAL = "its source denies it, or it denies its source"
    QUESTION = "its source asks"
    HEDGE = "its source doubts it or makes a condition"
    SUBJECT = "it is about somebody else than its source"
    ORDER = "it turns round what its source says"


DENIALS = frozenset({"not", "never", "no", "without", "neither", "nor", "none", "nobody", "nothing"})
HEDGES = re.compile(
    r"(?i)\b(?:if|unless|would|could|might|may|maybe|perhaps|possibly|probably|almost|nearly|few of|thinking (?:of"
    r"|about)|considering|suppose|wish(?:es|ed)?|imagine|pretend|hope(?:s|d)?|unsure|not sure|i think|i guess"
    r"|apparently|allegedly|says?|said|according|should i|joking|kidding|used to|plans?|planning|wants?|intends?"
    r"|going to|interested|wonders?|considers?|thinks?)\b|/s\b"
)
"""Words of doubt, condition, wish, plan or report: a fact keeps one of them if its source has one."""

_WEAK = re.compile(r"(?i)\b(?:plans?|planning|wants?|intends?|going to|interested|thinks?|hope(?:s|d)?)\b")
"""Hedges that a fact may leave out only if its verb says the same."""

_SUBJECT_PRONOUN = re.compile(r"(?i)\b(?:i|i['\u2019]\w+|im|ive|we|we['\u2019]\w+)\b")
_ME = re.compile(r"\b(?:(?:I|we)(?:['\u2019]\w+)?|me|us)\b")
_OWN = re.compile(r"(?i)\b(?:my|mine|our|ours)\b")
_STARTS_WITH_OTHER = re.compile(
    r"(?i)^\W*(?:(?:my|our|his|her|their|the|a|an|one of (?:my|our))\s+[^\W\d_]+|he|she|they|it|this|that"
    r"|[^\W\d_a-z][^\W\d_]+)\b"
)
_MINE = re.compile(r"(?i)^\W*(?:my|our) (?P<thing>[^\W\d_]+)")
_FRONT = re.compile(r"^[^:\u201c\u201d\"]{1,60}:\s+")
_OF_USER = re.compile(r"(?i)^\W*(?:the )?(?P<who>user|[^\W\d_][\w.-]*)(?P<owns>['\u2019]s)?\s+")
_USER = re.compile(rf"(?i)\b{USER}\b")
DAY = timedelta(days=1)

MAX_ADDED_CHARS = 100
"""How much longer a merged text may be than the fact and the memory together."""


def refusal(text: str, sources: SourceTurns, message: int | None = None) -> Refusal | None:
    """Why a fact must not be kept as it is worded; None if it may. `message`: where it is said to come from. Pure; some
    milliseconds where times are named."""
    bare = as_said(_FRONT.sub("", text))
    nearest = sources.nearest(bare, message)
    if not nearest:
        return Refusal.UNSAID
    if is_quoted(bare, nearest):
        return None
    return (
        _stranger(bare, sources)
        or _wrong_date(text, sources, nearest)
        or next((why for sentence in nearest if (why := _claims_more(bare, sentence, sources))), None)
    )


def is_quoted(text: str, nearest: Sequence[SourceSentence]) -> bool:
    """Whether a fact is a sentence exactly as it was said, so that it cannot claim more."""
    return any(_plain(text) == _plain(sentence.text) for sentence in nearest)


def _plain(text: str) -> str:
    return " ".join(text.split()).rstrip(" .!").casefold()


def _claims_more(fact: str, source: SourceSentence, sources: SourceTurns) -> Refusal | None:
    said = source.text
    if keeping.is_question(said) and not keeping.is_question(fact) and not sources.is_agreed(source):
        return Refusal.QUESTION
    if _denials(fact) % 2 != _denials(said) % 2:
        return Refusal.DENIAL
    if _is_hedged(said) and not HEDGES.search(fact):
        return Refusal.HEDGE
    if _another_subject(fact, source, sources):
        return Refusal.SUBJECT
    return Refusal.ORDER if _turned_round(fact, _ME.sub(source.said.speaker, said)) else None


def _denials(text: str) -> int:
    return sum(stem in DENIALS for stem in lexemes(text))


def _is_hedged(said: str) -> bool:
    return any(not _WEAK.fullmatch(match.group()) for match in HEDGES.finditer(said))


def _another_subject(fact: str, source: SourceSentence, sources: SourceTurns) -> bool:
    """Whether a fact is about a speaker although its source is about somebody else, or is the assistant's and nobody
    agreed to it."""
    begin = _OF_USER.match(fact)
    who = begin["who"].casefold() if begin else ""
    speaks = source.said.speaker.casefold()
    if source.said.by_assistant and _USER.search(fact) and not sources.is_agreed(source):
        return True
    if begin is None or who not in {USER.casefold(), *sources.speakers}:
        return False
    if source.said.by_assistant:
        return who != speaks and not sources.is_agreed(source)
    if who not in {speaks, USER.casefold()}:
        return who not in source.said.text.casefold()
    if begin["owns"]:
        return not (_OWN.search(source.text) or _SUBJECT_PRONOUN.search(source.text))
    if _says_whose(fact, source):
        return False
    return _STARTS_WITH_OTHER.match(source.text) is not None and not _SUBJECT_PRONOUN.search(source.text)


def _says_whose(fact: str, source: SourceSentence) -> bool:
    """Whether a fact says all that its source does, with "has" for "my": "User has a cat named Tom" for "My cat is
    named Tom"."""
    mine = _MINE.match(source.text)
    if mine is None or not source.words <= content_words(fact):
        return False
    return re.search(rf"(?i)\b(?:has|owns) (?:[\w-]+ ){{0,2}}{re.escape(mine['thing'])}\b", fact) is not None


def _turned_round(fact: str, said: str) -> bool:
    """Whether names and values that both have are in a different order: "from Oslo to Bergen", "from Bergen to
    Oslo"."""
    in_fact, in_said = _find_names(fact), _find_names(said)
    shared = [each for each in in_fact if in_said.count(each) == 1 and in_fact.count(each) == 1]
    return len(shared) > 1 and shared != [each for each in in_said if each in shared]


def _find_names(text: str) -> list[str]:
    values = sorted((*text_values.find(f"x {text}"), *text_values.names(f"x {text}")), key=lambda each: each.start)
    return [value.key for value in values]


def _stranger(text: str, sources: SourceTurns) -> Refusal | None:
    """A name or figure of a fact that nobody said; those of dates are checked as dates."""
    said = f"{sources.text}\n{USER}"
    undated = _without(text, _mentions(text, sources))
    words = set(re.findall(r"[^\W_]+", said.casefold()))
    known = {word for each in sources.known for word in re.findall(r"[^\W_]+", each.casefold())}
    for name in text_values.names(f"x {undated}"):
        parts = [part for part in re.findall(r"[^\W_]{2,}", name.key) if part != USER.casefold()]
        if not all(part in words or part.removesuffix("s") in words or part in known for part in parts):
            return Refusal.NAME
    years = {str(at.astimezone(sources.zone).year) for _, mention in sources.mentions if (at := mention.begins_at)}
    if not text_values.figures(undated) <= text_values.figures(sources.text) | years:
        return Refusal.FIGURE
    return None


def _mentions(text: str, sources: SourceTurns) -> list[Mention]:
    """The dates of a text, without times of day, durations and recurring times, which are checked as figures."""
    if not temporal.may_have_time(text):
        return []
    mentions = temporal.find(text, sources.messages[-1].said_at, sources.zone)
    return [mention for mention in mentions if mention.kind in DATED_KINDS and (mention.begins_at or mention.ends_at)]


def _without(text: str, mentions: list[Mention]) -> str:
    for mention in reversed(mentions):
        text = f"{text[: mention.start]} {text[mention.end :]}"
    return text


def _wrong_date(text: str, sources: SourceTurns, nearest: Sequence[SourceSentence]) -> Refusal | None:
    """A date of a fact that nobody meant. It is looked for in the nearest sentences, else in their turn, else in all
    turns."""
    said = sources.text.casefold()
    dates = [each for each in _mentions(text, sources) if each.text.casefold() not in said]
    meant = sources.mentions_near(nearest) or [mention for _, mention in sources.mentions]
    for date in dates:
        if not any(_agree(date, other) for other in meant) and not any(
            _covers(date, sentence.said.said_at.timestamp()) for sentence in nearest
        ):
            return Refusal.DATE
    return None


def _agree(mention: Mention, said: Mention) -> bool:
    """Whether a date equals the one that was said, includes it, or lies within it."""
    if mention.begins_at is None or said.begins_at is None:
        return mention.ends_at is not None and mention.ends_at == said.ends_at
    ends, end = mention.ends_at or mention.begins_at + DAY, said.ends_at or said.begins_at + DAY
    around = mention.begins_at <= said.begins_at and end <= ends
    inside = said.begins_at <= mention.begins_at and ends <= end
    return around or (inside and ends - mention.begins_at <= DAY)


def _covers(mention: Mention, moment: float) -> bool:
    begins = mention.begins_at
    return begins is not None and begins.timestamp() <= moment < (mention.ends_at or begins + DAY).timestamp()


# -- the texts of a decision -------------------------------------------------------------------------------------------


def is_borne_out(text: str, fact: str, memory: str) -> bool:
    """Whether a text that a model wrote for a memory says only what the fact and the memory say, says all of the fact,
    and denies what it denies."""
    if len(text) > len(fact) + len(memory) + MAX_ADDED_CHARS:
        return False
    both = content_words(fact) | content_words(memory)
    if not content_words(text) <= both or not content_words(fact) - OVER_WORDS <= content_words(text):
        return False
    if not text_values.figures(text) <= text_values.figures(fact) | text_values.figures(memory):
        return False
    if _turned_round(text, fact) or keeping.is_question(text) != keeping.is_question(fact):
        return False
    hedged = HEDGES.search(text) is not None
    return _denials(text) % 2 == _denials(fact) % 2 and (not hedged or HEDGES.search(f"{fact} {memory}") is not None)


def says_it(memory: str, fact: str) -> bool:
    """Whether a memory says all that a fact says: its content words, its figures, and what it denies."""
    if not content_words(fact) <= content_words(memory):
        return False
    return text_values.figures(fact) <= text_values.figures(memory) and _denials(fact) % 2 == _denials(memory) % 2
