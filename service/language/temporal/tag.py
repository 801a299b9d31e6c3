"""Whether a fact speaks of the present, the past or the future."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from service.domain.temporal import Mention, TemporalTag
from service.language.temporal import tense
from service.language.temporal.calendar import Lean
from service.language.temporal.words import NUMBER

MAX_CHARS = 2000  # the tense of a long text is that of its opening

_OVER = re.compile(
    r"\b(?:used\s+to|formerly|previously|in\s+the\s+past|no\s+longer|not\s+any\s*more|once\s+(?:was|had|lived|worked)"
    r"|back\s+when|ex-\w+|former|until\s+recently|as\s+a\s+(?:child|kid|teenager)|stopped|quit|gave\s+up)\b"
)
_AHEAD = re.compile(
    r"\b(?:will|won['\u2019]t|shall|gonna|going\s+to|(?:plan|plans|planning|intend|intends|hope|hopes|about)\s+to"
    r"|(?<!not\s)(?<!n't\s)(?<!n\u2019t\s)wants?\s+to|upcoming|in\s+the\s+future|soon|someday|one\s+day)\b|['\u2019]ll\b"
)
_ROLLING = re.compile(rf"(?:for\s+)?(?:the\s+)?(?:next|coming)\s+{NUMBER}")
# Verbs whose past tense says how things have stood ever since: "moved to Berlin", "started at the bank".
_LASTING = re.compile(
    r"\b(?:born|named|called|moved|started|joined|became|switched|adopted|learned|learnt|decided|married|bought"
    r"|chose|signed\s+up|settled|agreed|has|have|['\u2019]ve|since|is|are|am|['\u2019]m|['\u2019]re|lives?|works?|likes?|prefers?)\b"
)
# "I use a phone with a cracked screen": who does something now speaks of now, whatever participle comes after it. Not
# where the verb opens another sentence ("I think he left"), nor where its past looks the same ("I put it away").
_NOW = re.compile(
    r"^\W*(?:(?:i|we|you|they)\s+(?:(?:do\s+not|don['\u2019]t|can\s*not|can['\u2019]t|never|always|only|also|just|still|\w+ly)\s+)*"
    r"(?!(?:think|know|guess|believe|hear|remember|say|suppose|will|would|shall|should|could|might|must"
    r"|put|cut|set|let|hit|cost|hurt|quit|read|shut|beat)\b)(?P<base>[a-z]+)"
    r"|(?:user|he|she)\s+(?:(?:never|always|only|also|still|\w+ly)\s+)*(?!(?:was|thinks|knows|says)\b)[a-z]+(?<!s)s"
    r"|[a-z]+(?<!s)s\s+(?:a|an|the|his|her|their|its))\b(?!['\u2019])"  # "Drives a Skoda": the user's
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
        lasts = not is_past and (_LASTING.search(lowered) or _acts_now(lowered))
        return TemporalTag.CURRENT if lasts or re.search(r"\bborn\b", lowered) else TemporalTag.PAST
    if _AHEAD.search(lowered) and not is_past:
        return TemporalTag.FUTURE
    running = any(m.ends_at is None or m.ends_at > reference for m in times)
    if is_past and not running and not _LASTING.search(lowered) and not (_acts_now(lowered) and not times):
        return TemporalTag.PAST
    return TemporalTag.CURRENT


def _acts_now(text: str) -> bool:
    """Whether the first verb of a lower-cased text is a plain present."""
    match = _NOW.match(text)
    return match is not None and (match["base"] is None or Lean.PAST not in tense.verbs(match["base"]))


def _counts(mention: Mention, text: str) -> bool:
    """Whether a mention places the fact in time; "I wake up at 6" does not."""
    if mention.kind in ("set", "duration") or not (mention.begins_at or mention.ends_at):
        return False
    return mention.kind != "time" or tense.lean(text, mention.start) is not Lean.NONE


def _ahead(mention: Mention, reference: datetime) -> bool:
    """Whether a time is still to come; "the next two weeks" have begun."""
    rolling = _ROLLING.match(mention.text.lower())
    return mention.begins_at is not None and mention.begins_at > reference and not rolling
