"""A scripted language model for measuring adds.

    python -m bench.scripted_model --port 9000 [--latency-ms 50]

A process of its own that speaks the OpenAI protocol and answers a fixed time after a request came in: the user's
message as one fact, in the user's words, with the known memories of its topic; and what becomes of that fact, as
`bench.tellings` means it. Timers fire late, so GET /took tells how long it really took: answers and
seconds since the last such request. It is written over asyncio streams to take little of the cores it shares.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any

from bench.tellings import TellingCase, Topic, meaning

KNOWN = re.compile(r"^\((\d+)\) (.*)$", re.MULTILINE)
NUMBERED = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)
FENCED = re.compile(r"^-----\n(.*?)\n-----$", re.MULTILINE | re.DOTALL)
USER_MESSAGE = re.compile(r"^\[\d+\] \S+ \S+ \S+ user: (.*)$", re.MULTILINE)
EXTRACT = "bench-extract"
"""The name of the model that extracts facts; another one decides."""

USAGE = {"prompt_tokens": 400, "completion_tokens": 40, "total_tokens": 440}


def reply(body: dict[str, Any]) -> str:
    """Returns the model's answer to a request."""
    prompt = body["messages"][1]["content"]
    return json.dumps({"facts": extracted(prompt)} if body["model"] == EXTRACT else {"items": decided(prompt)})


def extracted(prompt: str) -> list[dict[str, Any]]:
    """A fact for each of the user's messages."""
    before, _, conversation = prompt.partition("Conversation:\n")
    known = {int(number): meaning(text) for number, text in KNOWN.findall(before)}
    return [
        {
            "text": f"User: {text}",
            "certainty": "explicit",
            "temporal": "current",
            "importance": 5,
            "known": [number for number, each in known.items() if each and each.topic == topic_of(text)],
        }
        for text in USER_MESSAGE.findall(conversation)
    ]


def decided(prompt: str) -> list[dict[str, Any]]:
    """NONE for what is told again, UPDATE for a change of what is stored, else ADD."""
    fact, *stored = (line for block in FENCED.findall(prompt) for line in block.splitlines())
    told = meaning(fact)
    numbers = [
        number
        for number, text in NUMBERED.findall("\n".join(stored))
        if told and (there := meaning(text)) and there.topic == told.topic
    ]
    if not told or not numbers or told.case is TellingCase.FIRST:
        return [{"event": "ADD", "id": None, "old_memory": None, "data": None}]
    event = "NONE" if told.case is TellingCase.AGAIN else "UPDATE"
    return [{"event": event, "id": numbers[0], "old_memory": None, "data": None}]


def topic_of(text: str) -> Topic | None:
    found = meaning(text)
    return found.topic if found else None


def completion(body: dict[str, Any]) -> bytes:
    message = {"role": "assistant", "content": reply(body)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    whole = {"id": "c", "object": "chat.completion", "model": body["model"], "choices": [choice], "usage": USAGE}
    return json.dumps(whole).encode()


async def serve(port: int, latency_s: float) -> None:
    """Answers requests until it is killed."""
    clock = asyncio.get_running_loop().time
    took: list[float] = []

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                came_in = clock()
                is_completion = not head.startswith(b"GET /took ")
                if is_completion:
                    length = re.search(rb"(?i)^content-length: *(\d+)", head, re.MULTILINE)
                    body = await reader.readexactly(int(length[1]) if length else 0)
                    answer = completion(json.loads(body))
                    await asyncio.sleep(came_in + latency_s - clock())
                else:
                    answer = json.dumps({"answers": len(took), "seconds": sum(took)}).encode()
                    took.clear()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
                writer.write(b"Content-Length: %d\r\n\r\n" % len(answer) + answer)
                if is_completion:
                    took.append(clock() - came_in)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--latency-ms", type=float, default=50.0)
    options = parser.parse_args(words)
    asyncio.run(serve(options.port, options.latency_ms / 1000))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
