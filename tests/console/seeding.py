"""A small world for the console: alice with conversations, people and doubts, bob, and carol whose review waits."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

TALKS = {
    "2026-08-03": (
        "I live in Porto with my sister Ines Moura and our dog Rex.",
        "I work as a nurse at Santa Maria hospital.",
    ),
    "2026-09-10": ("I'm vegetarian and allergic to nuts.", "My favourite coffee place is Cafe Majestic."),
    "2026-10-15": (
        "We moved to Lisbon last week, so I no longer live in Porto.",
        "I start at Hospital da Luz on Monday.",
    ),
    "2026-11-05": (
        "My card number is 4111 1111 1111 1111, please pay the vet with it.",
        "Ines is getting married in June 2027.",
    ),
    "2026-11-20": ("Remember that I prefer short answers.", "I'm learning Portuguese guitar on Thursdays."),
}
NOTES = (
    "Ines Moura works at Brightwave Labs. Ines Moura lives in Lisbon.",
    "Marco Silva works at Brightwave Labs. Marco Silva lives in Lisbon.",
    "Priya Raman works at Brightwave Labs. Priya Raman lives in Porto.",
    "Teresa Lopes works at Hospital da Luz. Teresa Lopes lives in Lisbon.",
    "Joao Costa works at Hospital da Luz. Joao Costa lives in Porto.",
    "Rota tool: the API must answer within 200 ms",
    "Decided to deploy the rota tool on Fridays only before noon",
    "The rota tool's staging server is called heron",
    "Alice prefers window seats on trains",
    "Rex needs his vaccination every May",
    "Alice's phone plan ends in December 2026",
)

ENRICHED_S = 90.0


@dataclass(frozen=True, slots=True)
class ApiCaller:
    """Calls the API with a key; raises AssertionError with the answer that is not a success."""

    url: str
    key: str

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as exc:
            raise AssertionError(f"{method} {path}: {exc.code} {exc.read().decode()}") from exc

    def store(self, content: str, user_id: str, **more: Any) -> str:
        """Stores a text; returns the id of the memory."""
        answer = self("POST", "/v1/memories", {"content": content, "user_id": user_id, **more})
        return str(answer["results"][0]["id"])


def seed(call: ApiCaller) -> None:
    """Stores all of it, and waits until the worker has read the people and places in it."""

    for day, said in TALKS.items():
        messages = [{"role": "user", "name": "Alice", "content": each} for each in said]
        messages.insert(1, {"role": "assistant", "content": "Thank you, I will remember that."})
        session = {"user_id": "alice", "session_id": f"chat-{day}", "timestamp": f"{day}T09:00:00Z"}
        call("POST", "/v1/memories", {**session, "messages": messages})
    for note in NOTES:
        call.store(note, "alice", tags=["work" if "ota tool" in note else "life"])
    for note in ("Bob is allergic to peanuts", "Bob plays chess on Sundays"):
        call.store(note, "bob")
    flag(call, "carol", "blue", "green")
    deadline = time.monotonic() + ENRICHED_S
    while call("GET", "/v1/jobs?state=queued")["results"] or call("GET", "/v1/jobs?state=running")["results"]:
        assert time.monotonic() < deadline, "people and places are not read"
        time.sleep(0.5)


def flag(call: ApiCaller, user_id: str, old: str, new: str, topic: str = "colour") -> None:
    """Leaves a contradiction about a favourite waiting for review."""
    _policy(call, "flag_review")
    for sentence in (f"My favourite {topic} is {old}.", f"My favourite {topic} is {new} now."):
        call("POST", "/v1/memories", {"user_id": user_id, "messages": [{"role": "user", "content": sentence}]})
    _policy(call, "in_place")


def _policy(call: ApiCaller, name: str) -> None:
    call("PATCH", "/v1/workspaces/current", {"settings": {"contradiction_policy": name}})
