"""Texts that a request to forget means, each beside texts that look like it."""

from __future__ import annotations

import pytest

from service.language.forgetting import forget_matching, forget_query
from service.language.forgetting.forget_matching import ForgetText

# The query, the texts that are meant, those that are not.
CASES: list[tuple[str, list[str], list[str]]] = [
    ("Alma's email", ["Alma's email is alma99 at work."], ["Bo's email is bo1.", "Alma likes tea."]),
    ("IP 192.168.0.1", ["Server 192.168.0.1 hosts it."], ["Server 192.168.0.10 is off.", "Port 192 is open."]),
    ("account ACC-1001", ["Account ACC-1001 is overdue.", "acct acc1001 has owners."], ["Account ACC-10012 is paid."]),
    ("session tok_abc12", ["Session tok_abc12 expired."], ["Session tok_abc123 is live."]),
    ("delete all records of Dr. Cho", ["Dr. Cho moved."], ["Cho's clinic closed.", "Dr. Chou moved."]),
    ("Sem's project role", ["Sem is the project lead."], ["Samantha is the designer.", "Sem lives in Rome."]),
    ("everything regarding Project Apollo", ["Project Apollo is late."], ["Apollo Theater is nice."]),
    ("what we know about user_id 77", ["user_id 77 is blocked."], ["user_id 770 is active.", "77 users came."]),
    ("Peter/Pete Novak", ["Pete Novak called.", "Peter Novak is ill."], ["Petra Novak left."]),
    ("+44 7911 123456", ["Her number is 07911 123456."], ["His number is +44 7911 123457."]),
    ("@maria_dev", ["@maria_dev owns it.", "maria_dev is on leave."], ["@maria_devops is a bot."]),
    ("build v1.2", ["v1.2 shipped Monday."], ["v1.2.1 shipped Friday.", "v1.20 is planned."]),
    ("Игорь Лис / Igor Lis", ["Игорь Лис подписал.", "Igor Lis paid."], ["Igor Lisov called."]),
    ("Maria (aka Masha)", ["Maria called.", "Masha paid."], ["Mashall left."]),
    ("Wing A access code", ["Wing A access code is lilac."], ["Wing B access code is olive."]),
    ("Rose's badge", ["Rose's badge is green."], ["The rose garden is open.", "Rose likes roses."]),
    ("everything about the Falcon project", ["The Falcon project is in Rust."], ["A falcon nests on the roof."]),
    ("customer Li Na (李娜)", ["Customer 李娜 ordered tea.", "Li Na paid."], ["李娜娜 left.", "Li Nan paid."]),
    ("mia (at) mail (dot) test", ["mia@mail.test is an admin."], ["mia@mail.test.example is a guest."]),
    ("Zoë", ["zoe sings."], ["Zoey sings."]),
    ("locker 12", ["Locker 12 is Ada's."], ["Locker 121 is free.", "Bus 12 is late.", "Locker 7 has 12 keys."]),
]


@pytest.mark.parametrize(("query", "meant", "others"), CASES)
def test_what_is_meant(query: str, meant: list[str], others: list[str]) -> None:
    texts = [ForgetText(text, text) for text in [*meant, *others]]
    parsed = forget_query.parse(query, forget_matching.find_names(texts))
    assert list(forget_matching.match(parsed, texts).meant) == meant


STATED: list[tuple[str, list[str], list[str]]] = [
    ("@quill", ["@quill is in.", "Ada Quint is the same person as @quill.", "Ada Quint left."], ["Ada Blom left."]),
    ("Bluebird", ["Bluebird is late.", "Bluebird, also known as Kestrel.", "Kestrel is cheap."], ["Kest is cheap."]),
]


@pytest.mark.parametrize(("query", "meant", "others"), STATED)
def test_a_stored_statement_adds_a_form(query: str, meant: list[str], others: list[str]) -> None:
    test_what_is_meant(query, meant, others)


def test_a_near_miss_is_told_with_the_reason() -> None:
    texts = [ForgetText(text, text) for text in ("Locker 1234 is free.", "Alma Roth called.", "The rose fades.")]
    for query, near in (("locker 123", "Locker 1234 is free."), ("Alma Beck", "Alma Roth called.")):
        found = forget_matching.match(forget_query.parse(query), texts)
        assert (found.meant, list(found.near)) == ({}, [near])
        assert all(found.near.values())
