"""Fits what recognises a request to forget, and writes the weights to service/language/forgetting/request_head.json.

    python -m bench.forgetting_head

The sentences of tests/corpora/forgetting.txt and forgetting_messages.txt were written for this, the latter by writers
who had not seen the rules. Each frame is filled in a few ways, some with words around it. Ordinary statements of other
corpora are added to those that ask nothing.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import zlib
from base64 import b85encode
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.marks import embedded
from service.language.forgetting import request_head
from service.language.forgetting.request_head import HEADS, OBJECTS, RequestWeights, Token
from service.language.sentences import split
from service.providers.local import MODEL

Numbers = NDArray[np.float64]

CORPORA = Path("tests/corpora")
FRAMES = {"forgetting": 3.0, "forgetting_messages": 1.0}
"""The files of frames, and the weight of a frame."""

ORDINARY = ("answers", "marks", "preferences", "sessions", "talks")
FILLED = 4
"""Ways in which a frame with a slot is filled."""

AROUND = 0.25
"""Share of the sentences to which a lead, or a reason, is added."""

ORDINARY_WEIGHT, FOR_ORDINARY = 16.0, 0.25
"""The weight of an ordinary statement, and the log odds that a vector gets back for it: with both, of 3,437 turns of
talk 10 count as a possible request and 5 as a sure one; of 196 requests by seven authors 162 and 154."""
LEAST = 2
"""Smaller weights, of the 127 that the largest has, are left out."""

MANY, FEW = 25, 3
"""Frames from which a word is known that is only in fillers, and messages that ask from which one of theirs is."""

WORD_PENALTY, VECTOR_PENALTY = 3e-5, 1e-4
RATE = 0.05
STEPS = 250
ASKS = {"request": 1.0, "hint": 0.25, "other": 0.0}
"""The label of the sentences of a section. A hint asks nothing, but says what to forget if a request follows."""

SORTS = {"thing": "thing", "about": "thing", "how": "thing", "all": "everything", "fact": "statement"}
KINDS = {
    "about": ("topic", "topic", "topic", "thing", "how"),
    "all": ("topic", "topic", "topic", "thing"),
    "thing": ("thing", "thing", "thing", "thing", "thing", "how"),
    "fact": ("fact", "said"),
}
"""The lists from which a slot is filled."""

_SECTION = re.compile(r"\[(\w+) (\w+)\]")
_STATEMENT = re.compile(r"(?:I|I'm|We|My|Our|The|He|She|Her|His|Everyone|[A-Z]\w+) [^.?!]{8,60}\.")
_SLOT = re.compile(r"\{(\w+)(?::([^}]*))?\}")


class LabelledSentence(NamedTuple):
    """A sentence, whether it asks, and the span and sort of its object. `frame`: the number of its frame; `told`:
    whether it comes from a message."""

    text: str
    asks: float
    weight: float
    frame: int
    start: int = 0
    end: int = 0
    sort: str | None = None
    ordinary: bool = False
    told: bool = False


def sentences() -> list[LabelledSentence]:
    """All frames, filled, and ordinary statements."""
    lists = _lists("forgetting")
    found: list[LabelledSentence] = []
    number = 0
    for name, weight in FRAMES.items():
        for (language, kind), frames in _lists(name).items():
            for frame in frames if kind in ASKS else ():
                number += 1
                filled = _filled(frame, language, lists, asks=ASKS[kind], number=number)
                told = name != "forgetting"
                found += (each._replace(weight=each.weight * weight, told=told) for each in filled)
    for text in _ordinary():
        number += 1
        found.append(LabelledSentence(text, 0.0, ORDINARY_WEIGHT, number, ordinary=True))
    return found


@cache
def _lists(name: str) -> Mapping[tuple[str, str], list[str]]:
    lists: dict[tuple[str, str], list[str]] = defaultdict(list)
    section = ("", "")
    for line in (CORPORA / f"{name}.txt").read_text().splitlines():
        if head := _SECTION.fullmatch(line):
            section = (head[1], head[2])
        elif line and not line.startswith("#"):
            parts = [line] if section[1] in ASKS else line.split(" | ")
            lists[section] += parts
    for (language, kind), listed in list(lists.items()):
        if kind == "fact":
            lists[language, "said"] = listed
    lists["en", "said"] = [_small(text) for text in _ordinary() if _STATEMENT.fullmatch(text)]
    return lists


def _small(text: str) -> str:
    """A statement as a part of a sentence."""
    text = text.rstrip(".")
    return text if re.match(r"I\b|[A-Z]\w+ (?:is|was|has)\b", text) else text[0].lower() + text[1:]


def _filled(
    frame: str, language: str, lists: Mapping[tuple[str, str], list[str]], *, asks: float, number: int
) -> Iterator[LabelledSentence]:
    chance = random.Random(frame)
    ways = FILLED if "{" in frame else 3
    for _ in range(ways):
        start = end = 0
        sort = None
        text, at = "", 0
        for slot in _SLOT.finditer(frame):
            text += frame[at : slot.start()]
            at = slot.end()
            kinds = KINDS.get(slot[1], (slot[1],))
            filler = slot[2] or chance.choice(lists[language, chance.choice(kinds)])
            if not text and chance.random() < 0.7:
                filler = filler[0].upper() + filler[1:]
            left, right = (filler.index("<"), filler.index(">") - 1) if "<" in filler else (0, len(filler))
            start, end, sort = len(text) + left, len(text) + right, SORTS.get(slot[1])
            text += filler.translate({ord("<"): None, ord(">"): None})
        text += frame[at:]
        if language == "en" and chance.random() < AROUND:
            lead = chance.choice(lists["en", "lead"])
            if chance.random() < 0.3:
                said = chance.choice(lists["en", "said"])
                lead = said + chance.choice((", so", "... so", ",", " -", " and", ";", "..."))
            text, start, end = f"{lead} {text}", start + len(lead) + 1, end + len(lead) + 1
        if chance.random() < AROUND:
            stripped = text.rstrip(".!?")
            if end <= len(stripped):
                text = stripped + chance.choice((", ", ", ", " - ", ". ")) + chance.choice(lists[language, "reason"])
        if chance.random() < 0.3:
            text = text.rstrip(".!") + chance.choice(("", "!", "..", "!!"))
            end = min(end, len(text))
        if chance.random() < 0.2:
            text = text.lower()
        yield LabelledSentence(text, asks, 1 / ways, number, start, end, sort if asks else None)


@cache
def _ordinary() -> list[str]:
    """The statements of other corpora."""
    found: list[str] = []
    for name in ORDINARY:
        for line in (CORPORA / f"{name}.jsonl").read_text().splitlines():
            found += _texts(json.loads(line))
    return list(dict.fromkeys(found))


def _texts(value: object, name: str = "") -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _texts(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each, name)
    elif isinstance(value, str) and name in ("text", "older", "outdated_by", "holds_beside", "question"):
        yield from (value[start:end] for start, end in split(value))


# -- fitting ---------------------------------------------------------------------------------------------------------


class Rows(NamedTuple):
    """Features of many examples, one after the other, with the row of each; labels and weights of the rows."""

    features: NDArray[np.int64]
    rows: NDArray[np.int64]
    labels: Numbers
    weights: Numbers


def rows(features: Sequence[Sequence[int]], labels: Sequence[float], weights: Sequence[float]) -> Rows:
    at = np.repeat(np.arange(len(features)), [len(each) for each in features])
    flat = np.fromiter((each for row in features for each in row), dtype=np.int64)
    return Rows(flat, at, np.array(labels, dtype=np.float64), np.array(weights))


def fit_words(given: Rows, size: int) -> tuple[Numbers, float]:
    """Weights and bias of hashed features."""

    def score(weights: Numbers) -> Numbers:
        return np.asarray(np.bincount(given.rows, weights[given.features], len(given.labels)), dtype=np.float64)

    def slope(errors: Numbers) -> Numbers:
        return np.asarray(np.bincount(given.features, errors[given.rows], size), dtype=np.float64)

    return _descend(score, slope, given.labels, given.weights, size, WORD_PENALTY)


def fit_vector(vectors: Numbers, labels: Numbers, weights: Numbers) -> tuple[Numbers, float]:
    """Weights and bias of vectors."""
    middle, spread = vectors.mean(axis=0), vectors.std()
    even = (vectors - middle) / spread
    fitted, bias = _descend(
        lambda found: even @ found, lambda errors: even.T @ errors, labels, weights, even.shape[1], VECTOR_PENALTY
    )
    return fitted / spread, bias - float(middle @ fitted) / spread


def _descend(
    score: Callable[[Numbers], Numbers],
    slope: Callable[[Numbers], Numbers],
    labels: Numbers,
    of_rows: Numbers,
    size: int,
    penalty: float,
) -> tuple[Numbers, float]:
    """The weights and the bias of a logistic regression, by Adam."""
    found, first, second = np.zeros((3, size + 1))
    for step in range(1, STEPS + 1):
        errors = (1 / (1 + np.exp(-score(found[:-1]) - found[-1])) - labels) * of_rows / of_rows.sum()
        change = np.append(slope(errors) + penalty * found[:-1], errors.sum())
        first += 0.1 * (change - first)
        second += 0.001 * (change * change - second)
        found -= RATE * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return found[:-1], float(found[-1])


def fit(given: Sequence[LabelledSentence], vectors: Mapping[str, Numbers]) -> RequestWeights:
    known = vocabulary(given)
    padded = [request_head.tokens(each.text, request_head.find_spans(each.text), known) for each in given]
    labels, weights = [each.asks for each in given], [each.weight for each in given]
    asks, asks_bias = fit_words(
        rows([request_head.sentence_features(each) for each in padded], labels, weights), request_head.ASKS_SIZE
    )
    vector, vector_bias = fit_vector(
        np.array([vectors[each.text] for each in given]), np.array(labels), np.array(weights)
    )
    heads, biases = zip(*_fit_heads(given, padded), strict=True)
    bias = [round(float(each), 3) for each in (asks_bias, *biases, vector_bias + FOR_ORDINARY)]
    tables = [np.array(each, dtype=np.float32) for each in (asks, heads, vector)]
    return RequestWeights(known, word_classes("pattern"), tables[0], tables[1], tables[2], bias, MODEL)


def _fit_heads(given: Sequence[LabelledSentence], padded: Sequence[Sequence[Token]]) -> Iterator[tuple[Numbers, float]]:
    tokens: list[list[int]] = []
    labels: dict[str, list[bool]] = {head: [] for head in HEADS}
    weights: list[float] = []
    for each, row in zip(given, padded, strict=True):
        if not each.asks:
            continue
        for at, (start, end) in enumerate(request_head.find_spans(each.text)):
            tokens.append(request_head.token_features(row, at))
            weights.append(each.weight)
            for sort in OBJECTS:
                labels[sort].append(each.sort == sort and start == each.start)
            labels["end"].append(each.sort is not None and end == each.end)
    return (fit_words(rows(tokens, labels[head], weights), request_head.HEAD_SIZE) for head in HEADS)


def vocabulary(given: Sequence[LabelledSentence]) -> dict[str, str]:
    """The words that have a class, or are part of a frame, or in the fillers of many frames."""
    frames: dict[str, set[int]] = defaultdict(set)
    times: Counter[tuple[str, int]] = Counter()
    size = Counter(each.frame for each in given)
    told: dict[str, set[int]] = defaultdict(set)
    for each in given:
        if each.ordinary or (each.told and not each.asks):
            continue
        spans = request_head.find_spans(each.text)
        around = {request_head.normalise(each.text[a:b]) for a, b in spans if not each.start <= a < each.end}
        if each.told:
            for word in around:
                told[word].add(each.frame)
            continue
        for word in {request_head.normalise(each.text[a:b]) for a, b in spans}:
            frames[word].add(each.frame)
        for word in around:
            times[word, each.frame] += 1
    known = {
        word
        for word, seen in frames.items()
        if any(times[word, frame] >= 0.8 * size[frame] for frame in seen) or len(seen) >= MANY
    }
    classes = word_classes("class")
    known |= {word for word, seen in told.items() if len(seen) >= FEW}
    return classes | dict.fromkeys(sorted(known - classes.keys()), "")


def word_classes(kind: str) -> dict[str, str]:
    """The words of the sections "[class ...]" or "[pattern ...]", with the name of their section."""
    named = ((name, listed) for (section, name), listed in _lists("forgetting").items() if section == kind)
    return {word: name for name, listed in named for line in listed for word in line.split()}


def as_json(model: RequestWeights) -> str:
    kept: dict[str, object] = {name: getattr(model, name) for name in ("embedder", "bias", "known", "patterns")}
    steps = {}
    for name in ("asks", "heads", "vector"):
        weights = getattr(model, name)
        step = float(np.abs(weights).max()) / 127
        steps[name] = round(step, 6)
        rounded = np.round(weights / step).astype(np.int8)
        rounded[np.abs(rounded) < LEAST] = 0
        kept[name] = b85encode(zlib.compress(rounded.tobytes(), 9)).decode()
    return json.dumps({**kept, "steps": steps}, ensure_ascii=False) + "\n"


def main() -> None:
    every = sentences()
    vectors = asyncio.run(embedded([each.text for each in every]))
    request_head.WEIGHTS.write_text(as_json(fit(every, vectors)))


if __name__ == "__main__":
    main()
