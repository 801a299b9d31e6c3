"""How likely a newer text outdates an older one: by the newer one's vector and the words of both.

The weights in outdating.json are fitted by bench/marks.py on pairs written for it. It may mark and order, never end.
"""

from __future__ import annotations

import json
from base64 import b85decode
from collections.abc import Sequence
from operator import mul
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

WEIGHTS = Path(__file__).with_suffix(".json")

_fitted = json.loads(WEIGHTS.read_text())
_vector = np.frombuffer(b85decode(_fitted["vector"]), dtype=np.int8) * np.float32(_fitted["step"])


def change_in(vector: NDArray[np.float32], model: str) -> float | None:
    """How much the vector of a text looks like a change's; None for those of an embedder it was not fitted on."""
    return float(vector @ _vector) if model == _fitted["model"] else None


def is_likely(signs: Sequence[float], change: float) -> bool:
    """Whether a newer text with this `change` outdates an older one; `signs`: of `compare.signs`."""
    return bool(sum(map(mul, _fitted["words"], signs)) + change + _fitted["bias"] >= _fitted["threshold"])
