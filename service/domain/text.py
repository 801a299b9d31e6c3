"""Which texts may travel on?

`CleanText` is made by the PII stage only. Everything behind that stage (embedders, LLMs, the database) takes
nothing else, so the type checker guards the secret.
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
    """MD5 hex of the UTF-8 text (R1.09). Identity of a text, not a security use."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
