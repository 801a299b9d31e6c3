"""Checks facts against the conversation they were extracted from.

A model's fact that claims more than was said is replaced by the message itself, if that is worth keeping; of a fact
that is kept, every part is checked: speaker, message, times, names. What cannot be checked is left to the rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from service.domain.fact import Comparison, Fact
from service.domain.text import CleanText
from service.language import talk
from service.language.talk import answers, dates
from service.understanding import checks
from service.understanding.sourcing import SourceSentence, SourceTurns

NAMELESS = re.compile(r"^(?:The )?[Uu]ser\b")
DAY = timedelta(days=1)


def ground(facts: Sequence[Fact], sources: SourceTurns) -> tuple[list[Fact], tuple[str, ...]]:
    """The facts that pass the checks, in order, with the sentences that replace those that do not, and a warning about
    these. Pure; some milliseconds where times are named."""
    kept: list[Fact] = []
    refused = 0
    said: list[Fact] | None = None
    used: dict[Fact, int] = {}  # the quotes that replace a fact, and their places
    for fact in facts:
        nearest = sources.nearest(fact.text, fact.message)
        if checks.refusal(fact.text, sources, fact.message) is None:
            kept.append(_check(fact, nearest, sources))
            continue
        refused += 1
        said = talk.read(sources.messages, sources.before, sources.zone) if said is None else said
        instead = next((each for each in said if _holds(each, nearest, sources)), None)
        if instead is None:
            continue
        if instead not in used:
            used[instead] = len(kept)
            kept.append(replace(instead, comparison=fact.comparison))
        elif fact.comparison is not None:
            kept[used[instead]] = _also_compared(kept[used[instead]], fact.comparison)
    if not refused:
        return kept, ()
    quoted = f", {len(used)} replaced by what was said" if used else ""
    return kept, (f"ungrounded_facts: {refused} claimed more than was said and were left out{quoted}.",)


def _also_compared(quote: Fact, more: Comparison) -> Fact:
    """A quote that replaces several facts, with the memories that the model compared any of them with."""
    had = quote.comparison
    return replace(quote, comparison=replace(more, named=more.named | had.named) if had else more)


def _holds(quote: Fact, nearest: Sequence[SourceSentence], sources: SourceTurns) -> bool:
    """Whether a quote contains one of the sentences."""
    turn, start, end = (quote.message or 0) + len(sources.before), quote.start or 0, quote.end or 0
    return any(sentence.turn == turn and start < sentence.end and sentence.start < end for sentence in nearest)


def _check(fact: Fact, nearest: Sequence[SourceSentence], sources: SourceTurns) -> Fact:
    """A fact with its message and those of its parts that the conversation supports."""
    message, span = _place(fact, nearest, sources)
    said = sources.messages[-1 if message is None else message]
    corrects = not said.by_assistant and answers.corrects(said.text)
    text = NAMELESS.sub(lambda _: said.name or "User", fact.text) if not said.by_assistant else fact.text
    times = list(_times(nearest, sources)) if fact.t_valid or fact.t_invalid else []
    speakers = {utterance.speaker for utterance in sources.turns}
    return replace(
        fact,
        text=CleanText(dates.date_expressions(text, said.said_at, sources.zone)),
        message=message,
        start=span[0],
        end=span[1],
        correction=fact.correction or corrects,
        by_assistant=(nearest[-1].said if nearest else said).by_assistant,
        speaker=fact.speaker if fact.speaker in speakers else said.speaker,
        t_valid=_confirm(fact.t_valid, times, before=said.said_at),
        t_invalid=_confirm(fact.t_invalid, times, after=said.said_at),
        entities=tuple(entity for entity in fact.entities if _are_named((entity.name,), sources)),
        relations=tuple(
            relation for relation in fact.relations if _are_named((relation.source, relation.target), sources)
        ),
    )


def _place(
    fact: Fact, nearest: Sequence[SourceSentence], sources: SourceTurns
) -> tuple[int | None, tuple[int | None, int | None]]:
    """The message that a fact comes from, and the span of its sentence where it comes from one."""
    before = len(sources.before)
    if nearest and nearest[0].turn >= before:
        span = (nearest[0].start, nearest[0].end) if len(nearest) == 1 else (None, None)
        return nearest[0].turn - before, span
    if len(sources.messages) == 1:
        return 0, (None, None)
    named = fact.message is not None and 0 <= fact.message < len(sources.messages)
    return fact.message if named else None, (None, None)


def _times(nearest: Sequence[SourceSentence], sources: SourceTurns) -> Iterator[datetime]:
    """The moments that the source of a fact names; what lasts until the end of a day may be said to end on it."""
    for mention in sources.mentions_near(nearest):
        for moment in (mention.begins_at, mention.ends_at):
            if moment is not None:
                yield moment
        if mention.ends_at is not None:
            yield mention.ends_at - DAY


def _confirm(
    moment: datetime | None, times: Iterable[datetime], *, before: datetime | None = None, after: datetime | None = None
) -> datetime | None:
    """A model's moment, if it is one that the text names, to the day; on the right side of when it was said."""
    if moment is None or (before is not None and moment > before) or (after is not None and moment <= after):
        return None
    return moment if any(abs(moment - time) < DAY for time in times) else None


def _are_named(names: Iterable[str], sources: SourceTurns) -> bool:
    """Whether every word of the names was said, or is the name of a speaker."""
    said = set(re.findall(r"\w+", f"{sources.text} {talk.USER}".casefold()))
    return all(set(re.findall(r"\w+", name.casefold())) <= said for name in names)
