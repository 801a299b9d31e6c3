"""Extracts the facts of a conversation: by one call to the language model, or by rules.

The call gives facts with speaker, type, categories, importance, times, certainty, entities and relations. Each part is
checked against the conversation, and what cannot be checked is left to the rules; a fact that claims more than was said
is replaced by the sentence itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from service.domain.errors import AnswerCut, UnusableAnswer
from service.domain.fact import Fact
from service.language import talk
from service.language.talk import keeping
from service.providers.protocols import LlmReply
from service.runtime.resources import Resources
from service.understanding import model_calls, prompts
from service.understanding.extraction_reply import ReadOut, read, says_nothing
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
    read_out, reply = await model_calls.complete_read(res, workspace_id, prompt, lambda text: _read(text, sources))
    name = model_calls.name_model(res, prompt.task)
    if reply.truncated and (read_out is None or not read_out.facts):
        raise AnswerCut(f"The answer of {name} was cut off.")
    if read_out is None:
        raise UnusableAnswer(f"The answer of {name} could not be read.")
    stated = [fact for fact in read_out.facts if not keeping.is_about_the_memory(fact.text)]
    chars = sum(len(utterance.text) for utterance in sources.messages)
    kept, ungrounded = await res.rules.run_if_long(chars, ground, stated[:MAX_FACTS], sources)
    if stated and not kept:
        raise UnusableAnswer(f"No fact of {name} is borne out by the messages.")
    warnings = (*_reply_warnings(read_out, reply, len(stated)), *ungrounded)
    why = None if stated else "the language model found nothing worth keeping"
    return Extracted(tuple(kept), reply.model or res.llm.model, warnings, why, reply.truncated)


def _read(text: str, sources: SourceTurns) -> ReadOut | None:
    """The facts in an answer; None if it cannot be read. Prose counts as an empty list if it says that there is nothing
    and repeats no words of the messages: "found no job in Bergen" may be a fact."""
    facts = read(text, sources.zone, sources.known)
    if facts is None and says_nothing(text):
        said = frozenset().union(*(content_words(utterance.text) for utterance in sources.messages))
        return None if said & content_words(text) else ReadOut(())
    return facts


def _reply_warnings(read_out: ReadOut, reply: LlmReply, stated: int) -> tuple[str, ...]:
    """The warnings about an answer that can be used nevertheless."""
    warnings = []
    if reply.truncated:
        warnings.append("llm_truncated: the model's answer was cut off; it reads the messages again in parts.")
    if read_out.unreadable:
        warnings.append(f"unreadable_facts: {read_out.unreadable} of the model's entries were no facts.")
    if stated < len(read_out.facts):
        warnings.append(f"instruction_ignored: {len(read_out.facts) - stated} were orders to the memory, not facts.")
    if stated > MAX_FACTS:
        warnings.append(f"too_many_facts: {stated} were extracted, {MAX_FACTS} are kept.")
    return tuple(warnings)


def by_rules(sources: SourceTurns) -> Extracted:
    """The offline extraction: quotes. Pure; some milliseconds for a long conversation."""
    facts = tuple(talk.read(sources.messages, sources.before, sources.zone))
    why = None if facts else "no message states anything worth keeping; greetings, questions and small talk do not"
    return Extracted(facts, "rules:3", (), why)
