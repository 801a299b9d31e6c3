"""Names and ids that hold a secret.

A name cannot be redacted without becoming another name, so it is taken as it is or refused. Only secrets are looked
for: users are often named by their mail address or telephone number.
"""

from __future__ import annotations

import re
from functools import lru_cache

from service.redaction.detection import blocks, cards, codes, folding, places, tokens
from service.redaction.detection.findings import PASSWORD

# Words in small letters, and UUIDs: neither can hold a key, and together they are nearly all names there are.
_PLAIN = re.compile(r"[a-z_ ]{1,40}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def holds_secret(name: str) -> bool:
    """Whether it holds a vendor's key, an announced password, a card's number, a private key or an address with a
    password. Names of applications that only look generated (`session:3f9a...`) do not count."""
    if _PLAIN.fullmatch(name):
        return False
    try:
        return _looked_through(name)
    except _SecretFoundError:
        return True


class _SecretFoundError(Exception):
    """Keeps the name out of the cache."""


@lru_cache(maxsize=4_096)
def _looked_through(name: str) -> bool:
    plain, _ = folding.folded(name)
    found = any(True for find in (blocks.find, tokens.find_telling, cards.find) for _ in find(plain))
    if found or any(each.label == PASSWORD for each in (*places.find(plain), *codes.find(plain))):
        raise _SecretFoundError
    return False
