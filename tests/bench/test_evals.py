"""`make eval` prints every report and names missing data; what the reports ask, count and show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.evals import answerable, facts, forgetting, sessions
from bench.evals.__main__ import FAILED, NO_FOLDER, REPORTS, main
from bench.evals.answerable import ELSEWHERE, NEVER_SAID, SearchedQuestion, all_questions, auc, calibration
from bench.evals.forgetting import CaseResult, key_words, passes, to_delete
from bench.evals.pronouns import has_pronoun, unresolved
from bench.evals.stored_facts import StoredFact, messages_of


def test_a_missing_folder_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "nowhere")]) == NO_FOLDER
    assert "nowhere" in capsys.readouterr().out


def test_missing_files_are_named_and_the_rest_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"text": "We decided to use Postgres.", "type": "Decision"}, {"text": "I like tea.", "type": "Preference"}]
    (tmp_path / "memtype-dev.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert main([str(tmp_path), "--only", "pii", "memtype"]) == 0
    printed = capsys.readouterr().out
    assert "== pii (pii-dev.jsonl)\nnot there:" in printed
    assert "== memtype (memtype-dev.jsonl)" in printed
    assert "accuracy" in printed


def test_a_report_that_fails_does_not_hide_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pii-dev.jsonl").write_text('{"no": "text"}\n')
    (tmp_path / "memtype-dev.jsonl").write_text('{"text": "I like tea.", "type": "Preference"}\n')
    assert main([str(tmp_path), "--only", "pii", "memtype"]) == FAILED
    assert "accuracy" in capsys.readouterr().out


def test_every_module_is_named() -> None:
    folder = Path(main.__code__.co_filename).parent
    modules = {path.stem for path in folder.glob("*.py")} - {
        "__init__",
        "__main__",
        "scoring",
        "stored_facts",
        "pronouns",
    }
    assert modules <= set(REPORTS)


# -- answerable questions ----------------------------------------------------------------------------------------------

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
    text = answerable.shown({"turns": found, "facts": found})
    assert ELSEWHERE in text
    assert "turns: probability" in text
    assert "facts: probability" in text
    assert "AUC 1.000" in text


# -- stored facts ------------------------------------------------------------------------------------------------------

SPEAKERS = ("Ann", "Tom")


@pytest.mark.parametrize(
    "text",
    [
        "Ann loves it.",
        "It's been hard for Ann.",
        "Ann thought of that.",
        "That helps Ann.",
        "Tom: She is kind.",
        "Ann goes there every week.",
        "They gave Ann a prize.",
        "Ann never had a chance to visit it.",
        "Ann wants her kids to learn that too.",
    ],
)
def test_a_pronoun_with_nothing_before_it_is_unresolved(text: str) -> None:
    assert unresolved(text, SPEAKERS)


@pytest.mark.parametrize(
    "text",
    [
        "Ann planted a rose and it grew.",
        "Tom met Maria and she helped him.",
        "Ann's mother said she would come.",
        "It rained all day.",
        "There are two cats in Ann's house.",
        "Ann thinks that cats are fun.",
        "Ann bought that lamp.",
        "Tom went to Lisbon and works there.",
        "Ann sold her car.",
        "Tom does what they love.",
        "Tom lost the race, and that hurts.",
    ],
)
def test_expletives_conjunctions_and_pronouns_with_an_antecedent_are_not(text: str) -> None:
    assert not unresolved(text, SPEAKERS)


def test_a_pronoun_is_seen_whatever_it_means() -> None:
    assert has_pronoun("Ann planted a rose and it grew.")
    assert not has_pronoun("Ann thinks that it rained.")


def test_roles_are_roles_and_people_are_users_with_a_name() -> None:
    turns = [{"id": "1", "speaker": "assistant", "text": "Hi"}, {"id": "2", "speaker": "Ann", "text": "Hello"}]
    first, second = messages_of({"id": "s", "datetime": "2026-01-01T10:00:00", "turns": turns})
    assert first == {"role": "assistant", "content": "Hi", "timestamp": "2026-01-01T10:00:00+00:00"}
    assert (second["role"], second["name"], second["timestamp"]) == ("user", "Ann", "2026-01-01T10:00:01+00:00")


def test_coverage_counts_evidence_turns_once() -> None:
    turns = [{"id": each} for each in "abcd"]
    conversation = {"id": "c", "speakers": SPEAKERS, "sessions": [{"id": "s", "turns": turns}]}
    asked = [{"conversation_id": "c", "evidence": ["a", "b"]}, {"conversation_id": "c", "evidence": ["b"]}]
    found = {
        "c": [StoredFact("1", "Ann has a cat.", frozenset({("s", "b")})), StoredFact("2", "It purrs.", frozenset())]
    }
    last = facts.shown([conversation], asked, found).splitlines()[-1]
    assert last.split() == ["all", "4", "2", "0.500", "2", "0.500", "0.500", "0.500"]


def test_the_share_of_sessions_is_the_mean_over_questions() -> None:
    assert sessions.shown([("a", 1.0), ("a", 0.0), ("b", 0.5)]).splitlines()[-1].split() == ["all", "3", "0.500"]


# -- forgetting --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("ticket 4711-A", {"4711-a"}),
        ('"ann"@example.org', {'ann"@example.org'}),
        ("everything about Ann's garden", {"ann"}),
        ("the spare key", {"spare"}),
    ],
)
def test_key_words_are_identifiers_else_names_else_long_words(query: str, words: set[str]) -> None:
    assert key_words(query) == words


def test_only_the_hits_with_most_key_words_are_deleted() -> None:
    texts = ["Ann Berg plants roses.", "Tom Berg plants beans.", "It rained.", "Ann Berg's gate is green."]
    assert to_delete("Ann Berg", texts) == [0, 3]
    assert to_delete("Ann Berg", texts[2:3]) == []


def test_a_case_passes_when_all_that_must_be_is_there_and_nothing_that_must_not() -> None:
    case = {"must_contain": ["green gate"], "must_not_contain": ["red gate"]}
    assert passes(case, ["A Green gate.", "Rain."])
    assert not passes(case, ["A green gate, once a red gate."])
    assert not passes(case, ["Rain."])


def test_passes_are_counted_by_form_and_category() -> None:
    results = [
        CaseResult("content", "a", by_search=True, by_recall=False),
        CaseResult("messages", "a", by_search=True, by_recall=True),
        CaseResult("content", "b", by_search=True, by_recall=False),
        CaseResult("messages", "b", by_search=False, by_recall=False),
    ]
    last = forgetting.shown(results).splitlines()[-1]
    assert last.split() == ["all", "2", "2", "0", "1", "1"]
