"""Load that the benchmarks generate, and how they judge answers."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from uuid import uuid4

import pytest

from bench.chaos_writes import KINDS, AnswerRecord, SentWrite, content_with_key
from bench.clients import LOST, Client
from bench.load_conversations import QueryResult, _session, _stores, read
from bench.sentences import distinct, questions
from service.language import lexemes


def test_sentences_are_distinct_and_the_same_for_a_seed() -> None:
    found = distinct(3_000, seed=1)
    assert len(set(found)) == 3_000
    assert found == distinct(3_000, seed=1)
    assert found != distinct(3_000, seed=2)
    assert all(5 <= len(sentence.split()) <= 30 for sentence in found)


@pytest.mark.parametrize(
    ("ranks", "evidence", "cut", "recall"),
    [((1,), 1, 1, 1.0), ((2,), 1, 1, 0.0), ((1, 7), 2, 5, 0.5), ((1, 7), 2, 10, 1.0), ((), 3, 20, 0.0)],
)
def test_recall(ranks: tuple[int, ...], evidence: int, cut: int, recall: float) -> None:
    assert QueryResult("any", evidence, ranks, 1.0).recall(cut) == recall


def test_reciprocal_rank_is_of_the_first_one() -> None:
    assert QueryResult("any", 2, (4, 9), 1.0).reciprocal == 0.25
    assert QueryResult("any", 2, (), 1.0).reciprocal == 0.0


def test_a_session_keeps_speakers_order_and_time() -> None:
    turns = [
        {"id": "a", "speaker": "Ann", "text": "Hi"},
        {"id": "b", "speaker": "Ben", "text": "Yo", "caption": "a cat"},
    ]
    body = _session("talk", {"id": "S1", "datetime": "2024-05-08T13:56:00", "turns": turns}, captions=True)
    assert (body["user_id"], body["run_id"], body["infer"]) == ("talk", "S1", False)
    assert [(each["name"], each["role"], each["content"]) for each in body["messages"]] == [
        ("Ann", "user", "Hi"),
        ("Ben", "assistant", "Yo [shares a cat]"),
    ]
    assert body["messages"][1]["timestamp"] == "2024-05-08T13:56:01+00:00"


def test_facts_without_a_time_are_stored_one_by_one() -> None:
    facts = [{"id": "F1", "text": "I drink tea."}, {"id": "F2", "text": "I ski."}]
    stores = _stores("ann", {"id": "facts", "turns": facts}, captions=False)
    assert [body for _, body in stores] == [{"content": each["text"], "user_id": "ann"} for each in facts]
    assert [turns for turns, _ in stores] == [facts[:1], facts[1:]]


@pytest.mark.parametrize(("name", "turns", "questions"), [("sessions", 178, 122), ("preferences", 278, 135)])
def test_the_evidence_of_the_shipped_sets_exists(name: str, turns: int, questions: int) -> None:
    conversations, loaded_questions = read(Path(__file__).parents[1] / "corpora" / f"{name}.jsonl")
    known = {(each["id"], turn["id"]) for each in conversations for part in each["sessions"] for turn in part["turns"]}
    assert (len(known), len(loaded_questions)) == (turns, questions)
    assert all((each["conversation_id"], turn) in known for each in loaded_questions for turn in each["evidence"])
    assert {each["held_out"] for each in loaded_questions} == {False, True}


def _answer(write: SentWrite, event: str = "ADD") -> dict[str, object]:
    return {"results": [{"id": str(uuid4()), "event": event} for _ in write.texts]}


def test_every_kind_of_write_says_what_it_stores() -> None:
    chance = random.Random(1)
    for kind in KINDS:
        write = kind(chance)
        assert all(text in write.body.decode() for text in write.texts)
        assert json.loads(write.body)


def test_another_id_for_the_same_key_is_wrong() -> None:
    record, write = AnswerRecord(), content_with_key(random.Random(1))
    first = _answer(write)
    record.answered(write, 201, first)
    record.answered(write, 201, first)
    assert record.wrong == []
    assert record.repeated == 1
    record.answered(write, 201, _answer(write))
    assert "the same Idempotency-Key" in record.wrong[0]


def test_a_new_text_that_is_not_added_is_wrong() -> None:
    record, write = AnswerRecord(), content_with_key(random.Random(1))
    record.answered(write, 200, _answer(write, "NONE"))
    assert "NONE" in record.wrong[0]


async def test_the_client_keeps_its_connection_and_tells_of_a_lost_one() -> None:
    seen: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            await reader.readexactly(int(head.lower().partition("content-length: ")[2].split()[0]))
            seen.append(head)
            writer.write(b"HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\n{}")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    client = Client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", "key")
    try:
        for _ in range(2):
            answer = await client.post("/v1/memories", b'{"a": 1}', {"Idempotency-Key": "k"})
            assert (answer.status, answer.json) == (201, {})
        assert "Authorization: Bearer key" in seen[0]
        assert "Idempotency-Key: k" in seen[0]
        server.close()
        with pytest.raises(LOST):
            await client.post("/v1/memories", b"{}")
    finally:
        await client.close()
        server.close()


def test_questions_are_short_and_the_same_each_time() -> None:
    found = questions(200, seed=3)
    assert len(set(found)) == 200
    assert found == questions(200, seed=3)
    assert all(each.endswith("?") for each in found)
    words = [len(set(lexemes.lexemes(each))) for each in found]
    assert 4.5 < sum(words) / len(words) < 5.5
    assert (min(words), max(words)) == (3, 8)
