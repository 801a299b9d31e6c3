"""Are poor texts noticed, and good ones left alone?"""

from __future__ import annotations

import pytest

from service.language import advice


@pytest.mark.parametrize(
    ("text", "hints"),
    [
        ("[DECISION] Use Redis for the session store", (advice.TYPE_PREFIX,)),
        ("Insight: caching helps the login page", (advice.TYPE_PREFIX,)),
        ("[bug-fix] Fixed typo", (advice.TYPE_PREFIX, advice.NO_CONTEXT)),
        ("Fixed typo", (advice.NO_CONTEXT,)),
        ("Changed config", (advice.NO_CONTEXT,)),
        ("updated the docs", (advice.NO_CONTEXT,)),
        ("ok", (advice.NO_CONTEXT,)),
        ("Fixed typo in README.md", ()),
        ("Changed config because logins failed", ()),
        ("Prefers tea", ()),
        ("Moved to Lisbon", ()),
        ("Decisions are taken on Mondays", ()),
        ("用户喜欢绿茶", ()),
    ],
)
def test_advice(text: str, hints: tuple[str, ...]) -> None:
    assert advice.warnings(text) == hints
