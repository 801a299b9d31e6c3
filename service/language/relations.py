"""Relations between two entities: those that a text states plainly, and one spelling for the labels of each type.

Rules for a handful of patterns, read between two names next to each other: "Ana works at Brightwave", "Ana, who lives
in Porto", "Atlas uses Postgres". Precision before recall: the words between the names must be the pattern and nothing
else but fillers, the types must fit, and a sentence that denies, asks, wishes, supposes or looks back says nothing.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Mapping, Sequence
from itertools import pairwise

from service.domain.fact import NamedRelation
from service.language import sentences
from service.language.entities import EntitySpan

PERSON = frozenset({"person"})
GROUP = frozenset({"organization"})
PLACE = frozenset({"location"})
TECH = frozenset({"tool", "technology", "product"})
ANY_NAMED = PERSON | GROUP | TECH | {"project"}

_FILLERS = r"(?:,? who )?(?:(?:now|currently|still|also|already|just|mainly|mostly|recently) )?"
_ROLE = r"(?: as (?:an? |the )?[\w-]+(?: [\w-]+){0,3})?"

PATTERNS = tuple(
    (label, re.compile(rf"{_FILLERS}(?:{words})(?: the| an?)?", re.IGNORECASE), left, right)
    for label, words, left, right in (
        ("works_at", rf"(?:works|is working|is employed){_ROLE} (?:at|for|by)|(?:has )?joined", PERSON, GROUP),
        ("lives_in", r"lives in|is living in|resides in|(?:has )?(?:just )?moved to|is based in", PERSON, PLACE),
        ("knows", r"knows|is (?:a )?(?:good |close |best |old )?friends? (?:of|with)", PERSON, PERSON),
        ("uses", r"uses|is using|runs on|is built (?:on|with)|is written in", ANY_NAMED, TECH),
        ("located_in", r"is (?:located|based|headquartered|situated|a city) in|lies in", GROUP | PLACE, PLACE),
    )
)
"""Each label with the words between two names, and the types of both."""

_UNSAID = re.compile(
    r"\?$|\b(?:if|whether|unless|wish(?:es)?|hopes?|wants?|would|could|might|may|maybe|perhaps|imagine|suppose|pretend|"
    r"not|never|no longer|used to|formerly|previously|thinks?|guess|doubts?|heard|rumou?rs?|allegedly|apparently)\b",
    re.IGNORECASE,
)
_OVER = re.compile(r"[\s,]*(?:until|till|no more|any ?more|no longer|back then|in (?:19|20)\d\d)\b", re.IGNORECASE)
_LONGEST_CHARS = 80


def find_relations(text: str, named: Sequence[EntitySpan]) -> tuple[NamedRelation, ...]:
    """Relations between entities of one sentence, each once, in the order of their first names. Spans are those of
    `entities.find` on the same text."""
    spans = sentences.split(text) if len(named) > 1 else []
    relations: dict[NamedRelation, None] = {}
    for left, right in pairwise(sorted(named, key=lambda each: each.start)):
        label = _find_label(left, right, text[left.end : right.start])
        if label is not None and not _OVER.match(text, right.end):
            start, end = spans[bisect(spans, (left.start, len(text))) - 1]
            if not _UNSAID.search(text[start:end]):
                relations.setdefault(NamedRelation(left.name, label, right.name))
    return tuple(relations)


def _find_label(left: EntitySpan, right: EntitySpan, between: str) -> str | None:
    words = " ".join(between.split()) if len(between) <= _LONGEST_CHARS else ""
    for label, pattern, lefts, rights in PATTERNS:
        if left.type in lefts and right.type in rights and pattern.fullmatch(words):
            return label
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
