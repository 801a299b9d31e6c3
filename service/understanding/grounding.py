"""Checks a model's facts against the conversation they were extracted from: none claims more than was said.

Names, figures and dates occur in what was said; polarity, question and hedge are those of the sentence it comes from;
its subject is the speaker or somebody named there; and what it names is in the order of its source. A fact that fails
is replaced by the message itself, if that is worth keeping, so a check may be strict; of one that passes, every part is
checked. What cannot be checked is left to the rules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from service.domain.fact import Fact
from service.domain.temporal import TimeMention
from service.domain.text import CleanText
from service.language import temporal, text_values
from service.language.common_words import is_common
from service.language.lexemes import count_negations, lexemes
from service.language.talk import USER, dates, speech_acts
from service.language.talk.dates import DATED_KINDS, as_said
from service.language.temporal.calendar import DAY
from service.understanding.compare import FIRST_NAME, OVER_WORDS
from service.understanding.sourcing import SourceSentence, SourceTurns, content_words

HEDGES = re.compile(
    r"(?i)\b(?:if|unless|would|could|might|(?-i:may)|maybe|perhaps|possibly|probably|almost|nearly|hardly|barely"
    r"|rarely|seldom|few of|thinking (?:of|about)|considering|supposed?|doubt(?:s|ed)?|wish(?:es|ed)?|imagine"
    r"|pretend|hope(?:s|d)?|unsure|not sure|i think|i guess"
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
    r"(?i)^\W*(?:(?:my|our|his|her|their|the|a|an|one of (?:my|our))\s+[^\W\d_]+|he|she|they|it|this|that)\b"
)
_MINE = re.compile(r"(?i)^\W*(?:my|our) (?P<thing>[^\W\d_]+)")
_FRONT = re.compile(r"^[^:\u201c\u201d\"]{1,60}:\s+")
_OF_USER = re.compile(r"(?i)^\W*(?:the )?(?P<who>user|[^\W\d_][\w.-]*)(?P<owns>['\u2019]s)?\s+")
_USER = re.compile(rf"(?i)\b{USER}\b")
MAX_ADDED_CHARS = 100
"""How much longer a merged text may be than the fact and the memory together."""


def claims_more(text: str, sources: SourceTurns, message: int | None = None) -> bool:
    """Whether a fact, as it is worded, says more than was said, or something else. `message`: where it is said to come
    from. Pure; some milliseconds where times are named."""
    bare = as_said(_FRONT.sub("", text))
    nearest = sources.nearest(bare, message)
    return (
        not nearest
        or _names_a_stranger(bare, sources)
        or _has_wrong_date(text, sources, nearest)
        or any(_differs(bare, sentence, sources) for sentence in nearest)
    )


def _differs(fact: str, source: SourceSentence, sources: SourceTurns) -> bool:
    """Whether a fact states what its source asks, denies or doubts, of somebody else or the other way round."""
    said = source.text
    return (
        (speech_acts.asks(said) and not speech_acts.asks(fact) and not sources.is_agreed(source))
        or not _denies_alike(fact, said)
        or (_is_hedged(said) and HEDGES.search(fact) is None)
        or _another_subject(fact, source, sources)
        or _turned_round(fact, _ME.sub(source.said.speaker, said))
    )


def _denies_alike(*texts: str) -> bool:
    """Whether all deny, or none: two negations are none."""
    return len({count_negations(lexemes(speech_acts.LEAD.sub("", text))) % 2 for text in texts}) == 1


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
    name = FIRST_NAME.match(source.text)
    is_other = _STARTS_WITH_OTHER.match(source.text) or (name and not (is_common(name[1]) or _OWN.search(source.text)))
    return bool(is_other) and not _SUBJECT_PRONOUN.search(source.text)


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


def _names_a_stranger(text: str, sources: SourceTurns) -> bool:
    """Whether a fact has a name or figure that nobody said; those of dates are checked as dates."""
    for mention in reversed(_mentions(text, sources)):
        text = f"{text[: mention.start]} {text[mention.end :]}"
    if not all(_is_named(name.key, sources) for name in text_values.names(f"x {text}")):
        return True
    years = {str(at.astimezone(sources.zone).year) for _, mention in sources.mentions if (at := mention.begins_at)}
    return not text_values.figures(text) <= text_values.figures(sources.text) | years


def _mentions(text: str, sources: SourceTurns) -> list[TimeMention]:
    """The dates of a text, without times of day, durations and recurring times, which are checked as figures."""
    mentions = temporal.find(text, sources.messages[-1].said_at, sources.zone)
    return [mention for mention in mentions if mention.kind in DATED_KINDS and (mention.begins_at or mention.ends_at)]


def _has_wrong_date(text: str, sources: SourceTurns, nearest: Sequence[SourceSentence]) -> bool:
    """Whether a fact has a date that nobody meant. It is looked for in the nearest sentences, else in their turn, else
    in all turns."""
    said = sources.text.casefold()
    dates = [each for each in _mentions(text, sources) if each.text.casefold() not in said]
    meant = sources.mentions_near(nearest) or [mention for _, mention in sources.mentions]
    times = {sentence.said.said_at for sentence in nearest}
    return not all(
        any(_agree(date, other) for other in meant) or any(_covers(date, at) for at in times) for date in dates
    )


def _agree(mention: TimeMention, said: TimeMention) -> bool:
    """Whether a date equals the one that was said, includes it, or lies within it."""
    if mention.begins_at is None or said.begins_at is None:
        return mention.ends_at is not None and mention.ends_at == said.ends_at
    ends, end = mention.ends_at or mention.begins_at + DAY, said.ends_at or said.begins_at + DAY
    around = mention.begins_at <= said.begins_at and end <= ends
    inside = said.begins_at <= mention.begins_at and ends <= end
    return around or (inside and ends - mention.begins_at <= DAY)


def _covers(mention: TimeMention, moment: datetime) -> bool:
    begins = mention.begins_at
    return begins is not None and begins <= moment < (mention.ends_at or begins + DAY)


# -- the texts of a decision -------------------------------------------------------------------------------------------


def is_borne_out(text: str, fact: str, memory: str) -> bool:
    """Whether a text that a model wrote for a memory says only what the fact and the memory say, says all of the fact,
    and denies what it denies."""
    both = f"{fact} {memory}"
    return (
        len(text) <= len(both) + MAX_ADDED_CHARS
        and _has_words_of(both, text)
        and content_words(fact) - OVER_WORDS <= content_words(text)
        and not _turned_round(text, fact)
        and speech_acts.asks(text) == speech_acts.asks(fact)
        and _denies_alike(text, fact)
        and (HEDGES.search(text) is None or HEDGES.search(both) is not None)
    )


def says_it(memory: str, fact: str) -> bool:
    """Whether a memory says all that a fact says: its content words, its figures, and what it denies."""
    return _has_words_of(memory, fact) and _denies_alike(memory, fact)


def _has_words_of(text: str, part: str) -> bool:
    return content_words(part) <= content_words(text) and text_values.figures(part) <= text_values.figures(text)


NAMELESS = re.compile(r"^(?:The )?[Uu]ser\b")


def ground(facts: Sequence[Fact], sources: SourceTurns) -> tuple[list[Fact], tuple[str, ...]]:
    """The facts that pass the checks, in order, with the sentences that replace those that do not, and a warning about
    these. Pure; some milliseconds where times are named."""
    kept: list[Fact] = []
    refused = quoted = 0
    for fact in facts:
        nearest = sources.nearest(fact.text, fact.message)
        if not claims_more(fact.text, sources, fact.message):
            kept.append(_check(fact, nearest, sources))
            continue
        refused += 1
        instead = next((each for each in sources.quotes if _holds(each, nearest, sources)), None)
        if instead is not None and instead not in kept:
            quoted += 1
            kept.append(instead)
    if not refused:
        return kept, ()
    replaced = f", {quoted} replaced by what was said" if quoted else ""
    return kept, (f"ungrounded_facts: {refused} claimed more than was said and were left out{replaced}.",)


def _holds(quote: Fact, nearest: Sequence[SourceSentence], sources: SourceTurns) -> bool:
    """Whether a quote contains one of the sentences."""
    turn, start, end = (quote.message or 0) + len(sources.before), quote.start or 0, quote.end or 0
    return any(sentence.turn == turn and start < sentence.end and sentence.start < end for sentence in nearest)


def _check(fact: Fact, nearest: Sequence[SourceSentence], sources: SourceTurns) -> Fact:
    """A fact with its message and those of its parts that the conversation supports."""
    message = _find_message(fact, nearest[0], sources)
    said = sources.messages[-1 if message is None else message]
    is_one_sentence = len(nearest) == 1 and nearest[0].turn >= len(sources.before)
    corrects = not said.by_assistant and speech_acts.corrects(said.text)
    text = NAMELESS.sub(lambda _: said.name or "User", fact.text) if not said.by_assistant else fact.text
    mentions = sources.mentions_near(nearest) if fact.t_valid or fact.t_invalid else []
    since, until = (_confirm(moment, mentions) for moment in (fact.t_valid, fact.t_invalid))
    return replace(
        fact,
        text=CleanText(dates.date_expressions(text, said.said_at, sources.zone)),
        message=message,
        start=nearest[0].start if is_one_sentence else None,
        end=nearest[0].end if is_one_sentence else None,
        correction=fact.correction or corrects,
        by_assistant=nearest[-1].said.by_assistant,
        t_valid=since if since and since <= said.said_at else None,
        t_invalid=until if until and until > said.said_at else None,
        entities=tuple(entity for entity in fact.entities if _is_named(entity.name, sources)),
        relations=tuple(each for each in fact.relations if _is_named(f"{each.source} {each.target}", sources)),
    )


def _find_message(fact: Fact, source: SourceSentence, sources: SourceTurns) -> int | None:
    """The message that a fact comes from; the one that the model named if its source was said before."""
    number, last = source.turn - len(sources.before), len(sources.messages) - 1
    if number >= 0 or last == 0:
        return max(number, 0)
    return fact.message if fact.message is not None and 0 <= fact.message <= last else None


def _confirm(moment: datetime | None, mentions: Sequence[TimeMention]) -> datetime | None:
    """A model's moment, if it was named, to the day. What lasts until the end of a day may be said to end on it."""
    named = [time for each in mentions for time in (each.begins_at, each.ends_at, each.ends_at and each.ends_at - DAY)]
    return moment if moment and any(time and abs(moment - time) < DAY for time in named) else None


def _is_named(name: str, sources: SourceTurns) -> bool:
    """Whether every word of a name was said, or is in a known memory; "Tom's" has that of "Tom"."""
    parts = re.findall(r"[^\W_]{2,}", name.casefold())
    return all(part in sources.named or part.removesuffix("s") in sources.named for part in parts)
