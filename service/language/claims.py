"""A text as two of them are compared: who or what it is about, its slots, its figures, and what it says of change.

Nothing here compares; `curator/compare.py` does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

from service.language import attributes, change_words, contrast, entity_words, opposites, quantities, wordlists
from service.language.attributes import AttributeClause
from service.language.common_words import FUNCTION_WORDS, is_common
from service.language.gazetteer import FIRST_NAMES
from service.language.lexemes import lexemes
from service.language.slot_table import ATTRIBUTES, HINTS, MEASURED, SLOTS

USER = "User"
_SPEAKER = re.compile(r"^(?P<who>[A-Z][\w'’.-]*(?: [A-Z][\w'’.-]*){0,2}): (?=\S)")
_FIRST = (
    (re.compile(r"\b(?:I|we)['’](?:m|re)\b", re.I), "{} is"),
    (re.compile(r"\b(?:I|we)['’]ve\b", re.I), "{} has"),
    (re.compile(r"\b(?:I|we)['’]ll\b", re.I), "{} will"),
    (re.compile(r"\b(?:I|we)['’]d\b", re.I), "{} would"),
    (re.compile(r"\b(?:I|we) am\b", re.I), "{} is"),
    (re.compile(r"\b(?:I|we) (have|are|do)\b(?! \w+ed\b)", re.I), r"{} \1"),
    (re.compile(r"\b(?:I|we)\b(?!/)", re.I), "{}"),
    (re.compile(r"\b(?:my|our)\b", re.I), "{}'s"),
    (re.compile(r"\b(?:me|us|myself)\b", re.I), "{}"),
)
_IS_FIRST = re.compile(r"\b(?:I|I['’](?:m|ve|ll|d)|[Mm]y|me|[Ww]e|[Ww]e['’](?:re|ve)|[Oo]ur|us)\b")
_OPENING = re.compile(
    r"^(?:(?:actually|well|so|oh|hey|hi|ok(?:ay)?|by the way|btw|fyi|update|correction|no|sorry|just so you know|for"
    r" the"
    r" record|also|anyway|good news|bad news|unfortunately|finally|wait|yes|yeah|reminder|note)\b[,.:!]+ +"
    r"|(?:and|but|also|turns out|actually|i meant?)\b,? +|(?:in|on|as of|since|by|from|after|before|at|during|over"
    r"|last|this|next|earlier|later)\b[^,.;]{1,40}, *"
    r"|(?:in|since|as of|from) (?:\w+ )?(?:19|20)\d\d,? |(?:yesterday|today|recently|lately|currently|now|these days"
    r"|nowadays|last \w+|this \w+|since then|after that|starting \w+)\b,? +(?=\S))+",
    re.IGNORECASE,
)
_BRACKETED = re.compile(r"\s*\([^()]*\d[^()]*\)")
_REPLY = re.compile(r"\s*\([A-Z][\w .'’-]{0,60}: [^()]*\)")
_CONTEXT = re.compile(
    r"^(?P<who>[A-Z][\w .'’-]{0,60}), (?P<told>(?:(?:after|asked)\b[^:“”]{0,80}“[^”]*”(?:, )?)+)(?=: \S)"
)
"""What stands between a speaker and his words: what was told or asked before (talk/turn.py)."""

_FRONT = re.compile(r"^[A-Z][\w .'’-]{0,60}(?:, (?:asked|after)\b[^:“”]{0,80}(?=“)|(?=: ))")
_SET = re.compile(
    r"^(?:User|[A-Z]\w+|they|the \w+) (?:has |have )?(?P<verb>moved|changed|pushed|postponed|rescheduled|raised|lowered"
    r"|increased|reduced|set|updated|bumped|switched|migrated|ported|converted|upgraded|transferred|extended|shifted"
    r"|brought forward|cut|upped) "
    r"(?P<what>(?:the|our|their|his|her|User's) [\w' -]{2,60}?) (?:from .{1,40} )?(?P<to>to|until|back to|forward to) ",
    re.IGNORECASE,
)
_TITLED = re.compile(r"\b(?:Dr|Mr|Mrs|Ms|Prof|Professor|Doctor)\b\.? ?")
_COUPLE = re.compile(r"^(User) and [A-Z]\w+(?= (?:got|are|were|have|broke|split|married|divorced|separated)\b)")
_CODE = re.compile(
    r"(?<![\w/])(?:https?://\S+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?:~|\.{1,2})?/[\w.-]+(?:/[\w.-]+)*|[\w-]+(?:\.[\w-]+)+(?::\d+)?"
    r"|(?=[\w-]*\d)(?=[\w-]*[A-Za-z])\w+(?:-\w+)*|#\d+|(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}|[A-Z]{2,}-\d+)"
)
_LABELLED = re.compile(r"\b(?P<label>[A-Za-z][a-z]+) (?:no\.? |nr\.? |#)?(?P<value>\d[\w.-]*|[A-Z]\d*)(?![\w%])")
_NO_LABEL = wordlists.words("""
    at in on of for to from by with than about over under until since per is are was were be has have had costs cost
    takes took ran runs weighs about around nearly almost exactly only the a an and or but every after before within
    user january february march april may june july august september october november december jan feb mar apr jun jul
    aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday approximately roughly between up
    earns pays paid scored reached hit now later owns own bought sold ate drank slept walked turned reads read
