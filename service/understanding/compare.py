"""How a newer statement affects an older one: it says the same, ends it, may outdate it, or does not affect it.

No statement ends by its meaning alone. An older statement ends only where the newer one names its value and says that
it no longer holds ("no longer X", "from X to Y", "Y instead of X", "not X but Y"), states its exact opposite, fills a
slot of one value (slots.py) with another value, or corrects what was just said. Where one of the two says more than
that ("for uploads", "at night"), the older one is only marked, like everything that is merely likely to be outdated.

Pure; both were said about one scope, and the order of the two is known.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from itertools import chain, product
from unicodedata import normalize

from service.domain.decision import Reason
from service.language import entities, sentences, text_values
from service.language.common_words import is_common
from service.language.kinds import name_categories
from service.language.lexemes import NEGATIONS, count_negations, lexemes
from service.language.talk import quotes, speech_acts
from service.language.talk.dates import as_said
from service.language.talk.speech_acts import LEAD
from service.language.temporal.words import MONTHS, any_of
from service.understanding import outdating, slots

NEAR = 0.70
"""Below this similarity two texts never count as the same; no model is asked about them either."""

COMPARABLE_CHARS = 4_000
"""The length above which texts are only compared as a whole."""

MOST_STATEMENTS, MOST_OLDER_STATEMENTS = 3, 2
"""Maximum number of sentences of the newer and of the older text where one is marked by probability: longer ones mean
other things too often, and most of what a longer older one says still holds."""

MOST_EXTRAS = 4
"""Number of words in addition to those that have ended, from which a statement says more than that."""


class LinkKind(StrEnum):
    """SAME: nothing new. ENDS: the older is no longer true. UNSURE: it may no longer be true."""

    SAME = "same"
    ENDS = "ends"
    UNSURE = "unsure"


@dataclass(frozen=True, slots=True)
class FactLink:
    """How the newer statement affects the older one, and why. `text`: the rest of the older text if only one of its
    sentences ends; None if all of it does."""

    kind: LinkKind
    reason: Reason
    text: str | None = None


_SAME_TEXT = FactLink(LinkKind.SAME, Reason.SAME_TEXT)
_SAME = FactLink(LinkKind.SAME, Reason.SAME_WORDS)
_UNSURE = FactLink(LinkKind.UNSURE, Reason.UNSURE)

_CHANGE_VERBS = frozenset(lexemes("switch move change migrate swap transfer reassign shift postpone reschedule slip"))
_FIRST_LETTER = re.compile(r"(?:^|[.!?:]\s+)[\"'(\u201c]?\w")
_ARTICLES = frozenset({"the", "a", "an"})
OVER_WORDS = (
    frozenset(
        lexemes(
            "no longer not anymore any more stop stopped quit gave give up used to now instead from replace assigned"
            " is are was were be been has have had do does did will would rather than by with for longer just also"
            " again actually turns out after all correction sorry meant mean finally currently still nowadays use"
        )
    )
    | _CHANGE_VERBS
    | NEGATIONS
)
_NAMED_A = re.compile(r"(?<=\w )A\b")
_FRAME = frozenset(lexemes("know remember recall told said mentioned think right so"))
_TAIL = re.compile(r"(?i)[\s,]*\b(?:after all|any ?more|any longer|actually|now|today|these days|at all)\W*$")
FIRST_NAME = re.compile(r"\W*([^\W\d_a-z][\w-]+)")
_OF_SPEAKER = re.compile(r"(?i)^\W*(?:i|i['\u2019]\w+|we|we['\u2019]\w+|(?:the )?user)\b")
_FIRST_PERSON = re.compile(r"(?i)\b(?:i|i['\u2019]\w+|me|my|mine|we|we['\u2019]\w+|our|us|ours)\b")
_PURPOSES = re.compile(
    r"(?i)\b(?:and|but|plus|as well as|because|since|with|where|as an?)\b|[,;&/()\u2013\u2014]|:\s|\s-\s"
)
_NO_LONGER_SO = re.compile(r"(?i)\bno longer\b|\b(?:any ?more|any longer)\b")
_HEDGED = re.compile(
    r"(?i)\b(?:if|would|could|might|(?-i:may)|maybe|perhaps|possibly|think(?:ing)? (?:of|about)|considering|suppose"
    r"|wish|imagine|almost|nearly|plan(?:ning)? to|want to|going to|hope to)\b|\?"
)
_PASSING = re.compile(
    r"(?i)\b(?:yesterday|today|tonight|tomorrow|once|one-off|exception(?:ally)?|for (?:a|one|the) (?:day|night|week"
    r"|weekend)|this (?:time|week|morning|evening|weekend)|on (?:mon|tues|wednes|thurs|fri|satur|sun)day|just for"
    rf"|from (?:next|(?:\d{{1,2}} )?{any_of(MONTHS)}))\b"
)
_ALSO = re.compile(r"(?i)\b(?:also|too|as well|another|additionally|besides|both|second)\b")

_NO_LONGER = re.compile(
    r"(?i)\b(?:no longer|not (?=[^.;]*\b(?:any ?more|any longer))|\w+n['\u2019]t (?=[^.;]*\b(?:any ?more"
    r"|any longer))|stopped"
    r"|quit|gave up|given up|have stopped|used to(?= (?!it\b|the\b)\w))\s+(?P<over>[^.;,]{2,120})"
)
_FROM_TO = re.compile(r"(?i)\bfrom (?P<over>[^.;,]{1,60}?) (?:over )?(?:to|into|onto)(?: the)? (?P<new>[^.;,]{1,60})")
_INSTEAD = re.compile(r"(?i)(?P<new>[^.;,]{1,80}?) (?:instead of|rather than|in place of) (?P<over>[^.;,]{1,60})")
_REPLACED = re.compile(
    r"(?i)\b(?:replaced|swapped|exchanged|traded)(?: out)? (?P<over>[^.;,]{1,60}?) (?:with|by"
    r"|for) (?P<new>[^.;,]{1,60})"
    r"|(?P<was>[^.;,]{1,60}?) (?:was|were|is|are|has been|have been|got) (?:replaced|superseded) (?:by"
    r"|with) (?P<instead>[^.;,]{1,60})"
)
_EXCHANGED = re.compile(r"(?i)instead of|rather than|in place of|replaced|superseded|swapped|exchanged|traded")
_CHANGES = re.compile(
    r"(?i)\b(?:now|no longer|again|any ?more|instead|new|moved|switch\w*|changed?|cancel\w*|sold|quit|stopped"
    r"|started|left|lost|broke up|split|replaced|renamed|postponed|rescheduled|turns out|after all|back (?:to|in)"
    r"|died|passed away|ended|over|finished|done|came through|became|turned|joined|dropped|gave up|not"
    r"|can['\u2019]t|won['\u2019]t|isn['\u2019]t|cut|down to|up to)\b"
)


@dataclass(frozen=True)
class Sentence:
    """One sentence of a text. `words`: its content stems; `denials`: how many of its words deny."""

    text: str
    start: int
    end: int
    words: frozenset[str]
    denials: int
    subjects: frozenset[str]

    @cached_property
    def bare(self) -> str:
        """The text without what leads up to it: "Actually, "."""
        return LEAD.sub("", self.text)

    @cached_property
    def clauses(self) -> tuple[str, str]:
        """The whole, and its first clause, both without what leads up to them and without "after all"."""
        whole = self.bare
        first = slots.CLAUSE.split(whole, maxsplit=1)[0]
        return _TAIL.sub("", whole.rstrip(".! ")), _TAIL.sub("", first.rstrip(".! "))

    @cached_property
    def hedged(self) -> bool:
        return _HEDGED.search(self.text) is not None

    @cached_property
    def passing(self) -> bool:
        """Whether it tells of something more, or of what does not last."""
        return (_ALSO.search(self.text) or _PASSING.search(self.text)) is not None


@dataclass(frozen=True)
class Spoken:
    """A text taken apart: who says it, the quotation in front that it refers to, and its own sentences."""

    text: str
    speaker: str | None
    context: str
    own: str
    offset: int
    statements: tuple[Sentence, ...]

    @cached_property
    def gist(self) -> tuple[frozenset[str], frozenset[str], frozenset[str], dict[str, str], tuple[bool, bool]]:
        """The words of a text, its subjects, those that are names, a value of each kind, and whether it tells of a
        change and of something more."""
        words = frozenset(word for sentence in self.statements for word in sentence.words - OVER_WORDS)
        subjects = frozenset(name for sentence in self.statements for name in sentence.subjects)
        names = subjects - {"user", (self.speaker or "user").casefold()}
        marks = _CHANGES.search(self.own) is not None, _ALSO.search(self.own) is not None
        return words, subjects, names, {value.kind: value.key for value in text_values.find(self.own)}, marks


def relate(
    newer: str, older: str, similarity: float, *, correction: bool = False, change: float | None = None
) -> FactLink | None:
    """Returns how `newer` affects `older`; None if it does not. `correction`: it takes back what was just said.
    `change`: how much the vectors look like those of a change (`outdating.weigh`), None where that is not known."""
    if is_same(newer, older, articles=similarity < NEAR):
        return _SAME_TEXT
    if max(len(newer), len(older)) > COMPARABLE_CHARS:
        return None
    new, old = read(newer), read(older)
    if not new.statements or not old.statements:
        return None
    if new.speaker and old.speaker and new.speaker.casefold() != old.speaker.casefold():
        return None  # both talk about themselves
    if _agrees_to(new, old):
        return _SAME
    ended = {
        index: reason
        for index, was in enumerate(old.statements)
        if (reason := _ending(new, old, was, correction=correction)) is not None
    }
    if ended:
        return _link(old, ended)
    if change is None or len(new.statements) > MOST_STATEMENTS or len(old.statements) > MOST_OLDER_STATEMENTS:
        return None
    likely = outdating.is_likely(signs(read(as_said(newer)), read(as_said(older)), similarity), change)
    return _UNSURE if likely and not _are_about_two_people(new, old) else None


def is_same(one: str, other: str, *, articles: bool = False) -> bool:
    """Whether two texts have the same words in the same order, and the same articles if these count."""
    ignored = frozenset() if articles else _ARTICLES
    return _words(one, ignored) == _words(other, ignored)


# -- reading ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=2_048)
def read(text: str) -> Spoken:
    """Takes a text apart."""
    kept = quotes.take_apart(text)
    own = text[kept.start :]
    parts = ((own[start:end], start, end) for start, end in sentences.split(own))
    statements = tuple(Sentence(*part, *_stems(part[0]), _subjects(part[0], kept.speaker)) for part in parts)
    return Spoken(text, kept.speaker, kept.context, own, kept.start, statements)


@lru_cache(maxsize=2_048)
def _stems(text: str) -> tuple[frozenset[str], int]:
    """The content stems of a text, and how many of its words deny. "No longer" denies as "not" does."""
    stems = lexemes(_NO_LONGER_SO.sub(lambda match: "not" if match[0].casefold().startswith("no") else "", text))
    stems += _NAMED_A.findall(text)  # "plan A": no article
    return frozenset(stems) - NEGATIONS, count_negations(stems)


def _subjects(sentence: str, speaker: str | None) -> frozenset[str]:
    """The people a sentence is about: its speaker, and the names in it."""
    bare = LEAD.sub("", sentence)
    subjects = {value.key for value in text_values.names(bare)}
    first = FIRST_NAME.match(bare)
    if first is not None and not is_common(first.group(1)):
        subjects.add(first.group(1).casefold())
    if _FIRST_PERSON.search(sentence):
        subjects.add((speaker or "user").casefold())
    if re.match(r"(?i)\W*(?:the )?user\b", bare):
        subjects.add("user")
    return frozenset(subjects)


def _words(text: str, ignored: frozenset[str]) -> list[str]:
    """The words of a text without the signs around them and those to be ignored. Sentences begin in small letters."""
    text = _FIRST_LETTER.sub(lambda match: match[0].lower(), normalize("NFC", text))
    words = (word.rstrip(".,;:!\"')").lstrip("\"'(") for word in text.split())
    return [word for word in words if word and word not in ignored]


def _are_about_two_people(new: Spoken, old: Spoken) -> bool:
    """Whether sentences of both begin with people that the other does not name."""
    one, other = _people(new), _people(old)
    apart = not any(name in new.own for name in other) and not any(name in old.own for name in one)
    return bool(one and other) and apart


def _people(spoken: Spoken) -> list[str]:
    """The names of people that begin a sentence."""
    starts = {sentence.start for sentence in spoken.statements}
    return [each.name for each in entities.find(spoken.own) if each.type == "person" and each.start in starts]


def _agrees_to(new: Spoken, old: Spoken) -> bool:
    """Whether somebody only agrees with what the older text says."""
    context_words = frozenset(lexemes(new.context)) - _FRAME
    if not context_words or not speech_acts.only_agrees(new.own):
        return False
    known = frozenset(lexemes(old.own))
    return context_words <= known and not NEGATIONS & known


# -- endings ---------------------------------------------------------------------------------------------------------


def _ending(new: Spoken, old: Spoken, was: Sentence, *, correction: bool) -> Reason | None:
    """Why a sentence of the older text ends, UNSURE if it may have ended; None if it has not."""
    said = [sentence for sentence in new.statements if not sentence.hedged]
    stands_alone = was.subjects or (len(new.statements) == 1 and len(old.statements) == 1)
    if stands_alone and any(_is_opposite(each, was, new.speaker) for one in said for each in one.clauses):
        return Reason.OPPOSITE
    changes = [is_narrower for sentence in said for is_narrower in _name_as_over(sentence, was)]
    if not all(changes):
        return Reason.CHANGE
    values = _refill(said, was, new, old)
    if not all(values) and not any(sentence.passing for sentence in (*said, was)):
        return Reason.NEW_VALUE
    if correction and _is_corrected(new, was, old):
        return Reason.CORRECTION
    return Reason.UNSURE if changes or values else None


def _is_opposite(clause: str, was: Sentence, speaker: str | None) -> bool:
    """Whether a clause says the same of the same subject as the older sentence, but one of the two denies it."""
    stems, denials = _stems(clause)
    return (
        bool(stems)
        and stems == _stems(was.bare)[0]
        and (denials % 2) != (was.denials % 2)
        and _subjects(clause, speaker) == was.subjects
        and [value.key for value in text_values.find(clause)] == [each.key for each in text_values.find(was.text)]
    )


def _name_as_over(said: Sentence, was: Sentence) -> Iterator[bool]:
    """For each part of a sentence that says that something the older one says no longer holds: whether it says so only
    of a place or a purpose, or the older one says something else of it ("I was born in Kiel")."""
    if was.denials or speech_acts.refers(said.text):  # "It's 1913, not 1911" does not say what
        return
    for before, over, instead, rest in _overs(said.text):
        gone = _stems(over)[0] - OVER_WORDS
        gives_it_too = instead and _stems(instead)[0] - OVER_WORDS <= was.words
        if gone and gone <= was.words and _is_subject_of(before, was) and not gives_it_too:
            words = was.bare.split()
            start = next((at for at, word in enumerate(words) if not gone.isdisjoint(lexemes(word))), 0)
            more = slots.additions(" ".join(words[:start]), said.words | OVER_WORDS | {"user"})
            yield bool(more) or len(slots.additions(f"{instead} {rest}", was.words | OVER_WORDS)) > bool(instead)


def _is_subject_of(before: str, was: Sentence) -> bool:
    """Whether `before`, the words in front of an ending ("Ann" in "Ann no longer works there"), names what the older
    sentence is about: the speaker in both, or somebody or something in it."""
    bare = LEAD.sub("", before)
    named = frozenset(lexemes(bare)) - OVER_WORDS - {"user"}
    if named:
        return named <= was.words
    return _OF_SPEAKER.match(was.bare) is not None or (not bare.strip() and not was.subjects)


@lru_cache(maxsize=1_024)
def _overs(sentence: str) -> Sequence[tuple[str, str, str, str]]:
    """The parts of a sentence that says that something no longer holds: what stands before, what ended, what replaced
    it, and the rest of the clause."""
    patterns = [_NO_LONGER]
    if not _CHANGE_VERBS.isdisjoint(lexemes(sentence)):  # "open from 9 to 5" is no change
        patterns.append(_FROM_TO)
    if _EXCHANGED.search(sentence):  # these take long to find that they do not match
        patterns += (_REPLACED,) if _PASSING.search(sentence) else (_INSTEAD, _REPLACED)
    found = []
    for match in chain.from_iterable(pattern.finditer(sentence) for pattern in patterns):
        groups = match.groupdict(default="")
        over, instead = groups["over"] or groups["was"], groups.get("new") or groups.get("instead", "")
        rest = slots.CLAUSE.split(sentence[match.end() :], maxsplit=1)[0]
        found.append((sentence[: match.start()], _TAIL.sub("", over), instead, rest))
    return found


def _refill(said: Sequence[Sentence], was: Sentence, new: Spoken, old: Spoken) -> list[bool]:
    """For each slot (slots.py) that a sentence gives another value than the older one does, whether what else they say
    differs. "Portugal" and "Braga, Portugal" are one value."""
    filled = [each for one in said for each in slots.fillings(one.bare, new.speaker)]
    pairs = product(filled, slots.fillings(was.bare, old.speaker))
    return [now.rest != then.rest for now, then in pairs if now.excludes(then)]


def _is_corrected(new: Spoken, was: Sentence, old: Spoken) -> bool:
    """Whether the newer text corrects the older sentence: it quotes the sentence, or gives a new value for its only
    value, about the same thing, which the older text may quote."""
    own = as_said(new.own)
    if new.context and new.context != old.context:
        any_value = ".{1,60}".join(map(re.escape, new.context.split("\u2026")))  # where one was left out
        return re.fullmatch(rf"\W*{any_value}\W*", as_said(was.text), re.DOTALL) is not None
    old_words = as_said(f"{old.context} {was.text}")
    topics = speech_acts.find_topics(own)
    given = [
        value for value, topic in topics if (new.context or lexemes(topic)) and speech_acts.is_about(topic, old_words)
    ]
    return text_values.find_replacement(given, old_words) is not None


def _link(old: Spoken, ended: Mapping[int, Reason]) -> FactLink:
    """The end of the older text, of one of its sentences, or a mark if a sentence says more than what has ended."""
    is_part = len(ended) < len(old.statements)
    of_document = is_part and old.speaker is None  # its sentences are about what the document is about
    is_unsure = of_document or Reason.UNSURE in ended.values() or _is_needed(old, ended)
    if is_unsure or any(_says_more(old.statements[index]) for index in ended):
        return _UNSURE
    return FactLink(LinkKind.ENDS, next(iter(ended.values())), _struck(old, ended) if is_part else None)


def _is_needed(old: Spoken, ended: Collection[int]) -> bool:
    """Whether a sentence that stays points to one that ended, or shares its topic: it would seem to be about what is
    true now."""
    topics = {topic for index in ended for topic in name_categories(old.statements[index].text)}
    return any(
        (index - 1 in ended and speech_acts.depends(said.text)) or not topics.isdisjoint(name_categories(said.text))
        for index, said in enumerate(old.statements)
        if index not in ended
    )


def _says_more(was: Sentence) -> bool:
    """Whether a sentence says several things: then no part of it ends."""
    return _PURPOSES.search(as_said(was.bare).rstrip(".,;! ")) is not None or len(was.words) > 2 * MOST_EXTRAS


def _struck(old: Spoken, indexes: Iterable[int]) -> str:
    """The older text without the sentences at `indexes`."""
    own = old.own
    for index in sorted(indexes, reverse=True):
        said = old.statements[index]
        own = own[: said.start] + own[said.end :].lstrip()
    return old.text[: old.offset] + own.strip()


# -- marks -----------------------------------------------------------------------------------------------------------


def signs(new: Spoken, old: Spoken, similarity: float) -> tuple[float, ...]:
    """The signs in the words of two texts that the newer one outdates the older, as `outdating` weighs them."""
    (words, subjects, names, values_now, marks), (known, others, named, values_then, _) = new.gist, old.gist
    shared = len(words & known)
    return (
        similarity,
        max(0.0, similarity - 0.5),
        shared / max(1, len(known)),
        shared / max(1, len(words)),
        not shared,
        min(len(words) - shared, 12) / 4,
        not names.isdisjoint(named),
        not names <= named,
        not named <= names,
        len(subjects) > len(names) and len(others) > len(named),  # both are about their speakers
        sum(sentence.denials for sentence in (*new.statements, *old.statements)) % 2,
        any(values_then.get(kind, key) != key for kind, key in values_now.items()),
        *marks,
    )
