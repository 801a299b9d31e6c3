"""Writes the generated part of the client, from docs/openapi.json and loxodon/_async.py: `make clients-python`.

- loxodon/types.py: what goes in and comes out, as TypedDicts, of the operations that the client calls, and no others.
- loxodon/_operations.py: where each operation's arguments go: path, query, header or body.
- loxodon/_sync.py: the client without async, word for word the same but for these words.

`python clients/python/generate.py --check` writes nothing and fails where one of them is not what it would write.
"""

from __future__ import annotations

import json
import keyword
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PACKAGE = HERE / "loxodon"
DOCUMENT: dict[str, Any] = json.loads((HERE.parents[1] / "docs" / "openapi.json").read_text(encoding="utf-8"))
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]

CALLED = re.compile(r'\b_(?:call|pages)\(\s*(?:\w+, )?"(\w+)"')
"""How loxodon/_async.py names an operation."""

READING_POSTS = frozenset({"search_memories", "recall", "get_memories", "list_entities"})
"""They write nothing, so they are repeated without a key."""

WORDS = (
    (r"\bAsync(Memory|Pages|Goals|Entities|Conversations)\b", r"\1"),
    (r"\bAsync(Iterator|Iterable)\b", r"\1"),
    (r"\bhttpx\.Async(Client|BaseTransport)\b", r"httpx.\1"),
    (r"\b__a(iter|enter|exit)__\b", r"__\1__"),
    (r"\bhttp\.aclose\b", "http.close"),
    (r"\basync (def|for|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bimport asyncio\b", "import time"),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"^    import time\n", ""),
)
BANNER = "# Written by clients/python/generate.py: change that, or what it reads.\n"


def main() -> int:
    source = (PACKAGE / "_async.py").read_text(encoding="utf-8")
    called = sorted(set(CALLED.findall(source)))
    written = {
        "types.py": types(called),
        "_operations.py": operations(called),
        "_sync.py": _without_async(source),
    }
    stale = []
    for name, text in written.items():
        text = _formatted(text)
        file = PACKAGE / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            stale.append(name)
            if "--check" not in sys.argv:
                file.write_text(text, encoding="utf-8")
    if "--check" in sys.argv and stale:
        print(f"{', '.join(stale)}: run `make clients-python`")
        return 1
    return 0


def _without_async(source: str) -> str:
    for pattern, word in WORDS:
        source = re.sub(pattern, word, source, flags=re.MULTILINE)
    return BANNER + source


def _formatted(text: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--stdin-filename", "generated.py", "-"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
        cwd=HERE.parents[1],
    )
    return done.stdout


def found(name: str) -> tuple[str, str, dict[str, Any]]:
    """Method, path and description of an operation."""
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            if operation["operationId"] == name:
                return method.upper(), path, operation
    raise SystemExit(f"docs/openapi.json has no operation {name}")


def body_of(operation: dict[str, Any]) -> str | None:
    """The name of the schema of its body."""
    return next(iter(_references(operation.get("requestBody"))), None)


def arguments(operation: dict[str, Any]) -> Iterator[tuple[str, str, str, dict[str, Any], bool]]:
    """Name in Python, name on the wire, place, schema, and whether it has to be there; a deprecated one is left out."""
    for each in operation.get("parameters", []):
        schema = each["schema"] | {"description": each.get("description", "")}
        name = re.sub(r"\W", "_", each["name"]).lower()
        yield name + "_" * keyword.iskeyword(name), each["name"], each["in"], schema, each.get("required", False)
    if body := body_of(operation):
        needed = SCHEMAS[body].get("required", ())
        for name, schema in SCHEMAS[body]["properties"].items():
            yield name, name, "body", schema, name in needed


def operations(called: list[str]) -> str:
    lines = [
        '"""Where the arguments of each operation go."""',
        "",
        BANNER,
        "from __future__ import annotations",
        "",
        "from typing import NamedTuple",
        "",
        "",
        "class Operation(NamedTuple):",
        '    """`arguments`: the name in Python, with the place and its name there. `keyed`: takes an Idempotency-Key.',
        '    `repeatable`: doing it twice is doing it once, whatever key it has."""',
        "",
        "    method: str",
        "    path: str",
        "    arguments: dict[str, tuple[str, str]]",
        "    keyed: bool",
        "    repeatable: bool",
        "",
        "",
        "OPERATIONS = {",
    ]
    for name in called:
        method, path, operation = found(name)
        where = {python: (place, wire) for python, wire, place, _, _ in arguments(operation)}
        keyed = "idempotency_key" in where
        repeatable = method in ("GET", "PUT", "DELETE") or name in READING_POSTS
        lines.append(f"    {name!r}: Operation({method!r}, {path!r}, {where!r}, {keyed}, {repeatable}),")
    return "\n".join([*lines, "}", ""])


