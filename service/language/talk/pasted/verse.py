"""Lyrics and poems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from service.language.talk.pasted.lines import Line, Pasted, paragraphs, pasted
from service.language.talk.pasted.remarks import DIVIDER, is_casual, resumes
from service.language.talk.worth import WORD

MIN_VERSES, MAX_VERSE_CHARS = 3, 64


def verses(lines: Sequence[Line]) -> Iterator[Pasted]:
    """Short lines that end without a stop, and are no list: lyrics, a poem. A remark may end them."""
    for paragraph in paragraphs(lines):
        run = paragraph
        if len(run) > 1 and resumes_verse(run[-1].text):
            run = run[:-1]
        if len(run) > 2 and run[0].text.rstrip().endswith(":"):
            run = run[1:]
        if _is_verse([line.text.strip() for line in run]):
            yield from pasted(run)


def resumes_verse(text: str) -> bool:
    """Whether the line below a poem is no line of it."""
    return (
        resumes(text)
        or "?" in text[:-1]
        or (is_casual(text) and text.rstrip().endswith("?"))
        or DIVIDER.match(text) is not None
    )


def _is_verse(texts: Sequence[str]) -> bool:
    if len(texts) < MIN_VERSES or any(len(each) > MAX_VERSE_CHARS for each in texts):
        return False
    open_ends = sum(each[-1] not in ".!?:;" for each in texts)
    listed = sum((not each[0].isalpha() and each[0] not in "\"'“‘(") or ":" in each for each in texts)
    length = sum(len(WORD.findall(each)) for each in texts)
    even = all(len(WORD.findall(each)) > 1 for each in texts) and length >= 4 * len(texts)
    few = len(texts) > MIN_VERSES or all(each[0].isupper() for each in texts)
    return even and few and open_ends * 3 >= len(texts) * 2 and listed * 4 < len(texts)
