"""Reads the slots of a person or thing that have one value at a time, each in its own wording.

Home, employer, name, marital status, age, birthday, favourites, and the thing a figure is about ("the budget is 5k").
What somebody can have several of, events, and measurements, which differ by the day, are no slots. What else a sentence
says (a purpose, a place, a time, a unit: "for uploads", "at weekends", "per person") is the `rest` of its value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import groupby

from service.language import entities, text_values
from service.language.common_words import FUNCTION_WORDS
from service.language.entity_words import NOUNS
from service.language.lexemes import lexemes
from service.language.temporal.words import MONTH

_SUBJECT = r"(?:(?P<subject>(?i:i|we|the user|user)|[^\W\d_a-z][\w\u2019'-]+(?: [^\W\d_a-z][\w\u2019'-]+)?)\b)?"
_BE = r"(?:['\u2019]m|['\u2019]re|['\u2019]s| am| is| are)"
_HAS = rf"(?:{_BE}|['\u2019]ve| have| has)?"
_NOW = r"(?: ?\b(?i:now|currently|still|just|recently|finally))?"
_PLACE = r"(?P<value>[^\W\d_a-z][\w\u00c0-\u024f.'\u2019-]*(?:[ -][^\W\d_a-z][\w\u00c0-\u024f.'\u2019-]*){0,3})"
_END = rf"{_NOW}(?: these days)?(?:, [^\W\d_a-z][\w\u2019'-]+(?=\W*$))?(?P<rest>[^\n]{{0,120}})$"
CLAUSE = re.compile(
    r"(?i)\s*[,;:\u2014]\s*(?:(?:and|so|because|since)\s+)?(?=(?:i|we|you|he|she|it|they|this|that|there|my|our|your|his"
    r"|her|its|their|the|an?)\b)|,?\s+(?:because|since)\b"
)
"""The end of a clause, before a reason, a start ("since May") or another clause with its own subject."""
_PAST_TIME = re.compile(r"\b(?:last|ago|(?:19|20)\d\d)\b")
_IN_MONTH = re.compile(rf"(?i)\b(?:in|on)(?: early| late| \d{{1,2}}(?:st|nd|rd|th)?)? {MONTH}")
_UNDATED = re.compile(r"(?i)\b(?:when|while(?! ago)|before|after(?! all)|(?:ages|decades|long|time|many years) ago)\b")

_SLOTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("home", re.compile(rf"{_SUBJECT}{_HAS}{_NOW} ?(?i:(?:lives?|living|resides?|based) in|(?:moved|relocated)"
                        rf" (?:from [^,.]{{2,40}}? )?(?:back )?to) {_PLACE}{_END}")),
    ("employer", re.compile(rf"{_SUBJECT}{_HAS}{_NOW} ?(?i:work(?:s|ing)? (?:at|for)|joined) {_PLACE}{_END}")),
    ("name", re.compile(rf"(?i:(?P<subject>my) name{_BE}) {_PLACE}{_END}")),
    ("called", re.compile(rf"(?i:(?:please )?call me) {_PLACE}{_END}")),
    ("status", re.compile(rf"{_SUBJECT}{_BE}{_NOW} (?P<value>single|married|engaged|divorced|widowed"
                          rf"|separated)(?: now| again| these days)?(?P<rest>)[.!]?$")),
    ("age", re.compile(rf"{_SUBJECT}(?:{_BE}{_NOW}|(?: just)? ?(?i:turned)) (?P<value>\d{{1,3}})(?: years old)?"
                       r"(?: now)?(?P<rest>)[.!]?$")),
    ("favourite", re.compile(
        r"(?i:(?P<subject>my|our"
        r"|[\w\u2019'-]+['\u2019]s) favou?rite (?P<of>[\w -]{2,30}?) is )(?P<value>[a-z][\w\u2019'-]*"
        r"|[^\W\d_a-z][\w\u2019'-]*(?: [^\W\d_a-z][\w\u2019'-]*){0,3})(?P<rest>(?: now| these days)?)[.!]?$"
    )),
    ("figure", re.compile(
        r"(?i:(?P<subject>my|our|the|[\w\u2019'-]+['\u2019]s) (?P<of>[\w -]{2,40}?)(?: is| are| costs?| is set to|:)"
        r"(?: now| currently)? )(?P<value>[^,;!]{1,30}?)(?P<rest>)[.!]?$"
    )),
)  # fmt: skip
_MEASURED = re.compile(
    r"(?i)\b(?:weight|temperature|pressure|heart rate|pulse|glucose|sugar|mileage|balance|score|steps)\b"
)
_COUNTRIES = frozenset(
    line.split("\t")[1].partition(" (")[0].casefold()
    for line in files("tzdata").joinpath("zoneinfo", "iso3166.tab").read_text("utf-8").splitlines()
    if not line.startswith("#")
)
_MOVES = re.compile(r"(?i)\b(?:moved|relocated|joined)\b")
_OTHER_KINDS = {"home": ("technology", "tool", "organization"), "employer": ("technology", "tool")}
"""Entity types of what else one moves to or joins: "Python", "Team Blue"."""
_FIGURES = frozenset({"money", "number", "version", "weekday", "time"})


@dataclass(frozen=True, slots=True)
class Filled:
    """A slot of a subject with its value, comparable with one of the same `kind`. `rest`: what else is said.
    `said`: the sentence from the value on, without what may stand in front of it ("from Bonn")."""

    slot: tuple[str, str, str]
    kind: str
    value: str
    rest: Sequence[str]
    sentence: str
    said: str
    describes: bool = False

    def excludes(self, other: Filled) -> bool:
        """Whether both cannot hold at once if the rest is the same: "Portugal" and "Braga, Portugal" can, "Oslo" and
        "Norway" unless somebody moved there, and a favourite dish and what describes it ("is spicy")."""
        if (self.slot, self.kind) != (other.slot, other.kind) or self.value == other.value or self.describes:
            return False
        sizes = {self.value in _COUNTRIES, other.value in _COUNTRIES}
        if self.kind == "home" and len(sizes) > 1 and not _MOVES.search(self.sentence):
            return False
        return not (_stands_in(self.value, other.said) or _stands_in(other.value, self.said))


def _stands_in(value: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text.casefold()) is not None


@lru_cache(maxsize=1_024)
def fillings(sentence: str, speaker: str | None) -> Sequence[Filled]:
    """The slots that a sentence fills, if it says nothing else; the words that lead up to it ("Actually, ") are gone.
    `speaker`: who says it, None for nobody in particular."""
    matches = [(name, pattern.match(sentence)) for name, pattern in _SLOTS]
    filled = [_fill(name, match, speaker, sentence) for name, match in matches if match is not None]
    return [each for each in filled if each is not None]


def _fill(name: str, match: re.Match[str], speaker: str | None, sentence: str) -> Filled | None:
    groups = match.groupdict()
    said = sentence[match.start("value") :]
    value, rest = match["value"].strip().rstrip("."), CLAUSE.split(match["rest"], maxsplit=1)[0]
    subject = (groups.get("subject") or "my").casefold()
    if subject in {"i", "my", "we", "me", "user", "the user"}:
        subject = (speaker or "user").casefold()
    of = " ".join(word for word in (groups.get("of") or "").casefold().split() if word != "the")
    slot = name, subject.removesuffix("'s"), of
    if name != "figure":
        others = re.findall(r" \w$", value) if name in _OTHER_KINDS else []  # "Building C"
        if _MOVES.search(sentence):
            rest = _IN_MONTH.sub("", rest)  # when it came
            types = [NOUNS.get(value.split()[0].casefold(), ""), *(each.type for each in entities.find(value))]
            others += [kind for kind in types if kind in _OTHER_KINDS.get(name, ())]
        describes = name == "favourite" and value.islower() and not groups["rest"]
        more = [each for each in additions(rest) if name != "employer" or not each.startswith("as ")]  # a role
        more += [*_UNDATED.findall(rest), *others]
        return Filled(slot, name, value.casefold(), more, sentence, said, describes)
    known, kinds = text_values.find(value), _FIGURES if of != "birthday" else {"date"}
    if _MEASURED.search(of) or len(known) != 1 or known[0].kind not in kinds or known[0].key in ("today", "tomorrow"):
        return None
    unit = re.sub(r"[\d.,\s]+", "", known[0].key) if known[0].kind in {"number", "money"} else ""
    rest = f"{value[: known[0].start]} {value[known[0].end :]}"
    return Filled(slot, f"{known[0].kind} {unit}", known[0].key, additions(rest), sentence, said)


def additions(text: str, known: frozenset[str] = frozenset()) -> Sequence[str]:
    """What a text says in words whose stems are not `known`: each run of them with the small words in front of it,
    without times that are over."""
    words = re.findall(r"[^\W_][\w\u2019'-]*", text.casefold())
    found, small = [], ""
    for is_small, run in groupby(words, key=lambda word: word in FUNCTION_WORDS or known.issuperset(lexemes(word))):
        joined = " ".join(run)
        if is_small:
            small = joined
        elif not _PAST_TIME.search(joined):
            found.append(f"{small} {joined}")
    return found
