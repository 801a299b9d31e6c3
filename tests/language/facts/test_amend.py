"""Does a correction replace what is of its kind, and nothing where it fits nothing?"""

from __future__ import annotations

import pytest

from service.language.facts import Message, amend, extract


@pytest.mark.parametrize(
    ("earlier", "value", "fragment", "amended"),
    [
        ("User's class is on Monday at 3 pm", "on Monday at 3 pm", "Tuesday", "User's class is on Tuesday at 3 pm"),
        ("User's class is on Monday at 3 pm", None, "4 pm", "User's class is on Monday at 4 pm"),
        ("User wakes up at 6", None, "more like 6:30", "User wakes up at 6:30"),
        ("User meets at quarter past nine", None, "quarter to nine", "User meets at quarter to nine"),
        ("User runs on Mondays and Fridays", None, "Tuesdays and Fridays", "User runs on Tuesdays and Fridays"),
        ("User takes 5mg of ramipril", None, "10", "User takes 10mg of ramipril"),
        ("User has one sister", None, "two", "User has two sisters"),
        ("User's sister in law lives in Gent", "Gent", "my mother in law", "User's mother in law lives in Gent"),
        ("User has a blue Honda", None, "a red one", "User has a red Honda"),
        ("User plays the oboe", "the oboe", "Clarinet", "User plays the clarinet"),
        ("User drinks tea every morning", None, "coffee", "User drinks coffee every morning"),
        ("User lives in Berlin", "Berlin", "not Berlin, Bern", "User lives in Bern"),
        ("User's brother lives in Spain", "Spain", "he lives in Portugal", None),
        ("User lives in Bonn", "Bonn", "on Friday", None),
        ("User is a nurse", "nurse", "thank you", None),
    ],
)
def test_amended(earlier: str, value: str | None, fragment: str, amended: str | None) -> None:
    assert amend.amended(earlier, value, fragment) == amended


@pytest.mark.parametrize(
    ("turns", "facts"),
    [
        (["I live with my brother.", "my sister, sorry, autocorrect"], ["User lives with their sister"]),
        (["my rent is 500", "*600"], ["User's rent is 600"]),
        (["I drive a tram. Well, I used to."], ["User used to drive a tram"]),
        (["I own three castles in France. Just kidding."], []),
        (["I'm going to Rome in May. Wait, June."], ["User is going to Rome in June"]),
        (["My exam isn't on Monday, it's on Wednesday."], ["User's exam is on Wednesday"]),
        (["I work at Nokia.", "sorry, my phone died"], ["User works at Nokia", "User's phone died"]),
    ],
)
def test_in_talk(turns: list[str], facts: list[str]) -> None:
    assert [fact.text for fact in extract([Message("user", turn) for turn in turns])] == facts
