"""The dedup guard and the offline pair decision on labelled pairs.

No embedder takes part: the guard sees every pair as if its similarity were 0.98 or more, the decision as if it were in
the band. So the figures show what the text rules contribute, on harder pairs than vectors would pass on.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from bench.evals.pairs import LABELS, Pair, read
from service.curator.rules import PairAction, decide_pair
from service.language import contrast

BAND = (0.75, 0.85, 0.97)
OPPOSED = ("contradiction", "different")


def guarded(pair: Pair) -> bool:
    """Returns whether the guard keeps the pair from being dropped at 0.98: it differs, or its words do."""
    return contrast.differs(pair.a, pair.b) is not None or not contrast.same_content_words(pair.a, pair.b)


def verdicts(labelled: list[Pair], similarity: float) -> Counter[tuple[str, PairAction]]:
    """Returns how often each label got each verdict, both directions counted."""
    found: Counter[tuple[str, PairAction]] = Counter()
    for pair in labelled:
        for new, old in ((pair.a, pair.b), (pair.b, pair.a)):
            found[pair.label, decide_pair(new, old, similarity).action] += 1
    return found


def report(path: Path) -> str:
    """Returns the guard's table, the decision's tables at three similarities, and the shares that matter."""
    labelled = read(path)
    lines = ["guard at 0.98                 pairs  held back  by reason"]
    for label in LABELS:
        chosen = [pair for pair in labelled if pair.label == label]
        reasons = Counter(contrast.differs(pair.a, pair.b) or "words or none" for pair in chosen)
        told = ", ".join(f"{reason} {count}" for reason, count in reasons.most_common())
        lines.append(f"{label:<28} {len(chosen):>6} {sum(map(guarded, chosen)):>10}  {told}")
    for similarity in BAND:
        lines += ["", *_table(verdicts(labelled, similarity), similarity)]
    return "\n".join(lines)


def _table(found: Counter[tuple[str, PairAction]], similarity: float) -> list[str]:
    lines = [f"decision at {similarity:<16} " + " ".join(f"{verdict.value:>10}" for verdict in PairAction)]
    for label in LABELS:
        lines.append(f"{label:<28} " + " ".join(f"{found[label, verdict]:>10}" for verdict in PairAction))
    updates = found["different", PairAction.REPLACE] + found["different", PairAction.MERGE]
    return [
        *lines,
        f"duplicates kept as two rows          {_share(found, 'duplicate', PairAction.KEEP_BOTH)}",
        f"contradictions dropped (must be 0)   {found['contradiction', PairAction.NONE]}",
        f"contradictions that end the old text {_share(found, 'contradiction', PairAction.REPLACE)}",
        f"different texts dropped              {found['different', PairAction.NONE]}",
        f"different texts written over         {updates}",
    ]


def _share(found: Counter[tuple[str, PairAction]], label: str, verdict: PairAction) -> str:
    total = sum(count for (name, _), count in found.items() if name == label)
    return f"{found[label, verdict]} of {total} ({found[label, verdict] / total:.0%})" if total else "no such pairs"


def main() -> None:
    parser = argparse.ArgumentParser(description="Dedup guard and offline decision on labelled pairs.")
    parser.add_argument("path", type=Path, help="JSON lines with a, b, label")
    print(report(parser.parse_args().path))


if __name__ == "__main__":
    main()
