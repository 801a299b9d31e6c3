"""The memory type of a text, one of seven, with its confidence.

The order is explicit → `classify` (the published table) → an LLM or its offline stand-in `guess` →
UNCLASSIFIED. With `use_llm` off the third step is skipped and unmatched text is Context.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from service.domain.kinds import Classification, ClassificationSource, MemoryType

EXPLICIT_CONFIDENCE = 0.9
UNCLASSIFIED_UNASKED = Classification(
    MemoryType.CONTEXT, 0.5, ClassificationSource.DEFAULT
)  # LLM off, or it named no type of ours
UNCLASSIFIED_FAILED = Classification(MemoryType.CONTEXT, 0.3, ClassificationSource.DEFAULT)  # LLM asked, and it failed

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

# What an LLM would see in the texts that the table leaves over: one row per cue, weighted; see `guess`.
_CUES: dict[MemoryType, tuple[tuple[int, str], ...]] = {
    MemoryType.DECISION: (
        (
            3,
            r"\b(?:decid(?:e|es|ing)|decided (?!to)|decision|chose|chosen|settled on|agreed (?:to|on|that)|opt(?:s"
            r"|ing)? for)\b",
        ),
        (
            3,
            r"^(?:we |i |the team |team )?(?:selected|adopted|picked|standardi[sz]ed on|consolidated|deprecated"
            r"|rejected)\b",
        ),
        (2, r"\b(?:switch(?:ed|ing)|migrat(?:ed|ing)|mov(?:ed|ing)) (?:\w+ ){0,3}?(?:from|to|away)\b"),
        (
            2,
            r"\b(?:we(?:'ll| will| are going to)|going forward|from now on) (?:we )?(?:use|go|adopt|ship|keep|drop"
            r"|stick)\b",
        ),
        (1, r"\b(?:instead of|in favou?r of|trade-?offs?|tie-?breaker)\b"),
    ),
    MemoryType.PATTERN: (
        (2, r"\b(?:generally|commonly|frequently|normally|most of the time|more often than not|keeps? \w+ing)\b"),
        (2, r"\b(?:recurr(?:ing|ent)|pattern|convention|each time|again and again|repeatedly|tends)\b"),
    ),
    MemoryType.PREFERENCE: (
        (3, r"\b(?:likes?|loves?|enjoys?|adores?|hates?|dislikes?|can't stand|fond of|fan of|favou?rites?)\b"),
        (2, r"\b(?:wants?|would (?:like|love|rather)|doesn't (?:want|like)|don't (?:want|like)|avoids?|not a fan)\b"),
        (3, r"^(?:please )?(?:never|don't|do not|default to|stick (?:to|with)|avoid)\b"),
        (2, r"^(?:please )?(?:use|keep)\b|\bis (?:the|my|our|their|his|her) default\b|\bby default\b"),
        (1, r"\b(?:into|interested in|cares? about|allergic|vegetarian|vegan)\b"),
    ),
    MemoryType.STYLE: (
        (
            3,
            r"\b(?:imperative|present tense|past tense|active voice|passive voice|tone|concise(?:ly)?|verbose"
            r"|terse(?:ly)?)\b",
        ),
        (
            3,
            r"\b(?:bullet points?|markdown|indentation|camelcase|snake_?case|kebab-?case|docstrings?|oxford comma"
            r"|emojis?)\b",
        ),
        (2, r"^(?:write|phrase|word|format|style|name|sign|answer|reply|respond|explain|speak|structure)\b"),
        (
            2,
            r"\b(?:(?:writes?|speaks?|replies|answers|explains?|communicates?) (?:in|with|using|politely|briefly"
            r"|formally|informally)|formal(?:ly)?|informal(?:ly)?)\b",
        ),
        (1, r"\b(?:commit messages?|short sentences?|wording|phrasing|style)\b"),
    ),
    MemoryType.HABIT: (
        (
            3,
            r"\b(?:every|each|most) (?:single )?(?:\w+day|day|morning|afternoon|evening|night|week|weekend|month"
            r"|year|lunch|dinner)s?\b",
        ),
        (3, r"\bon (?:mon|tues|wednes|thurs|fri|satur|sun)days\b|\bon weekends\b"),
        (3, r"\b(?:nightly|monthly|yearly|hourly|once a|twice a|\w+ times a) ?(?:day|week|month|year)?\b"),
        (2, r"\b(?:habit|ritual|in the habit|as usual|before bed|after lunch|first thing)\b"),
    ),
    MemoryType.INSIGHT: (
        (
            3,
            r"\b(?:root cause|turns? out|turned out|found (?:out )?that|it seems that|lesson|learn(?:ed|t|ing)"
            r"|takeaway|insight|key finding)\b",
        ),
        (
            3,
            r"\b(?:noticed|understood|reali[sz](?:e|es|ing)|realised|discover(?:s|y|ing)|observed|confirmed that"
            r"|proved)\b",
        ),
        (
            2,
            r"\b(?:caused by|cause:|because of|the (?:problem|bug|issue|reason|trick|key) (?:is|was)|fix:|solution:"
            r"|workaround)",
        ),
        (2, r"^(?:fixed|solved|resolved|debugged)\b[^.!?\n]+[.!?]\s+\w"),  # a repair told with its cause
        (1, r"\b(?:fix(?:ed|es)|reduces?|improves?|leads? to|results? in|explains why)\b"),
    ),
}
_GUESS_BASE, _GUESS_STEP, _GUESS_MAX = 0.5, 0.05, 0.7  # below the table's 0.6 for one weak cue, never above two matches
_MIN_WEIGHT = 2


class _Ordered:
    """A pattern whose parts, cut at `.*`, must follow each other on one line.

    Same answer as the regular expression, in linear time: backtracking over "wrote.*in.*style" takes minutes on 10 kB
    of "wrote in wrote in".
    """

    def __init__(self, pattern: str) -> None:
        self._parts = tuple(re.compile(part, re.IGNORECASE) for part in pattern.split(".*"))

    def found_in(self, text: str) -> bool:
        if len(self._parts) == 1:
            return self._parts[0].search(text) is not None
        return any(self._follows(line) for line in text.split("\n"))

    def _follows(self, line: str) -> bool:
        position = 0
        for part in self._parts:
            match = part.search(line, position)
            if match is None:
                return False
            position = match.end()
        return True


_TABLE = tuple((kind, tuple(_Ordered(pattern) for pattern in patterns)) for kind, patterns in PATTERNS.items())
_RULES = tuple(
    (kind, tuple((weight, re.compile(cue, re.IGNORECASE | re.MULTILINE)) for weight, cue in cues))
    for kind, cues in _CUES.items()
)


def explicit(type_: MemoryType, confidence: float | None = None) -> Classification:
    """Returns the caller's own type, with confidence 0.9 unless the caller gives one."""
    return Classification(
        type_, EXPLICIT_CONFIDENCE if confidence is None else confidence, ClassificationSource.EXPLICIT
    )


