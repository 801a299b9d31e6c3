"""The importance, times, categories, type and term weights of a text.

One call to the language model (`ask_model`) may answer for importance, expiry and categories. Its answer is used part
by part: what is missing or out of range is left to the rules, stage by stage. What the caller set takes precedence over
both.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import BaseModel

from service.domain import moments
from service.domain.draft import Annotation, Draft
from service.domain.errors import LlmError
from service.domain.kinds import Classification, ClassificationSource, Importance, MemoryType
from service.domain.temporal import TemporalDetails, TemporalType
from service.language import importance, kinds, lexemes, tags, temporal
from service.language.talk import dates
from service.runtime.resources import Resources
from service.understanding import model_calls, prompts

MAX_CATEGORIES = 5
MAX_CATEGORY_CHARS = 60
KIND_CONFIDENCE = 0.7
"""The confidence in a type that came with a fact but without one."""


class AnnotationReply(BaseModel):
    """Every part may be missing or wrong; `_read_annotation` takes the usable ones."""

    importance: Any = None
    temporal: Any = None
    valid_until: Any = None
    categories: Any = None


class KindReply(BaseModel):
    """Checked by `_read_kind`: small models invent types."""

    type: Any
    confidence: Any = None


async def ask_model(draft: Draft, res: Resources) -> Draft:
    """The draft with the model's annotation; without one if there is no model, or it may not be asked, or fails."""
    if res.llm is None or not draft.options.use_llm or draft.annotation is not None:
        return draft
    prompt = prompts.annotate(draft.clean, reference=draft.timestamp, timezone=draft.given.timezone)
    try:
        reply = await model_calls.complete_as(res, draft.scope.workspace_id, prompt, AnnotationReply)
    except LlmError as exc:
        warning = exc.as_warning("Importance, temporal and categories come from the rules.")
        return replace(draft, annotation=Annotation(), warnings=(*draft.warnings, warning))
    return _with_expiry_of_model(replace(draft, annotation=_read_annotation(reply)))


def _with_expiry_of_model(draft: Draft) -> Draft:
    """The draft with the expiry that the model gave, unless the text itself names one."""
    asked, stated = draft.annotation.temporal if draft.annotation else None, draft.temporal
    if asked is None or stated is None or draft.given.t_invalid is not None:
        return draft
    until = asked.valid_until
    if until is not None and until <= draft.timestamp:  # before the note's own time: a mistake
        until = None
    return replace(draft, temporal=replace(stated, type=asked.type, valid_until=until))


def _read_annotation(reply: AnnotationReply) -> Annotation:
    """The usable parts of an answer."""
    level = reply.importance
    usable = isinstance(level, int) and not isinstance(level, bool) and 1 <= level <= 10
    return Annotation(level if usable else None, _expiry(reply), usable_categories(reply.categories))


def _expiry(reply: AnnotationReply) -> TemporalDetails | None:
    if reply.temporal == TemporalType.PERSISTENT:
        return TemporalDetails(TemporalType.PERSISTENT)
    if reply.temporal != TemporalType.TEMPORAL:
        return None
    return TemporalDetails(TemporalType.TEMPORAL, parse_time(reply.valid_until))


def parse_time(value: object) -> datetime | None:
    """A time in an answer of the model; None if it is not one."""
    if not isinstance(value, str):
        return None
    try:
        return moments.parse(value)
    except ValueError:
        return None


def usable_categories(value: object) -> tuple[str, ...] | None:
    """The usable ones of a model's categories; None if there are none."""
    if not isinstance(value, list | tuple):
        return None
    words = [each for each in value if isinstance(each, str)]
    named = [word.replace(" ", "_")[:MAX_CATEGORY_CHARS] for word in tags.normalise(words)]
    return tuple(named[:MAX_CATEGORIES]) or None


async def find_times(draft: Draft, res: Resources) -> Draft:
    """The draft with the times it names and the end of its validity.

    Part of the request and not of a job, because the response and a dry run show the times. Records get mentions only:
    an expiry years ago would push down exactly the answers to "when" (docs/decisions/012-time-of-turns.md).
    """
    return await res.rules.run_if_long(len(draft.clean), _with_times, draft, ZoneInfo(draft.given.timezone))


def _with_times(draft: Draft, zone: ZoneInfo) -> Draft:
    """The draft with the times it names, and the validity that its text states, unless the caller set it."""
    text, reference, given = draft.clean, draft.timestamp, draft.given
    mentions = temporal.find(text if draft.fact is None else dates.without_dates(text), reference, zone)
    if draft.options.record:
        return replace(draft, temporal=TemporalDetails(TemporalType.PERSISTENT, mentions=mentions))
    tag = (draft.fact.tag if draft.fact else None) or temporal.tag(text, mentions, reference)
    is_open = given.t_valid is None and given.t_invalid is None
    if is_open and (held := temporal.find_held(text, mentions, reference)):
        since, until = held
        named = TemporalDetails(TemporalType.TEMPORAL, until, tag, mentions)
        return replace(draft, given=replace(given, t_valid=since, t_invalid=until), temporal=named)
    try:
        kind, valid_until = temporal.validity(text, mentions, reference, zone)
    except OverflowError:  # in December 9999 the calendar ends before the event does
        kind, valid_until = TemporalType.TEMPORAL, None
    expiry = valid_until if kind is TemporalType.TEMPORAL else None
    return replace(draft, temporal=TemporalDetails(kind, expiry, tag, mentions))


async def annotate(draft: Draft, res: Resources) -> Draft:
    """The draft with its importance, categories and type (the caller's, else the model's, else the rules'), and the
    BM25 weights of its text, so that the write need not compute them."""
    may_guess = res.settings.llm.classifier_use_llm and not draft.options.record
    by_model = may_guess and draft.options.use_llm and res.llm is not None
    draft = await res.rules.run_if_long(len(draft.clean), _by_rules, draft, guess=may_guess and not by_model)
    if draft.kind is not None:
        return draft
    return replace(draft, kind=await _kind_by_model(draft, res) if by_model else kinds.UNCLASSIFIED)


def _by_rules(draft: Draft, *, guess: bool) -> Draft:
    """The annotated draft; without a type if neither caller nor patterns determine it and it may not be guessed."""
    text, given, annotation = draft.clean, draft.given, draft.annotation or Annotation()
    kind = kinds.explicit(given.type, given.type_confidence) if given.type is not None else kinds.classify(text)
    level = annotation.importance_level
    rated = given.importance or (Importance.of_level(level) if level else importance.rate(text, kind))
    if kind is None and annotation.kind is not None:
        kind = Classification(annotation.kind, KIND_CONFIDENCE, ClassificationSource.LLM)
    return replace(
        draft,
        importance=rated,
        categories=annotation.categories or kinds.name_categories(text),
        kind=kind or (kinds.guess(text) if guess else None),
        term_weights=lexemes.weights(text),
    )


async def _kind_by_model(draft: Draft, res: Resources) -> Classification:
    prompt = prompts.classify(draft.clean)
    try:
        reply = await model_calls.complete_as(res, draft.scope.workspace_id, prompt, KindReply)
    except LlmError:
        return kinds.UNCLASSIFIED_FAILED
    return _read_kind(reply)


def _read_kind(reply: KindReply) -> Classification:
    """The model's type; an unknown one is Context at 0.5."""
    if not isinstance(reply.type, str) or reply.type not in set(MemoryType):
        return kinds.UNCLASSIFIED
    usable = isinstance(reply.confidence, int | float) and 0 <= reply.confidence <= 1
    return Classification(MemoryType(reply.type), float(reply.confidence) if usable else 0.5, ClassificationSource.LLM)
