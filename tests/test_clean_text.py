"""Who says that a text is clean: redaction, what reads rows back, and a list of others that may only shrink."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

SERVICE = Path(__file__).resolve().parents[1] / "service"

MAKERS = ("language/pii/redact.py", "pipeline/pii.py")
READS_BACK = "db/"
"""Rows were redacted before they were written."""

MADE_OF_CLEAN_TEXTS = {
    "curator/extraction_reply.py": 2,
    "curator/grounding.py": 2,
    "curator/judge.py": 1,
    "curator/model_answers.py": 1,
    "curator/prompts.py": 1,
    "domain/procedure.py": 1,
    "language/context.py": 2,
    "language/talk/quotes.py": 1,
    "memory/forget_asked.py": 2,
    "memory/forget_matched.py": 3,
    "memory/forget_plan.py": 2,
    "memory/review.py": 1,
    "memory/undo.py": 1,
    "pipeline/size.py": 1,
    "retrieval/past_texts.py": 1,
    "retrieval/search.py": 2,
    "retrieval/techniques.py": 3,
    "retrieval/transcript.py": 1,
    "retrieval/turn_search.py": 1,
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
        if count and name not in MAKERS and not name.startswith(READS_BACK)
    }
    assert elsewhere == MADE_OF_CLEAN_TEXTS
