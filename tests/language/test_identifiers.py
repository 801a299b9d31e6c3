"""Two ways to write one identifier are equal, and no other identifier is."""

from __future__ import annotations

import pytest

from service.language.forgetting import identifiers

SAME = [
    ('"mia.ort"@mail.test', "Mia.Ort@mail.test"),
    ("mia (at) mail (dot) test", "mia@mail.test"),
    ("@miaort", "miaort"),
    ("+1-202-555-0147", "(202) 555-0147"),
    ("+44 20 7946 0018", "020 7946 0018"),
    ("AA:BB:CC:00", "aa-bb-cc-00"),
    ("aabb.cc00.1122", "AA:BB:CC:00:11:22"),
    ("#618", "618"),
    ("AB-1234", "AB1234"),
    ("v2.3.1", "2.3.1"),
    ("70,215", "70215"),
    ("https://www.mail.test/a1/", "mail.test/a1"),
    ("Zoë", "Zoe"),
    ("Łódź", "Lodz"),
]

OTHERS = [
    ("70215", "702153"),
    ("AA:BB:CC:00:11", "AA:BB:CC:00:11:22"),
    ("+1-202-555-0147", "+1-202-555-0148"),
    ("+1-202-555-0147", "555-0147"),
    ("10.0.0.1", "10.0.0.10"),
    ("/srv/app", "/srv/app/data"),
    ("v2.3", "v2.3.1"),
    ("a@mail.test", "aa@mail.test"),
    ("web-1", "web-11"),
    ("Ann", "Anna"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_forms_of_one_identifier(one: str, other: str) -> None:
    [first], [second] = identifiers.split_words(one), identifiers.split_words(other)
    assert identifiers.are_same(first, second)


@pytest.mark.parametrize(("one", "other"), OTHERS)
def test_another_identifier(one: str, other: str) -> None:
    [first], [second] = identifiers.split_words(one), identifiers.split_words(other)
    assert not identifiers.are_same(first, second)


def test_every_word_knows_its_place() -> None:
    text = "Lotte's ID is 'ab1', phone (202) 555-0147 [REDACTED:EMAIL]: ok?"
    found = identifiers.split_words(text)
    assert all(text[each.start : each.end] == each.raw for each in found)
    assert [each.kind for each in found] == ["word", "word", "word", "code", "word", "phone", "masked", "word"]
