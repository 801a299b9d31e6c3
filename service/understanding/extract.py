"""Extracts the facts of a conversation: by one call to the language model, or by rules.

The call gives facts with type, categories, importance, times, certainty, entities and relations. Each part is
checked against the conversation, and what cannot be checked is left to the rules; a fact that claims more than was said
is replaced by the sentence itself.

The answer is read leniently, part by part: an array of strings is as good as objects, an object around the array too.
What cannot be read is a failure, except a short sentence that there is nothing to remember, which is an empty list.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from service.domain import moments
from service.domain.entity import NamedEntity
from service.domain.errors import AnswerCut, UnusableAnswer
from service.domain.fact import Comparison, Fact, NamedRelation
from service.domain.kinds import MemoryType
from service.domain.temporal import TemporalTag
from service.domain.text import CleanText
from service.language.talk import speech_acts
from service.providers.json_reply import THOUGHTS, as_list, readings
from service.providers.protocols import LlmReply
from service.runtime.resources import Resources
from service.understanding import model_calls, prompts
from service.understanding.grounding import ground
from service.understanding.sourcing import SourceTurns, content_words

MAX_FACTS = 200
"""Maximum number of facts from one conversation; a model that returns more has gone wrong, and the rest is dropped with
a warning."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """Facts in the order they were stated; `source` says who found them; `why_none` explains an empty list. `is_cut`:
    the model ran out of room, so that there may be more."""

    facts: tuple[Fact, ...]
    source: str
    warnings: tuple[str, ...] = ()
    why_none: str | None = None
    is_cut: bool = False


async def from_messages(
    sources: SourceTurns, workspace_id: UUID, res: Resources, *, instruction: str | None
) -> Extracted:
    """The facts that the model finds; raises LlmError if it fails, or if nothing in its answer can be used."""
    assert res.llm is not None, "the caller asks only where there is a model"
    prompt = prompts.extract(sources, instruction or res.settings.llm.prompts.fact_extraction)
    read_out, reply = await model_calls.complete(res, workspace_id, prompt, lambda text: _read_answer(text, sources))
    name = model_calls.name_model(res, prompt.task)
    if reply.truncated and (read_out is None or not read_out[0]):
        raise AnswerCut(f"The answer of {name} was cut off.")
    if read_out is None:
        raise UnusableAnswer(f"The answer of {name} could not be read.")
    facts, unreadable = read_out
    stated = [fact for fact in facts if not speech_acts.is_about_the_memory(fact.text)]
    chars = sum(len(utterance.text) for utterance in sources.messages)
    kept, ungrounded = await res.rules.run_if_long(chars, ground, stated[:MAX_FACTS], sources)
    if stated and not kept:
        raise UnusableAnswer(f"No fact of {name} is borne out by the messages.")
    warnings = _reply_warnings(reply, unreadable=unreadable, orders=len(facts) - len(stated), stated=len(stated))
    why = None if stated else "the language model found nothing worth keeping"
    return Extracted(tuple(kept), reply.model or res.llm.model, (*warnings, *ungrounded), why, reply.truncated)


def _read_answer(text: str, sources: SourceTurns) -> tuple[Sequence[Fact], int] | None:
    """The facts in an answer, and how many of its entries are none; None if it cannot be read. Prose counts as an empty
    list if it says that there is nothing and repeats no words of the messages: "found no job in Bergen" may be a
    fact."""
    for value in readings(text):
        listed = _find_list(value)
        facts = [fact for each in listed or () if (fact := _fact(each, sources.zone, sources.known)) is not None]
        if facts or listed == []:
            return facts, len(listed or ()) - len(facts)
    said = frozenset().union(*(content_words(utterance.text) for utterance in sources.messages))
    return ((), 0) if says_nothing(text) and said.isdisjoint(content_words(text)) else None


def _reply_warnings(reply: LlmReply, *, unreadable: int, orders: int, stated: int) -> list[str]:
    """The warnings about an answer that can be used nevertheless."""
    warnings = []
    if reply.truncated:
        warnings.append("llm_truncated: the model's answer was cut off; it reads the messages again in parts.")
    if unreadable:
        warnings.append(f"unreadable_facts: {unreadable} of the model's entries were not facts.")
    if orders:
        warnings.append(f"instruction_ignored: {orders} were orders to the memory, not facts.")
    if stated > MAX_FACTS:
        warnings.append(f"too_many_facts: {stated} were extracted; {MAX_FACTS} are kept.")
    return warnings


def by_rules(sources: SourceTurns) -> Extracted:
    """The offline extraction: quotes. Pure; some milliseconds for a long conversation."""
    facts = tuple(sources.quotes)
    why = None if facts else "no message states anything worth keeping; greetings, questions and small talk do not"
    return Extracted(facts, "rules:3", (), why)


MAX_FACT_CHARS = 2_000
MAX_DESCRIPTION_CHARS = 300
CERTAINTY = MappingProxyType({"explicit": 0.95, "implied": 0.85, "inferred": 0.70, "uncertain": 0.50})
"""The confidence that a model's label gives a fact."""

