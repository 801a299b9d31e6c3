"""What does the person at the terminal read when everything runs?"""

from __future__ import annotations

import json
import shlex
from pathlib import Path


def banner(url: str, key: str, store: str | Path) -> str:
    """Returns the text with the URL, the key and two commands that work as they stand when pasted into a shell."""
    remember = {"content": "Bob is allergic to peanuts", "user_id": "bob"}
    find = {"query": "what must Bob not eat?", "user_id": "bob"}
    return (
        "\n"
        "Loxodon is ready.\n"
        "\n"
        f"  URL    {url}     (documentation: {url}/docs)\n"
        f"  Key    {key}\n"
        f"  Store  {store}\n"
        "\n"
        "Remember something, then ask for it:\n"
        "\n"
        f"{curl(url + '/v1/memories', key, remember)}\n"
        "\n"
        f"{curl(url + '/v1/memories/search', key, find)}\n"
        "\n"
        "Ctrl-C stops it.\n"
    )


def curl(url: str, key: str, body: dict[str, str]) -> str:
    """Returns a POST as one shell line, quoted for any POSIX shell."""
    words = ["curl", "-sS", url, "-H", f"Authorization: Bearer {key}", "-H", "Content-Type: application/json"]
    return shlex.join([*words, "-d", json.dumps(body)])
