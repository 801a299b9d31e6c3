"""Relations between two entities: those that a text states plainly, and one spelling for the labels of each type.

Rules for a handful of patterns, read between two names of one clause: "Ana works at Brightwave", "Ana, who lives in
Porto", "Ana is married to Tom", "Atlas uses Postgres". Precision before recall: the words between the names must be
the pattern and nothing else but fillers, the types must fit, and a clause that denies, asks, wishes, supposes or looks
back says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from service.domain.fact import NamedRelation
from service.language import sentences
from service.language.entities import EntitySpan

PERSON = frozenset({"person"})
GROUP = frozenset({"organization"})
PLACE = frozenset({"location"})
MAKER = frozenset({"person", "organization"})
WORK = frozenset({"project", "product", "tool", "technology"})
THING = WORK | {"organization"}
TECH = frozenset({"tool", "technology", "product"})
ANY_NAMED = PERSON | GROUP | WORK

_SINCE = r"(?:now|currently|still|also|both|already|just|mainly|mostly|primarily|happily|recently)"
_ROLE = r"(?: as (?:an? |the )?[\w-]+(?: [\w-]+){0,3})?"
_RANK = r"(?: (?:full[- ]time|part[- ]time|remotely))?"


@dataclass(frozen=True, slots=True)
class _Pattern:
    """Words between two names. `turned`: the second name is the source."""

    label: str
    between: re.Pattern[str]
    left: frozenset[str]
    right: frozenset[str]
    turned: bool = False


def _pattern(label: str, words: str, left: frozenset[str], right: frozenset[str], *, turned: bool = False) -> _Pattern:
    who = r"(?:,? who )?"
    return _Pattern(label, re.compile(rf"{who}(?:{_SINCE} )?(?:{words})", re.IGNORECASE), left, right, turned=turned)


PATTERNS = (
    _pattern(
        "works_at",
        rf"(?:works|is working|is employed){_RANK}{_ROLE}{_RANK} (?:at|for|by|with)|(?:has )?joined|"
        rf"(?:has )?started{_RANK}{_ROLE} at|(?:is|works as) (?:an? |the )?[\w-]+(?: [\w-]+){{0,3}} at",
        PERSON,
        GROUP,
    ),
    _pattern(
        "lives_in",
        r"lives(?: and works)? in|is living in|resides in|(?:has )?(?:just )?moved to|is based in",
        PERSON,
        PLACE,
    ),
    _pattern("married_to", r"is married to|(?:has )?married|is the (?:wife|husband) of|is engaged to", PERSON, PERSON),
    _pattern("knows", r"knows|is (?:a )?(?:good |close |best |old )?friends? (?:of|with)", PERSON, PERSON),
    _pattern("uses", r"uses|is using|runs on|is built (?:on|with)|is written in|relies on|depends on", ANY_NAMED, TECH),
    _pattern("part_of", r"is (?:a )?part of|belongs to|is a subsidiary of|is owned by", THING, THING),
    _pattern("located_in", r"is (?:located|based|headquartered|situated|a city) in|lies in", GROUP | PLACE, PLACE),
    _pattern("created_by", r"(?:was|is) (?:created|built|written|founded|developed|made) by", THING, MAKER),
    _pattern("created_by", r"(?:created|founded|built|wrote|developed)", MAKER, THING, turned=True),
)

# One of these in front of the first name, or anywhere in a question, and the clause does not state what it says.
_UNSAID = re.compile(
    r"\b(?:if|whether|unless|wish(?:es)?|hopes?|wants?|would|could|might|may|maybe|perhaps|imagine|suppose|pretend|"
    r"not|never|no longer|used to|formerly|previously|thinks?|guess|doubts?|heard|rumou?rs?|allegedly|apparently)\b",
    re.IGNORECASE,
)
_OVER = re.compile(r"[\s,]*(?:until|till|no more|any ?more|no longer|back then|in (?:19|20)\d\d)\b", re.IGNORECASE)
_APART = re.compile(r"\s+")


def find_relations(text: str, named: Sequence[EntitySpan]) -> tuple[NamedRelation, ...]:
    """Relations between entities of one sentence, each once, in the order of their first names. Spans are those of
    `entities.find` on the same text."""
    relations: dict[NamedRelation, None] = {}
    named, at = sorted(named, key=lambda each: each.start), 0
    for start, end in sentences.split(text) if len(named) > 1 else ():
        inside = []
        while at < len(named) and named[at].start < end:
            if start <= named[at].start and named[at].end <= end:
                inside.append(named[at])
            at += 1
        if text[start:end].rstrip().endswith("?"):
            continue
        unsaid = _UNSAID.search(text, start, end)
        subject: EntitySpan | None = None  # of the relation just read: "Ana lives in Porto and works at Brightwave"
        for left, right in pairwise(inside):
            between = _APART.sub(" ", text[left.end : right.start]).strip()
            if (unsaid and unsaid.end() <= left.start) or _OVER.match(text, right.end) or len(between) > 80:
                subject = None
                continue
            goes_on = subject is not None and between.startswith("and ")
            first = subject if goes_on and subject is not None else left
            one = _read(first, right, between.removeprefix("and ") if goes_on else between)
            subject = first if one is not None else None
            if one is not None:
                relations.setdefault(one)
    return tuple(relations)


def _read(left: EntitySpan, right: EntitySpan, between: str) -> NamedRelation | None:
    plain = re.sub(r"^(?:\([^)]*\) )|(?: the| a| an| both)$", "", between)
    for pattern in PATTERNS:
        if left.type in pattern.left and right.type in pattern.right and pattern.between.fullmatch(plain):
            source, target = (right, left) if pattern.turned else (left, right)
            return NamedRelation(source.name, pattern.label, target.name)
    return None


MAX_LABEL_CHARS = 64

# Labels come from models and callers in every spelling; walks and filters want one word per meaning.
SPELLINGS: Mapping[str, tuple[str, ...]] = {
    kind: tuple(labels.split())
    for kind, labels in {
        "WORKS_FOR": """works_at works_for work_at work_for works_with_company is_employed_by employed_by employed_at
        employee_of has_job_at working_at working_for hired_by""",
        "LOCATED_IN": """located_in located_at is_in is_located_in based_in is_based_in situated_in lies_in
        headquartered_in""",
        "LIVES_IN": "lives_in lives_at live_in resides_in living_in moved_to home_is",
        "PART_OF": "part_of is_part_of belongs_to member_of is_member_of component_of is_a_part_of",
        "KNOWS": "knows know friend_of is_friend_of friends_with is_friends_with acquainted_with met has_met",
        "CREATED_BY": "created_by is_created_by built_by made_by written_by authored_by developed_by invented_by",
        "REFERENCES": "references refers_to mentions cites links_to",
        "RELATED_TO": "related_to relates_to is_related_to associated_with connected_to about",
        "MARRIED_TO": "married_to is_married_to spouse_of husband_of wife_of is_the_husband_of is_the_wife_of",
        "USES": "uses use using is_using utilizes utilises runs_on works_with",
    }.items()
}
MEANINGS: Mapping[str, str] = {label: kind for kind, labels in SPELLINGS.items() for label in labels}


def normalise_label(label: str) -> str:
    """`works at`, `works_at` and `WorksAt` → WORKS_FOR; an unknown label in upper case with underscores. Empty for a
    label without a letter or digit."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", label.strip())
    plain = re.sub(r"[^\w]+|_+", "_", apart.casefold()).strip("_")
    return MEANINGS.get(plain, plain.upper()[:MAX_LABEL_CHARS].strip("_"))
