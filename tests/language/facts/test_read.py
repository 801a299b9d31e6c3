"""Is a stored memory read back into attribute, value and polarity?"""

from __future__ import annotations

import pytest

from service.language.facts import read


@pytest.mark.parametrize(
    ("memory", "subject", "slot", "value", "polarity"),
    [
        ("User's name is Bob", "user", "name", "Bob", "positive"),
        ("User lives in Oslo with their wife since 2019", "user", "home", "Oslo", "positive"),
        ("works in tech", "user", "job", "tech", "positive"),
        ("User works at Globex as a lead engineer.", "user", "job", "lead engineer at Globex", "positive"),
        ("is vegetarian", "user", "diet", "vegetarian", "positive"),
        ("User doesn't eat meat any more", "user", "diet", "meat", "negative"),
        ("User no longer likes tea", "user", "likes", "tea", "negative"),
        ("User's sister lives in Kiel", "user's sister", "home", "Kiel", "positive"),
        ("User's sister's name is Una", "user", "relationship:sister", "Una", "positive"),
        ("Ana works at Initech", "Ana", "job", "Initech", "positive"),
        ("User has a terrier named Pip", "user", "pet", "terrier Pip", "positive"),
        ("User's favourite colour is teal", "user", "favorite:color", "teal", "positive"),
        ("User thinks they are allergic to nuts", "user", "allergy", "nuts", "positive"),
        ("The project deadline is March 3", "project deadline", "attribute:project deadline", "March 3", "positive"),
        ("Name: Bob", "user", "name", "Bob", "positive"),
        ("I live in Oslo", "user", "home", "Oslo", "positive"),
        ("User is 34 years old", "user", "age", "34", "positive"),
        ("User painted a lake last year", "user", None, None, "positive"),
    ],
)
def test_read(memory: str, subject: str, slot: str | None, value: str | None, polarity: str) -> None:
    fact = read(memory)
    assert fact is not None
    assert (fact.subject, fact.slot, fact.value, fact.polarity) == (subject, slot, value, polarity)


@pytest.mark.parametrize("memory", ["", "   ", "vacation photos"])
def test_nothing_to_read(memory: str) -> None:
    found = read(memory)
    assert found is None or found.slot is None
