"""Whether a sentence looks back or ahead.

A date without a year has two readings ("Friday": the last or the next one). The verb nearest before it decides,
then any other verb, then words that only plans use ("meeting", "deadline"). Cue lists, no parser: a wrong guess moves
a date by a week or a year, it never loses it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from service.language.temporal import words
from service.language.temporal.calendar import Lean

SHIFTS = r"(?:mov|push|postpon|shift|delay|reschedul|chang|switch|slip)"
"""The stems of verbs that give something another date."""

# Order matters: the longer construction comes first and takes the verb inside it ("will be renewed" is not past tense).
_VERBS = re.compile(
    rf"(?P<past>\b(?:could|would|should|might|must)(?:n['\u2019]t)?\s+have\s+(?!{words.WEEKDAY})\w+"
    r"|\b(?:was|were|wasn't|weren't)\s+(?:going|supposed|about)\s+to\b|\bused\s+to\b)"
    # "I'm having my hip done", "is getting the kitchen painted"; "pushed to early May", not "moved to Rome in May"
    r"|(?P<future>(?:(?:\b(?:is|are|am)|['\u2019](?:m|re|s))\s+)?\b(?:having|getting)\s+(?:my|the|an?|her|his|our|their|it)\b"
    r"\s+(?:[\w'\u2019-]+\s+){0,3}?(?:[a-z]+ed|done|taken|cut|built|put|made)\b"
    rf"|\b(?:{SHIFTS}p?ed|put|brought)\s+(?:[\w'\u2019-]+\s+){{0,6}}?"
    r"(?:to|until|till)\s+(?:the\s+)?(?=\d|(?:early|mid|late|later|end|start|beginning|middle|next|this|tomorrow"
    rf"|spring|summer|autumn|winter|{words.MONTH}|{words.WEEKDAY}|{words.DAY})\b)"
    r"|(?:\b(?:will|won['\u2019]t|shall|gonna|must|should|can|could|let['\u2019]?s|please|would)|['\u2019]ll)\b"
    r"(?:\s+(?:not|be|get|have|also|you|we|i|he|she|they|it))*(?:\s+\w+ed\b)?"
    r"|\b(?:going|plan|plans|planning|planned|want|wants|hope|hopes|hoping|intend|intends|need|needs|have|has|ought"
    r"|supposed|scheduled|expected|expects|expect|remember|about|decided|agreed|promised|forget)\s+to\s+"
    r"(?:be\s+)?(?:\w+)?|\bto\s+be\s+\w+ed\b"
    r"|\b(?:booked|planned|scheduled|reserved|registered|signed\s+up|rescheduled|postponed|invited|enrolled)\b"
    r"|\bis\s+coming\b|\b(?:is|are|am|['\u2019]m|['\u2019]re)\s+(?:not\s+)?(?!being\b|during\b|working\b|living\b)\w{2,}ing\b"
    r"(?:\s+(?:married|engaged|divorced|promoted|tested)\b)?"
    r"|\bremind\b|\bdon['\u2019]t\s+forget\b|\bsee\s+you\b|\bdue\b)"
    r"|(?P<none>\b(?:is|are|am|be|been|being|['\u2019]m|['\u2019]re)\s+(?:\w+ly\s+)?(?:\w+ed|stuck|held|kept|shut)\b"
    r"|\b(?:i|we|you|they)\s+(?:use|need)\b)"
    # a present state or a plan after a verb that only reports it: "He told me the shop opens in March"
    r"|(?P<present>\b(?:is|are|comes|goes|sends|closes|opens|arrives|leaves|starts|begins|ends|runs|moves|returns)\b"
    r"|(?<=it|he)['\u2019]s\b"
    r"|\b(?:said|(?:told|asked)\s+(?:\w+\s+)?(?!on\b)\w+)\s+(?:(?:to|i|you|he|she|we|they)\b"
    rf"|(?:that\s+)?{words.FULL_WEEKDAY}(?!\s+that\b)))"
    r"|(?P<verb>\b(?:was|were|wasn['\u2019]t|weren['\u2019]t|had|did|didn['\u2019]t|went|came|saw|met|got|took|made|gave|bought|ate"
    r"|drank|ran|wrote|spoke|told|said|left|felt|found|thought|brought|taught|caught|held|kept|led|lost|paid|sent|sold"
    r"|slept|spent|stood|understood|won|began|became|broke|chose|drove|fell|flew|forgot|grew|knew|rode|rose|sang|sat"
    r"|shook|threw|woke|built|dealt|dreamt|heard|hurt|swam|wore|hid|hung|shot|stuck|struck|tore|froze|born|gone|seen|done"
    r"|taken|happened)\b"
    r"|\b(?!(?:need|speed|feed|seed|indeed|hundred|embed|exceed|proceed|succeed|breed|naked|sacred|kindred|weed|bleed"
    r"|greed|reed|deed|red|bed|wed|shed|shred|sled|fed|led)\b)[a-z]{2,}ed\b)",
)
_PLANS = re.compile(
    r"\b(?:meetings?|appointments?|deadline|flight|reservation|booking|interview|schedule|upcoming|reminder|available"
    r"|availability|agenda|webinar|expires?|starts?|begins?|leaves?|arrives?|arriving|turns\s+\d+|work\s+for|rsvp|due|todo|plans?"
    r"|coming\s+up|do\s+(?:i|we|you)\s+have)\b"
    r"|^\W*(?:book|call|schedule|remind|set|add|buy|send|submit|finish|pay|renew|cancel|pick|arrange|prepare|meet"
    r"|ask|tell|email|check|review|order|return|ship|release|deploy|write|visit|invite|put|block|plan|move|complete"
    r"|follow|get|take|bring|make|see|join|update|fix|confirm|reserve|deliver)\b"
)


_HABIT = re.compile(
    r"\b(?:always|usually|often|never|sometimes|normally|typically|generally|regularly|prefers?|likes?|loves?|hates?"
    r"|enjoys?|favou?rite|tends?\s+to|every|each|birthday|anniversary|(?:was|were)\s+born|wakes?\s+up|gets?\s+up"
    r"|goes\s+to\s+bed|opens|closes|tradition|annual(?:ly)?|daily|weekly|monthly|yearly)\b"
)


def is_habit(sentence: str) -> bool:
    """Whether a lower-cased sentence is about something recurring: a preference, a routine, a birthday."""
    return _HABIT.search(sentence) is not None


_TAKES = re.compile(r"\b(?:can|could|able\s+to|takes?)\b")
_DOES = re.compile(r"\b[a-z]{2,}(?<!s)s\b")


def says_how_long(before: str, lean: Lean) -> bool:
    """Whether "in 52 minutes" after these lower-cased words is how long something takes: somebody does it, or can do
    it, and nothing speaks of a plan."""
    return _TAKES.search(before) is not None or (lean is Lean.NONE and _DOES.search(before) is not None)


_CLAUSE = re.compile(r"\W*(?:\w[\w'\u2019-]*\W+){3}")  # words enough for one with a verb that is no cue ("goes up")
_CLAUSE_ENDS = re.compile(r"[,;]")


_SINCE = re.compile(
    r"\bsince\s+(?:the\s+)?(?:\w+\s+of\s+)?(?:the\s+)?$"
    r"|\bsince\s+(?:(?!(?:i|you|we|they|he|she|it|there|this|that|is|are|will|can|has|have)\b|\w+ing\b|\w+['\u2019](?!s\b))"
    r"[\w'\u2019-]+\s+){1,5}(?:in|on|at|around|during)\s+(?:the\s+)?(?:(?:early|mid|late)[\s-]+)?$"
)
_COUNTS_ON = re.compile(r"\b(?:day|week|fortnight|month|year)s?\s+from\s+(?:the\s+)?$")  # "two weeks from Friday"
_UNTIL = re.compile(
    r"\b(?:until|till|by|through|thru|starting|due|before|expires)\s+(?:on\s+)?(?:the\s+)?(?:\w+\s+of\s+)?$"
)

_ASKS_AHEAD = re.compile(
    r"\b(?:will|shall|going\s+to|gonna|upcoming|coming\s+up|planned|scheduled|plans?|due|deadlines?|do\s+(?:i|we|you)\s+have"
    r"|(?:am|are|is)\s+(?:i|we|you|he|she|they|it|\w+)\s+\w+ing|need\s+to|have\s+to|should|what['\u2019]s\s+(?:on|next))\b"
)


def leaning(sentence: str, *, asked: bool = False) -> Callable[[int], Lean]:
    """A function that gives the direction at a position of a lower-cased sentence, whose verbs are looked up once, on
    its first call.

    A "since" before the position looks back ("since my operation in"), an "until", "by" or "due" ahead unless a
    verb says otherwise. A question (`asked`) looks back unless its words or verbs speak of what is to come.
    """

    @cache
    def cues() -> tuple[list[tuple[int, Lean]], Lean]:
        verb_cues = [(match.start(), match.lastgroup) for match in _VERBS.finditer(sentence)]
        plan = Lean.FUTURE if _PLANS.search(sentence) else Lean.NONE
        leans = [(start, plan if group == "present" else _reading(group), group) for start, group in verb_cues]
        return [(start, cue) for start, cue, group in leans if group == "present" or cue is not Lean.NONE], plan

    def by_verbs(position: int) -> Lean:
        found, plan = cues()
        before = [cue for start, cue in found if start < position]
        if before:
            return before[-1]
        if not found:
            return plan
        first, cue = found[0]
        another_clause = _CLAUSE.match(sentence, 0, position) and _CLAUSE_ENDS.search(sentence, position, first)
        return plan if another_clause else cue

    @cache
    def at(position: int) -> Lean:
        before = sentence[max(0, position - 64) : position]
        if _SINCE.search(before) or _COUNTS_ON.search(before):
            return Lean.PAST if _SINCE.search(before) else Lean.FUTURE
        direction = by_verbs(position)
        if asked:
            ahead = _ASKS_AHEAD.search(sentence) or ("?" not in sentence and direction is Lean.FUTURE)
            return Lean.FUTURE if ahead else Lean.PAST
        return Lean.FUTURE if direction is Lean.NONE and _UNTIL.search(before) else direction

    return at


def lean(sentence: str, position: int) -> Lean:
    """The direction that the words around a date at `position` of a lower-cased sentence give it."""
    return leaning(sentence)(position)


def verbs(sentence: str) -> frozenset[Lean]:
    """The tenses a lower-cased sentence has verbs in (NONE stands for a present passive)."""
    return frozenset(_reading(match.lastgroup) for match in _VERBS.finditer(sentence))


def _reading(group: str | None) -> Lean:
    return {"past": Lean.PAST, "verb": Lean.PAST, "future": Lean.FUTURE}.get(group or "", Lean.NONE)
