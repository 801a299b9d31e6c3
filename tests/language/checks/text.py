"""Checks of tests/corpora/text: terms, sentences, names, categories and other properties of single texts."""

from __future__ import annotations

import pytest

from service.domain.kinds import Classification, ClassificationSource, Importance, MemoryType
from service.language import (
    context,
    entities,
    importance,
    kinds,
    lexemes,
    pattern_examples,
    questions,
    relations,
    sentences,
    tags,
)

ORDINARY_WORDS = frozenset({"monday", "may", "user", "i", "ok"})


def check_advice(text: str, hints: list[str]) -> None:
    assert importance.advise(text) == tuple(hints)


def check_categories(text: str, expected: list[str]) -> None:
    assert set(expected) <= set(kinds.name_categories(text))


def check_no_categories(text: str) -> None:
    """Texts of which the taxonomy knows no word."""
    assert kinds.name_categories(text) == ()


def check_end_of(text: str, max_chars: int, end: str) -> None:
    """The end of a neighbouring turn starts with a whole word."""
    assert context.end_of(text, max_chars).strip() == end


def check_question_share(text: str, share: float) -> None:
    assert context.question_share(text) == pytest.approx(share)


def check_first_person(more: str, less: str) -> None:
    assert 0 < context.first_person(less) < context.first_person(more) < 1


def check_entities(text: str, expected: list[list[str]]) -> None:
    assert [[entity.name, entity.type] for entity in entities.find(text)] == expected


def check_ordinary_capitals(text: str) -> None:
    """Capitals that are no person and no date."""
    found = entities.find(text)
    assert {entity.type for entity in found} <= {"concept"}
    assert not {entity.name.casefold() for entity in found} & ORDINARY_WORDS


def check_importance(text: str, type_: str | None, level: int) -> None:
    kind = Classification(MemoryType(type_), 0.9, ClassificationSource.EXPLICIT) if type_ else None
    assert importance.rate(text, kind) == Importance(level / 10, level)


def check_importance_bands(value: float, name: str) -> None:
    assert importance.band(value) == name


def check_kinds(text: str, type_: str, source: str) -> None:
    """By the published patterns, else by the rules after them."""
    kind = kinds.classify(text) or kinds.guess(text)
    assert kind is not None
    assert (kind.type, kind.source) == (type_, source)


def check_kinds_by_pattern(text: str, type_: str, confidence: float) -> None:
    assert kinds.classify(text) == Classification(MemoryType(type_), confidence, ClassificationSource.REGEX)


def check_kinds_no_pattern(text: str) -> None:
    assert kinds.classify(text) is None


def check_kinds_guessed(text: str, type_: str) -> None:
    kind = kinds.guess(text)
    assert kind is not None
    assert (kind.type, kind.source) == (type_, ClassificationSource.RULES)
    assert 0.5 <= kind.confidence <= 0.7


def check_kinds_not_guessed(text: str) -> None:
    assert kinds.guess(text) is None


def check_lexemes(text: str, expected: list[str]) -> None:
    assert lexemes.lexemes(text) == expected


def check_relations(text: str, expected: list[list[str]]) -> None:
    found = relations.find_relations(text, entities.find(text))
    assert [[each.source, each.relation, each.target] for each in found] == expected


def check_relation_labels(label: str, kind: str) -> None:
    """Labels of one meaning have one type."""
    assert relations.normalise_label(label) == kind


def check_requests(text: str, *, request: bool) -> None:
    """A request for an action, or a question about what was said."""
    assert questions.is_request(text) is request


def check_asks_the_present(text: str, *, present: bool) -> None:
    assert questions.asks_the_present(text) is present


def check_asks_when(text: str, *, when: bool) -> None:
    assert questions.asks_when(text) is when


def check_asks_for(question: str, kind: questions.Kind | None) -> None:
    assert questions.kind(question) == kind


def check_holds(question: str, text: str, *, holds: bool) -> None:
    """Whether a text has what a question asks for."""
    kind = questions.kind(question)
    assert kind is not None
    assert questions.holds(kind, text, frozenset(lexemes.lexemes(question))) is holds


def check_pattern_examples(text: str, pattern: str, *, is_example: bool) -> None:
    """An example has all words of the pattern in their order."""
    found = pattern_examples.share(text, pattern)
    assert (found is not None) == is_example
    assert found is None or 0 < found <= 1


def check_sentences(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in sentences.split(text)] == expected


def check_first_sentence(text: str, expected: str, max_chars: int = sentences.MAX_SUMMARY_CHARS) -> None:
    assert sentences.first_sentence(text, max_chars) == expected


def check_tags(given: list[str] | str, expected: list[str]) -> None:
    assert tags.normalise(given) == tuple(expected)


def check_tag_prefixes(given: list[str], expected: list[str]) -> None:
    assert tags.prefixes(given) == tuple(expected)