""")
_QUANTITY = re.compile(
    r"^\d[\d.,]*(?:st|nd|rd|th|am|pm|h|k|km|m|kg|g|mg|ml|l|cm|mm|min|s|ms|x|gb|mb|tb|kb|bn|mi|lbs?)?$", re.I
)
_CHANGE_VERB = re.compile(
    r"\b(?:switch|mov|relocat|chang|convert|transfer|transition|migrat|upgrad|downgrad|return|renam|went|going|replac"
    r"|promot|bec[ao]m|join|found|set|rais|increas|reduc|lower|reschedul|postpon|push|extend)\w*",
    re.IGNORECASE,
)
_VALUED = re.compile(r"join|bec[ao]m|found|marr|adopt|return|went|replac", re.IGNORECASE)
"""Verbs of change that are followed by the new value, not by what changes."""
_DURATIVE = wordlists.words("""
    used worked lived owned had was were attended studied drove drank ate smoked played served led held wore kept
    preferred liked loved hated rented stayed based located resided enrolled registered managed employed named called
    married engaged headed ran taught coached considered believed needed wanted avoided followed supported
""")
_LIMITS = wordlists.words("""
    only if unless except almost nearly maybe might may could would should probably perhaps sometimes plan plans wants
    hopes tried trying considering thinking partly mostly just merely
