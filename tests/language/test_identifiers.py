"""Two ways to write one identifier are equal, and no other identifier is."""

from __future__ import annotations

import pytest

from service.language import identifiers

SAME = [
    ('"mary.roe"@mail.test', "Mary.Roe@mail.test"),
    ("john (at) mail (dot) test", "john@mail.test"),
    ("@maryroe", "maryroe"),
    ("+1-212-555-0188", "(212) 555-0188"),
    ("+44 20 7946 0018", "020 7946 0018"),
    ("3C:22:FB:10", "3c-22-fb-10"),
    ("3c22.fb10.9a7e", "3C:22:FB:10:9A:7E"),
    ("#451", "451"),
    ("AB-1234", "AB1234"),
    ("v2.3.1", "2.3.1"),
    ("12,345", "12345"),
    ("https://www.mail.test/a1/", "mail.test/a1"),
    ("José", "Jose"),
    ("Łódź", "Lodz"),
]

OTHERS = [
    ("12345", "123456"),
    ("3C:22:FB:10:9A", "3C:22:FB:10:9A:7E"),
    ("+1-212-555-0188", "+1-415-555-0189"),
    ("+1-212-555-0188", "555-0188"),
    ("10.0.0.1", "10.0.0.10"),
    ("/srv/app", "/srv/app/data"),
    ("v2.3", "v2.3.1"),
    ("a@mail.test", "aa@mail.test"),
    ("web-1", "web-11"),
    ("Ann", "Anna"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_forms_of_one_identifier(one: str, other: str) -> None:
    [first], [second] = identifiers.words(one), identifiers.words(other)
    assert identifiers.same(first, second)


@pytest.mark.parametrize(("one", "other"), OTHERS)
def test_another_identifier(one: str, other: str) -> None:
    [first], [second] = identifiers.words(one), identifiers.words(other)
    assert not identifiers.same(first, second)


def test_every_word_knows_its_place() -> None:
    text = "Jenny's ID is 'ab1', phone (212) 555-0188 [REDACTED:EMAIL]: ok?"
    found = identifiers.words(text)
    assert all(text[each.start : each.end] == each.raw for each in found)
    assert [each.kind for each in found] == ["word", "word", "word", "code", "word", "phone", "masked", "word"]
