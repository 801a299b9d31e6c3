"""Phrasing signals: measured once per text, with defaults where there is no text."""

from __future__ import annotations

from uuid import UUID

import pytest

from service.search import signals

IDS = [UUID(int=number) for number in range(3)]


def test_values_of_texts_and_of_missing_texts() -> None:
    texts = ["Do you sail?", None, "I sail."]
    assert signals.asking_share(IDS, texts).tolist() == [1.0, 0.0, 0.0]
    assert signals.first_person_share(IDS, texts).tolist() == pytest.approx([1 / 3, 0.5, 2 / 3])
    assert signals.first_person_share(IDS[:1], ["I sail. " * 251]).tolist() == [0.5]
    assert signals.asking_share(IDS[:1], ["\u0643\u064a\u0641\u061f"]).tolist() == [1.0]


def test_a_text_is_measured_once_and_anew_when_it_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []
    cache = signals._Remembered(lambda text: float(measured.append(text) or len(text)))  # type: ignore[func-returns-value]
    assert [
        cache.of(IDS[0], "a"),
        cache.of(IDS[0], "a"),
        cache.of(IDS[0], "ab"),
        cache.of(IDS[1], "a"),
    ] == [1, 1, 2, 1]
    assert measured == ["a", "ab", "a"]
    monkeypatch.setattr(signals, "MAX_REMEMBERED", 3)
    cache.of(IDS[2], "a")
    cache.of(IDS[0], "a")
    assert measured == ["a", "ab", "a", "a", "a"], "all are forgotten when there are too many"
