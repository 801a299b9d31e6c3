"""Does a plain statement give its relation, and nothing else one?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.language import entities, relations
from service.language.relation_labels import normalise


def found(text: str) -> list[tuple[str, str, str]]:
    return [(each.source, each.relation, each.target) for each in relations.find(text, entities.find(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Alice works at Google.", [("Alice", "works_at", "Google")]),
        ("Alice Meyer works as a data analyst at Brightwave Labs.", [("Alice Meyer", "works_at", "Brightwave Labs")]),
        ("Tom lives in Lisbon.", [("Tom", "lives_in", "Lisbon")]),
        ("Bob, who lives in Berlin, called.", [("Bob", "lives_in", "Berlin")]),
        ("Alice moved to Porto.", [("Alice", "lives_in", "Porto")]),
        ("Anna is married to Tom.", [("Anna", "married_to", "Tom")]),
        ("Nadia knows Tobias.", [("Nadia", "knows", "Tobias")]),
        ("Project Nightjar uses PostgreSQL.", [("Project Nightjar", "uses", "PostgreSQL")]),
        ("Docker was created by Solomon Hykes.", [("Docker", "created_by", "Solomon Hykes")]),
        (
            "Tom lives in Lisbon and works for Ostermann GmbH.",
            [("Tom", "lives_in", "Lisbon"), ("Tom", "works_at", "Ostermann GmbH")],
        ),
    ],
)
def test_what_is_plainly_said(text: str, expected: list[tuple[str, str, str]]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Alice and Bob met in Berlin.",
        "If Alice works at Google, fine.",
        "Alice worked at Google until 2019.",
        "Alice works at Google no more.",
        "Alice lives in Berlin until May.",
        "Alice no longer works at Google.",
        "I doubt that Alice works at Google.",
        "Perhaps Tom is married to Anna.",
        "Alice works at Google?",
        "Alice wants to work at Google.",
        "Alice does not know Tobias.",
        "Alice works near Google.",
        "Lisbon works at Google.",
        "Alice lives in Docker.",
        "Alice told Tom about Google.",
        "Alice works. At Google they know.",
    ],
)
def test_what_is_not(text: str) -> None:
    assert found(text) == []


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    names = {each.name for each in entities.find(text)}
    assert all({each.source, each.target} <= names for each in relations.find(text, entities.find(text)))


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("works_at", "WORKS_FOR"),
        ("Works At", "WORKS_FOR"),
        ("worksFor", "WORKS_FOR"),
        ("located-in", "LOCATED_IN"),
        ("friend of", "KNOWS"),
        ("written by", "CREATED_BY"),
        ("RELATED_TO", "RELATED_TO"),
        ("mentors", "MENTORS"),
        (" has  pet ", "HAS_PET"),
        ("mag gerne", "MAG_GERNE"),
        ("x" * 100, "X" * 64),
        ("---", ""),
    ],
)
def test_c31_labels_have_one_type_per_meaning(label: str, kind: str) -> None:
    assert normalise(label) == kind
