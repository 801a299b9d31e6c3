"""Fusion of signals: each counts as documented, and every score can be recomputed from its terms."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain import bm25
from service.domain.ranking import Fusion, Weights
from service.search import fusion, reordering
from service.search.fusion import Ranked
from tests.search.candidates import OneCandidate, asking, columns
from tests.search.scores import recomputed

METHODS: tuple[Fusion, ...] = ("weighted", "rrf")
UNIT = st.floats(0, 1)
MAYBE = st.none() | st.floats(-1, 1)
CANDIDATES = st.builds(
    OneCandidate,
    key=st.integers(),
    text_lexical=st.floats(0, 60),
    context_lexical=st.none() | st.floats(0, 60),
    text_vector=MAYBE,
    context_vector=MAYBE,
    speaker=UNIT,
    asking=UNIT,
    time=UNIT,
    rare=UNIT,
    tag=UNIT,
    entity=UNIT,
    factors=st.dictionaries(st.sampled_from(["importance", "recency", "validity"]), st.floats(0, 2)),
)


def keys(ranked: list[Ranked]) -> list[object]:
    return [hit.key for hit in ranked]


@pytest.mark.parametrize("method", METHODS)
@given(
    candidates=st.lists(CANDIDATES, max_size=12, unique_by=lambda each: each.key),
    texts=st.floats(0, 40),
    contexts=st.floats(0, 40),
    only_time=st.booleans(),
)
def test_scores_are_made_of_their_terms(
    method: Fusion, candidates: list[OneCandidate], texts: float, contexts: float, *, only_time: bool
) -> None:
    ranked = fusion.fuse(columns(candidates), asking(texts, contexts, only_time=only_time, method=method))
    assert sorted(keys(ranked), key=str) == sorted((each.key for each in candidates), key=str)
    assert [hit.score for hit in ranked] == sorted((hit.score for hit in ranked), reverse=True)
    for hit in ranked:
        assert recomputed(hit) == pytest.approx(hit.score, abs=1e-6)
        assert all(0 <= term.value <= 1 for term in hit.terms.values())
        assert math.fsum(term.weight for term in hit.terms.values()) == pytest.approx(1)


def near_by(count: int = 20) -> list[OneCandidate]:
    """Candidates that the vectors like, some with a frequent word."""
    return [
        OneCandidate(at, text_lexical=at % 3, context_lexical=at % 3, text_vector=0.7 - at / 500, context_vector=0.7)
        for at in range(count)
    ]


FAR = OneCandidate("far", text_vector=0.1, context_vector=0.1)


@pytest.mark.parametrize(
    ("hit", "full_match", "only_time"),
    [
        (replace(FAR, text_lexical=9.0, context_lexical=9.0, rare=1.0), 9.0, False),
        (replace(FAR, time=1.0), 0.0, True),
        (replace(FAR, text_lexical=1.0, tag=1.0, rare=1.0), 0.0, False),
    ],
    ids=["a rare token", "a time and nothing else", "a tag and a name"],
)
@pytest.mark.parametrize("method", METHODS)
def test_what_vectors_do_not_see_can_be_first(
    hit: OneCandidate, full_match: float, method: Fusion, *, only_time: bool
) -> None:
    query_context = asking(full_match, full_match, only_time=only_time, method=method)
    assert fusion.fuse(columns([*near_by(), hit]), query_context)[0].key == "far"


def test_without_any_vector_words_decide() -> None:
    found = fusion.fuse(columns([OneCandidate("b", 1.0), OneCandidate("a", 2.0), OneCandidate("c")]), asking(2, 2))
    assert keys(found) == ["a", "b", "c"]


def test_a_vector_still_to_come_is_no_reproach_to_a_full_match() -> None:
    queued = OneCandidate("new", text_lexical=8.0, rare=0.9)
    assert fusion.fuse(columns([*near_by(), queued]), asking(8, 8))[0].key == "new"


def test_one_weak_word_in_common_is_no_full_match() -> None:
    ranked: dict[Any, Ranked] = {
        hit.key: hit for hit in fusion.fuse(columns([OneCandidate("weak", 1.0), OneCandidate("none")]), asking(10, 10))
    }
    assert ranked["weak"].terms["text_lexical"].value == pytest.approx(1 / 6)


def test_a_memory_without_context_is_its_own_context() -> None:
    note, turn = OneCandidate("note", 4.0, None, 0.6, None), OneCandidate("turn", 4.0, 4.0, 0.6, 0.6)
    first, second = fusion.fuse(columns([note, turn, FAR]), asking(4, 4))[:2]
    assert first.score == second.score


LIFTED = OneCandidate("b", 1.0, 1.0, 0.5, 0.5)


@pytest.mark.parametrize(
    "lifted",
    [
        replace(LIFTED, speaker=1.0),
        replace(LIFTED, first_person=1.0),
        replace(LIFTED, time=1.0),
        replace(LIFTED, dated=1.0),
        replace(LIFTED, rare=1.0),
        replace(LIFTED, tag=1.0),
        replace(LIFTED, entity=1.0),
    ],
)
def test_each_sign_lifts(lifted: OneCandidate) -> None:
    assert keys(fusion.fuse(columns([replace(LIFTED, key="a"), lifted]), asking(1, 1))) == ["b", "a"]


def test_a_question_stands_behind_a_statement() -> None:
    plain = OneCandidate("b", 1.0, 1.0, 0.5, 0.5)
    assert keys(fusion.fuse(columns([plain, replace(plain, key="a", asking=1.0)]), asking(1, 1))) == ["b", "a"]


def test_ties_fall_by_key_and_the_limit_cuts() -> None:
    candidates = [OneCandidate(key, 1.0) for key in ("c", "a", "b")]
    assert keys(fusion.fuse(columns(candidates), asking(1, 1))) == ["a", "b", "c"]
    assert keys(fusion.fuse(columns(candidates), asking(1, 1), limit=2)) == ["a", "b"]
    assert fusion.fuse(columns([]), asking()) == []


def test_the_order_does_not_depend_on_the_order_of_arrival() -> None:
    candidates = near_by()
    assert keys(fusion.fuse(columns(candidates), asking(3, 3))) == keys(
        fusion.fuse(columns(candidates[::-1]), asking(3, 3))
    )


def test_no_weight_no_score() -> None:
    nothing = Weights(**dict.fromkeys(Weights.model_fields, 0.0))
    assert [hit.score for hit in fusion.fuse(columns(near_by(2)), asking(weights=nothing))] == [0.0, 0.0]


@pytest.mark.parametrize("wrong", [-0.1, math.nan, math.inf])
def test_weights_are_finite_and_not_negative(wrong: float) -> None:
    with pytest.raises(ValueError, match="time"):
        Weights(time=wrong)


def test_equal_ranks_get_equal_values() -> None:
    ranked = fusion.fuse(
        columns([OneCandidate("a", 2.0), OneCandidate("b", 2.0), OneCandidate("c", 1.0), OneCandidate("d")]),
        asking(method="rrf"),
    )
    value = {hit.key: hit.terms["text_lexical"].value for hit in ranked}
    assert value == {"a": 1.0, "b": 1.0, "c": pytest.approx(61 / 63), "d": 0.0}


@pytest.mark.parametrize(("texts", "with_term"), [(0, 0), (1, 1), (500, 1), (500, 250), (500, 500), (3, 9)])
def test_rarity_lies_between_0_and_1(texts: int, with_term: int) -> None:
    assert 0 <= fusion.rarity(texts, with_term) <= 1
    assert bm25.idf(texts, with_term) > 0


def test_a_single_holder_is_as_rare_as_can_be() -> None:
    assert fusion.rarity(500, 1) == 1.0
    assert 0.5 < fusion.rarity(500, 4) < 0.7
    assert fusion.rarity(500, 40) == 0.0


@given(
    candidates=st.lists(CANDIDATES, max_size=8, unique_by=lambda each: each.key),
    relevance=st.dictionaries(st.integers(), UNIT, max_size=8),
    weight=UNIT,
    diversity=UNIT,
)
def test_scores_are_made_of_their_terms_after_a_second_look(
    candidates: list[OneCandidate], relevance: dict[Any, float], weight: float, diversity: float
) -> None:
    ranked = fusion.fuse(columns(candidates), asking(9, 9))
    groups = np.array([float(hash(hit.key) % 2) for hit in ranked])
    spread = reordering.diversify(ranked, lambda at: np.maximum(groups, groups[at]), diversity, limit=6, one_by_one=3)
    for found in (reordering.blend(ranked, relevance, weight), spread, reordering.blend(spread, relevance, weight)):
        assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
        for hit in found:
            assert recomputed(hit) == pytest.approx(hit.score, abs=1e-6)
            assert math.fsum(term.weight for term in hit.terms.values()) == pytest.approx(1)


def test_a_judge_decides_over_what_it_was_shown() -> None:
    ranked = fusion.fuse(columns(near_by(5)), asking(2, 2))
    last = ranked[-1].key
    assert keys(reordering.blend(ranked, {last: 1.0}, 0.8))[0] == last
    assert keys(reordering.blend(ranked, {last: 1.0}, 0.0)) == keys(ranked)


def test_without_explain_there_are_no_terms() -> None:
    explained, plain = (fusion.fuse(columns(near_by(3)), asking(2, 2), explain=explain) for explain in (True, False))
    assert [hit.score for hit in explained] == [hit.score for hit in plain]
    assert [len(hit.terms) for hit in plain] == [0, 0, 0]
