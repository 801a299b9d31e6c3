"""One analyser for documents and queries, in every script, in bounded time."""

from __future__ import annotations

import math
import random
import string
import threading
import time
import unicodedata

import pytest

from service.language.lexemes import MAX_TERMS, _known, lexemes, term_id, weights


def test_a_composed_and_a_decomposed_text_are_the_same() -> None:
    text = "Ångström crème brûlée naïve Żółć が 한국 ё й"
    assert lexemes(unicodedata.normalize("NFD", text)) == lexemes(unicodedata.normalize("NFC", text))


def test_a_term_id_fits_both_columns_and_never_changes() -> None:
    ids = {term_id(f"word{n}") for n in range(20_000)}
    assert min(ids) >= 1
    assert max(ids) <= 1_000_000_000
    assert len(ids) >= 19_995  # 0.2 collisions are expected among so many; these words have two
    assert (term_id("coffe"), term_id("猫"), term_id("🎉")) == (998215533, 208379450, 713314806)


def test_weights_are_those_of_bm25() -> None:
    found = weights("tea tea coffee", average_length=3.0)
    assert found == pytest.approx({term_id("tea"): 2 * 2.5 / (2 + 1.5), term_id("coffe"): 2.5 / 2.5})
    longer = weights("tea tea coffee", average_length=1.0)
    assert longer[term_id("tea")] == pytest.approx(2 * 2.5 / (2 + 1.5 * (0.25 + 0.75 * math.sqrt(3))))
    assert weights("", average_length=10.0) == {}


@pytest.mark.parametrize(
    "text",
    [
        "x" * 1_000_000,
        "猫" * 1_000_000,
        "aB" * 500_000,
        "a.b-" * 250_000,
        "'" * 1_000_000,
        "a'" * 500_000,
        "_" * 1_000_000,
        "1,111" * 200_000,
        "👨\u200d" * 400_000,
        "\u0301" * 1_000_000,
        "e\u0301" * 500_000,
        "the quick brown fox " * 50_000,
    ],
    ids=lambda text: ascii(text[:4]),
)
def test_a_megabyte_is_never_slow(text: str) -> None:
    started = time.thread_time()
    assert len(weights(text, average_length=12.0)) <= MAX_TERMS
    assert time.thread_time() - started < 2.0


def test_a_megabyte_of_words_never_seen_is_cut_at_the_largest_number_of_terms() -> None:
    draw = random.Random(7)
    text = " ".join("".join(draw.choices(string.ascii_lowercase, k=8)) for _ in range(110_000))
    started = time.thread_time()
    found = weights(text, average_length=12.0)
    assert 3_900 <= len(found) <= MAX_TERMS
    assert time.thread_time() - started < 2.0


def test_threads_do_not_mix_up_their_stems() -> None:
    words = [
        f"{stem}{ending}" for stem in ("walk", "jump", "paint", "talk") for ending in ("s", "ed", "ing", "er")
    ] * 50
    expected, found = [lexemes(word) for word in words], {}
    _known.cache_clear()

    def read(number: int) -> None:
        found[number] = [lexemes(word) for word in words]

    threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(result == expected for result in found.values())
