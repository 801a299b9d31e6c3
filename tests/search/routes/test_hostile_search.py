"""Queries in every script, of every length and with bad intentions get an answer or a clear refusal."""

from __future__ import annotations

import pytest
from httpx2 import AsyncClient

from tests.fakes.embedder import AngleEmbedder
from tests.support.calls import results_of, store

INJECTIONS = (
    "'; DROP TABLE memory; --",
    "' OR '1'='1",
    "1); SELECT pg_sleep(10); --",
    "$1 :terms :workspace {scope} {rows} %s %(a)s",
    "\\'; COPY memory TO PROGRAM 'id'; --",
    "tea' AND content ~ '(a+)+$",
)

SCRIPTS = {
    "Chinese": ("她最喜欢的咖啡馆在上海", "咖啡馆"),
    "Japanese": ("彼は毎朝コーヒーを飲みます", "コーヒー"),
    "Korean": ("그녀는 부산에 삽니다", "부산에"),
    "Arabic": ("تعيش سارة في القاهرة", "القاهرة"),
    "Hebrew": ("דנה גרה בתל אביב", "אביב"),
    "Thai": ("เขาชอบกินข้าวผัด", "ข้าวผัด"),
    "accents": ("Crème brûlée à Łódź", "Łódź"),
    "marks turned round": ("file \u202ename\u202c gpj.exe", "name"),
}


async def hits(client: AsyncClient, query: str, **more: object) -> list[str]:
    body = {"query": query, "user_id": "alice", **more}
    return [hit["memory"] for hit in await results_of(client.post("/v1/memories/search", json=body))]


async def test_every_script_finds_its_words(client: AsyncClient, embedder: AngleEmbedder) -> None:
    """By words alone, all vectors being equally far: what holds the word of the question comes first."""
    for text, _ in SCRIPTS.values():
        embedder.place(text, 0.0)
        await store(client, text, dedup=False)
    for name, (text, query) in SCRIPTS.items():
        embedder.place(query, 1.0)
        found = await hits(client, query)
        assert found[0] == text, (name, found)
        assert len(found) == len(SCRIPTS)
        answer = await client.get("/v1/memories/search", params={"query": query, "user_id": "alice", "limit": 1})
        assert [hit["memory"] for hit in answer.json()["results"]] == [text], name


@pytest.mark.parametrize("query", ["🍕", "👩‍👩‍👧‍👦", "🇮🇹 🏖️", "‮‏⁦", "﻿", "́", "𐍈𒀀"])
async def test_signs_without_letters_are_a_question_too(client: AsyncClient, query: str) -> None:
    await store(client, "We ate 🍕 on the 🏖️ in 🇮🇹 with 👩‍👩‍👧‍👦")
    assert len(await hits(client, query)) == 1
    assert len(await hits(client, query, filters={"field": "memory", "operator": "contains", "value": query})) == (
        query in "🍕👩‍👩‍👧‍👦"
    )


async def test_sql_is_only_text(client: AsyncClient) -> None:
    await store(client, "Drinks tea at noon", tags=["drinks"])
    for text in INJECTIONS:
        assert await hits(client, text) == ["Drinks tea at noon"]
        assert await hits(client, "tea", tags=[text]) == []
        assert await hits(client, "tea", exclude_tags=[text], prefer_tags=[text]) == ["Drinks tea at noon"]
        assert await hits(client, "tea", categories=[text]) == []
        assert await hits(client, "tea", channels=[text[:100]]) == ["Drinks tea at noon"]
        assert await hits(client, "tea", time_query=text) == ["Drinks tea at noon"]
        for operator in ("eq", "contains", "icontains", "gt"):
            tree = {"field": f"metadata.{text.replace('.', '')}", "operator": operator, "value": text}
            assert await hits(client, "tea", filters=tree) == []
    assert await hits(client, "tea") == ["Drinks tea at noon"]


@pytest.mark.parametrize(
    "query", ["%", "_", "%%%", "___", "*", "?", ".", "\\", "' \"", "-", "NOT", "AND OR", "the of a"]
)
async def test_signs_and_empty_words_still_answer(client: AsyncClient, query: str) -> None:
    await store(client, "Drinks tea at noon")
    await store(client, "Saves 100% of it", dedup=False)
    assert sorted(await hits(client, query)) == ["Drinks tea at noon", "Saves 100% of it"]
    assert len(await hits(client, query, limit=1)) == 1


async def test_ten_thousand_words(client: AsyncClient, embedder: AngleEmbedder) -> None:
    """Equal, different (4,000 of them are read), and as many pairs of signs as fit into a question."""
    await store(client, "The zebrafish tank leaks")
    await store(client, "Drinks tea at noon", dedup=False)
    signs = "".join(chr(0x4E00 + number) for number in range(20_000))
    for words in (["7"] * 10_000, [f"w{number:x}" for number in range(10_000)], [signs, signs[::-1], signs[::3]]):
        question = f"zebrafish {' '.join(words)}"
        embedder.place(question, 1.0)
        assert (await hits(client, question))[0] == "The zebrafish tank leaks"
    answer = await client.post("/v1/memories/search", json={"query": "x " * 50_001, "user_id": "alice"})
    assert (answer.status_code, answer.json()["field"]) == (400, "query")


async def test_a_long_question_goes_by_post(client: AsyncClient) -> None:
    """An address that is too long for the server would be refused with a line of text instead of our error."""
    await store(client, "Drinks tea at noon")
    long = "tea " * 5_001
    answer = await client.get("/v1/memories/search", params={"query": long, "user_id": "alice"})
    assert (answer.status_code, answer.json()["field"]) == (400, "query"), answer.text
    assert await hits(client, long) == ["Drinks tea at noon"]
