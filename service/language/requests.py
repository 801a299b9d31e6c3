"""Recognises requests for an action, questions about the present, and questions for a time.

Cue lists for English, no parser. Pure.

"Book me a flight to Rome" is answered by what its author likes, and hardly a word of it stands there. "What did you
recommend?" and "Find out when I moved" ask for what was said: those are questions.
"""

from __future__ import annotations

import re
from typing import Final

_DO: Final = (
    r"(?:arrange|bake|book|bring|build|buy|choose|compose|cook|create|design|draft|explain|find(?!\s+out)|fix|get|help"
    r"|invite|make|order|organi[sz]e|pack|pick|plan|play|prepare|proofread|propose|put|recommend|redecorate|rent|reserve"
    r"|schedule|set\s+up|spend|suggest|write)"
)
_REQUEST: Final = re.compile(
    rf"^\W*(?:(?:please|hey|hi|hello|ok|okay|so|now|and|then)\W+)*"
    rf"(?:(?:can|could|would|will)\s+(?:you|we)\s+(?:please\s+)?|let['\u2019]?s\s+|let\s+us\s+)?{_DO}\b"
    r"|\b(?:should|shall|could|can)\s+(?:i|we)\b"
    r"|^\W*(?:i|we)(?:['\u2019](?:m|re|d)|\s+am|\s+are|\s+would)?\s+"
    r"(?:need|want|like|looking\s+for|looking\s+to|thinking\s+of|planning|trying)\b"
    r"|\b(?:any|some)\s+(?:good\s+)?(?:ideas?|suggestions?|tips|recommendations?)\b"
    r"|\b(?:for|suits?|fits?)\s+(?:me|us)\W*$",
    re.IGNORECASE,
)
_SAID: Final = re.compile(
    r"\b(?:did|have|had|was|were)\s+(?:i|you|we)\b|\b(?:i|you|we)\s+(?:\w+ly\s+)?(?:said|told|gave|mentioned|suggested"
    r"|recommended|advised|proposed|asked|talked|wrote)\b",
    re.IGNORECASE,
)
_PRESENT: Final = re.compile(
    r"\b(?:now|nowadays|current(?:ly)?|at\s+(?:the\s+moment|present)|presently|these\s+days|latest|newest"
    r"|most\s+recent(?:ly)?|so\s+far)\b",
    re.IGNORECASE,
)


_WHEN: Final = re.compile(
    r"^\W*(?:(?:and|so|since|until|by|from)\s+)*when\b|\b(?:what|which)\s+(?:dates?|days?|weeks?|months?|years?|time)\b"
    r"|\bhow\s+long\s+ago\b",
    re.IGNORECASE,
)


def is_request(text: str) -> bool:
    """Returns whether something is to be done, chosen or proposed for its author."""
    return _REQUEST.search(text) is not None and _SAID.search(text) is None


def asks_when(text: str) -> bool:
    """Returns whether it asks at which time something was or will be."""
    return _WHEN.search(text) is not None


def asks_the_present(text: str) -> bool:
    """Returns whether it asks how things stand: the newest of what was said about it answers."""
    return _PRESENT.search(text) is not None
