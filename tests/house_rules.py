"""House rules that ruff does not know, checked over the whole tree by `make lint`; standard library only.

- no identifier of an outside document: a letter and a number, a requirement's number, the number of an issue;
- no class name defined twice in service, bench and tests;
- no module docstring whose first sentence is a question;
- no import alias that tells two things apart; the customary ones are listed;
- no more settings, context variables, lines in a room or files in a folder than tests/budgets.json allows. `--lower`
  brings the numbers down to what there is. A commit that raises one says why.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACES = (
    "service",
    "tests",
    "bench",
    "migrations",
    "tools",
    "clients/python",
    "docs",
    "README.md",
    "Makefile",
    "pyproject.toml",
)
TEXTS = frozenset({".py", ".sql", ".md", ".toml", ".ini", ".mako", ""})

CODES = re.compile(
    r"\((?:[A-G]\d{1,2}|R\d{1,2}\.\d{1,2})\b"  # in brackets
    r"|\bR\d{1,2}\.\d{2}\b"  # a requirement
    r"|\b[ABCEG]\d{1,2}, [A-GR]\d"  # several
    r"|(?<![%\w#&\"'/.\\-])[ABCG]\d{2}\b(?![-%\w])"  # one alone
    r"|\bissue \d+\b|\btest_[a-gr]\d+_"
)
NO_CODE = re.compile(r"\((?:A/B|F1\b)")
"""Vocabulary that only looks like one."""

ALIASES = frozenset(
    {
        ("numpy", "np"),
        ("hypothesis.strategies", "st"),
        ("sqlalchemy", "sa"),
    }
)


BUDGETS = ROOT / "tests" / "budgets.json"
SERVICE = ROOT / "service"
FILES = 25
"""In a folder that tests/budgets.json does not name."""


def files() -> list[Path]:
    """The texts of the tree, without labelled data and what benches built."""
    found = [
        path for name in PLACES for path in ([ROOT / name] if (ROOT / name).is_file() else (ROOT / name).rglob("*"))
    ]
    ours = (path for path in found if not {"__pycache__", ".data"} & {*path.relative_to(ROOT).parts})
    return sorted(path for path in ours if path.suffix in TEXTS and path.is_file())


def codes(file: Path) -> Iterator[str]:
    """Lines that name an outside document's identifier."""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        found = CODES.search(line)
        if found and not NO_CODE.match(line, found.start()):
            yield f"{file.relative_to(ROOT)}:{number}: {line.strip()[:100]}"


def questions(file: Path, tree: ast.Module) -> Iterator[str]:
    """The module docstring, when its first sentence is a question."""
    found = re.match(r'[^".!]*\?', ast.get_docstring(tree) or "")
    if found:
        yield f"{file.relative_to(ROOT)}:1: {found[0][:80]}"


def aliases(file: Path, tree: ast.Module) -> Iterator[str]:
    """Imports under another name."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            for each in node.names:
                if each.asname not in (None, each.name) and (prefix + each.name, each.asname) not in ALIASES:
                    yield f"{file.relative_to(ROOT)}:{node.lineno}: {prefix}{each.name} as {each.asname}"


def sizes() -> dict[str, int]:
    """What tests/budgets.json limits, as it is now."""
    found: Counter[str] = Counter()
    models: dict[str, ast.ClassDef] = {}
    for file in sorted(SERVICE.rglob("*")):
        if file.suffix in (".py", ".sql"):
            text, place = file.read_text(encoding="utf-8"), file.relative_to(ROOT)
            found[f"files in {place.parent.as_posix()}"] += 1
            found[f"lines in {'/'.join(place.parts[:2])}"] += text.count("\n")
            if file.suffix == ".py":
                nodes = list(ast.walk(ast.parse(text)))
                found["context variables"] += sum(
                    isinstance(node, ast.Call) and ast.unparse(node.func) == "ContextVar" for node in nodes
                )
                if place.parts[1] in ("domain", "kit"):
                    models |= {node.name: node for node in nodes if isinstance(node, ast.ClassDef) and node.bases}
    found["settings"] = _settings(models["Settings"], models)
    return dict(found)


def _settings(model: ast.ClassDef, models: dict[str, ast.ClassDef]) -> int:
    """The fields of a model, those of models in it included."""
    count = 0
    for field in model.body:
        if isinstance(field, ast.AnnAssign):
            names = [node.id for node in ast.walk(field.annotation) if isinstance(node, ast.Name)]
            inner = [models[name] for name in names if name in models]
            count += _settings(inner[0], models) if inner else 1
    return count


def over_budget() -> Iterator[str]:
    """What has grown beyond its limit."""
    limits = json.loads(BUDGETS.read_text(encoding="utf-8"))
    now = sizes()
    if "--lower" in sys.argv:
        limits = {name: min(limit, now[name]) for name, limit in limits.items() if name in now}
        BUDGETS.write_text(json.dumps(limits, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    for name, size in sorted(now.items()):
        limit = limits.get(name, FILES if name.startswith("files") else 0)
        if size > limit:
            yield f"{size} {name}, at most {limit}: take away as many, or raise tests/budgets.json and say why"


def main() -> int:
    """Prints every offence by rule; returns 1 when there is one."""
    found: dict[str, list[str]] = defaultdict(list)
    classes: dict[str, list[str]] = defaultdict(list)
    for file in files():
        found["identifiers of outside documents"] += codes(file)
        if file.suffix == ".py":
            tree = ast.parse(file.read_text(encoding="utf-8"))
            found["docstrings that ask"] += questions(file, tree)
            found["import aliases"] += aliases(file, tree)
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef) and file.relative_to(ROOT).parts[0] in ("service", "bench", "tests"):
                    classes[node.name].append(f"{file.relative_to(ROOT)}:{node.lineno}")
    found["over budget"] += over_budget()
    found["class names defined twice"] = [
        f"{name}: {', '.join(places)}" for name, places in sorted(classes.items()) if len(places) > 1
    ]
    for rule, lines in found.items():
        if lines:
            print(f"{rule}: {len(lines)}", *("" if "--count" in sys.argv else f"\n  {line}" for line in lines), sep="")
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main())
