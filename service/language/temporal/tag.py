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
# "I use a phone with a cracked screen": who does something now tells of now, whatever participle comes after it. Not
# where the verb opens another sentence ("I think he left"), nor where its past looks the same ("I put it away").
_NOW = re.compile(
    r"^\W*(?:(?:i|we|you|they)\s+(?:(?:do\s+not|don['\u2019]t|can\s*not|can['\u2019]t|never|always|only|also|just|still"
    r"|really|usually|often|rarely|hardly|seldom|mostly|generally)\s+)*"
    r"(?!(?:think|know|guess|believe|hear|see|remember|recall|wish|say|suppose|hope|understand|realise|realize|will|would"
    r"|shall|should|could|might|must|plan|intend|put|cut|set|let|hit|cost|hurt|quit|read|shut|bet|beat|spread|split|cast)\b)"
    r"(?P<base>[a-z]+)"
    r"|(?:user|he|she)\s+(?:(?:never|always|only|also|still|really|usually|often|rarely)\s+)*"
    r"(?!(?:was|thinks|knows|hopes|plans|intends|remembers|says)\b)(?P<other>[a-z]+(?<!s)s))\b(?!['\u2019])"
    r"|^\W*(?P<alone>[a-z]+(?<!s)s)\s+(?:a|an|the|his|her|their|its)\b"  # "Drives a Skoda": the user's, told shortly
)
_UNWILLING = re.compile(r"\b(?:do\s+not|does\s+not|don['\u2019]t|doesn['\u2019]t)\s+want\s+to\b")


def tag(text: str, mentions: Sequence[Mention], reference: datetime) -> TemporalTag:
    """PAST, FUTURE or CURRENT, from words, then the mentioned times, then the tense of the verbs."""
    lowered = text[:MAX_CHARS].lower()
    times = [m for m in mentions if _counts(m, lowered)]
    if _OVER.search(lowered):
        return TemporalTag.PAST
    if times and all(_ahead(m, reference) for m in times) and not tense.is_habit(lowered):
        return TemporalTag.FUTURE
    tenses = tense.verbs(lowered)
    if (
        not times
        and (_acts_now(lowered) or _UNWILLING.search(lowered))
        and not _AHEAD.search(_UNWILLING.sub("", lowered))
    ):
        return TemporalTag.CURRENT
    if times and all(m.ends_at is not None and m.ends_at <= reference for m in times):
        lasting = re.search(r"\bborn\b", lowered) or (
            Lean.PAST not in tenses and (_LASTING.search(lowered) or _acts_now(lowered))
        )
        return TemporalTag.CURRENT if lasting else TemporalTag.PAST
    if _AHEAD.search(lowered) and Lean.PAST not in tenses:
        return TemporalTag.FUTURE
    running = any(m.ends_at is None or m.ends_at > reference for m in times)
    if Lean.PAST in tenses and not running and not _LASTING.search(lowered):
        return TemporalTag.PAST
    return TemporalTag.CURRENT


def _acts_now(text: str) -> bool:
    """Whether the first verb of a lower-cased text is a plain present."""
    found = _NOW.match(text)
    if found is None:
        return False
    return found["base"] is None or Lean.PAST not in tense.verbs(found["base"])


def _counts(mention: Mention, text: str) -> bool:
    """Whether a mention places the fact in time; "I wake up at 6" does not."""
    if mention.kind in ("set", "duration") or not (mention.begins_at or mention.ends_at):
        return False
    return mention.kind != "time" or tense.lean(text, mention.start) is not Lean.NONE


def _ahead(mention: Mention, reference: datetime) -> bool:
    """Whether a time is still to come; "the next two weeks" have begun."""
    rolling = _ROLLING.match(mention.text.lower())
    return mention.begins_at is not None and mention.begins_at > reference and not rolling
