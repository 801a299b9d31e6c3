"""Every report on labelled data, in turn: `make eval DATA=folder`.

A missing set is named and skipped; a report that fails does not hide the others.
"""

from __future__ import annotations

import argparse
import importlib
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

# module -> the file it measures; None: a corpus of our own
REPORTS: dict[str, str | None] = {
    "pii": "pii-dev.jsonl",
    "temporal": "temporal-dev.jsonl",
    "memtype": "memtype-dev.jsonl",
    "pairs": "pairs-dev.jsonl",
    "decisions": "pairs-dev.jsonl",
    "entities": None,
    "ranking": None,
    "forgetting": "forget-dev.jsonl",
    "facts": "locomo-dev.jsonl",
    "sessions": "lme-dev.jsonl",
    "answerable": "locomo-dev.jsonl",
    "talk": "talk-dev.json",
}
DONE, FAILED, NO_FOLDER = 0, 1, 2


def main(words: Sequence[str] | None = None) -> int:
    """Prints the reports; 1 when one of them failed. A missing file is no failure."""
    parser = argparse.ArgumentParser(description="Every report on labelled data.")
    parser.add_argument("folder", type=Path, help="where the *.jsonl files lie")
    parser.add_argument("--only", nargs="*", choices=list(REPORTS), help="these reports")
    options = parser.parse_args(words)
    if not options.folder.is_dir():
        print(f"There is no folder {options.folder}.")
        return NO_FOLDER
    good = [printed(name, options.folder) for name in options.only or REPORTS]
    return DONE if all(good) else FAILED


def printed(name: str, folder: Path) -> bool:
    """Prints one report under its name; False when it failed."""
    file = REPORTS[name]
    path = folder / file if file else None
    title = f"== {name}" + (f" ({file})" if file else "")
    if path is not None and not path.is_file():
        print(f"{title}\nnot there: {path}\n")
        return True
    report = _report(name)
    print(title, flush=True)
    began = time.perf_counter()
    try:
        text = report(path) if path is not None else report()
    except Exception:
        traceback.print_exc()
        return False
    print(f"{text}\n({time.perf_counter() - began:.1f} s)\n", flush=True)
    return True


def _report(name: str) -> Callable[..., str]:
    found: Callable[..., str] = importlib.import_module(f"bench.evals.{name}").report
    return found


if __name__ == "__main__":
    raise SystemExit(main())
