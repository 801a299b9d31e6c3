"""Does what is only thought of, or true of somebody else, leave what is so alone?"""

from __future__ import annotations

import pytest

from bench.evals import curator
from service.language.facts import Message, extract, read


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("User works at Ikea", "User might quit their job"),
        ("User works at Ikea", "User almost quit Ikea"),
        ("User is vegetarian", "User is considering eating meat again"),
        ("User takes ibuprofen", "User may have to stop taking ibuprofen"),
        ("User lives in York", "User might move to Leeds"),
        ("User smokes", "User wants to stop smoking"),
        ("User has two cats", "User's friend has three cats"),
        ("User's mother is from Rome", "User's mother is in Spain"),
    ],
)
def test_nothing_is_ended(old: str, new: str) -> None:
    assert curator.verdict({"old": [old], "new": new}) == ("add", None)


@pytest.mark.parametrize(
    "text",
    [
        "I could move to Leeds if they offer me the job.",
        "I was going to study law but I didn't.",
        "As if I had a car!",
        "I thought my flat was in Soho.",
        "The chorus goes: I live by the river.",
        "As my father used to say, I have no time for fools.",
        "I have a pet shark, just kidding",
    ],
)
def test_no_fact(text: str) -> None:
    assert extract([Message("user", text)]) == ()


def test_what_a_friend_has_is_the_friends() -> None:
    fact = read("User's friend has three cats")
    assert fact is not None
    assert fact.subject == "user's friend"