""")
_HE, _SHE = frozenset({"he", "him", "his"}), frozenset({"she", "her", "hers"})
_NOT = re.compile(r"\b(?:not|never)\b|n['’]t\b", re.IGNORECASE)
_PART = re.compile(r"[,;]|\b(?:and|but|because|since|although|though|while|despite)\b")
_EDGE = ".,;:!?\"'()"
_DEFINITE = re.compile(r"^(?:the|my|our|his|her|their|user's|[A-Z]\S*['’]s|[A-Z])", re.IGNORECASE)
_PHRASE = re.compile(
    rf"\b(?:the|an?|this|that|my|our|your|his|her|their|its|\w+['’]s)\s+"
    rf"(?P<words>(?!(?:{'|'.join(FUNCTION_WORDS)})\b)[\w-]+(?:\s+(?!(?:{'|'.join(FUNCTION_WORDS)})\b)[\w-]+){{1,3}})",
    re.IGNORECASE,
)
"""A determiner with the words behind it, up to the next one that has no content."""

_PERSONS = sorted(
    {
        *(word for word, kind in entity_words.NOUNS.items() if kind == "person"),
        *wordlists.words("aunt uncle cousin parent grandparent grandma grandmother grandpa grandfather flatmate"),
        *wordlists.words("housemate classmate schoolmate lodger guest student pupil child kid"),
    }
)
_OTHERS = re.compile(
    rf"^(?:\w+ of )?User['’]s (?:[\w-]+ ){{0,2}}?(?P<who>(?:\w*inlaw|in-law|{'|'.join(_PERSONS)})s?)\b"
    r"|^(?P<name>(?!User\b)[A-Z][\w-]+)(?P<owns>['’]s(?= \w))?\b"
)
_OF_A_PERSON = re.compile(r"\b(?:says?|said|told|tells|mentioned|thinks|his|hers?|he|she)\b")
_SPEAKER_TOO = re.compile(r"(?<!told )(?<!tells )\bUser\b")
_IN_LAW = re.compile(r"\b(\w+)-in-law\b", re.IGNORECASE)

_COMPANY = re.compile(r"\b(?:with|beside|next to) (?-i:[A-Z])\w+", re.IGNORECASE)

_REPORTED = re.compile(
    r"^[^.!?]{0,60}?\b(?:says?|said|tells?|told|shows?|showed|heard?|thinks?|mentioned|wrote|confirmed)"
    r"(?: (?:User|him|her|them))?(?: that)? (?=User['’]s )"
)
"""Who says what follows: "The doctor says that User's son ..." is about the son."""

_OF_RELATIVE = re.compile(r"^User['’]s (?P<who>\w+)['’]s? (?=\w)", re.IGNORECASE)
_QUESTION = re.compile(
    r"^(?:what|who|whose|how|when|where|why|which|can|could|do|does|did|is|are|will|would|should|has|have)\b[^.!?]*\?\W*$",
    re.IGNORECASE,
)
_EXISTS = re.compile(r"^there(?:'s| is| are| was| were)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SlotValue:
    """A slot that a text speaks of. `of`: what the slot is of, beside the subject; `value`: stems, none where"
    " untold."""

    name: str
    exclusive: bool
    of: frozenset[str]
    value: frozenset[str]
    names: frozenset[str]


