"""The memory type of a text, one of seven, with its confidence.

The order is explicit → `classify` (the published table) → an LLM or its offline stand-in `guess` →
UNCLASSIFIED. With `use_llm` off the third step is skipped and unmatched text is Context.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from service.domain.kinds import Classification, ClassificationSource, MemoryType

EXPLICIT_CONFIDENCE = 0.9
UNCLASSIFIED = Classification(MemoryType.CONTEXT, 0.5, ClassificationSource.DEFAULT)
UNCLASSIFIED_FAILED = Classification(MemoryType.CONTEXT, 0.3, ClassificationSource.DEFAULT)
"""The model that was asked failed."""

# The published table, word for word and without word boundaries. The order of the types breaks ties.
PATTERNS: dict[MemoryType, tuple[str, ...]] = {
    MemoryType.DECISION: (r"decided to", r"chose (\w+) over", r"going with", r"opted for"),
    MemoryType.PATTERN: (r"usually", r"typically", r"tend to", r"often", r"consistently"),
    MemoryType.PREFERENCE: (r"prefer", r"like.*better", r"favorite", r"rather than"),
    MemoryType.STYLE: (r"wrote.*in.*style", r"communicated", r"formatted as"),
    MemoryType.HABIT: (r"always", r"every time", r"daily", r"weekly", r"routine"),
    MemoryType.INSIGHT: (r"realized", r"discovered", r"learned that", r"figured out"),
    MemoryType.CONTEXT: (r"during", r"while working on", r"in the context of", r"when"),
}

# The types a model would choose for the texts that the table does not classify; see `guess`.
_CUES: dict[MemoryType, str] = {
    MemoryType.DECISION: (
        r"\b(?:decid(?:e[sd]?|ing)|decision|chosen?|settled on|agreed (?:to|on|that)|opt(?:s|ing)? for|switch(?:ed|ing)"
        r"|migrat(?:ed|ing)|going forward|from now on|instead of|in favou?r of)\b"
        r"|^(?:we |i |the team )?(?:selected|adopted|picked|standardi[sz]ed on|consolidated|deprecated|rejected)\b"
    ),
    MemoryType.PATTERN: (
        r"\b(?:generally|commonly|frequently|normally|most of the time|more often than not|keeps? \w+ing"
        r"|recurr(?:ing|ent)|pattern|each time|again and again|repeatedly|tends)\b"
    ),
    MemoryType.PREFERENCE: (
        r"\b(?:likes?|loves?|enjoys?|adores?|hates?|dislikes?|can't stand|fan of|favou?rites?|wants?|would rather"
        r"|avoids?|by default|interested in|vegetarian|vegan)\b|^(?:please )?(?:never|don't|do not|default to|stick to"
        r"|avoid|use|keep)\b|\bis (?:the|my|our|their) default\b"
    ),
    MemoryType.STYLE: (
        r"\b(?:imperative|(?:present|past) tense|(?:active|passive) voice|tone|concise(?:ly)?|verbose|terse(?:ly)?"
        r"|bullet points?|markdown|indentation|camelcase|snake_?case|docstrings?|emojis?|commit messages?|wording|style"
        r"|(?:in)?formal(?:ly)?)\b|^(?:write|phrase|format|style|name|answer|reply|respond|explain)\b"
    ),
    MemoryType.HABIT: (
        r"\b(?:(?:every|each|most) (?:single )?(?:\w+day|day|morning|afternoon|evening|night|week|weekend|month|year)s?"
        r"|on (?:\w+days|weekends)|nightly|monthly|yearly|hourly|(?:once|twice|\w+ times) a (?:day|week|month|year)"
        r"|habit|ritual|as usual|before bed|first thing)\b"
    ),
    MemoryType.INSIGHT: (
        r"\b(?:root cause|turn(?:s|ed) out|found (?:out )?that|it seems that|lesson|learn(?:ed|t|ing)|takeaway|insight"
        r"|noticed|understood|reali[sz](?:e|es|ing)|discover(?:s|y|ing)|observed|confirmed that|caused by|because of"
        r"|workaround|the (?:problem|bug|issue|reason|trick) (?:is|was)|reduces?|leads? to|results? in)\b"
        r"|^(?:fixed|solved|resolved|debugged)\b[^.!?\n]+[.!?]\s+\w"  # a repair with its cause
    ),
}


def _ordered(pattern: str) -> re.Pattern[str]:
    """The pattern with its parts, cut at `.*`, each found at the first place after the one before: the same answer in
    linear time. Backtracking over "wrote.*in.*style" takes minutes on 10 kB of "wrote in wrote in"."""
    parts = pattern.split(".*")
    steps = "^" + "".join(f"(?>.*?{part})" for part in parts) if len(parts) > 1 else pattern
    return re.compile(steps, re.IGNORECASE | re.MULTILINE)


_TABLE = tuple((kind, tuple(_ordered(pattern) for pattern in patterns)) for kind, patterns in PATTERNS.items())
_RULES = tuple((kind, re.compile(cue, re.IGNORECASE | re.MULTILINE)) for kind, cue in _CUES.items())


def explicit(type_: MemoryType, confidence: float | None = None) -> Classification:
    """Returns the caller's own type, with confidence 0.9 unless the caller gives one."""
    return Classification(
        type_, EXPLICIT_CONFIDENCE if confidence is None else confidence, ClassificationSource.EXPLICIT
    )


def classify(text: str) -> Classification | None:
    """Returns the type with the most matching patterns, confidence 0.6 to 0.95; None when nothing matches."""
    best = _most((kind, sum(pattern.search(text) is not None for pattern in patterns)) for kind, patterns in _TABLE)
    if best is None:
        return None
    kind, matches = best
    return Classification(kind, round(min(0.95, 0.6 + 0.1 * (matches - 1)), 2), ClassificationSource.REGEX)


def guess(text: str) -> Classification | None:
    """Returns the type with the most cues of manner, rhythm, liking, choice and cause, confidence 0.5 to 0.7, or None.

    The offline stand-in for the model, for texts that `classify` leaves over.
    """
    best = _most((kind, len({match.group() for match in cue.finditer(text)})) for kind, cue in _RULES)
    return best and Classification(best[0], 0.5 if best[1] == 1 else 0.6, ClassificationSource.RULES)


def _most(counts: Iterable[tuple[MemoryType, int]]) -> tuple[MemoryType, int] | None:
    best = max(counts, key=lambda count: count[1])  # max keeps the first of equals: the table's order
    return best if best[1] else None
