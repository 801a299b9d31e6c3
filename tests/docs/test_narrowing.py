"""docs/narrowing.md names every field, operator and limit of filters."""

from __future__ import annotations

import re

from service.domain import filters
from tests.docs.pages import ROOT


def test_every_field_and_limit_is_on_the_page() -> None:
    page = (ROOT / "docs" / "narrowing.md").read_text()
    named = set(re.findall(r"`(\w+)`", page))
    assert set(filters.FIELDS) <= named
    assert set(filters.OPERATORS["any"]) <= named
    limits = [value for name, value in vars(filters).items() if name.startswith("MAX_") and name != "MAX_FIELD"]
    assert len(limits) == 8
    for limit in limits:
        assert re.search(rf"\b{limit:,}\s", page), limit