@dataclass(frozen=True)
class Claim:
    """One text, read. `text`: in the third person, without its opening (`opening`) and with figures in digits."""

    original: str
    text: str
    opening: str = ""

    @cached_property
    def clause(self) -> AttributeClause:
        return attributes.clause(self.text)

    @cached_property
    def speakers(self) -> frozenset[str]:
        """Stems of the names in front of a quote: they say nothing about its topic."""
        front = _FRONT.match(self.original)
        named = front is not None and not is_common(front.group().split()[0].casefold())
        return frozenset(lexemes(front.group())) if front and named else frozenset()

    @cached_property
    def subject(self) -> frozenset[str]:
        """Stems of what it is about; none for the user."""
        return frozenset(opposites.canonical(self.clause.subject)) - {"user"}

    @cached_property
    def owner(self) -> str:
        """Who or whose it is about: "user" for "User has a dog" and "User's dog"."""
        return re.split(r"['’]s\b|\s", self.text, maxsplit=1)[0].casefold()

    @cached_property
    def possession(self) -> frozenset[str]:
        """Stems of the thing of its owner that it is about: "dog" of "User's dog"."""
        return self.subject - frozenset(opposites.canonical(lexemes(self.owner)))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Stems of the content words, synonyms made one."""
        return tuple(word for word in opposites.canonical(lexemes(self.text)) if word not in ("", "user"))

    @cached_property
    def described(self) -> dict[str, frozenset[str]]:
        """Stems of things with those that describe them: "meet" with "budget" for "the budget meeting"."""
        found: dict[str, frozenset[str]] = {}
        for phrase in _PHRASE.finditer(self.text):
            stems = [stem for stem in opposites.canonical(lexemes(phrase["words"])) if stem]
            for at, stem in enumerate(stems):
                found[stem] = found.get(stem, frozenset()) | frozenset(stems[:at])
        return found

    @cached_property
    def signature(self) -> contrast.Signature:
        return contrast.signature(self.text)

    @cached_property
    def bare_words(self) -> frozenset[str]:
        """The words without figures and points in time."""
        times = frozenset(stem for time in self.signature.times for stem in lexemes(time))
        return frozenset(word for word in self.words if not self.is_figure(word) and word not in times)

    def is_figure(self, word: str) -> bool:
        """Whether a word is a figure; "two" only where the speaker is the subject: "two cows" are no "three cows"."""
        return word[0].isdigit() or (not self.subject and any(quantities.numbers(word)))

    @cached_property
    def limits(self) -> frozenset[str]:
        """Words with which a text says less than the same text without them."""
        return frozenset(word.strip(_EDGE) for word in self.text.casefold().split()) & _LIMITS

    @cached_property
    def gender(self) -> frozenset[str]:
        people = frozenset(word.strip(_EDGE) for word in self.text.casefold().split())
        return frozenset({"he"} if people & _HE else ()) | frozenset({"she"} if people & _SHE else ())

    @cached_property
    def slots(self) -> tuple[SlotValue, ...]:
        return tuple(_slots(self.text))

    @cached_property
    def slot_names(self) -> frozenset[str]:
        return frozenset(slot.name for slot in self.slots)

    @cached_property
    def attribute(self) -> frozenset[str]:
        """The stems of its subject when that is a thing with one value: "the rate limit of the API"."""
        heads = self.subject & _ATTRIBUTES
        return self.subject if heads and not (_EXISTS.match(self.text) or self.indefinite) else frozenset()

    @cached_property
    def indefinite(self) -> bool:
        return re.match(r"^(?:an?|some|there|another|one)\b", self.text, re.IGNORECASE) is not None

    @cached_property
    def switches(self) -> bool:
        """A new state takes the place of an old one."""
        found = change_words.SWITCH.search(self.text)
        denied = found is not None and _NOT.search(self.text[max(0, found.start() - 12) : found.start()])
        return found is not None and not denied and not self.tentative

    @cached_property
    def changes(self) -> bool:
        """Whether it tells of a change at all."""
        return change_words.CHANGED.search(self.text) is not None and not self.tentative

    @cached_property
    def now(self) -> bool:
        return change_words.NOW.search(self.text) is not None and not self.tentative

    @cached_property
    def ends(self) -> bool:
        return change_words.END.search(self.text) is not None and not self.tentative

    @cached_property
    def former(self) -> bool:
        return change_words.FORMER.search(self.text) is not None

    @cached_property
    def tentative(self) -> bool:
        return change_words.TENTATIVE.search(self.text) is not None

    @cached_property
    def denied(self) -> bool:
        """Whether its first part is a denial."""
        return contrast.signature(self.first_part).negations % 2 == 1

    @cached_property
    def first_part(self) -> str:
        return _PART.split(self.text, maxsplit=1)[0]

    @cached_property
    def over(self) -> frozenset[str]:
        """Stems of what it says is over: of its first part where that says so ("We sold the boat, it leaked")."""
        told = self.first_part if change_words.END.search(self.first_part) else self.text
        return frozenset(opposites.canonical(lexemes(told))) & self.bare_words

    @cached_property
    def asks(self) -> bool:
        """Whether it is one question, and so states nothing."""
        return _QUESTION.match(self.text) is not None

    @cached_property
    def passing(self) -> bool:
        """Whether it only denies something for a day or a week: "no standup tomorrow"."""
        over = change_words.END.search(self.first_part) is not None
        return self.denied and not over and change_words.PASSING.search(self.first_part) is not None

    @cached_property
    def changed(self) -> frozenset[str]:
        """Stems of what may change by what it tells: not the one who changes something else ("Kev sold his car")."""
        told = (match.end() for match in change_words.CHANGED.finditer(self.text))
        other = any(change_words.ITS_OBJECT.match(self.text, end) for end in told)
        return self.bare_words - (self.subject if other else frozenset())

    @cached_property
    def replaced(self) -> frozenset[str]:
        """Stems of what something else takes the place of, where it is named."""
        told = change_words.INSTEAD_OF.search(self.text)
        return frozenset(opposites.canonical(lexemes(told["what"]))) - {""} if told else frozenset()

    @cached_property
    def gets_new(self) -> bool:
        """Whether somebody has a new one of something: their own."""
        return change_words.GETS_NEW.match(self.text) is not None

    @cached_property
    def relative(self) -> frozenset[str]:
        """Stem of the person or animal of the user whose thing it is about: "daughter" of "my daughter's lesson"."""
        owned = _OF_RELATIVE.match(self.text)
        return frozenset(opposites.canonical(lexemes(owned["who"]))) if owned else frozenset()

    @cached_property
    def another(self) -> frozenset[str]:
        """Stem of the person whom it is about, where that is somebody else and the speaker has no part in it: "User's
        cousin sold her Vespa", "Ingrid's class has moved", "Helen no longer smokes"; a name alone may be a thing's."""
        found = self._begins_with
        if found is None or _SPEAKER_TOO.search(found.string, found.end()):
            return frozenset()
        named = found["owns"] or _OF_A_PERSON.search(found.string) or (found["name"] or "").casefold() in FIRST_NAMES
        if not found["who"] and not named:
            return frozenset()
        return frozenset(opposites.canonical(lexemes(found["who"] or found["name"]))) if found else frozenset()

    @cached_property
    def owner_named(self) -> bool:
        """Whether it begins with a thing of somebody named: "Ingrid's class"."""
        return self._begins_with is not None and self._begins_with["owns"] is not None

    @cached_property
    def _begins_with(self) -> re.Match[str] | None:
        """Somebody else at its beginning, or behind what only reports it."""
        return _OTHERS.match(_REPORTED.sub("", self.text))

    def speaks_of(self, person: frozenset[str], *, company: bool) -> bool:
        """Whether it is about this person; `company`: also where they are only named as company ("lives with Ingrid"),
        which makes nothing of theirs the same."""
        told = self.text if company else _COMPANY.sub("", self.text)
        return bool(person & frozenset(opposites.canonical(lexemes(told))))

    @cached_property
    def named(self) -> frozenset[str]:
        """Stems before its verb, without times: "laptop" and "work" of "User's laptop at work runs Fedora"."""
        front = frozenset(opposites.canonical(lexemes(self.text[: self.clause.at])))
        return front & self.bare_words - _PRESENT

    @cached_property
    def skips_once(self) -> bool:
        """Whether it only cancels something for a day or a week."""
        return change_words.CANCELS.search(self.text) is not None and change_words.PASSING.search(self.text) is not None

    @cached_property
    def dated(self) -> bool:
        return change_words.DATED.search(self.text) is not None

    @cached_property
    def days(self) -> frozenset[str]:
        return frozenset(match.group().casefold() for match in change_words.DAY.finditer(f"{self.opening} {self.text}"))

    @cached_property
    def dates(self) -> frozenset[str]:
        """The days, months and years that it names."""
        told = f"{self.opening} {self.text}"
        return frozenset(match.group().casefold() for match in change_words.DATED.finditer(told))

    @cached_property
    def undated(self) -> str:
        return change_words.DATED.sub("", self.text)

    @cached_property
    def is_be(self) -> bool:
        """Whether it says what something is, not what it has or does."""
        return re.match(r"(?:is|are)\b", self.text[self.clause.at :], re.IGNORECASE) is not None

    @cached_property
    def takes_role(self) -> bool:
        """Whether it tells of somebody's new role, which ends an old role and nothing else."""
        return re.search(r"\b(?:bec[ao]mes?|become|promoted|demoted|joined|joins|founded)\b", self.text) is not None

    @cached_property
    def past(self) -> bool:
        """It tells what was, not what is; a change that has happened is not past."""
        return self._past_verb and not self.switches

    @cached_property
    def event(self) -> bool:
        """Something that happened once, and so never becomes wrong."""
        return self._past_verb and not (self.switches or self.slots or self._durative)

    @cached_property
    def _durative(self) -> bool:
        return bool(_DURATIVE & frozenset(word.strip(_EDGE) for word in self.text.casefold().split()[:8]))

    @cached_property
    def _past_verb(self) -> bool:
        return self.clause.past or re.search(r"\b(?:was|were|had|did)\b", self.text) is not None

    @cached_property
    def hints(self) -> frozenset[str]:
        """Slots that its verb of change is likely to be about."""
        verbs = (match.group().casefold() for match in re.finditer(r"[A-Za-z]+", self.text))
        return frozenset(
            slot for verb in verbs for stem, slots in HINTS.items() if verb.startswith(stem) for slot in slots
        )

    @cached_property
    def identifiers(self) -> dict[str, frozenset[str]]:
        """All identifiers by what they are of: "order 1001" gives order: 1001."""
        return _identifiers(self.text)

    @cached_property
    def anchors(self) -> dict[str, frozenset[str]]:
        """The identifiers and days of what the text is about: those before its value."""
        subject = self.text[: self.clause.at] + ("" if self.switches else f" {self.opening}")
        days = frozenset(match.group().casefold() for match in change_words.DAY.finditer(subject))
        return _identifiers(self.head) | ({"day": days} if days else {})

    @cached_property
    def head(self) -> str:
        """The text up to its value."""
        verb = _CHANGE_VERB.search(self.text)
        if verb is not None and self.switches:
            if _VALUED.match(verb.group()):
                return self.text[: verb.end()]
            value = re.search(r"\b(?:to|from|into|as|with|by|until)\b", self.text[verb.end() :])
            return self.text[: verb.end() + value.start()] if value else self.text[: verb.end()]
        return self.text[: self.clause.at]

    @cached_property
    def definite(self) -> bool:
        """Whether its subject is one known thing."""
        return _DEFINITE.match(self.text) is not None and not self.indefinite

    @cached_property
    def measured(self) -> bool:
        return MEASURED.search(self.text) is not None


