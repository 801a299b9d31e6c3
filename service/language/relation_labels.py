"""Relation types by the labels that mean them.

Labels come from models and callers in every spelling; walks and filters want one word per meaning. The seven of the
first system come first, then those that are common in what people tell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

MAX_CHARS = 64

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


def normalise(label: str) -> str:
    """`works at`, `works_at` and `WorksAt` → WORKS_FOR; an unknown label in upper case with underscores. Empty for a
    label without a letter or digit."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", label.strip())
    plain = re.sub(r"[^\w]+|_+", "_", apart.casefold()).strip("_")
    return MEANINGS.get(plain, plain.upper()[:MAX_CHARS].strip("_"))
