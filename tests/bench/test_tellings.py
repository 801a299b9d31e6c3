"""The load of the bench of adds: the same for a seed, of the shares it states, and understood by its scripted model."""

from __future__ import annotations

from collections import Counter

from bench import tellings
from bench.scripted_model import decided, extracted
from bench.tellings import SHARES, TellingCase


def test_users_tell_what_the_shares_say_and_the_model_knows_it() -> None:
    told = tellings.of_users(300, 8, seed=3)
    assert told == tellings.of_users(300, 8, seed=3)
    later = Counter(each.case for user in told for each in user[1:])
    assert all(abs(later[case] * 100 / later.total() - share) < 3 for case, share in SHARES.items())
    for each in (telling for user in told for telling in user):
        found = tellings.meaning(f"User: {each.text}")
        assert found is not None
        assert found.case is (each.case if each.case in (TellingCase.AGAIN, TellingCase.CHANGE) else TellingCase.FIRST)


def test_the_scripted_model_names_the_memory_that_a_change_is_about() -> None:
    fence = "-----"
    stored = "[1] User: My flat has 3 rooms.\n[2] User: I live in Oslo."
    fact = "User: I moved to Porto."
    [operation] = decided(f"New fact:\n{fence}\n{fact}\n{fence}\n\nStored memories:\n{fence}\n{stored}\n{fence}")
    assert (operation["event"], operation["id"]) == ("UPDATE", "2")
    known = "Known already:\n-----\n(1) User: I live in Oslo.\n-----"
    said = "Conversation:\n-----\n[1] Sun 2026-01-04 10:00 user: I moved to Porto.\n-----"
    [taken] = extracted(f"{known}\n\n{said}")
    assert (taken["text"], taken["known"]) == (fact, [1])