def types(called: list[str]) -> str:
    sent, answered = set[str](), set[str]()
    for name in called:
        _, _, operation = found(name)
        sent |= _reached(operation.get("requestBody"))
        sent |= _reached(operation.get("parameters"))
        answered |= _reached({code: each for code, each in operation["responses"].items() if code[0] == "2"})
    sent |= {"ErrorCode"}
    lines = [
        '"""What goes in and comes out, as the OpenAPI document says it: an answer is the JSON, as it came."""',
        "",
        BANNER,
        "from __future__ import annotations",
        "",
        "from datetime import datetime",
        "from typing import Any, Literal, NotRequired, Required, TypeAlias, TypedDict",
        "from uuid import UUID",
        "",
        "Moment: TypeAlias = str | datetime",
        "Id: TypeAlias = str | UUID",
    ]
    for name in sorted(sent | answered):
        schema = SCHEMAS[name]
        told = " ".join(schema.get("description", "").split("\n\n")[0].split())
        if "enum" in schema:
            values = ", ".join(map(repr, schema["enum"]))
            lines += [f"{name}: TypeAlias = Literal[{values}]", f'"""{told.removesuffix(".")}."""', ""]
        elif schema.get("properties"):
            needed = set(schema.get("required", ())) if name in sent else _always_there(schema)
            lines += ["", "", f"class {name}(TypedDict):", f'    """{told or name}"""', ""]
            for field, each in schema["properties"].items():
                kind = hint(each, is_sent=name in sent)
                lines.append(f"    {field}: {kind if field in needed else f'NotRequired[{kind}]'}")
        else:
            lines.append(f"{name}: TypeAlias = Any")
    for name in called:
        _, _, operation = found(name)
        title = "".join(part.title() for part in name.split("_")) + "Options"
        lines += ["", "", f"class {title}(TypedDict, total=False):", f'    """{operation["summary"]}"""', ""]
        for python, _, place, schema, is_needed in arguments(operation):
            if place != "path" and (name, python) not in POSITIONAL:
                kind = hint(schema, is_sent=True)
                lines.append(f"    {python}: {f'Required[{kind}]' if is_needed else kind}")
                if told := " ".join(schema.get("description", "").split()):
                    lines.append(f'    """{told.rstrip(chr(34))}"""')
    return "\n".join([*lines, ""])


POSITIONAL = {
    *(("store_memory", name) for name in ("content", "messages")),
    *(("store_conversation_later", name) for name in ("content", "messages")),
    *(("search_memories", name) for name in ("query",)),
    ("recall", "query"),
    ("forget", "query"),
    ("store_memories", "items"),
    ("search_turns", "q"),
    ("search_turns", "query"),
    ("search_entities", "q"),
    ("store_turn", "role"),
    ("store_turn", "content"),
    ("list_memories", "cursor"),
    ("list_conversations", "cursor"),
    ("get_conversation", "cursor"),
    ("list_goals", "cursor"),
    ("list_entities", "cursor"),
    ("list_entity_relations", "cursor"),
    ("list_scopes", "cursor"),
    ("create_goal", "description"),
}
"""What the client's methods take by place, or give themselves."""


def hint(schema: dict[str, Any], *, is_sent: bool) -> str:
    """The type of a field in Python."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(hint(each, is_sent=is_sent) for each in schema["anyOf"]))
    if "const" in schema or "enum" in schema:
        return f"Literal[{', '.join(map(repr, schema.get('enum') or [schema['const']]))}]"
    kind = schema.get("type")
    if kind == "array":
        return f"list[{hint(schema['items'], is_sent=is_sent)}]"
    if kind == "object":
        more = schema.get("additionalProperties")
        return f"dict[str, {hint(more, is_sent=is_sent)}]" if isinstance(more, dict) and more else "dict[str, Any]"
    if kind == "string" and is_sent and schema.get("format") in ("date-time", "uuid"):
        return "Moment" if schema["format"] == "date-time" else "Id"
    simple = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
    return simple.get(str(kind), "Any")


def _always_there(schema: dict[str, Any]) -> set[str]:
    """The fields that an answer has. One that may have more than the document says also leaves some of these out."""
    if schema.get("additionalProperties") is not True:
        return set(schema["properties"])
    return {*schema["required"], *(name for name, each in schema["properties"].items() if "default" in each)}


def _references(part: Any) -> list[str]:
    return re.findall(r'"#/components/schemas/(\w+)"', json.dumps(part))


def _reached(part: Any) -> set[str]:
    """The schemas that this part is made of, by name."""
    waiting, known = _references(part), set[str]()
    while waiting:
        if (name := waiting.pop()) not in known:
            known.add(name)
            waiting += _references(SCHEMAS[name])
    return known


if __name__ == "__main__":
    sys.exit(main())
