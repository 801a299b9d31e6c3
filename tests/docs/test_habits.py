"""docs/habits.md says what GET /v1/reference/guidance says."""

from __future__ import annotations

from service.api.reference import NEVER_STORED, WORTH_STORING
from tests.docs.pages import ROOT


def test_the_lists_of_the_page_are_those_of_the_service() -> None:
    page = (ROOT / "docs" / "habits.md").read_text().replace("[redacted](redaction.md)", "redacted")
    for content, (low, high), how in WORTH_STORING:
        importance = f"{low}" if low == high else f"{low} to {high}"
        assert f"| {content} | {importance} | {how} |" in page
    for content, why in NEVER_STORED:
        assert f"| {content} | {why} |" in page
