"""Printed matter: notices, headlines, adverts, reviews, clauses, dictionaries, exercises, verse, long articles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from service.language import wordlists
from service.language.talk.pasted.lines import Line, Pasted, paragraphs, pasted
from service.language.talk.pasted.machine import FILE_NAME
from service.language.talk.pasted.remarks import ANY_WORD, DIVIDER, end_of_text, is_casual, resumes
from service.language.talk.worth import FIRST_PERSON, SECOND_PERSON, WORD

MAX_PROSE_WORDS = 120
"""A paragraph of so many words in which nobody says I, we or my is a text, not talk."""

MIN_VERSES, MAX_VERSE_CHARS = 3, 64
CAPITALS = re.compile(
    r"^[^\w\n]{0,4}(?P<label>[A-ZÀ-Þ][A-ZÀ-Þ0-9&/.'’-]*(?: [A-ZÀ-Þ0-9&/.'’-]+)*)(?P<behind>\s*(?:[:\[(|–—-]|\d))"
)
"""A label in capitals, with what divides it from the text behind it."""

OWN_LABELS = wordlists.words("""
    todo note notes update edit important fyi ps p.s tldr tl;dr reminder btw asap context question goal ok warning idk
    omg lol no yes i
""")
"""Labels in capitals that people write themselves."""

BYLINE = re.compile(r"^\W*By [A-ZÀ-Þ][\w.'’-]+ [A-ZÀ-Þ][\w.'’-]+(?:\s*[-–—,|·].*)?$")
RATING = re.compile(
    r"^\W*(?:[★☆⭐✩✭]\W*){2,}|^\W*\d(?:[.,]\d)?(?:/5|/10| stars?| out of (?:5|10|five|ten)(?: stars?)?)\s*[-–—:|\"“]"
)
CLAUSE = re.compile(
    r"^\W*(?:§++ ?\d\S*+|\d{1,2}(?:\.\d{1,2})+\.?|\(?(?:Article|Section|Clause|Art\.) \d\S*+)\s+\W?[A-Z]\w* \w+"
)
MIN_CLAUSE_WORDS = 8
DICTIONARY = re.compile(
    r"^\W*+[\w'-]++[^\w/\[(]*+(?:/[^/\n]{2,40}/|\[[^\]\n]{2,40}\]|\([^)\n]{2,40}\))?[\s,]*+\(?(?:noun|verb|adjective|adverb|adj\.|adv\."
    r"|n\.|v\.|vb\.|interjection|pl\.)(?:\W|$)",
    re.IGNORECASE,
)
BLANKS = re.compile(r"_{2,}|\.{5,}|\[(?:blank|gap|\.\.\.)\]|\( {2,}\)")
TO_INFLECT = re.compile(r"\b(?:I|he|she|we|they|it|you) \((?:not )?[a-z]{2,12}\)", re.IGNORECASE)
SCENE = re.compile(r"^\W*(?:INT|EXT)\. |^\W*(?:Act|Scene) (?:[IVX]+|\d+)\b")


def headed(lines: Sequence[Line]) -> Iterator[Pasted]:
    """What stands under a headline, a byline, a file's name or a label in capitals, down to a remark on it."""
    at = 0
    mixed = any(is_casual(line.text) or not line.text.isupper() for line in lines)
    while at < len(lines):
        title = mixed and len(lines) > at + 1 and _is_heading(lines[at].text)
        if not title or (lines[at + 1].text.isupper() and at + 2 == len(lines)):
            at += 1
            continue
        end = end_of_text(lines, at + 1)
        if end == len(lines):
            end = at + 1
        yield from pasted(lines[at:end])
        at = end


def _is_heading(text: str) -> bool:
    """Whether a line is nothing but a headline."""
    words = ANY_WORD.findall(text[:200])
    return (
        BYLINE.match(text) is not None
        or SCENE.match(text) is not None
        or FILE_NAME.match(text) is not None
        or (len(words) >= 3 and text.isupper())
    )


def notices(lines: Sequence[Line]) -> Iterator[Pasted]:
    """Single lines with the form of a notice, a review, a clause, a dictionary's entry or an exercise."""
    for line in lines:
        text = line.text
        clause = CLAUSE.match(text) and len(WORD.findall(text)) >= MIN_CLAUSE_WORDS
        if (
            _is_labelled(text)
            or RATING.match(text)
            or clause
            or DICTIONARY.match(text)
            or BLANKS.search(text)
            or _is_exercise(text)
        ):
            yield from pasted([line])


def _is_exercise(text: str) -> bool:
    """Whether verbs stand in brackets, to be put into their form: "If I (be) rich"."""
    verbs = len(TO_INFLECT.findall(text))
    return verbs > 1 or (verbs == 1 and "(be)" in text) or (verbs == 1 and text.count("(") > 1)


def _is_labelled(text: str) -> bool:
    """Whether a line has a label in capitals of two words or more, or of one before several sentences. In it
    somebody speaks: "RATE LIMIT: 500 per minute" is a record."""
    found = CAPITALS.match(text)
    if found is None or text.isupper() or not (FIRST_PERSON.search(text) or SECOND_PERSON.search(text)):
        return False
    words = [word for word in found["label"].split() if any(char.isalpha() for char in word)]
    behind = text[found.end("label") :]
    letters = sum(char.isalpha() for char in found["label"])
    if letters < 4 or words[0].strip(".:").casefold() in OWN_LABELS or len(WORD.findall(behind)) < 3:
        return False
    return (
        len(words) >= 2
        or found["behind"].strip()[:1] in ("[", "–", "—", "-", "(")
        or len(re.findall(r"[.!?](?:\s|$)", behind)) >= 2
    )


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


def articles(lines: Sequence[Line]) -> Iterator[Pasted]:
    """Long paragraphs in which nobody speaks of himself."""
    for paragraph in paragraphs(lines):
        text = " ".join(line.text for line in paragraph)
        if FIRST_PERSON.search(text) is None and len(WORD.findall(text)) >= MAX_PROSE_WORDS:
            yield from pasted(paragraph)
