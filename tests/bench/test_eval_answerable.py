"""The report on answerable questions: which are asked, how far they are told apart, how well calibrated."""

from __future__ import annotations

import pytest

from bench.evals.answerable import ELSEWHERE, NEVER_SAID, SearchedQuestion, all_questions, auc, calibration, shown

TALKS = [{"id": "one", "speakers": ["Ann", "Ben"]}, {"id": "two", "speakers": ["Cleo", "Dan"]}]


def question(text: str, category: str, *evidence: str) -> dict[str, object]:
    return {"conversation_id": "one", "text": text, "category": category, "evidence": list(evidence)}


def test_every_question_with_an_answer_is_asked_elsewhere_too() -> None:
    asked = list(all_questions(TALKS, [question("Where does Ann's dog live?", "single", "1")]))
    assert [(each.conversation, each.text, each.has_answer) for each in asked] == [
        ("one", "Where does Ann's dog live?", True),
        ("two", "Where does Cleo's dog live?", False),
    ]
    assert asked[1].kind == ELSEWHERE


def test_labelled_questions_have_no_answer_and_gaps_are_left_out() -> None:
    questions = [question("Where does Ben live?", NEVER_SAID, "1"), question("Is Ann kind?", "open")]
    assert [(each.kind, each.has_answer) for each in all_questions(TALKS, questions)] == [(NEVER_SAID, False)]
    own = [question("Where does Ben live?", "never_said")]
    assert [each.has_answer for each in all_questions(TALKS, own)] == [False]


def test_separation() -> None:
    assert auc([0.9, 0.8], [0.1, 0.2]) == 1.0
    assert auc([0.5], [0.5]) == 0.5


def test_calibration_is_the_mean_distance_by_weight() -> None:
    means, error = calibration([(0.95, True, 1.0), (0.95, True, 1.0), (0.05, True, 2.0)])
    assert (means[0], means[4], means[9]) == ("1.00", "-", "1.00")
    assert error == pytest.approx((2 * 0.05 + 2 * 0.95) / 4)


def test_the_tables_name_every_kind_and_both_forms() -> None:
    asked = list(all_questions(TALKS, [question("Where does Ann live?", "single", "1")]))
    found = [
        SearchedQuestion(each, 0.9 - 0.8 * at, 0.5, 0.5, ((0.6 - 0.5 * at, each.has_answer),))
        for at, each in enumerate(asked)
    ]
    text = shown({"turns": found, "facts": found})
    assert ELSEWHERE in text
    assert "turns: probability" in text
    assert "facts: probability" in text
    assert "AUC 1.000" in text
