"""Variants of a search that the recall benchmark compares, and its figures."""

from __future__ import annotations

import math

import pytest

from bench import recall
from bench.load_conversations import QueryResult
from service.search.routes.search_models import SearchRequest


def test_every_way_is_a_request_that_the_service_takes() -> None:
    for group in recall.VARIANTS.values():
        for way in group.values():
            SearchRequest.model_validate({"query": "x", "user_id": "u", "tuning": way})


def test_an_arm_alone_counts_alone() -> None:
    weights = recall.only(text_vector=1)["weights"]
    assert {name for name, weight in weights.items() if weight} == {"text_vector"}
    assert "coverage" not in weights


def test_groups_and_single_variants() -> None:
    assert len(recall.chosen("arms")) == 5
    assert list(recall.chosen("without time,full search")) == ["without time", recall.FULL]
    with pytest.raises(SystemExit):
        recall.chosen("everything")


@pytest.mark.parametrize(
    ("ranks", "evidence", "gain"),
    [((1,), 1, 1.0), ((2,), 1, 1 / math.log2(3)), ((), 2, 0.0), ((11,), 1, 0.0), ((1, 2), 2, 1.0), ((1,), 20, 0.2201)],
)
def test_ndcg(ranks: tuple[int, ...], evidence: int, gain: float) -> None:
    assert QueryResult("any", evidence, ranks, 1.0).ndcg(10) == pytest.approx(gain, abs=1e-4)


def test_the_report_has_a_table_for_each_category() -> None:
    results = [QueryResult("a", 1, (1,), 5.0), QueryResult("b", 2, (3,), 9.0)]
    text = recall.report({"one variant": results, "another": results})
    assert [part.splitlines()[0].split("  ")[0] for part in text.split("\n\n")] == ["all (2)", "a (1)", "b (1)"]
    assert text.count("another") == 3
