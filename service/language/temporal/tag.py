"""Does a fact speak of now, of what was, or of what will be?"""

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
    r"\b(?:will|won['\u2019]t|shall|gonna|going\s+to|(?:plan|plans|planning|intend|intends|hope|hopes|want|wants|about)\s+to"
    r"|upcoming|in\s+the\s+future|soon|someday|one\s+day)\b|['\u2019]ll\b"
)
_ROLLING = re.compile(
    r"(?:for\s+)?(?:the\s+)?(?:next|coming)\s+(?:few|couple|\d|a\b|two|three|four|five|six|seven|eight|nine|ten)"
)
# Verbs whose past tense tells how things have stood ever since: "moved to Berlin", "started at the bank".
_LASTING = re.compile(
    r"\b(?:born|named|called|moved|started|joined|became|switched|adopted|learned|learnt|decided|married|bought"
    r"|chose|signed\s+up|settled|agreed|has|have|['\u2019]ve|since|is|are|am|['\u2019]m|['\u2019]re|lives?|works?|likes?|prefers?)\b"
)


def tag(text: str, mentions: Sequence[Mention], reference: datetime) -> TemporalTag:
    """PAST, FUTURE or CURRENT, from words, then the mentioned times, then the tense of the verbs."""
    lowered = text[:MAX_CHARS].lower()
    times = [m for m in mentions if _counts(m, lowered)]
    if _OVER.search(lowered):
        return TemporalTag.PAST
    if times and all(_ahead(m, reference) for m in times) and not tense.is_habit(lowered):
        return TemporalTag.FUTURE
    tenses = tense.verbs(lowered)
    if times and all(m.ends_at is not None and m.ends_at <= reference for m in times):
        lasting = re.search(r"\bborn\b", lowered) or (Lean.PAST not in tenses and _LASTING.search(lowered))
        return TemporalTag.CURRENT if lasting else TemporalTag.PAST
    if _AHEAD.search(lowered) and Lean.PAST not in tenses:
        return TemporalTag.FUTURE
    running = any(m.ends_at is None or m.ends_at > reference for m in times)
    if Lean.PAST in tenses and not running and not _LASTING.search(lowered):
        return TemporalTag.PAST
    return TemporalTag.CURRENT


def _counts(mention: Mention, text: str) -> bool:
    """Whether a mention places the fact in time; "I wake up at 6" does not."""
    if mention.kind in ("set", "duration") or not (mention.begins_at or mention.ends_at):
        return False
    return mention.kind != "time" or tense.lean(text, mention.start) is not Lean.NONE


def _ahead(mention: Mention, reference: datetime) -> bool:
    """Whether a time is still to come; "the next two weeks" have begun."""
    rolling = _ROLLING.match(mention.text.lower())
    return mention.begins_at is not None and mention.begins_at > reference and not rolling
