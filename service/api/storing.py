"""How does a store request become drafts, and outcomes an answer? What POST and batch share."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from service.api import filters, shapes
from service.api.deps import scope_of
from service.api.memory_models import MessageInput, ScopeFields, StoreRequest, StoreResponse
from service.api.writes import answer
from service.domain.access import Caller, Right
from service.domain.decision import Action
from service.domain.draft import Draft, Options, Speech
from service.domain.memory import StoreResult
from service.domain.request import StoredAnswer
from service.domain.scope import Scope
from service.errors import Forbidden, InvalidInput
from service.memory.record import Conversation
from service.providers.budget import Budget
from service.resources import Resources

ONLY_INFERRED = "{}: is used with messages and infer=true only."


def scope(body: ScopeFields, who: Caller) -> Scope:
    return scope_of(who, user_id=body.user_id, agent_id=body.agent_id, run_id=body.run_id, channel=body.channel)


def draft(body: StoreRequest, who: Caller, res: Resources, *, later: bool = False) -> Draft:
    """The draft of a `content` request; raises InvalidInput for fields that only a conversation uses."""
    assert body.content is not None
    _refuse_system_fields(body, who)
    for name, value in (("prompt", body.prompt), ("filters", body.filters)):
        if value is not None:
            raise InvalidInput(ONLY_INFERRED.format(name), field=name)
    return _draft(body, body.content, None, scope(body, who), res, record=False, later=later)


async def conversation(body: StoreRequest, who: Caller, res: Resources) -> tuple[Conversation, list[str]]:
    """The drafts of a `messages` request, and warnings about what was left out."""
    refuse_single_fields(body)
    if body.filters is not None and not body.infer:
        raise InvalidInput(ONLY_INFERRED.format("filters"), field="filters")
    compare = await filters.kept(body.filters, res)
    where = scope(body, who)
    said, warnings = messages(body, res)
    drafts = [_draft(body, text, spoken, where, res, record=not body.infer) for text, spoken in said]
    drafts = [replace(each, given=replace(each.given, compare=compare)) for each in drafts] if compare else drafts
    external_id = body.run_id or body.session_id
    return Conversation(where, drafts, external_id, body.dry_run, body.infer, body.prompt), warnings


def messages(body: StoreRequest, res: Resources) -> tuple[list[tuple[str, Speech]], list[str]]:
    """The messages that have a text, in order; raises InvalidInput when none has, or there are too many."""
    given = body.messages
    listed = (
        [MessageInput(role="user", content=given, name=None, timestamp=None)] if isinstance(given, str) else given or []
    )
    if len(listed) > res.settings.messages_max_items:
        raise InvalidInput(
            f"messages: {len(listed)} were sent, at most {res.settings.messages_max_items} are taken at once.",
            field="messages",
        )
    said: list[tuple[str, Speech]] = []
    warnings: list[str] = []
    for place, message in enumerate(listed):
        text, spoken, hints = shapes.speech(message, place)
        warnings.extend(hints)
        if text is not None:
            said.append((text, spoken))
    if not said:
        raise InvalidInput("messages: none of them has a text.", field="messages")
    return said, warnings


def refuse_single_fields(body: StoreRequest) -> None:
    """A conversation has many texts, so what belongs to one of them cannot be set for all."""
    for name in ("id", "embedding", "updated_at", "last_accessed"):
        if getattr(body, name) is not None:
            raise InvalidInput(f"{name}: belongs to one text; it cannot be given with messages.", field=name)


def _refuse_system_fields(body: StoreRequest, who: Caller) -> None:
    """What the service keeps is set by hand only by who moves memories in (C11)."""
    for name in ("updated_at", "last_accessed"):
        if getattr(body, name) is not None and not body.allow_system_fields:
            raise InvalidInput(f"{name}: is kept by the service; allow_system_fields lets you set it.", field=name)
    if body.allow_system_fields and not who.may(Right.SYSTEM):
        raise Forbidden(f"This key lacks the right {Right.SYSTEM}.", field="allow_system_fields")


def _draft(
    body: StoreRequest,
    text: str,
    spoken: Speech | None,
    where: Scope,
    res: Resources,
    *,
    record: bool,
    later: bool = False,
) -> Draft:
    settings, now = res.settings, res.clock()
    return Draft(
        scope=where,
        raw=text,
        given=shapes.asked(body, dimension=res.embedder.dimension, timezone=settings.timezone, now=now),
        options=Options(
            dedup=body.dedup,
            use_llm=body.use_llm is not False,
            summarise=body.summarise,
            strict_size=(body.limits or settings.content_limits) == "strict",
            record=record,
            embed_later=later,
            dry_run=body.dry_run,
        ),
        received_at=now,
        speech=spoken,
    )


class StoreSerializer:
    """Makes the answer of a store request. The answer that is stored and the one that is sent tell the same time."""

    def __init__(self, body: StoreRequest, spending: Budget, warnings: Sequence[str] = ()) -> None:
        self._body = body
        self._spending = spending
        self._warnings = warnings
        self._began = time.perf_counter()

    @cached_property
    def _total_ms(self) -> float:
        return round((time.perf_counter() - self._began) * 1000, 3)

    def __call__(self, result: StoreResult) -> StoredAnswer:
        """201 when a row was made, else 200, also for the events of a curated conversation."""
        timings = shapes.stages([outcome.draft for outcome in result.outcomes])
        body = StoreResponse(
            results=[shapes.result(outcome) for outcome in result.outcomes],
            warnings=[*self._warnings, *result.warnings],
            usage=shapes.usage(self._spending.used),
            timings_ms={**timings, "total": self._total_ms},
            dry_run=self._body.dry_run,
        )
        curated = self._body.messages is not None and self._body.infer
        added = any(outcome.event is Action.ADD for outcome in result.outcomes)
        return answer(201 if added and not curated and not self._body.dry_run else 200, body)
