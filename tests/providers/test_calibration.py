"""The curve is monotone, rounded, and recorded without loss."""

from __future__ import annotations

import pytest

from service.providers.protocols import IDENTITY, Curve

CURVE = Curve(((0.5, 0.0), (0.8, 0.6), (1.0, 1.0)))


@pytest.mark.parametrize(
    ("cosine", "similarity"),
    [(-1.0, 0.0), (0.5, 0.0), (0.65, 0.3), (0.8, 0.6), (0.9, 0.8), (1.0, 1.0), (1.0000001, 1.0), (0.70001, 0.4)],
)
def test_between_knots_it_is_a_line_and_outside_flat(cosine: float, similarity: float) -> None:
    assert CURVE(cosine) == similarity


def test_it_never_falls() -> None:
    found = [CURVE(step / 1_000) for step in range(-1_000, 1_001)]
    assert found == sorted(found)


def test_identity_keeps_a_cosine_and_mends_the_rounding_of_halfvec() -> None:
    assert IDENTITY.documents(0.6999931) == 0.7
    assert IDENTITY.queries(0.85) == 0.85
    assert IDENTITY.documents(-0.2) == 0.0
