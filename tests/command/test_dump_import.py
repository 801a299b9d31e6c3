"""What other services give out becomes memories of the same people at the same times; what is lost is said."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import pytest

from service.command import archive
from service.command.dumps import EDGE_TYPES
from service.command.terminal import Advance, CommandError
from service.memories.routes.relations import RelationName
from service.runtime.resources import Resources
from tests.command.conftest import Run
from tests.conftest import Tenant
from tests.support.application import client_of, serving

M = "0b7c8a52-3f6e-4a2b-9d0e-00000000000{}"
ROW = {"data": 'Plays the "cello"', "user_id": "a", "created_at": "2024-02-01T08:00-08:00", "hue": 1}


def gave(done: Any) -> dict[str, Any]:
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found | {"reasons": {each["reason"]: each["count"] for each in found["not_carried"]}}


def written(path: Path, found: object) -> str:
    text = found if isinstance(found, str) else json.dumps(found)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return str(path)


async def test_dumps_of_other_services(run: Run, tenant: Tenant, resources: Resources, tmp_path: Path) -> None:
    mem0 = [
        {
            "id": M.format(1),
            "memory": "Eats no meat",
            "user_id": "ann",
            "metadata": {"importance": "high", "source": "chat"},
            "categories": ["food"],
            "created_at": "2024-03-01T10:00:00Z",
            "updated_at": "2024-04-01T10:00:00Z",
        },
        {"id": "not-a-uuid", "memory": "Speaks Danish", "agent_id": "helper", "created_at": "2024-03-02"},
        {"id": M.format(2), "memory": "Belongs to nobody"},
        {"id": M.format(3), "memory": "", "user_id": "ann"},
    ]
    source = written(tmp_path / "mem0.json", {"results": mem0})
    found = gave(await run("import", source, "--from", "mem0", "--json"))
    assert found["stored"] == {"memories": 2}
    assert found["reasons"] == {
        "names of metadata that are fields here: kept as foreign_...": 1,
        "records without an owner: name one with --user or --agent": 1,
        "memories without a text": 1,
    }
    dump = written(tmp_path / "mem0.jsonl.gz", json.dumps({"id": M.format(4), "payload": ROW}))
    assert gave(await run("import", dump, "--from", "mem0", "--json"))["stored"] == {"memories": 1}

    memories = [
        {"id": number, "labels": ["Memory"], "properties": {
            "id": M.format(number), "content": text, "type": kind, "confidence": 0.7, "importance": 0.8,
            "tags": ["project:atlas"], "timestamp": "2025-01-01T00:00:00+00:00", "metadata": '{"a": 1}'}}
        for number, text, kind in ((6, "Chose Postgres", "Decision"), (7, "Postgres is enough", "Memory"))
    ]  # fmt: skip
    backup = {
        "nodes": [*memories, {"id": 9, "labels": ["Entity"], "properties": {}}],
        "relationships": [
            {"source_id": 6, "type": "LEADS_TO", "target_id": 7, "properties": {"strength": 0.6, "reason": "so"}},
            {"source_id": 6, "type": "MENTIONS", "target_id": 9, "properties": {}},
        ],
    }
    written(tmp_path / "automem" / "falkordb" / "falkordb_20250101_000000.json.gz", backup)
    words = ("import", str(tmp_path / "automem"), "--from", "automem", "--user", "eve", "--json")
    found = gave(await run(*words))
    assert found["stored"] == {"memories": 2, "edges": 1}
    assert found["reasons"]["the type Memory: the memory is classified again"] == 1

    async with serving(resources) as app, client_of(app, tenant.key) as client:
        one = (await client.get(f"/v1/memories/{M.format(1)}")).json()
        assert (one["user_id"], one["memory"], one["tags"]) == ("ann", "Eats no meat", ["food"])
        assert one["metadata"] == {"foreign_importance": "high", "source": "chat"}
        assert (one["timestamp"], one["updated_at"]) == ("2024-03-01T10:00:00+00:00", "2024-04-01T10:00:00+00:00")
        four = (await client.get(f"/v1/memories/{M.format(4)}")).json()
        assert (four["memory"], four["metadata"]) == ('Plays the "cello"', {"hue": 1})
        assert four["timestamp"] == "2024-02-01T16:00:00+00:00"
        six = (await client.get(f"/v1/memories/{M.format(6)}")).json()
        assert (six["user_id"], six["type"], six["importance"]) == ("eve", "Decision", 0.8)


async def test_a_dump_that_cannot_be_read_is_refused(run: Run, tmp_path: Path) -> None:
    for name, content, said in (
        ("nothing", None, "does not exist"),
        ("half.json", '{"results": [', "is not valid JSON"),
        ("number.json", "7", "holds no list"),
        ("lines.jsonl", '{"memory": \n{"memory', "is not a dump of mem0: line 1: is not valid JSON"),
        ("deep.json", "[" * 100_000, "is not valid JSON"),
        ("other.json", '[{"content": "Rows"}]', "none of its 1 records has a text"),
    ):
        if content is not None:
            written(tmp_path / name, content)
        done = await run("import", str(tmp_path / name), "--from", "mem0")
        assert (done.exit_code, said in done.stderr) == (1, True), done.output
    assert "is not one of mem0" in (await run("import", str(tmp_path), "--from", "else")).stderr
    assert "no file falkordb_*.json" in (await run("import", str(tmp_path), "--from", "automem")).stderr
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe{")
    assert "binary.json cannot be read" in (await run("import", str(tmp_path / "binary.json"), "--from", "mem0")).stderr
    with pytest.raises(CommandError, match=r"other\.json is a file: name the folder of an export, or give --from"):
        archive.read(tmp_path / "other.json")


async def test_a_broken_record_does_not_stop_the_others(
    run: Run, tenant: Tenant, resources: Resources, tmp_path: Path
) -> None:
    lines = [
        '{"id": "one", "memory": ',
        *(json.dumps({"memory": "Rows", "user_id": name}) for name in ("ann", "ben")),
        "5",
        json.dumps({"id": "two", "memory": "Sings", "user_id": "ann", "metadata": "loudly"}),
        json.dumps({"id": "three", "memory": "Swims", "user_id": "ann", "categories": ["sport", 5]}),
        json.dumps({"memory": "Has half \ud83d of a pair", "user_id": "ann"}),
        json.dumps({"memory": "Counts", "user_id": "ann", "metadata": {"to": float("nan")}}),
        json.dumps({"id": "four", "memory": "Knits", "user_id": "ann", "expiration_date": "2020-01-01"}),
        json.dumps({"memory": "Sails", "user_id": "ann", "metadata": '{"in": "Kiel"}'}),
    ]
    dump = written(tmp_path / "lines.jsonl", "\ufeff" + "\n".join(lines))
    for _ in range(2):
        done = await run("import", dump, "--from", "mem0", "--json")
        assert done.exit_code == 1
        assert json.loads(done.stdout)["stored"] == {"memories": 3}
        assert json.loads(done.stdout)["refused"] == [
            "line 1: is not valid JSON",
            "line 4: has another form ('int' object has no attribute 'get')",
            "line 5: has another form (metadata: must be an object)",
            "line 6: tags[1]: must be a string (invalid_input)",
            "line 7: content: contains a lone surrogate. (invalid_input)",
            "line 8: metadata.to: contains NaN, which is not a JSON number. (invalid_input)",
            "line 9: expires_at: must not be in the past.",
        ]
    assert "line 6: tags[1]" in (await run("import", dump, "--from", "mem0")).stderr
    async with serving(resources) as app, client_of(app, tenant.key) as client:
        for name, texts in (("ann", {"Rows", "Sails"}), ("ben", {"Rows"})):
            stored = (await client.get("/v1/memories", params={"user_id": name})).json()["results"]
            assert ({each["memory"] for each in stored}, len(stored)) == (texts, len(texts))


def test_the_words_of_the_api_are_known_here() -> None:
    assert set(get_args(RelationName)) >= EDGE_TYPES


async def test_an_import_says_how_far_of_how_much_it_is(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = list[tuple[int, int | None]]()

    @contextmanager
    def progress(title: str) -> Iterator[Advance]:
        yield lambda what, done, total=None: seen.append((done, total))

    monkeypatch.setattr("service.command.moving.progress", progress)
    mem0 = [{"id": M.format(each), "memory": f"Likes number {each}", "user_id": "ann"} for each in range(3)]
    gave(await run("import", written(tmp_path / "mem0.json", mem0), "--from", "mem0", "--json"))
    assert seen == [(1, 3), (2, 3), (3, 3)]
