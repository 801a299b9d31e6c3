"""The stored form of tags, and their prefixes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

DELIMITERS = ":/"
_DELIMITER = re.compile(f"[{DELIMITERS}]")


def split(tags: Sequence[str] | str) -> tuple[str, ...]:
    """Returns the tags as they were sent, without empty ones.

    Only a single string is split at commas; inside a list a comma belongs to the tag, as its sender wrote it.
    """
    parts = tags.split(",") if isinstance(tags, str) else tags
    return tuple(part for part in parts if part.strip())


def normalise(tags: Sequence[str] | str) -> tuple[str, ...]:
    """Returns the tags split, stripped and lower-cased, without repeats, in the order given."""
    return tuple(dict.fromkeys(tag.strip().lower() for tag in split(tags)))


def prefixes(tags: Sequence[str]) -> tuple[str, ...]:
    """Returns every cumulative prefix of the normalised tags, shortest first, without repeats.

    `slack:channel:general` gives slack, slack:channel, slack:channel:general; the delimiter stays as written.
    A prefix never ends in a delimiter, so `https://x` gives https and https://x.
    """
    every_prefix = (prefix for tag in normalise(tags) for prefix in _cumulative(tag))
    return tuple(dict.fromkeys(every_prefix))


def levels(tags: Iterable[str]) -> int:
    """The number of parts of all tags together; each part ends a prefix that is indexed."""
    return sum(len(_DELIMITER.findall(tag)) + 1 for tag in tags)


def newest(tags: Sequence[str], *, most: int, most_levels: int) -> list[str]:
    """The last tags that fit within both limits."""
    first = max(0, len(tags) - most)
    while levels(tags[first:]) > most_levels:
        first += 1
    return list(tags[first:])


def _cumulative(tag: str) -> list[str]:
    cuts = [tag[: match.start()] for match in _DELIMITER.finditer(tag)]
    return [cut for cut in cuts if cut and cut[-1] not in DELIMITERS] + [tag]