TEXT_KEYS = ("text", "fact", "memory", "claim", "content", "data")

NOTHING_CHARS = 200
NOTHING = re.compile(
    r"(?!.*\b(?:can'?t|can ?not|won'?t|unable to|not able to)\b(?! (?:find|see|detect|identify|extract)))"
    r"(?:(?:none|nothing|null|no|n/a)\W*\Z"
    r"|(?=.*(?:\b(?:no|not|none|nothing|any|anything)\b|n't\b))"
    r"(?=.*\b(?:facts?|find|found|contain|extract|worth|remember|memor|relevant|noteworthy|stor(?:e|ing)|keep|sav(?:e|ing))))",
    re.IGNORECASE | re.DOTALL,
)
"""A denial, and a word for what was asked; a model that will not do it has not looked."""


def says_nothing(text: str) -> bool:
    """Whether the answer is a short sentence that there is nothing to remember, and no JSON at all."""
    said = THOUGHTS.sub("", text).strip().replace("’", "'")
    if not 0 < len(said) <= NOTHING_CHARS or any(bracket in said for bracket in "[{"):
        return False
    return NOTHING.match(said) is not None


def _find_list(value: object) -> list[Any] | None:
    """The list of facts, also if there is a single fact instead of a list."""
    inner = value["facts"] if isinstance(value, dict) and "facts" in value else value
    if isinstance(inner, dict) and any(isinstance(inner.get(key), str) for key in TEXT_KEYS):
        return [inner]
    return as_list(inner) if inner is value else inner if isinstance(inner, list) else None


def _fact(value: Any, zone: ZoneInfo, known: Sequence[CleanText]) -> Fact | None:
    if isinstance(value, str):
        return Fact(CleanText(value.strip()), CERTAINTY["implied"]) if _is_usable(value) else None
    if not isinstance(value, dict):
        return None
    text = next((value[key] for key in TEXT_KEYS if isinstance(value.get(key), str)), "")
    if not _is_usable(text):
        return None
    label = str(value.get("certainty")).lower()
    level, message = _whole(value.get("importance")), _whole(value.get("message"))
    tag, kind, categories = value.get("temporal"), value.get("type"), value.get("categories")
    return Fact(
        text=CleanText(text.strip()),
        confidence=CERTAINTY.get(label, CERTAINTY["implied"]),
        tag=TemporalTag(tag.lower()) if isinstance(tag, str) and tag.lower() in set(TemporalTag) else None,
        correction=value.get("correction") is True,
        message=None if message is None else message - 1,
        level=level if level is not None and 1 <= level <= 10 else None,
        entities=_read_entities(value.get("entities")),
        relations=_read_relations(value.get("relations")),
        kind=MemoryType(kind) if isinstance(kind, str) and kind in set(MemoryType) else None,
        categories=tuple(each for each in categories if isinstance(each, str)) if isinstance(categories, list) else (),
        t_valid=_moment(value.get("t_valid"), zone),
        t_invalid=_moment(value.get("t_invalid"), zone),
        comparison=_comparison(value.get("known"), known),
    )


def _comparison(value: Any, known: Sequence[CleanText]) -> Comparison | None:
    """The memories with the numbers in a list; None where there is no list."""
    if not isinstance(value, list):
        return None
    numbers = (_whole(each) for each in value)
    named = frozenset(known[number - 1] for number in numbers if number is not None and 1 <= number <= len(known))
    return Comparison(frozenset(known), named)


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _moment(value: Any, zone: ZoneInfo) -> datetime | None:
    """An ISO date or time, on the wall clock of `zone` where it has no offset; "2026" and "2026-10" begin then."""
    if not isinstance(value, str):
        return None
    text = value.strip()
    if len(text) in (4, 7):
        text += "-01-01"[len(text) - 4 :]
    try:
        return moments.parse(text, zone)
    except ValueError:
        return None


def _is_usable(text: str) -> bool:
    return len(text.strip()) <= MAX_FACT_CHARS and any(char.isalnum() for char in text)


def _read_entities(value: Any) -> tuple[NamedEntity, ...]:
    read = [
        (
            _text(each.get("name"), 200),
            _text(each.get("type"), 50),
            _text(each.get("description"), MAX_DESCRIPTION_CHARS),
        )
        for each in _objects(value)
    ]
    return tuple(NamedEntity(name, kind.lower(), about or None) for name, kind, about in read if name and kind)


def _read_relations(value: Any) -> tuple[NamedRelation, ...]:
    read = [[_text(each.get(key), 200) for key in ("source", "relation", "target")] for each in _objects(value)]
    return tuple(NamedRelation(*parts) for parts in read if all(parts))


def _objects(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _text(value: Any, max_chars: int) -> str:
    """A text in one line, cut off where it is long; empty for anything else."""
    return " ".join(value.split())[:max_chars] if isinstance(value, str) else ""
