"""Which facts does a conversation hold?

One call to the language model gives facts with certainty, temporal tag, importance, entities and relations (R3.17).
The answer is read leniently: an array of strings is as good as objects, an object around the array too. What cannot be
read is a failure, never "no facts": silence must not look like loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from service.curator import asking, prompts
from service.domain.fact import Fact, Named, Related
from service.domain.temporal import TemporalTag
from service.domain.text import CleanText
from service.errors import LlmError
from service.language import facts as offline
from service.language.facts.fact import CONFIDENCE
from service.providers.json_reply import as_list, parse_reply
from service.resources import Resources

MAX_FACTS = 200
"""More facts from one conversation are a model running wild; the rest is dropped with a warning."""

MAX_FACT_CHARS = 2_000
CERTAINTY: Mapping[str, float] = {str(label): value for label, value in CONFIDENCE.items()}
UNSAID = CONFIDENCE["implied"]
"""The certainty of a fact that came without one (C29)."""

TEXT_KEYS = ("text", "fact", "memory", "claim", "content", "data")


@dataclass(frozen=True, slots=True)
class Said:
    """One redacted message."""

    role: str
    text: CleanText
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Extracted:
    """Facts in the order they were stated; `source` says who found them; `why_none` explains an empty list."""

    facts: tuple[Fact, ...]
    source: str
    warnings: tuple[str, ...] = ()
    why_none: str | None = None


async def from_messages(
    said: Sequence[Said], workspace_id: UUID, res: Resources, *, llm: bool, instruction: str | None
) -> Extracted:
    """The facts; raises LlmError when there is a model and it fails: the caller keeps the raw messages for later."""
    if not llm or res.llm is None:
        return by_rules(said)
    custom = instruction or res.settings.custom_prompts.fact_extraction
    reply = await asking.ask(res, workspace_id, prompts.extract([(each.role, each.text) for each in said], custom))
    found = read(reply.text)
    if found is None:
        raise LlmError("The language model's answer could not be read.")
    warnings: tuple[str, ...] = ("llm_truncated: the model's answer was cut off.",) if reply.truncated else ()
    if len(found) > MAX_FACTS:
        warnings += (f"too_many_facts: {len(found)} were extracted, {MAX_FACTS} are kept.",)
    why = None if found else "the language model found nothing worth keeping"
    return Extracted(tuple(found[:MAX_FACTS]), reply.model or res.llm.model, warnings, why)


def by_rules(said: Sequence[Said]) -> Extracted:
    """The offline extraction."""
    messages = [offline.Message(each.role, each.text, each.name) for each in said]
    found = tuple(
        Fact(
            text=CleanText(each.text),
            confidence=each.confidence,
            tag=each.temporal_tag,
            correction=each.correction,
            message=each.message,
            start=each.start,
            end=each.end,
        )
        for each in offline.extract(messages)
    )
    why = None if found else "no message states anything about the user; greetings, questions and small talk do not"
    return Extracted(found, "rules:1", (), why)


def read(text: str) -> list[Fact] | None:
    """Facts in a model's answer; None when there is nothing that could be a list of them."""
    value = parse_reply(text)
    listed = value.get("facts") if isinstance(value, dict) and "facts" in value else as_list(value)
    if not isinstance(listed, list):
        return None
    found = [_fact(each) for each in listed]
    return [fact for fact in found if fact is not None]


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
        confidence=CERTAINTY.get(certainty, UNSAID) if isinstance(certainty, str) else UNSAID,
        tag=TemporalTag(tag) if isinstance(tag, str) and tag in set(TemporalTag) else None,
        level=level if isinstance(level, int) and not isinstance(level, bool) and 1 <= level <= 10 else None,
        entities=tuple(_named(value.get("entities"))),
        relations=tuple(_related(value.get("relations"))),
    )


def _usable(text: str) -> bool:
    return 0 < len(text.strip()) <= MAX_FACT_CHARS


def _named(value: Any) -> list[Named]:
    if not isinstance(value, list):
        return []
    pairs = [(each.get("name"), each.get("type")) for each in value if isinstance(each, dict)]
    return [
        Named(name.strip()[:200], kind.strip().lower()[:50])
        for name, kind in pairs
        if isinstance(name, str) and isinstance(kind, str) and name.strip() and kind.strip()
    ]


def _related(value: Any) -> list[Related]:
    if not isinstance(value, list):
        return []
    found = []
    for each in value:
        parts = [each.get(key) for key in ("source", "relation", "target")] if isinstance(each, dict) else []
        if len(parts) == 3 and all(isinstance(part, str) and part.strip() for part in parts):
            found.append(Related(*(str(part).strip()[:200] for part in parts)))
    return found
