"""How likely a newer text outdates an older one: by the vectors and the words of both.

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

from service.domain.decision import ChangeOf

WEIGHTS = Path(__file__).with_suffix(".json")

_fitted = json.loads(WEIGHTS.read_text())
_newer, _older, _product = (
    np.frombuffer(b85decode(_fitted[name]), dtype=np.int8) * np.float32(_fitted["steps"][name])
    for name in ("newer", "older", "product")
)


def weigh(newer: NDArray[np.float32], model: str) -> ChangeOf | None:
    """How much a text with this vector looks like a change of an older one, given the older one's vector; None for
    vectors of an embedder that the weights were not fitted on."""
    if model != _fitted["model"]:
        return None
    alone, beside = float(newer @ _newer), _older + _product * newer
    return lambda older: alone + float(older @ beside)


def is_likely(signs: Sequence[float], change: float) -> bool:
    """Whether a newer text outdates an older one; `signs`: of `compare.signs`, `change`: of `weigh`."""
    return bool(sum(map(mul, _fitted["words"], signs)) + change + _fitted["bias"] >= _fitted["threshold"])
