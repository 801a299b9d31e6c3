"""The dedup guard and the judgement of the rules on labelled pairs.

The guard sees every pair as if its similarity were 0.98 or more. The judgement sees the similarity that the local
embedder gives. Both directions of a pair count. A state change is a contradiction out of a set about memories, not
about
pictures.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from pathlib import Path
from uuid import UUID

from bench.evals.pairs import LABELS, Pair, cosines, read
from service.domain.decision import Action, Claim, Decision, Neighbour
from service.domain.text import CleanText
from service.providers.local import LocalEmbedder
from service.understanding import compare
from service.understanding.judge import judge

STATE_CHANGES = "forget"
"""Part of the source's name of the pairs about memories."""


def guarded(pair: Pair) -> bool:
    """Returns whether the guard keeps the pair from being dropped at 0.98: it differs, or its words do."""
    return not compare.is_same(pair.a, pair.b)


def judged(new: CleanText, old: CleanText, similarity: float) -> Decision:
    """The judgement on a text beside one memory."""
    return judge(Claim(new), (Neighbour(UUID(int=1), old, "", 1, similarity),))


def report(path: Path) -> str:
    """Returns the guard's table, the judgement's table, and the shares that matter."""
    labelled = read(path)
    lines = ["guard at 0.98                 pairs  held back"]
    for label in LABELS:
        chosen = [pair for pair in labelled if pair.label == label]
        lines.append(f"{label:<28} {len(chosen):>6} {sum(map(guarded, chosen)):>10}")
    return "\n".join([*lines, "", *_judgement(labelled, asyncio.run(_similarities(labelled)))])


async def _similarities(labelled: list[Pair]) -> list[float]:
    embedder = LocalEmbedder.load(None, threads=2, max_queue=len(labelled) + 1)
    try:
        return [embedder.similarity(float(each)) for each in await cosines(embedder, labelled)]
    finally:
        await embedder.close()


def _judgement(labelled: list[Pair], similarities: list[float]) -> list[str]:
    found: Counter[tuple[str, Action]] = Counter()
    changes: Counter[Action] = Counter()
    for pair, similarity in zip(labelled, similarities, strict=True):
        for new, old in ((pair.a, pair.b), (pair.b, pair.a)):
            action = judged(new, old, similarity).edits[0].action
            found[pair.label, action] += 1
            if STATE_CHANGES in pair.source and pair.label == "contradiction" and new is pair.b:
                changes[action] += 1
    lines = ["judgement                        " + " ".join(f"{action.value:>7}" for action in Action)]
    lines += [f"{label:<32} " + " ".join(f"{found[label, action]:>7}" for action in Action) for label in LABELS]
    dropped, joined = (found["different", action] for action in (Action.NONE, Action.UPDATE))
    one = found["duplicate", Action.NONE] + found["duplicate", Action.UPDATE]
    return [
        *lines,
        f"duplicates joined                {_share(one, found, 'duplicate')}",
        f"contradictions dropped           {found['contradiction', Action.NONE]} (must be 0)",
        f"contradictions recognised        {_share(found['contradiction', Action.UPDATE], found, 'contradiction')}",
        f"state changes recognised         {changes[Action.UPDATE]} of {changes.total()}",
        f"different texts dropped          {_share(dropped, found, 'different')}",
        f"different texts joined           {_share(dropped + joined, found, 'different')}",
    ]


def _share(count: int, found: Counter[tuple[str, Action]], label: str) -> str:
    total = sum(each for (name, _), each in found.items() if name == label)
    return f"{count} of {total} ({count / total:.1%})" if total else "no such pairs"


def main() -> None:
    parser = argparse.ArgumentParser(description="Dedup guard and judgement on labelled pairs.")
    parser.add_argument("path", type=Path, help="JSON lines with a, b, label")
    print(report(parser.parse_args().path))


if __name__ == "__main__":
    main()