@lru_cache(maxsize=2_048)
def read(text: str) -> Claim:
    """The text taken apart. Pure; kept for texts that come again."""
    said, who = text.strip(), USER
    named = _SPEAKER.match(said)
    is_user = named is not None and named["who"].casefold() in ("user", "me")
    if named and (
        is_user or _IS_FIRST.search(said[named.end() :]) or not is_common(named["who"].split()[0].casefold())
    ):
        who = USER if is_user else named["who"]
        said = said[named.end() :]
    said = _IN_LAW.sub(r"\1inlaw", _REPLY.sub("", _BRACKETED.sub("", said)))
    opening = _OPENING.match(said)
    begins = opening.end() if opening and opening.end() < len(said) else 0
    opened, said = said[:begins], said[begins:]
    for pattern, instead in _FIRST:
        said = pattern.sub(instead.format(who), said)
    said = said[:1].upper() + said[1:]
    said = _COUPLE.sub(r"\1", said)
    moved = _SET.match(said)
    if moved:  # "We moved the standup to 9:30" is about the standup
        what = re.sub(r"^(?:his|her|their)\b", f"{who}'s", moved["what"], flags=re.IGNORECASE)
        said = f"{what[:1].upper()}{what[1:]} {moved['verb']} {moved['to']} {said[moved.end() :]}"
    if who != USER and not attributes.clause(said).subject and not said.startswith(who):
        said = f"{who} {said[:1].lower()}{said[1:]}"
    return Claim(text, opposites.levelled(quantities.in_digits(said)), opened)


