"""The lists of docs/narrowing.md and docs/habits.md are those of the service."""

from __future__ import annotations

import re

from service.app.routes.reference import GUIDANCE
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


# -- habits ------------------------------------------------------------------------------------------------------------


def test_the_lists_of_the_page_are_those_of_the_service() -> None:
    page = (ROOT / "docs" / "habits.md").read_text().replace("[redacted](redaction.md)", "redacted")
    for content, typical, why in GUIDANCE:
        low, high = typical or ("", "")
        rated = f" {low} |" if low == high else f" {low} to {high} |"
        assert f"| {content} |{rated if typical else ''} {why} |" in page
