"""Memories as they were recorded at a moment, as candidates with features, so that they rank like present ones.

No index has them: all of the scope are read, and their words are weighed here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from service.domain.text import CleanText
from service.language import lexemes
from service.memories.statements import recorded
from service.memories.statements.recorded import RecordedScope
from service.postgres.engine import Session
from service.runtime.resources import Resources
from service.runtime.statements.stats import RankingStats
from service.search.statements.features import Features, TermIdf
from service.search.statements.search_plan import Candidates, SearchPlan

MAX_TEXTS: Final = 10_000
"""Memories that are read; of more, the newest. Weighing their words takes a second in a thread."""

CUT: Final = f"as_of_cut: only the newest {MAX_TEXTS:,} memories of that time were searched."


@dataclass(frozen=True, slots=True)
class PastTexts:
    """The memories of a past moment, and for each the weights of its terms. `is_cut`: whether there were more."""

    rows: Sequence[Any]
    weights: Sequence[Mapping[int, float]]
    is_cut: bool

    def candidates(self, plan: SearchPlan) -> Candidates:
        """All the memories as candidates, and in "text_lexical" those that have a term of the query."""
        sought = frozenset(plan.terms)
        frequencies = Counter(term for weight in self.weights for term in sought & weight.keys())
        counts = {term: float(times) for term, times in frequencies.items()}
        lexical = [row.id for row, weights in zip(self.rows, self.weights, strict=True) if sought & weights.keys()]
        arms = {"as_of": [row.id for row in self.rows], "text_lexical": lexical}
        return Candidates(len(self.rows), counts, counts, arms, "none" if plan.vector is None else "exact")

    def features(self, idf: TermIdf) -> Features:
        """The features of the memories. A memory is its own context, and serves no present goal."""
        scores = [sum(idf.of_texts.get(term, 0.0) * weight for term, weight in each.items()) for each in self.weights]
        cosines = [np.nan if row.cosine is None else row.cosine for row in self.rows]
        unknown: NDArray[np.float64] = np.full(len(self.rows), np.nan)
        return Features(
            [row.id for row in self.rows],
            np.array(scores, dtype=np.float64),
            unknown,
            np.array(cosines, dtype=np.float64),
            unknown,
            goal_linked=[None] * len(self.rows),
            goal_cosine=[None] * len(self.rows),
            phrasing=[row.content for row in self.rows],
            speaker=[row.speaker for row in self.rows],
            role=[row.role for row in self.rows],
            timestamp=[row.timestamp for row in self.rows],
            mentions=[row.mentions for row in self.rows],
            dated=[bool(row.mentions) for row in self.rows],
            tagged=[bool(row.tagged) for row in self.rows],
            terms=[list(each) for each in self.weights],
            ended=[row.ended for row in self.rows],
            temporal_tag=[row.temporal_tag for row in self.rows],
            importance=[row.importance for row in self.rows],
        )

    @property
    def stats(self) -> dict[Any, RankingStats]:
        """Statistics without any use, because use is not recorded by time."""
        return {row.id: RankingStats(1.0, row.importance) for row in self.rows}


async def read(session: Session, scope: RecordedScope, plan: SearchPlan, res: Resources) -> PastTexts:
    """The memories of that time that meet the conditions."""
    vector = HalfVector(plan.vector) if plan.vector is not None else None
    limit = MAX_TEXTS + 1
    rows = await recorded.list_texts(session, scope, vector, plan.tags, generation=res.generation, limit=limit)
    kept = rows[:MAX_TEXTS]
    weights = await res.rules.run(_weights, [CleanText(row.content) for row in kept])
    return PastTexts(kept, weights, is_cut=len(rows) > len(kept))


def _weights(texts: Sequence[CleanText]) -> list[dict[int, float]]:
    return [lexemes.weights(text) for text in texts]
