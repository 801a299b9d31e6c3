"""The sentences and list items of the words that a message's sender says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from service.language import sentences
from service.language.talk import blocks, references
from service.language.talk.worth import IRONY, WORD

MIN_PIECE, MAX_PIECE = 2, 8
"""Words of the statements that a sentence is cut into."""

ITEM = re.compile(r"\s*(?:[-*•–+]|\d{1,2}[.)])\s+|\s*\[[ xX]?\]\s+")
KEY_VALUE = re.compile(r"^[^\w\n]*+[^\W\d_][\w /-]{1,30}:\s++\S", re.MULTILINE)
HEADING = re.compile(r"[^.!?]{2,80}:\s*\**$|\s*#{1,6}\s+[^.!?]{2,80}$|\*\*[^*]{2,80}\*\*:?$")
STRUNG = re.compile(
    r"(?<!\s)\s*(?:[,;]\s*(?:and |but |also )?|\s(?:and|but) )(?=(?:I|I['’](?:m|ve|ll|d)|my|we|our)\b)", re.IGNORECASE
)
NOTHING_SAID = re.compile(
    r"\W*(?:my|our)\b(?!.*(?:\b(?:is|are|was|were|has|have|had|\w{2,20}ed)\b|['’]s\b|\w{2,20}s \w))", re.IGNORECASE
)
"""What somebody has, without a verb: "my mom" of "my mom and I made dinner"."""

SUBORDINATE = re.compile(
    r"\b(?:if|when|whenever|while|because|since|as|although|though|unless|until|before|after|so|that|who|which|where"
    r"|why"
    r"|how|what|whether|think|thought|know|believe|guess|hope|wish|said|says|told)\b|\?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence or list item with its half-open span. `heading`: the line it stands under. `speaker`: whom it quotes,
    None for the sender. `listed`: a line of the form "key: value" beside others, or an item under a heading.
    `cut`: a statement of a longer sentence."""

    start: int
    end: int
    text: str
    heading: str = ""
    speaker: str | None = None
    listed: bool = False
    cut: bool = False

    @property
    def readable(self) -> str:
        return f"{self.heading} {self.text}" if self.heading else self.text


def units(text: str) -> list[Unit]:
    """The units of a message, in order; what was pasted into it is left out."""
    found: list[Unit] = []
    heading = ""
    several = len(KEY_VALUE.findall(text)) > 1
    for block in blocks.spoken(text):
        whole = [(0, block.end - block.start)]
        for left, right in whole if block.whole else sentences.split(text[block.start : block.end]):
            start, end = block.start + left, block.start + right
            sentence = text[start:end]
            if HEADING.match(sentence):
                heading = sentence.strip(" *#")
                continue
            item, pair = ITEM.match(sentence), KEY_VALUE.match(sentence)
            heading = heading if item or pair else ""
            start += item.end() if item else 0
            listed = bool((item and heading) or (pair and several))
            pieces = [(0, end - start)] if listed else statements(text[start:end])
            for left, right in ((start + a, start + b) for a, b in pieces):
                cut = len(pieces) > 1
                found.append(Unit(left, right, text[left:right], heading, block.speaker, listed, cut))
    return found


def statements(sentence: str) -> list[tuple[int, int]]:
    """The spans of the short statements that a sentence strings together, each with its own "I" or "my" in front, so
    that each can change by itself; else the whole."""
    cuts = [found.span() for found in STRUNG.finditer(sentence)]
    pieces = list(zip([0, *(end for _, end in cuts)], [*(start for start, _ in cuts), len(sentence)], strict=True))
    parts = [sentence[a:b] for a, b in pieces]
    short = all(MIN_PIECE <= len(WORD.findall(part)) <= MAX_PIECE for part in parts)
    alone = short and all(not references.hangs(part) and not NOTHING_SAID.match(part) for part in parts)
    announced = any(references.says_what_is_now(first, then) for first, then in pairwise(parts))
    bound = SUBORDINATE.search(sentence) or IRONY.search(sentence) or announced
    return pieces if alone and not bound else [(0, len(sentence))]
