from __future__ import annotations

import numpy as np
import pytest

from service.providers.openai_embedder import MAX_WINDOWS, mean, split
from service.providers.protocols import unit


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", [""]),
        ("short", ["short"]),
        ("exactly 8", ["exactly ", "8"]),
        ("aaaa bb cccc", ["aaaa bb ", "cccc"]),
        ("aaaaaaaaaaaaaaaaaaaa", ["aaaaaaaa", "aaaaaaaa", "aaaa"]),
        ("a bbbbbbbbbbbb", ["a bbbbbb", "bbbbbb"]),
    ],
)
def test_split(text: str, pieces: list[str]) -> None:
    assert split(text, 8) == pieces


def test_a_very_long_text_is_sampled_evenly() -> None:
    pieces = split("".join(f"{number:07d} " for number in range(1_000)), 8)
    assert len(pieces) == MAX_WINDOWS
    assert (pieces[0], pieces[-1]) == ("0000000 ", "0000999 ")


def test_mean_weighs_by_length() -> None:
    east, north = unit([1.0, 0.0]), unit([0.0, 1.0])
    np.testing.assert_allclose(mean([east, north], [3, 4]), [0.6, 0.8], atol=1e-6)
    assert mean([east], [3]) is east


@pytest.mark.parametrize("vector", [[0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0], []])
def test_a_vector_that_is_zero_or_not_finite(vector: list[float]) -> None:
    with pytest.raises(ValueError, match="zero or not finite"):
        unit(vector)


def test_windows_that_cancel_out() -> None:
    with pytest.raises(ValueError, match="zero or not finite"):
        mean([unit([1.0, 0.0]), unit([-1.0, 0.0])], [1, 1])