def classify(text: str) -> Classification | None:
    """Returns the type with the most matching patterns, confidence 0.6 to 0.95; None when nothing matches."""
    best = _most((kind, sum(pattern.found_in(text) for pattern in patterns)) for kind, patterns in _TABLE)
    if best is None:
        return None
    kind, matches = best
    return Classification(kind, round(min(0.95, 0.6 + 0.1 * (matches - 1)), 2), ClassificationSource.REGEX)


def guess(text: str) -> Classification | None:
    """Returns what the cues of manner, rhythm, liking, choice and cause suggest, confidence 0.5 to 0.7, or None.

    The offline stand-in for the LLM step, for texts that `classify` leaves over. Weights of the matching cues add up
    per type; the heaviest type wins, then the order of the table; a single weak cue decides nothing.
    """
    best = _most((kind, sum(weight for weight, cue in cues if cue.search(text))) for kind, cues in _RULES)
    if best is None or best[1] < _MIN_WEIGHT:
        return None
    kind, weight = best
    confidence = min(_GUESS_MAX, _GUESS_BASE + _GUESS_STEP * (weight - _MIN_WEIGHT))
    return Classification(kind, round(confidence, 2), ClassificationSource.RULES)


def _most(counts: Iterable[tuple[MemoryType, int]]) -> tuple[MemoryType, int] | None:
    best = max(counts, key=lambda count: count[1])  # max keeps the first of equals: the table's order
    return best if best[1] else None
