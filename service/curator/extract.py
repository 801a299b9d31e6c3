"""Extracts the facts of a conversation: by one call to the language model, or by rules.

The call gives facts with speaker, type, topics, importance, times, certainty, entities and relations. Each part is
checked against the conversation, and what cannot be is left to the rules; a fact that claims more than was said gives
way to the sentence itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from service.curator import model_calls, prompts
from service.curator.extraction_reply import ReadOut, read
from service.curator.grounding import Grounded, grounded, quotes
from service.curator.sourcing import SourceTurns
from service.domain.fact import Fact
from service.errors import LlmError
from service.language.talk import worth
from service.providers.protocols import LlmReply
from service.resources import Resources

MAX_FACTS = 200
"""More facts from one conversation are a model running wild; the rest is dropped with a warning."""

BRIEF = 1_000
"""Characters: reading longer answers leaves the event loop."""


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
    """The facts that the model finds; raises LlmError when it fails: the caller keeps the raw messages for later."""
    assert res.llm is not None, "the caller asks only where there is a model"
    prompt = prompts.extract(sources, instruction or res.settings.custom_prompts.fact_extraction)
    reading = sources.zone, sources.known, res.settings.certainty
    seen: dict[str, ReadOut | None] = {}  # the answer is read to be kept, and then to be used

    def usable(reply: LlmReply) -> bool:
        seen[reply.text] = read(reply.text, *reading)
        return seen[reply.text] is not None

    reply = await model_calls.complete(res, workspace_id, prompt, usable)
    if reply.text in seen:
        read_out = seen[reply.text]
    elif len(reply.text) <= BRIEF:
        read_out = read(reply.text, *reading)
    else:
        read_out = await res.rules.run(read, reply.text, *reading)
    if read_out is None:
        raise LlmError("The language model's answer could not be read.")
    stated = [fact for fact in read_out.facts if not worth.TO_THE_MEMORY.search(fact.text)]
    kept = await res.rules.run(grounded, stated[:MAX_FACTS], sources) if stated else Grounded(())
    warnings = (*_reply_warnings(read_out, reply, len(stated)), *kept.warnings)
    why = None if stated else "the language model found nothing worth keeping"
    return Extracted(kept.facts, reply.model or res.llm.model, warnings, why, reply.truncated)


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


def by_rules(sources: SourceTurns) -> Extracted:
    """The offline extraction: quotes. Pure; some milliseconds for a long conversation."""
    found = quotes(sources)
    why = None if found else "no message states anything worth keeping; greetings, questions and small talk do not"
    return Extracted(found, "rules:2", (), why)
