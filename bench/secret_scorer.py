"""Trains the weights of service/redaction/detection/scorer.py: `python -m bench.secret_scorer`.

The texts are secret_scorer.txt, written for this (a secret stands between ⟦ and ⟧, texts without any are look-alikes),
the redaction corpora of the tests, and the project's own documents, code and corpora, which contain none. A text with a
secret is used several times, each time with another secret of the same kind, so that the words around it count and
not its letters. `--held-out N` leaves out every fourth text and prints what is found and touched there.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from service.redaction.detection import addresses, folding, scorer
from service.redaction.detection.findings import blank, settle

ROOT = Path(__file__).parents[1]
TEXTS = Path(__file__).with_suffix(".txt")
CORPORA = ROOT / "tests" / "corpora"
WEIGHTS = ROOT / "service" / "redaction" / "detection" / "scorer.bin"

VARIANTS, LOOK_ALIKES = 6, 6
EPOCHS, RATE, DECAY = 24, 0.1, 1e-3
WEIGHT_OF_CLEAN, WEIGHT_OF_LOOK_ALIKES, WEIGHT_OF_TESTED = 1.0, 3.0, 3.0
WEIGHT_OF_UNTOUCHED = 4.0
PIECE_CHARS, PIECES_PER_FILE = 600, 4
JOINED, JOINTS = 0.2, (". ", "\n", "; ", "\n\n")
SIGNS = "!!!!&#*+$%_-.._-"


@dataclass(frozen=True, slots=True)
class Text:
    """A text and the spans of its secrets."""

    text: str
    secrets: tuple[tuple[int, int], ...] = ()
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Weighed:
    """The features of one token, and whether it is a secret."""

    features: list[int]
    secret: bool
    weight: float


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the weights that find secrets.")
    parser.add_argument("--held-out", type=int, choices=range(4), help="leave out every fourth text and measure on it")
    held_out = parser.parse_args().held_out
    written = list(read_texts())
    random.Random(3).shuffle(written)
    left_out = [text for index, text in enumerate(written) if index % 4 == held_out]
    chance = random.Random(5)
    rows = list(rows_of([text for text in written if text not in left_out], chance))
    weights = train(rows)
    if held_out is None:
        WEIGHTS.write_bytes(weights.astype(np.int8).tobytes())
        print(f"{len(rows)} tokens, {sum(row.secret for row in rows)} of them secrets: {WEIGHTS.name} written")
    else:
        print(measure(weights, left_out))


def read_texts() -> Iterator[Text]:
    for line in TEXTS.read_text(encoding="utf-8").splitlines():
        parts = re.split("[⟦⟧]", line.replace("\\n", "\n"))
        ends = np.cumsum([len(part) for part in parts]).tolist()
        yield Text("".join(parts), tuple((ends[i - 1], ends[i]) for i in range(1, len(parts), 2)))


def rows_of(written: list[Text], chance: random.Random) -> Iterator[Weighed]:
    """Everything to learn from, a row for each token."""
    words = sorted(set(re.findall(r"[a-zA-Z]{5,11}", (CORPORA / "answers.jsonl").read_text(encoding="utf-8"))))
    placed = [text for file in ("placed.jsonl", "placed/by_place.jsonl") for text in _placed(CORPORA / "pii" / file)]
    clean = [text.text for text in written if not text.secrets]
    for text in [*written, *placed]:
        if not text.secrets:
            for _ in range(LOOK_ALIKES):
                joined = _joined(text, clean, chance)
                yield from _rows(replace(joined, weight=WEIGHT_OF_LOOK_ALIKES / LOOK_ALIKES))
                text = Text(re.sub(r"\w*\d\w*", lambda match: _renumbered(match.group(), chance), text.text))
            continue
        yield from _rows(text)
        for _ in range(VARIANTS):
            yield from _rows(_joined(_varied(text, words, chance), clean, chance))
    for file in (*sorted((CORPORA / "pii" / "untouched").glob("*.jsonl")), CORPORA / "pii" / "mentioned.jsonl"):
        for row in _read(file):
            yield from _rows(Text(row["text"], weight=WEIGHT_OF_UNTOUCHED))
    for piece in _clean(chance):
        yield from _rows(Text(piece, weight=WEIGHT_OF_CLEAN))


def _rows(text: Text) -> Iterator[Weighed]:
    plain, places = folding.fold(text.text)
    if places is not None:
        return
    plain = blank(plain, settle(plain, addresses.find(plain)))
    for start, end, suspect in scorer.suspects(plain):
        overlapping = [span for span in text.secrets if span[0] < end and start < span[1]]
        whole = any((start <= low_end and high_end <= end) or (low_end <= start and end <= high_end)
                    for low_end, high_end in overlapping)  # fmt: skip
        numbers = sorted(scorer.features(suspect))
        if numbers and whole == bool(overlapping):
            yield Weighed(numbers, whole, text.weight)


def _joined(text: Text, clean: list[str], chance: random.Random) -> Text:
    """The text, at times with a text without secrets before or after it."""
    before = chance.choice(clean) + chance.choice(JOINTS) if chance.random() < JOINED else ""
    after = chance.choice(JOINTS) + chance.choice(clean) if chance.random() < JOINED else ""
    secrets = tuple((start + len(before), end + len(before)) for start, end in text.secrets)
    return Text(before + text.text + after, secrets, text.weight)


def _varied(text: Text, words: list[str], chance: random.Random) -> Text:
    """The text with other secrets, similar ones or new ones."""
    pieces, spans, place = [], [], 0
    for start, end in sorted(set(text.secrets)):
        value = text.text[start:end]
        if " " not in value and len(value) <= scorer.LONGEST_CHARS:
            similar = value.isdigit() or chance.random() < 0.6
            value = _similar(value, words, chance) if similar else _invented(words, chance)
        pieces += [text.text[place:start], value]
        length = sum(map(len, pieces))
        spans.append((length - len(value), length))
        place = end
    return Text("".join([*pieces, text.text[place:]]), tuple(spans), 2 / VARIANTS)


def _renumbered(word: str, chance: random.Random) -> str:
    """A word with other digits, and with other letters too if it looks generated."""
    if len(re.findall(r"\d+", word)) > 1 or re.fullmatch("[0-9a-f]{6,}", word):
        return _redrawn(word, chance)
    return re.sub(r"\d", lambda _: str(chance.randrange(10)), word)


def _similar(value: str, words: list[str], chance: random.Random) -> str:
    if re.search("[A-Za-z]{4}", value):
        value = re.sub("[A-Za-z]{4,}", lambda match: _in_case_of(match.group(), chance.choice(words)), value)
        value = re.sub("[!&#*+$%_.-]", lambda match: chance.choice([match.group(), *SIGNS[:8]]), value)
        return re.sub(r"\d", lambda _: str(chance.randrange(10)), value)
    return _redrawn(value, chance)


def _redrawn(value: str, chance: random.Random) -> str:
    """Other characters of the same kinds."""
    kinds = ("0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    if re.fullmatch("[0-9a-f-]{6,}", value):
        kinds = (*kinds[:1], "abcdef", "abcdef")
    return "".join(next((chance.choice(kind) for kind in kinds if char in kind), char) for char in value)


def _in_case_of(old: str, new: str) -> str:
    return new.lower() if old.islower() else new.capitalize() if old[0].isupper() else new


def _invented(words: list[str], chance: random.Random) -> str:
    first, second, number = chance.choice(words), chance.choice(words), str(chance.randrange(1, 9999))
    sign = chance.choice(SIGNS)
    forms = (
        first.capitalize() + number + chance.choice(["", "!", "#"]),
        first.capitalize() + sign + second.capitalize() + number[: chance.randrange(4)],
        first.lower() + chance.choice("-_.") + second.lower() + chance.choice("-_.") + number[:2],
        first.lower() + number,
        first.lower() + chance.choice("42&+") + second.capitalize(),
        (first.lower() + second.capitalize() + number[:1]).replace("o", "0").replace("e", "3"),
        "".join(chance.choices("abcdefghkmnpqrstuvwxyzABCDEFGHKLMNPQRSTUVWXYZ23456789", k=chance.randrange(8, 24))),
    )
    return chance.choice(forms)


def _placed(file: Path) -> Iterator[Text]:
    for row in _read(file):
        spans = [match.span() for secret in row["secrets"] for match in re.finditer(re.escape(secret), row["text"])]
        yield Text(row["text"], tuple(spans), WEIGHT_OF_TESTED)


def _read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def _clean(chance: random.Random) -> Iterator[str]:
    """Texts without secrets: the other corpora, pieces of the documents and of the code."""
    for file in sorted(CORPORA.rglob("*.jsonl")):
        if "pii" not in file.parts:
            yield from (string for row in _read(file) for string in _strings(row) if len(string) > 20)
    for file in sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("service/**/*.py"), *ROOT.glob("*.*")]):
        if file.is_file() and "redaction" not in str(file):
            text = file.read_text(encoding="utf-8")
            pieces = [text[start : start + PIECE_CHARS] for start in range(0, len(text), PIECE_CHARS)]
            yield from chance.sample(pieces, min(len(pieces), PIECES_PER_FILE))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def train(rows: list[Weighed]) -> np.ndarray[Any, Any]:
    """Logistic regression by AdaGrad, in steps of a stored byte."""
    weights, squares = np.zeros(scorer.FEATURES), np.full(scorer.FEATURES, 1e-6)
    average = np.zeros(scorer.FEATURES)
    inputs = [np.array(row.features) for row in rows]
    order = np.random.default_rng(1)
    for epoch in range(EPOCHS):
        for place in order.permutation(len(rows)):
            row, which = rows[place], inputs[place]
            given = 1 / (1 + np.exp(-np.clip(weights[which].sum(), -30, 30)))
            error = (given - row.secret) * row.weight
            if abs(error) > 0.002:
                slope = error + DECAY * weights[which]
                squares[which] += slope * slope
                weights[which] -= RATE * slope / np.sqrt(squares[which])
        average += weights * (epoch >= EPOCHS // 3) / (EPOCHS - EPOCHS // 3)
    return np.clip(np.round(average * scorer.STEPS_PER_UNIT), -128, 127)


def measure(weights: np.ndarray[Any, Any], texts: list[Text]) -> str:
    """Secrets found and clean texts touched by the scorer alone, at several thresholds."""
    lines = []
    for least in (0, 1, 2, 3, 4):
        found = touched = 0
        for text in texts:
            spans = [span for span, score in _scores(weights, text.text) if score > least * scorer.STEPS_PER_UNIT]
            found += sum(any(low <= start and end <= high for low, high in spans) for start, end in text.secrets)
            touched += bool(spans) and not text.secrets
        secrets, clean = sum(len(text.secrets) for text in texts), sum(not text.secrets for text in texts)
        lines.append(f"above {least}: {found} of {secrets} secrets found, {touched} of {clean} clean texts touched")
    return "\n".join(lines)


def _scores(weights: np.ndarray[Any, Any], text: str) -> Iterator[tuple[tuple[int, int], float]]:
    text = blank(text, settle(text, addresses.find(text)))
    for start, end, suspect in scorer.suspects(text):
        yield (start, end), weights[list(scorer.features(suspect))].sum()


if __name__ == "__main__":
    main()
