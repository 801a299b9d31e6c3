"""Redaction of what callers send: texts, metadata, tags and other JSON.

Removes personal data and secrets and returns a `CleanText`, or refuses a secret that was announced but cannot be cut
out (docs/decisions/017-redaction.md). Request validation, the size check and its hints see the raw text before.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from service.domain.draft import Draft
from service.domain.errors import PiiRejected, TooLarge
from service.domain.text import CleanText, RedactionCount
from service.language import tags
from service.redaction import detection
from service.runtime.resources import Resources

T = TypeVar("T")


async def redact(draft: Draft, res: Resources) -> Draft:
    """The draft with redacted text, unless it has one already, metadata and tags; raises PiiRejected naming the
    field."""
    text: CleanText | None = draft.text
    redactions: tuple[RedactionCount, ...] = ()
    if text is None:
        text, redactions = await clean(draft.raw, "messages" if draft.speech else "content", res)
    metadata, in_metadata = await clean_object(draft.given.metadata, "metadata", res)
    words, in_tags = await _run_scan("tags", detection.redact_json, list(draft.given.tags), res)
    kept = tags.normalise(words)
    return replace(
        draft,
        text=text,
        metadata=metadata,
        tags=kept,
        tag_prefixes=tags.prefixes(kept),
        redactions=add_up((*redactions, *in_metadata, *in_tags)),
    )


async def clean(text: str, field: str, res: Resources) -> tuple[CleanText, tuple[RedactionCount, ...]]:
    """The redacted text and what was cut; for prompts and every other text that leaves the request."""
    redacted = await _run_scan(field, detection.redact, text, res)
    return redacted.text, redacted.redactions


async def clean_words(text: str, field: str, res: Resources) -> CleanText:
    """The redacted text of a query or a title, in which "password" alone is a topic and does not announce a secret."""
    cleaned, _ = await _run_scan(field, detection.redact_json, text, res)
    return CleanText(str(cleaned))


async def clean_json(value: Any, field: str, res: Resources, *, key: str = "") -> Any:
    """A redacted copy of a JSON value; `key` is its name, which explains a bare word or number under it. Raises
    PiiRejected naming the field."""
    return (await clean_object({key: value}, field, res))[0][key]


async def clean_payload(
    value: Any, field: str, res: Resources, *, most_chars: int
) -> tuple[Any, tuple[RedactionCount, ...]]:
    """The redacted copy of a tool's input or output, and what was cut; TooLarge beyond `most_chars`."""
    if len(json.dumps(value, ensure_ascii=False)) > most_chars:
        raise TooLarge(f"{field}: as JSON at most {most_chars} characters are kept.", field=field)
    cleaned, redactions = await clean_object({"": value}, field, res)
    return cleaned[""], redactions


async def clean_object(
    value: Mapping[str, Any], field: str, res: Resources
) -> tuple[dict[str, Any], tuple[RedactionCount, ...]]:
    """A redacted copy of an object and what was cut; raises PiiRejected naming the field."""
    cleaned, redactions = await _run_scan(field, detection.redact_json, dict(value), res)
    return cleaned, tuple(redactions)


def of_words(field: str, text: str) -> str:
    """The redacted copy of a short text; it does not leave the event loop, so call it in a thread for many."""
    return str(_scan(field, detection.redact_json, text)[0])


def still_in(text: CleanText, redactions: Iterable[RedactionCount]) -> tuple[RedactionCount, ...]:
    """The redactions of a message that are visible in a text made from it."""
    counts = ((redaction.label, text.count(detection.placeholder(redaction.label))) for redaction in redactions)
    return tuple(RedactionCount(label, count) for label, count in counts if count)


def add_up(redactions: Iterable[RedactionCount]) -> tuple[RedactionCount, ...]:
    """One count per label, labels in order."""
    counts: Counter[str] = Counter()
    for redaction in redactions:
        counts[redaction.label] += redaction.count
    return tuple(RedactionCount(label, counts[label]) for label in sorted(counts))


async def _run_scan(field: str, scan: Any, value: Any, res: Resources) -> Any:
    """`_scan`, off the event loop if the value is long."""
    if not value:
        return scan(value)
    chars = len(value) if isinstance(value, str) else len(json.dumps(value, ensure_ascii=False))
    return await res.rules.run_if_long(chars, _scan, field, scan, value)


def _scan(field: str, scan: Any, value: T) -> Any:
    try:
        return scan(value)
    except PiiRejected as exc:
        raise PiiRejected(exc.detail, field=field) from None
