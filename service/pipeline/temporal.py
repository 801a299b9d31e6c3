"""Until when does it hold, and which times does it name?

Synchronous, because the answer and a dry run carry the mentions (B12): a gate, then the recogniser in a thread with
a time limit. Records get mentions only: an expiry years ago would push down exactly the answers to "when" (B10).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from service.domain.draft import Draft
from service.domain.temporal import Mention, Temporal, TemporalType
from service.errors import Unavailable
from service.language import temporal
from service.resources import Resources


async def date(draft: Draft, res: Resources) -> Draft:
    """The draft with its temporal reading; a warning when the time limit cut the recogniser off."""
    zone = ZoneInfo(draft.asked.timezone)
    mentions: Sequence[Mention] = ()
    warnings = draft.warnings
    if temporal.may_have_time(draft.clean):
        try:
            found = res.threads.run(temporal.find, draft.clean, draft.timestamp, zone)
            mentions = await asyncio.wait_for(found, res.settings.temporal_timeout_ms / 1000)
        except (TimeoutError, Unavailable):
            warnings += ("temporal_timeout: times in the text were not read.",)
    return replace(draft, temporal=_reading(draft, mentions, zone), warnings=warnings)


def _reading(draft: Draft, mentions: Sequence[Mention], zone: ZoneInfo) -> Temporal:
    if draft.options.record:
        return Temporal(mentions=tuple(mentions))
    text, reference = draft.clean, draft.timestamp
    stated = draft.fact.tag if draft.fact else None
    tag = stated or temporal.tag(text, mentions, reference)
    asked = draft.annotation.temporal if draft.annotation else None
    if asked is not None:
        return replace(asked, valid_until=_later(asked.valid_until, reference), tag=tag, mentions=tuple(mentions))
    try:
        kind, valid_until = temporal.validity(text, mentions, reference, zone)
    except OverflowError:  # in December 9999 the calendar ends before the appointment does
        kind, valid_until = TemporalType.TEMPORAL, None
    return Temporal(kind, valid_until if kind is TemporalType.TEMPORAL else None, tag, tuple(mentions))


def _later(moment: datetime | None, reference: datetime) -> datetime | None:
    """A model's expiry before the note's own time is a mistake, not an expiry."""
    return moment if moment is not None and moment > reference else None
