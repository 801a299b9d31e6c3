"""docs/habits.md says what GET /v1/reference/guidance says."""

from __future__ import annotations

from service.app.routes.reference import GUIDANCE
from tests.docs.pages import ROOT


def test_the_lists_of_the_page_are_those_of_the_service() -> None:
    page = (ROOT / "docs" / "habits.md").read_text().replace("[redacted](redaction.md)", "redacted")
    for content, typical, why in GUIDANCE:
        low, high = typical or ("", "")
        rated = f" {low} |" if low == high else f" {low} to {high} |"
        assert f"| {content} |{rated if typical else ''} {why} |" in page
