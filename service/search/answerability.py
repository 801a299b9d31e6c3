"""How likely it is that the memories and turns searched have the answer to a question, and that a hit is it. Pure.

The score of a hit ranks it among others; it says little about whether there is an answer at all. A question about what
was never said often shares a name or a detail with what was said: the texts near it are as near as those of a question
that has an answer. Six measures tell them apart (docs/decisions/042-answerability.md has the figures):

- nearness: the cosine of the best statement about the person asked about, or of the best one if nobody is named
- said by others: by how much a statement of another person about themselves fits better than the best one by the person
  asked about. "What did Ann plant?" has no answer where only Ben planted something.
- said: the share of the question's words, by BM25, that the best statement has together with the turns before it
- unsaid: the share of them, by their IDF, that no text has
- lacking: by how much the best text with what the question asks for, a name or a figure, fits less than the best
- standing out: by how much the nearest text is nearer than the next five

In a store of a few texts most words of any question are missing, so it starts from a higher probability.

A logistic function of these gives the probability of an answer. That of a hit is this one times the probability
that an answer, if there is one, is this hit: a logistic function of its place and of how much less it fits than the
best.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from service.domain import bm25
from service.language import questions
from service.language.lexemes import lexemes
from service.search.fusion import Column, Columns, QueryContext
from service.search.query_parsing import ParsedQuery
from service.search.statements.features import Features

Flags = NDArray[np.bool_]
"""A flag for each candidate."""

ROUNDING: Final = 1e-9

ASKS, ABOUT, WORDS = -0.3, 0.2, 0.1
"""The weights, in addition to the cosine, of how well a text fits a question: how much of it asks, how much it is about
the person asked about, and the BM25 score of it and the turns before it as a share of a full match."""

INTERCEPT: Final = -4.22
COEFFICIENTS: Final = (6.44, -13.26, 1.84, -1.34, -28.68, 2.32)
"""The coefficients of nearness, said by others, said, unsaid, lacking and standing out; bench/answers.py fits them on
our own texts."""

MAX_LACKING, MAX_READ, NEXT = 0.15, 30, 5
"""Maximum deduction for a text without anything that is asked for; number of texts read for it; and of the next."""

SCARCITY, MANY_TEXTS = 1.3, 10
"""SCARCITY * ln 2 is added for each halving of the number of texts below MANY_TEXTS."""

HIT_INTERCEPT, HIT_LESS_FIT, HIT_PLACE = 1.21, -17.39, -2.08
"""Coefficients of a hit, if there is an answer; fitted on the same texts."""


@dataclass(frozen=True, slots=True)
class Answerability:
    """How likely there is an answer. `probability` 0..1: that the memories and turns searched have it. `less_fit`: by
    how much each candidate fits less than the best one; one without a vector is left out. `measures`: the values that
    COEFFICIENTS weigh."""

    probability: float
    less_fit: Mapping[UUID, float]
    measures: tuple[float, ...] = ()

    def of_hit(self, key: UUID, place: int) -> float | None:
        """The probability, 0..1, that the hit at this place (from 0) is the answer; None for one without a vector."""
        less_fit = self.less_fit.get(key)
        if less_fit is None:
            return None
        return self.probability * _logistic(HIT_INTERCEPT + HIT_LESS_FIT * less_fit + HIT_PLACE * math.log1p(place))


def assess(context: QueryContext, measured: Features, columns: Columns, cosines: Column) -> Answerability | None:
    """The probability of an answer among all candidates; None if unknown: for a request, which asks nothing, and if no
    candidate has a vector. `cosines`: to the vector of the original query."""
    parsed, texts = context.parsed, context.text_count
    if parsed.is_request:
        return None
    if not measured.ids:
        return Answerability(0.0, {})
    if np.isnan(cosines).all():
        return None
    words = columns.signals["context_lexical"] / (math.fsum(context.idf.of_contexts.values()) or 1.0)
    first_person = columns.signals["first_person"]
    fits = cosines + ASKS * (1.0 - columns.signals["declarative"]) + WORDS * words
    theirs, others = _flag_speakers(measured.speaker or [None] * len(measured.ids), parsed)
    said_by_others = 0.0
    if theirs.any():
        of_themselves = fits + ABOUT * first_person
        said_by_others = max(0.0, _best(of_themselves[others]) - _best(of_themselves[theirs]))
        fits = fits + ABOUT * np.where(theirs, first_person, 1.0 - first_person)
    best = int(np.argmax(np.fmax(fits, -math.inf)))
    less_fit = fits[best] - fits
    nearest = -np.sort(-cosines[~np.isnan(cosines)])[: NEXT + 1]
    measures = (
        float(cosines[best]),
        said_by_others,
        min(1.0, float(words[best])),
        unsaid_share(context.idf.of_texts, texts),
        _lacking(less_fit, measured.phrasing, parsed),
        float(nearest[0] - nearest[1:].mean()) if len(nearest) > 1 else 0.0,
    )
    log_odds = INTERCEPT + scarcity(texts) + sum(map(mul, COEFFICIENTS, measures))
    known = zip(measured.ids, less_fit.tolist(), strict=True)
    return Answerability(_logistic(log_odds), {key: less for key, less in known if not math.isnan(less)}, measures)


def scarcity(texts: int) -> float:
    """The amount added in a store of few texts."""
    return SCARCITY * math.log(MANY_TEXTS / min(max(texts, 1), MANY_TEXTS))


def _lacking(less_fit: Column, texts: Sequence[str | None], parsed: ParsedQuery) -> float:
    """By how much the best text with what is asked for fits less than the best one; an unknown or long text is taken to
    have everything."""
    kind = questions.kind(parsed.text)
    if kind is None or not texts:
        return 0.0
    known = frozenset(lexemes(" ".join((parsed.text, *parsed.speakers))))
    for at in np.argsort(less_fit)[:MAX_READ]:
        text = texts[at]
        if not less_fit[at] < MAX_LACKING:
            break
        if text is None or questions.holds(kind, text, known):
            return float(less_fit[at])
    return MAX_LACKING


def unsaid_share(idf: Mapping[int, float], texts: int) -> float:
    """The share, 0..1, of the IDF of all terms of a query that belongs to terms without a text."""
    total, of_no_text = math.fsum(idf.values()), bm25.idf(texts, 0) - ROUNDING
    return math.fsum(each for each in idf.values() if each >= of_no_text) / total if total > 0 else 0.0


def _flag_speakers(speakers: Sequence[str | None], parsed: ParsedQuery) -> tuple[Flags, Flags]:
    """The texts by the one person that the question names, and those by other named people; none if it names nobody or
    several."""
    if len(parsed.speakers) != 1:
        nobody = np.zeros(len(speakers), dtype=bool)
        return nobody, nobody
    theirs = np.array([speaker in parsed.speakers for speaker in speakers], dtype=bool)
    return theirs, np.array([speaker is not None for speaker in speakers], dtype=bool) & ~theirs


def _best(fits: Column) -> float:
    """The best fit; 0 if there is none."""
    return float(np.fmax.reduce(fits, initial=0.0))


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-value))
