"""Redacted texts, blank texts, and the hash of a text.

Embedders, language models and the database take a `CleanText` and nothing else, so the type checker finds a raw text on
its way to them. `runtime/pii.py` makes it of what callers send. Elsewhere it is a cast, which the checker believes:
right for constants and texts that were redacted before (stored texts, parts of them, texts written by rules), wrong for
anything from a request. `tests/test_clean_text.py` lists the casts.
"""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass
from typing import Annotated, NewType

from pydantic import Field

CleanText = NewType("CleanText", str)


@dataclass(frozen=True, slots=True)
class RedactionCount:
    """One kind of secret or personal data that was redacted."""

    label: Annotated[str, Field(description="What was redacted", examples=["API_KEY"])]
    count: Annotated[int, Field(description="Number of redactions", examples=[1])]


def is_blank(text: str) -> bool:
    """Whether nothing of it is visible: blanks, control characters, marks that only join or direct others."""
    return all(unicodedata.category(char) in _UNSEEN for char in text)


_UNSEEN = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})


def content_hash(text: str) -> str:
    """MD5 of the UTF-8 text in hexadecimal, as its identity, not for security."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def sha256(text: str) -> str:
    """SHA-256 of the UTF-8 text, 64 hexadecimal characters."""
    return hashlib.sha256(text.encode()).hexdigest()
