"""Are messages typed on a phone written out, and do their offsets lead back to what was typed?"""

from __future__ import annotations

import pytest

from service.language.facts import Message, extract, spelling


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("im 34 and hes 7", "I'm 34 and he's 7"),
        ("my moms bday is may 3", "my mom's birthday is may 3"),
        ("my names kwame", "my name is kwame"),
        ("its my dog n i luv her", "it's my dog and i love her"),
        ("i was cookin all day", "i was cooking all day"),
        ("a cabin, a raisin and its door", "a cabin, a raisin and its door"),
        ("I HATE PHONE CALLS. email only", "i hate phone calls. email only"),
        ("I use AWS and GCP", "I use AWS and GCP"),
        ("mail me at im@u.org", "mail me at im@u.org"),
        ("my sons play chess", "my sons play chess"),
        ("mum's in hospital", "my mum's in hospital"),
        ("were moving to leeds", "we're moving to leeds"),
        ("I live w my parents rn", "I live with my parents right now"),
        ("she is an rn", "she is an rn"),
        ("pregnant lol due in june", "pregnant, due in june"),
        ("we met 4 yrs ago at my gf's bday", "we met 4 years ago at my girlfriend's birthday"),
        ("i want 2 go 2 the coast w my 2 kids", "i want to go to the coast with my 2 kids"),
        ("a cake 4 my dad, i eat 4 a day", "a cake for my dad, i eat 4 a day"),
        ("we r happy n i use r for stats", "we are happy and i use r for stats"),
        ("hes 40 an my boss, an egg", "he's 40 and my boss, an egg"),
        ("i dont no him", "i don't know him"),
        ("we have a parrot 🦜 im scared of it", "we have a parrot; I'm scared of it"),
        ("i live in york btw, near the river", "i live in york, near the river"),
        ("moved here becuase my freind did", "moved here because my friend did"),
    ],
)
def test_written_out(typed: str, written: str) -> None:
    assert spelling.mend(typed).text == written


def test_offsets_lead_back() -> None:
    typed = "hes 7 n im 34 btw"
    mended = spelling.mend(typed)
    at = mended.text.index("34")
    assert typed[mended.original(at) :].startswith("34")
    assert mended.original(len(mended.text)) == len(typed)


def test_a_fact_points_at_what_was_typed() -> None:
    typed = "dont ask. im allergic to nuts"
    (fact,) = extract([Message("user", typed)])
    assert typed[fact.start : fact.end] == "im allergic to nuts"


@pytest.mark.parametrize("mark", ["!", "😭", "lol ", "<3", "- "])
def test_a_long_row_of_marks_is_read_in_no_time(mark: str) -> None:
    assert spelling.mend("wow " + mark * 5_000 + "?").text.startswith("wow")