def context(text: str) -> str:
    """What a fact quotes of what was said before it, as it stands between speaker and words; empty without it."""
    found = _CONTEXT.match(text)
    return found["told"] if found else ""


def own_words(text: str) -> str:
    """A fact without what it quotes of what was said before it: "Ann, asked “Where?”: In Rome" is "Ann: In Rome"."""
    return _CONTEXT.sub(r"\g<who>", text, count=1)


def _slots(text: str) -> list[SlotValue]:
    found: dict[tuple[str, frozenset[str]], SlotValue] = {}
    for row in SLOTS:
        for pattern in row.patterns:
            match = pattern.search(text)
            if match is None:
                continue
            groups = match.groupdict()
            of = (
                frozenset(opposites.canonical(lexemes(f"{groups.get('of') or ''} {groups.get('role') or ''}")))
                - _ARTICLES
            )
            if row.name == "holder" and not of & _ROLES:
                of |= {"lead"}
            told = groups.get("v") or groups.get("w") or ("" if "job" in groups else text[match.end() :])
            told = _TITLED.sub("", told)
            names = contrast.names_only_in(f"x {told}", "") | frozenset(re.findall(r"\S+@\S+", told))
            value = SlotValue(row.name, row.exclusive, of, _value(told), names)
            found.setdefault((row.name, of), value)
            break
    return list(found.values())


