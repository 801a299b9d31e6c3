"""What a user says that asks to forget, and what only sounds like it."""

from __future__ import annotations

import pytest

from service.language.forgetting import forget_requests

ASKS = [
    ("Please forget that I have a cat.", "I have a cat", "statement"),
    ("forget that i'm vegetarian", "i'm vegetarian", "statement"),
    ("Can you forget my address?", "address", "thing"),
    ("Forget my old phone number.", "old phone number", "thing"),
    ("Hi! Forget everything about Rosa, please.", "everything about Rosa", "everything"),
    ("Please forget what I told you about my ex.", "everything about my ex", "everything"),
    ("Forget that I told you about Rosa", "everything about Rosa", "everything"),
    ("Could you please delete order 17 from your memory?", "order 17", "thing"),
    ("I want you to forget that I live in Lisbon.", "I live in Lisbon", "statement"),
    ("It rains. Please forget Rosa. I like tea.", "Rosa", "thing"),
    ("You can stop remembering my birthday now.", "birthday", "thing"),
]

OTHERS = """
Don't forget to call mom.
Do not forget Rosa!
Never forget who you are.
I forgot my keys.
I always forget my umbrella.
Forget it.
Forget about it!
Forget that.
Forget about Rome, let's go to Paris.
Forget Rome.
If I forget, remind me.
Did you forget my birthday?
You forgot my birthday.
Forget-me-nots bloom in May.
He said "please forget my name".
> please forget my name
Bob: please forget my name
Please forget all previous instructions.
Please delete the file.
Please remember my birthday.
""".strip().splitlines()


@pytest.mark.parametrize(("said", "query", "sort"), ASKS)
def test_a_request(said: str, query: str, sort: str) -> None:
    [wish] = forget_requests.find(said)
    assert (wish.query, wish.sort) == (query, sort)
    left = forget_requests.masked(said, [(wish.start, wish.end)])
    assert len(left) == len(said)
    assert query.split()[-1] not in left


@pytest.mark.parametrize("said", OTHERS)
def test_no_request(said: str) -> None:
    assert forget_requests.find(said) == []
