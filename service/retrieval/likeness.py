"""How much do texts repeat each other?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from service.retrieval.fusion import Column


def likeness(texts: Sequence[Sequence[int]]) -> Callable[[int], Column]:
    """Returns what says of the text at a place which share of its words each text has in common with it (Jaccard),
    0..1; texts are the numbers of their words, none twice. Looked up by word: hundreds of texts are compared with
    hundreds, on the event loop."""
    sizes = np.array([len(words) for words in texts], dtype=np.int64)
    holders: dict[int, list[int]] = {}
    for at, words in enumerate(texts):
        for word in words:
            holders.setdefault(word, []).append(at)

    def to(at: int) -> Column:
        common = np.zeros(len(texts), dtype=np.int64)
        for word in texts[at]:
            common[holders[word]] += 1
        together = sizes + sizes[at] - common
        return np.where(together == 0, 1.0, common / np.maximum(together, 1))

    return to
