"""Checks of tests/corpora/facts: statements read out of conversations, and what they change."""

from __future__ import annotations

from collections.abc import Sequence

from service.language import facts
from service.language.echo import is_echo
from service.language.facts import Message, StatedFact, amend, questions, run_ons, spelling, typos, verbs

RECALLED = ["User lives in Oslo", "User likes green tea", "User's sister Una is a pilot"]


def stated(turns: Sequence[str]) -> tuple[StatedFact, ...]:
    """The facts of turns; one that begins with "A:" is the assistant's."""
    roles = [("assistant", turn[2:].strip()) if turn.startswith("A:") else ("user", turn) for turn in turns]
    return facts.extract([Message(role, text) for role, text in roles])


def check_extract(turns: list[str], facts: list[str]) -> None:
    assert [fact.text for fact in stated(turns)] == facts


def check_corrections(turns: list[str], facts: list[str]) -> None:
    found = stated(turns)
    assert [fact.text for fact in found] == facts
    assert all(fact.correction for fact in found)


def check_certainty(turn: str, text: str, certainty: str) -> None:
    assert [(fact.text, fact.certainty) for fact in stated([turn])] == [(text, certainty)]


def check_temporal_tags(turn: str, tag: str) -> None:
    assert [fact.temporal_tag for fact in stated([turn])] == [tag]


def check_long_pastes(piece: str) -> None:
    """A quadratic pattern would take minutes."""
    facts.extract([Message("user", piece * (20_000 // len(piece)))])


def check_amended(earlier: str, value: str | None, fragment: str, amended: str | None) -> None:
    assert amend.amended(earlier, value, fragment) == amended


def check_answers(question: str, reply: str, statement: str | None) -> None:
    assert questions.statement(question, reply) == statement


def check_echo(text: str) -> None:
    assert is_echo(text, RECALLED)


def check_no_echo(text: str) -> None:
    assert not is_echo(text, RECALLED)
    assert not is_echo(text, [])


def check_read(memory: str, subject: str, slot: str | None, value: str | None, polarity: str) -> None:
    fact = facts.read(memory)
    assert fact is not None
    assert (fact.subject, fact.slot, fact.value, fact.polarity) == (subject, slot, value, polarity)


def check_read_nothing(memory: str) -> None:
    found = facts.read(memory)
    assert found is None or found.slot is None


def check_run_ons(sentence: str, parts: list[str]) -> None:
    begin, found = 0, []
    for start, end in run_ons.starts(sentence):
        found.append(sentence[begin:start])
        begin = end
    assert [*found, sentence[begin:]] == parts


def check_spelling(typed: str, written: str) -> None:
    assert spelling.mend(typed).text == written


def check_long_rows_of_marks(mark: str) -> None:
    assert spelling.mend("wow " + mark * 5_000 + "?").text.startswith("wow")


def check_typos(typed: str, meant: str) -> None:
    assert typos.meant(typed) == meant


def check_typos_none(word: str) -> None:
    assert typos.meant(word) is None


def check_verb_forms(base: str, third: str, past: str) -> None:
    assert (verbs.third(base), verbs.past(base)) == (third, past)


def check_verb_lemmas(word: str, lemma: str, *, past: bool) -> None:
    assert (verbs.lemma(word), verbs.is_past(word)) == (lemma, past)
