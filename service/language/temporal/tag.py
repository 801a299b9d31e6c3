"""Whether a fact speaks of the present, the past or the future."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from service.domain.temporal import Mention, TemporalTag
from service.language.temporal import tense
from service.language.temporal.calendar import Lean

MAX_CHARS = 2000  # the tense of a long text is that of its opening

_OVER = re.compile(
    r"\b(?:used\s+to|formerly|previously|in\s+the\s+past|no\s+longer|not\s+any\s*more|once\s+(?:was|had|lived|worked)"
    r"|back\s+when|ex-\w+|former|until\s+recently|as\s+a\s+(?:child|kid|teenager)|stopped|quit|gave\s+up)\b"
)
_AHEAD = re.compile(
    r"\b(?:will|won['\u2019]t|shall|gonna|going\s+to|(?:plan|plans|planning|intend|intends|hope|hopes|about)\s+to"
    r"|(?<!not\s)(?<!n't\s)(?<!n\u2019t\s)wants?\s+to|upcoming|in\s+the\s+future|soon|someday|one\s+day)\b|['\u2019]ll\b"
)
# Verbs whose past tense says how things have stood ever since: "moved to Berlin", "started at the bank".
_LASTING = re.compile(
    r"\b(?:born|named|called|moved|started|joined|became|switched|adopted|learned|learnt|decided|married|bought"
    r"|chose|signed\s+up|settled|agreed|has|have|['\u2019]ve|since|is|are|am|['\u2019]m|['\u2019]re|lives?|works?|likes?|prefers?)\b"
)


def tag(text: str, mentions: Sequence[Mention], reference: datetime) -> TemporalTag:
    """PAST, FUTURE or CURRENT, from words, then the mentioned times, then the tense of the verbs."""
    lowered = text[:MAX_CHARS].lower()
    if _OVER.search(lowered):
        return TemporalTag.PAST
    times = [m for m in mentions if _counts(m, lowered)]
    is_past = Lean.PAST in tense.verbs(lowered)
    if times and all(_ahead(m, reference) for m in times) and not tense.is_habit(lowered):
        return TemporalTag.FUTURE
    if times and all(m.ends_at is not None and m.ends_at <= reference for m in times):
        lasts = not is_past and _LASTING.search(lowered)
        return TemporalTag.CURRENT if lasts or re.search(r"\bborn\b", lowered) else TemporalTag.PAST
    if _AHEAD.search(lowered) and not is_past:
        return TemporalTag.FUTURE
    running = any(m.ends_at is None or m.ends_at > reference for m in times)
    if is_past and not running and not _LASTING.search(lowered):
        return TemporalTag.PAST
    return TemporalTag.CURRENT


def _counts(mention: Mention, text: str) -> bool:
    """Whether a mention places the fact in time; "I wake up at 6" does not."""
    if mention.kind in ("set", "duration") or not (mention.begins_at or mention.ends_at):
        return False
    return mention.kind != "time" or tense.lean(text, mention.start) is not Lean.NONE


def _ahead(mention: Mention, reference: datetime) -> bool:
    """Whether a time is in the future."""
    return mention.begins_at is not None and mention.begins_at > reference