def _value(told: str) -> frozenset[str]:
    """Stems of a value, up to where another part of the sentence begins."""
    told = re.split(r"[,;]|\b(?:because|since|so that|after|before|which|who|where|while|but|for the)\b", told)[0]
    undated = change_words.DATED.sub(" ", told)
    words = opposites.canonical(lexemes(undated)) or opposites.canonical(lexemes(told))
    return frozenset(word for word in words if word != "user")


def _identifiers(text: str) -> dict[str, frozenset[str]]:
    """Codes, and figures or single capitals that stand behind a noun, by what they are of."""
    found: dict[str, set[str]] = {}
    for match in _CODE.finditer(text):
        code = match.group().rstrip(".").casefold()
        if not _QUANTITY.match(code) and any(char.isdigit() or char in "@/.:" for char in code):
            letters = re.sub(r"[\d\W_]+", " ", code.split("@")[-1]).split()
            found.setdefault(letters[0] if letters and "/" not in code else "", set()).add(code)
    for match in _LABELLED.finditer(text):
        label, value = match["label"].casefold(), match["value"].casefold().rstrip(".-")
        if label in _NO_LABEL or value == "i" or label in quantities.TIMES:
            continue
        told = label.endswith(("s", "ed")) or text[: match.start()].endswith(("User ", "they ", "he ", "she "))
        if not (told and attributes.is_verb(label)) and not quantities.has_unit(text[match.start("value") :]):
            found.setdefault("".join(lexemes(label)[:1]) or label, set()).add(value)
    return {label: frozenset(values) for label, values in found.items()}


_PRESENT = frozenset(opposites.canonical(lexemes("now currently still also again already")))
NO_TOPIC = frozenset(opposites.canonical(lexemes("not never no like enjoy")))
"""What two texts may share that have no topic in common; "like" is often no verb."""


def apart(one: dict[str, frozenset[str]], other: dict[str, frozenset[str]]) -> bool:
    """Whether two sets of identifiers name different things: another value under the same label."""
    return any(not one[label] & other[label] for label in one.keys() & other.keys())


def shared_topic(new: Claim, old: Claim) -> frozenset[str]:
    """Stems of what both speak of, but for who says it, who changes something else and things that are described as
    two: "the budget meeting", "the review meeting"."""
    shared = (new.changed & old.bare_words) - new.speakers - old.speakers - NO_TOPIC
    return frozenset(
        stem for stem in shared if not _two(*(each.described.get(stem, frozenset()) for each in (new, old)))
    )


def _two(one: frozenset[str], other: frozenset[str]) -> bool:
    return bool(one and other) and not one & other


_ATTRIBUTES = frozenset(stem for word in ATTRIBUTES for stem in opposites.canonical(lexemes(word)))
_ROLES = frozenset(opposites.canonical(lexemes("manager owner maintainer captain coach")))
_ARTICLES = frozenset(
    lexemes(
        "the our user current new address number acting interim lead head chief chair took over charge run direct"
        " responsible oversee oversaw has taken"
    )
)
