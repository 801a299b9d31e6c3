"""Prompts about a query: expansion, HyDE, self-query and reranking.

The query stands between fences as material to be judged, and has passed the PII stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from service.domain.text import CleanText
from service.providers.protocols import LlmRequest
from service.understanding.prompts import MATERIAL, fence, schema_of

EXPAND = f"""You prepare a search in somebody's notes. {MATERIAL}
Write how the notes that answer the question might put it: one to three short statements, with other words for the same
things where there are any, without making up the answer.
Answer with one JSON object: {{"statements": ["..."]}}."""

HYDE = f"""You prepare a search in somebody's notes. {MATERIAL}
Write one short note, as it might stand there, that answers the question. Details may be made up: only its likeness to
real notes counts.
Answer with one JSON object: {{"note": "..."}}."""

SELF_QUERY = f"""You turn a question to somebody's notes into a search. {MATERIAL}
Answer with one JSON object; leave out what the question does not say:
- "start", "end": ISO 8601, the half-open time in which it happened.
- "types": of Decision, Pattern, Preference, Style, Habit, Insight, Context, when it asks for such notes.
- "tags": tags that it names explicitly.
- "filters": when it names a property and its value, a JSON text of
  {{{{"field": "metadata.NAME", "operator": OP, "value": V}}}}
  or of {{{{"AND": [...]}}}}, {{{{"OR": [...]}}}}, {{{{"NOT": {{{{...}}}}}}}} over such conditions.
  OP: eq, ne, gt, gte, lt, lte, in, nin, contains, icontains.
Reference time: {{reference}} ({{timezone}})."""

RERANK = f"""You judge which notes help to answer a question. {MATERIAL} Notes are numbered.
Answer with one JSON object: {{"scores": [{{"id": n, "score": s}}]}}, one entry for each note, s from 0 (of no use) to
10 (answers it)."""

HYDE_TEMPERATURE = 0.7
"""An imagined note may vary; the answer is still kept for the same query."""


def expand(text: CleanText) -> LlmRequest:
    return LlmRequest(
        "expand", EXPAND, fence(text), schema_of(statements={"type": "array", "items": {"type": "string"}}), 0, 300
    )


def hyde(text: CleanText) -> LlmRequest:
    return LlmRequest("hyde", HYDE, fence(text), schema_of(note={"type": "string"}), HYDE_TEMPERATURE, 300)


def self_query(text: CleanText, *, reference: datetime, timezone: str) -> LlmRequest:
    system = SELF_QUERY.format(reference=reference.isoformat(timespec="minutes"), timezone=timezone)
    maybe, words = {"type": ["string", "null"]}, {"type": "array", "items": {"type": "string"}}
    return LlmRequest(
        "self_query",
        system,
        fence(text),
        schema_of(start=maybe, end=maybe, types=words, tags=words, filters=maybe),
        0,
        300,
    )


def rerank(query: CleanText, notes: Sequence[str]) -> LlmRequest:
    """The notes are numbered from 1."""
    listed = "\n".join(f"{number}. {fence(text)}" for number, text in enumerate(notes, 1))
    entry = schema_of(id={"type": "integer"}, score={"type": "number"})
    return LlmRequest(
        "rerank",
        RERANK,
        f"Question:\n{fence(query)}\n\nNotes:\n{listed}",
        schema_of(scores={"type": "array", "items": entry}),
        0,
        20 * len(notes) + 100,
    )
