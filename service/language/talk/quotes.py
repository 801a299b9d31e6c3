"""The quotes of a conversation that are worth remembering: who said what, complete enough to be read alone.

A quote is a sentence as it was said, or the few that only together make sense, with the speaker in front and a date
behind each expression that needs one: "Ann: I moved to Lisbon last month (October 2026)." Nothing is retold, so nothing
can be told wrongly. What goes on with something the speaker told a few turns ago is put behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from service.language.talk import worth
from service.language.talk.turn import Piece, ReadTurns, TurnReader, Utterance, said_before
from service.language.talk.worth import WORD

OWN_TURNS = 4
"""Turns that are looked back to for what the speaker told last."""

MAX_CHARS = 700
"""A quote that is longer already takes nothing more behind it."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A fact: `text` as readers see it; `message` and the half-open span say where it was said. `confidence` 0..1.

    `retold`: it is not made of whole sentences as they were said. `also`: message and span of what else it quotes: a
    question, what the speaker had told before, a reply.
    """

    text: str
    message: int
    start: int
    end: int
    speaker: str
    confidence: float
    correction: bool = False
    retold: bool = False
    also: tuple[tuple[int, int, int], ...] = ()


def read(said: Sequence[Utterance], before: Sequence[Utterance], zone: ZoneInfo) -> list[Quote]:
    """The quotes of `said`, in order. `before`: the last turns of the conversation, only looked back to. Pure."""
    turns = [*before, *said]
    talk = ReadTurns.of(turns, _names(turns))
    pieces: list[Piece] = []
    for place in range(len(before), len(turns)):
        for piece in TurnReader(talk, place, zone).pieces():
            if piece.correction:
                pieces = [each for each in pieces if not _is_corrected(each, piece)]
            _append(pieces, piece, talk)
    return [_quote(each, len(before)) for each in pieces]


def _names(turns: Sequence[Utterance]) -> frozenset[str]:
    """The speakers' names in lower case, with what they may be called for short ("Mel")."""
    full = {part.casefold() for each in turns for part in each.speaker.split()[:1]}
    return frozenset(name[:length] for name in full for length in range(min(3, len(name)), len(name) + 1))


def _is_corrected(earlier: Piece, piece: Piece) -> bool:
    """Whether a piece of the same request is the wrong statement that the new one corrects."""
    words = set(WORD.findall(piece.body.casefold()))
    shared = len(words & set(WORD.findall(earlier.body.casefold())))
    return earlier.speaker == piece.speaker and shared * 3 >= len(words) * 2


def _append(pieces: list[Piece], piece: Piece, talk: ReadTurns) -> None:
    """Adds a piece: one that says too little alone behind what it goes on with; where there is nothing, it is lost
    unless it tells something of its speaker."""
    if not piece.goes_on:
        pieces.append(piece)
        return
    for at in range(len(pieces) - 1, -1, -1):
        earlier = pieces[at]
        if earlier.place < piece.place - OWN_TURNS:
            break
        if len(earlier.body) < MAX_CHARS and not earlier.correction and _goes_behind(talk, earlier, piece):
            pieces[at] = earlier.followed_by(piece)
            return
    own = said_before(talk, piece.place, by=piece.speaker, look_back=OWN_TURNS) if piece.hangs else None
    if own is not None and _is_same_talk(talk.turns, own.span[0], piece.place):
        pieces.append(piece.behind(own))
    elif piece.tells:
        pieces.append(piece)


def _goes_behind(talk: ReadTurns, earlier: Piece, piece: Piece) -> bool:
    """Whether a piece goes on with an earlier one: of a speaker whom others only asked since, or as the first reply to
    what the other one just said."""
    comments = not (piece.own or piece.hangs)
    if earlier.replied and comments:
        return False
    if earlier.speaker == piece.speaker:
        return _is_same_talk(talk.turns, earlier.place, piece.place)
    replies = earlier.place == piece.place - 1 and not worth.is_question(talk.turns[earlier.place].text)
    return replies and (comments or (piece.hangs and not piece.tells))


def _is_same_talk(turns: Sequence[Utterance], first: int, last: int) -> bool:
    """Whether between two turns of a speaker others only asked, so that he is still on his own subject; an assistant
    has none of its own."""
    speaker = turns[last].speaker
    between = [turn for turn in turns[first + 1 : last] if turn.speaker != speaker and not turn.by_assistant]
    return all(worth.is_question(turn.text) for turn in between)


def _quote(piece: Piece, before: int) -> Quote:
    """The piece with its places counted from the first message of the request."""
    (message, start, end), *others = piece.spans
    also = tuple((place - before, a, b) for place, a, b in others if place >= before)
    return Quote(
        piece.text,
        message - before,
        start,
        end,
        piece.speaker,
        piece.confidence,
        piece.correction,
        piece.retold,
        also,
    )
