"""Extracts the facts of a conversation.

One call to the language model gives facts with certainty, temporal tag, importance, entities and relations.
The answer is read leniently: an array of strings is as good as objects, an object around the array too. What cannot be
read is a failure, never "no facts": silence must not look like loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from service.curator import model_calls, prompts, sourcing
from service.curator.sourcing import SourceMessage
from service.domain.entity import NamedEntity
from service.domain.fact import Fact, NamedRelation
from service.domain.temporal import TemporalTag
from service.domain.text import CleanText
from service.errors import LlmError
from service.language import talk
from service.language.talk import worth
from service.providers.json_reply import as_list, readings
from service.providers.protocols import LlmReply
from service.resources import Resources

UTC = ZoneInfo("UTC")

MAX_FACTS = 200
"""More facts from one conversation are a model running wild; the rest is dropped with a warning."""

BRIEF = 1_000
"""Characters: reading longer answers and conversations leaves the event loop."""

MAX_FACT_CHARS = 2_000
CERTAINTY: Mapping[str, float] = {"explicit": 0.95, "implied": 0.85, "inferred": 0.70, "uncertain": 0.50}
UNSAID = CERTAINTY["implied"]
"""The certainty of a fact that came without one."""

TEXT_KEYS = ("text", "fact", "memory", "claim", "content", "data")


@dataclass(frozen=True, slots=True)
class Extracted:
    """Facts in the order they were stated; `source` says who found them; `why_none` explains an empty list."""

    facts: tuple[Fact, ...]
    source: str
    warnings: tuple[str, ...] = ()
    why_none: str | None = None


async def from_messages(
    messages: Sequence[SourceMessage], workspace_id: UUID, res: Resources, *, instruction: str | None
) -> Extracted:
    """The facts that the model finds; raises LlmError when it fails: the caller keeps the raw messages for later."""
    assert res.llm is not None, "the caller asks only where there is a model"
    custom = instruction or res.settings.custom_prompts.fact_extraction
    prompt = prompts.extract([(each.role, each.text) for each in messages], custom)
    seen: dict[str, ReadOut | None] = {}  # the answer is read to be kept, and then to be used

    def usable(reply: LlmReply) -> bool:
        seen[reply.text] = read(reply.text)
        return seen[reply.text] is not None

    reply = await model_calls.complete(res, workspace_id, prompt, usable)
    brief = max(len(reply.text), sum(len(each.text) for each in messages)) <= BRIEF
    if reply.text in seen:
        read_out = seen[reply.text]
    else:
        read_out = read(reply.text) if brief else await res.threads.run(read, reply.text)
    if read_out is None:
        raise LlmError("The language model's answer could not be read.")
    stated = [fact for fact in read_out.facts if not worth.is_order(fact.text)]
    warnings = _reply_warnings(read_out, reply, len(stated))
    why = None if stated else "the language model found nothing worth keeping"
    kept = stated[:MAX_FACTS]
    facts = sourcing.placed(kept, messages) if brief else await res.threads.run(sourcing.placed, kept, messages)
    return Extracted(facts, reply.model or res.llm.model, warnings, why)


def _reply_warnings(found: ReadOut, reply: LlmReply, stated: int) -> tuple[str, ...]:
    """What is wrong with an answer that can be used nevertheless."""
    warnings = []
    if reply.truncated:
        warnings.append("llm_truncated: the model's answer was cut off.")
    if found.unreadable:
        warnings.append(f"unreadable_facts: {found.unreadable} of the model's entries were no facts.")
    if stated < len(found.facts):
        warnings.append(f"instruction_ignored: {len(found.facts) - stated} were orders to the memory, not facts.")
    if stated > MAX_FACTS:
        warnings.append(f"too_many_facts: {stated} were extracted, {MAX_FACTS} are kept.")
    return tuple(warnings)


def by_rules(
    messages: Sequence[SourceMessage], before: Sequence[SourceMessage] = (), zone: ZoneInfo = UTC
) -> Extracted:
    """The offline extraction: quotes. `before`: the last turns of the conversation, oldest first."""
    quotes = talk.read(_utterances(messages), _utterances(before), zone)
    found = tuple(
        Fact(
            text=CleanText(each.text),
            confidence=each.confidence,
            correction=each.correction,
            message=each.message,
            start=each.start,
            end=each.end,
            also=each.also,
            by_assistant=messages[each.message].by_assistant,
        )
        for each in quotes
    )
    why = None if found else "no message states anything worth keeping; greetings, questions and small talk do not"
    return Extracted(found, "rules:2", (), why)


def _utterances(messages: Sequence[SourceMessage]) -> list[talk.Utterance]:
    return [talk.Utterance(each.role, each.text, each.speaker, each.said_at) for each in messages]


@dataclass(frozen=True, slots=True)
class ReadOut:
    """What an answer holds, and how many of its entries could not be read."""

    facts: tuple[Fact, ...]
    unreadable: int = 0


def read(text: str) -> ReadOut | None:
    """Facts in a model's answer; None when there is nothing that could be a list of them, or nothing in it is one."""
    for value in readings(text):
        listed = _listed(value)
        found = tuple(fact for fact in map(_fact, listed or ()) if fact is not None)
        if found or listed == []:
            return ReadOut(found, len(listed or ()) - len(found))
    return None


def _listed(value: object) -> list[Any] | None:
    """The list of facts, also where a lone fact stands for it."""
    inner = value["facts"] if isinstance(value, dict) and "facts" in value else value
    if isinstance(inner, dict) and any(isinstance(inner.get(key), str) for key in TEXT_KEYS):
        return [inner]
    return as_list(inner) if inner is value else inner if isinstance(inner, list) else None


def _fact(value: Any) -> Fact | None:
    if isinstance(value, str):
        return Fact(CleanText(value.strip()), UNSAID) if _usable(value) else None
    if not isinstance(value, dict):
        return None
    text = next((value[key] for key in TEXT_KEYS if isinstance(value.get(key), str)), "")
    if not _usable(text):
        return None
    certainty, tag, level = value.get("certainty"), value.get("temporal"), value.get("importance")
    return Fact(
        text=CleanText(text.strip()),
        confidence=CERTAINTY.get(certainty.lower(), UNSAID) if isinstance(certainty, str) else UNSAID,
        tag=TemporalTag(tag.lower()) if isinstance(tag, str) and tag.lower() in set(TemporalTag) else None,
        correction=value.get("correction") is True,
        level=level if isinstance(level, int) and not isinstance(level, bool) and 1 <= level <= 10 else None,
        entities=tuple(_named(value.get("entities"))),
        relations=tuple(_related(value.get("relations"))),
    )


def _usable(text: str) -> bool:
    return len(text.strip()) <= MAX_FACT_CHARS and any(char.isalnum() for char in text)


def _named(value: Any) -> list[NamedEntity]:
    if not isinstance(value, list):
        return []
    pairs = [(each.get("name"), each.get("type")) for each in value if isinstance(each, dict)]
    return [
        NamedEntity(name.strip()[:200], kind.strip().lower()[:50])
        for name, kind in pairs
        if isinstance(name, str) and isinstance(kind, str) and name.strip() and kind.strip()
    ]


def _related(value: Any) -> list[NamedRelation]:
    if not isinstance(value, list):
        return []
    found = []
    for each in value:
        parts = [each.get(key) for key in ("source", "relation", "target")] if isinstance(each, dict) else []
        if len(parts) == 3 and all(isinstance(part, str) and part.strip() for part in parts):
            found.append(NamedRelation(*(str(part).strip()[:200] for part in parts)))
    return found
