"""Who says that a text is clean: redaction, what reads rows back, and a list of others that may only shrink."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

SERVICE = Path(__file__).resolve().parents[1] / "service"

MAKERS = ("redaction/detection/redact.py", "runtime/pii.py")
READS_BACK = frozenset({"statements", "postgres", "queue"})
"""Rows were redacted before they were written."""

MADE_OF_CLEAN_TEXTS = {
    "understanding/extract.py": 2,
    "understanding/grounding.py": 1,
    "understanding/judge.py": 1,
    "understanding/model_or_rules.py": 1,
    "cognition/values.py": 1,
    "language/context.py": 2,
    "language/talk/quotes.py": 2,
    "erasure/forget_asked.py": 3,
    "erasure/forget_matched.py": 2,
    "erasure/forget_plan.py": 1,
    "memories/lifecycle.py": 1,
    "memories/review.py": 1,
    "memories/pipeline.py": 1,
    "search/measuring.py": 1,
    "search/preparation.py": 2,
    "search/techniques.py": 2,
    "conversations/conversations.py": 1,
    "runtime/embedding.py": 1,
}
"""Casts of what is put together, cut or reworded from clean texts, and of what a model said of them, which is redacted
before it is stored. Let functions return CleanText instead of adding to it."""


def casts(file: Path) -> int:
    """Calls of CleanText, and casts to it, on anything but a constant."""
    found = 0
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call) and node.args:
            called = ast.unparse(node.func)
            to_clean = called.endswith("cast") and "CleanText" in ast.unparse(node.args[0])
            is_cast = called.split(".")[-1] == "CleanText" and not isinstance(node.args[0], ast.Constant)
            found += is_cast or to_clean
    return found


def test_nothing_else_says_that_a_text_is_clean() -> None:
    counted = Counter({str(file.relative_to(SERVICE)): casts(file) for file in SERVICE.rglob("*.py")})
    elsewhere = {
        name: count
        for name, count in counted.items()
        if count and name not in MAKERS and READS_BACK.isdisjoint(name.split("/"))
    }
    assert elsewhere == MADE_OF_CLEAN_TEXTS
