"""A memory in one line: its first sentence."""

from __future__ import annotations

from service.language import sentences

MAX_CHARS = 240
_ELLIPSIS = "…"


def first_sentence(text: str, max_chars: int = MAX_CHARS) -> str:
    """Returns the first sentence, at most `max_chars` characters (at least 1), "" for a blank text.

    A longer sentence is cut after a whole word and ends in "…", which counts.
    """
    spans = sentences.split(text)
    if not spans:
        return ""
    start, end = spans[0]
    return shorten(text[start:end], max_chars)


def shorten(sentence: str, max_chars: int) -> str:
    """Returns at most `max_chars` characters of it, cut after a whole word."""
    if len(sentence) <= max_chars:
        return sentence
    room = max_chars - len(_ELLIPSIS)
    head = sentence[:room]
    if head and not (head[-1].isspace() or sentence[room].isspace()):
        # A text without blanks (a URL, Chinese) has no word boundary to offer: cut it where the room ends.
        head = head.rsplit(None, 1)[0] if len(head.split(None, 1)) > 1 else head
    return head.rstrip(" \t,;:-–—") + _ELLIPSIS
