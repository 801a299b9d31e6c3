"""Redacted texts, blank texts, and the hash of a text.

Embedders, language models and the database take a `CleanText` and nothing else, so the type checker finds a raw text on
its way to them. `pipeline/pii.py` makes it of what callers send. Elsewhere it is a cast, which the checker believes:
right for what was redacted before (texts read back, parts of them, texts the rules write) and for constants, wrong for
anything out of a request. `tests/test_clean_text.py` lists the casts.
"""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass
from typing import NewType

CleanText = NewType("CleanText", str)


@dataclass(frozen=True, slots=True)
class Redaction:
    """How many spans of one label (EMAIL, API_KEY, ...) were replaced."""

    label: str
    count: int


def is_blank(text: str) -> bool:
    """Returns whether nothing of it can be seen: blanks, control characters, marks that only join or direct others."""
    return all(unicodedata.category(char) in _UNSEEN for char in text)


_UNSEEN = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})


def content_hash(text: str) -> str:
    """MD5 hex of the UTF-8 text. Identity of a text, not a security use."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
