"""Data of the scale benchmark: vectors close to their originals, words by Zipf, the same rows each time."""

from __future__ import annotations

from uuid import UUID

import numpy as np

from bench import scale, scale_data
from bench.scale_data import NEAREST_COSINE, Sources


def _sources() -> Sources:
    chance = np.random.default_rng(1)
    vectors = chance.standard_normal((50, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return Sources([f"Sentence number {at}." for at in range(50)], vectors, ["Which one?"], vectors[:1])


def test_jitter_stays_near_and_on_the_sphere() -> None:
    vectors = _sources().vectors
    turned = scale_data.jittered(vectors, np.random.default_rng(2))
    assert np.allclose(np.linalg.norm(turned, axis=1), 1, atol=1e-5)
    cosines = np.sum(vectors * turned, axis=1)
    assert NEAREST_COSINE - 1e-4 <= cosines.min() < cosines.max() <= 1 + 1e-5


def test_few_words_are_frequent_and_many_are_rare() -> None:
    words = scale_data.invented(scale_data.WORDS)
    assert len(set(words)) == scale_data.WORDS
    counts = np.bincount(scale_data.chosen_words(20_000, np.random.default_rng(3)).ravel())
    assert counts[0] > 0.05 * 60_000
    assert (counts == 1).sum() > 5_000


def test_rows_are_mixed_complete_and_the_same_each_time() -> None:
    made = [list(scale_data.batches(UUID(int=1), scale_data.users(300), 300, _sources())) for _ in range(2)]
    users = [row[2] for batch in made[0] for row in batch.memories]
    assert {name: users.count(name) for name in set(users)} == dict(scale_data.users(300))
    assert len(set(users[:50])) > 5, "one user after the other"
    texts = [[row[4] for batch in one for row in batch.memories] for one in made]
    assert texts[0] == texts[1]
    batch = made[0][0]
    assert [row[1] for row in batch.memories] == [row[1] for row in batch.vectors] == [row[1] for row in batch.stats]
    assert len(batch.memories[0]) == len(scale_data.MEMORY_COLUMNS)
    assert len(batch.vectors[0]) == len(scale_data.VECTOR_COLUMNS)


def test_the_cells_go_from_all_rows_to_one_in_ten_thousand() -> None:
    cells = scale.cells(100_000)
    assert {cell.percent for cell in cells if cell.user == "big"} == {100.0, 50.0, 10.0, 1.0, 0.1, 0.01}
    plan = scale.Cell("big", 0.01).plan(UUID(int=1))
    assert {name: value for name, value in plan.conditions.values.items() if name.startswith("filter_")} == {
        "filter_0": "share",
        "filter_1": "1",
    }
    assert not [
        name for name in scale.Cell("big", 100.0).plan(UUID(int=1)).conditions.values if name.startswith("filter_")
    ]
