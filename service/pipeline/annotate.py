"""What does one call to the language model tell about importance, time and topics?

Its answer is taken part by part: what is missing or out of range is left to the rules, stage by stage.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from service.curator import model_calls, prompts
from service.domain.draft import Annotation, Draft
from service.domain.temporal import Temporal, TemporalType
from service.errors import LlmError
from service.language import tags
from service.resources import Resources

MAX_CATEGORIES = 5
MAX_CATEGORY_CHARS = 60


class AnnotationReply(BaseModel):
    """Every part may be missing or odd; `read` takes what it can."""

    importance: Any = None
    temporal: Any = None
    valid_until: Any = None
    categories: Any = None


async def ask(draft: Draft, res: Resources) -> Draft:
    """The draft with the model's annotation; without one when there is no model, it may not be asked, or it fails."""
    if res.llm is None or not draft.options.use_llm or draft.annotation is not None:
        return draft
    question = prompts.annotate(draft.clean, reference=draft.timestamp, timezone=draft.asked.timezone)
    try:
        reply, _ = await model_calls.complete_as(res, draft.scope.workspace_id, question, AnnotationReply)
    except LlmError:
        warning = "llm_unavailable: importance, temporal and categories come from the rules."
        return replace(draft, annotation=Annotation(), warnings=(*draft.warnings, warning))
    return replace(draft, annotation=read(reply))


def read(reply: AnnotationReply) -> Annotation:
    """The usable parts of an answer."""
    level = reply.importance
    usable = isinstance(level, int) and not isinstance(level, bool) and 1 <= level <= 10
    return Annotation(level if usable else None, _temporal(reply), _categories(reply.categories))


def _temporal(reply: AnnotationReply) -> Temporal | None:
    if reply.temporal == TemporalType.PERSISTENT:
        return Temporal(TemporalType.PERSISTENT)
    if reply.temporal != TemporalType.TEMPORAL:
        return None
    return Temporal(TemporalType.TEMPORAL, _moment(reply.valid_until))


def _moment(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):  # "9999-12-31T23:59:59-05:00" is a model's word for ever
        return None


def _categories(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, list):
        return None
    words = [each for each in value if isinstance(each, str)]
    named = [word.replace(" ", "_")[:MAX_CATEGORY_CHARS] for word in tags.normalise(words)]
    return tuple(named[:MAX_CATEGORIES]) or None
