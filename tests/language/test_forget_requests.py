"""What a user says that asks to forget, and what only sounds like it."""

from __future__ import annotations

import pytest

from service.language.forgetting import forget_requests
from service.language.forgetting.forget_requests import ForgetWish

ASKS = [
    ("Please forget that I have a cat.", "I have a cat", "statement"),
    ("Can you forget my address?", "my address", "thing"),
    ("Forget my old phone number.", "my old phone number", "thing"),
    ("Hi! Forget everything about Rosa, please.", "Rosa", "everything"),
    ("Please forget what I told you about my ex.", "my ex", "everything"),
    ("Could you please delete order 17 from your memory?", "order 17", "thing"),
    ("It rains. Please forget Rosa. I like tea.", "Rosa", "thing"),
    ("You can stop remembering my birthday now.", "my birthday", "thing"),
    ("Don't keep my licence plate on file.", "my licence plate", "thing"),
    ("I don't like that my weight is stored somewhere. Get rid of it.", "my weight", "thing"),
    ("Pretend I never told you why I moved.", "why I moved", "thing"),
    ("Vergiss bitte alles über Rosa.", "Rosa", "everything"),
    ("Oublie mon adresse, s'il te plaît.", "mon adresse", "thing"),
    ("Borra mi dirección de tu memoria.", "mi dirección", "thing"),
    ("Please forget what I just said.", "", "said"),
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
Delete the old branch.
Remove the second paragraph, please.
Please don't delete my address.
I don't want you to forget my birthday.
Please remember my birthday.
Don't tell anyone that I have a cat.
He told me to forget Rosa.
Vergiss nicht, dass ich eine Katze habe.
""".strip().splitlines()


def find(said: str) -> list[ForgetWish]:
    return forget_requests.choose_likely(said, forget_requests.find_possible(said))


@pytest.mark.parametrize(("said", "query", "sort"), ASKS)
def test_a_request(said: str, query: str, sort: str) -> None:
    [wish] = find(said)
    assert (wish.query, wish.sort, wish.is_sure) == (query, sort, True)
    left = forget_requests.blank_out(said, [(wish.start, wish.end)])
    assert len(left) == len(said)
    assert not query or query not in left


@pytest.mark.parametrize("said", OTHERS)
def test_no_request(said: str) -> None:
    assert find(said) == []


def test_a_long_list_is_no_request() -> None:
    """A word that comes a hundred times counts once."""
    assert find("I own " + ", ".join(f"boat number {number}" for number in range(200))) == []
    assert find("Numbers " + " ".join(str(number) for number in range(400))) == []
