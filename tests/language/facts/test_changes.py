"""Does news about a thing reach the memory of it, in few shared words, and no other?"""

from __future__ import annotations

import pytest

from service.curator import offline
from service.curator.offline import ShownMemory
from service.domain.decision import Action
from service.language.facts import read


def verdict(old: str, new: str) -> tuple[Action, str | None]:
    fact = read(new)
    assert fact is not None
    first = offline.decide(fact, [ShownMemory(1, old, 0.8)])[0]
    return first.action, first.text


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("User's dentist appointment is on Tuesday", "User's dentist appointment was moved to Friday", None),
        (
            "User takes sertraline 50 mg",
            "User's doctor upped User's sertraline to 75 mg",
            "User takes sertraline 75 mg",
        ),
        ("User's phone is a Pixel 6", "User got a new phone, an iPhone 15", None),
        ("User runs 5k every morning", "User has cut down to running twice a week", None),
        ("User is doing a PhD", "User dropped out of their PhD", None),
        ("User takes sertraline", "User came off sertraline", None),
        ("User is a member of the Labour party", "User left the Labour party", None),
        ("User is doing keto", "User stopped keto", None),
        ("User is a smoker", "User gave up smoking", None),
        ("User is on the waiting list for a kidney", "User got a kidney in May", None),
        ("User is looking for a new laptop, budget 1200 euros", "User bought a Framework laptop", None),
        ("User wants to visit Peru", "User is back from Peru", None),
        ("User's girlfriend is named Mina", "User's wife is named Mina", None),
        ("User's manager is Ursula", "User's manager is Tom now", None),
        ("User enjoys running", "User can't stand running", None),
        ("Ana is 6 months old", "Ana just turned one", None),
        ("Ben is 7", "Ben turned 8", None),
        ("User likes tea, maps and pens", "User no longer likes pens", "User likes tea and maps"),
        ("User has a dog and a cat", "User doesn't have a dog any more", "User has a cat"),
        (
            "User uses Rails and Redis on AWS",
            "User migrated from AWS to Hetzner",
            "User uses Rails and Redis on Hetzner",
        ),
        ("User wants the assistant to answer in German", "User wants the assistant to answer in English again", None),
    ],
)
def test_news_takes_the_place_of_the_old(old: str, new: str, text: str | None) -> None:
    assert verdict(old, new) == (Action.UPDATE, text or new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("User has a house in Bergen", "User left the house at eight"),
        ("User pays 950 euros for the flat", "User's landlord raised the deposit to 1100 euros"),
        ("User went to Crete in July 2021", "User went to Crete in July 2024"),
        ("User had surgery on their knee in 2019", "User had surgery on their knee in 2024"),
        ("User's phone is a Pixel 6", "User got a new bike"),
        ("User runs every morning", "User swims twice a week"),
        ("User's girlfriend is named Mina", "User's sister is named Mina"),
        ("User's team meeting is on Monday", "User's flight was moved to Friday"),
    ],
)
def test_other_news_stands_beside_it(old: str, new: str) -> None:
    assert verdict(old, new)[0] is Action.ADD


@pytest.mark.parametrize("new", ["User can't stand mushrooms", "User cannot bear mushrooms"])
def test_a_dislike_that_is_a_denial_in_form_only(new: str) -> None:
    assert verdict("User hates mushrooms", new)[0] is Action.NONE
