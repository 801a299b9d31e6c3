"""Has clients of mem0 and AutoMem walk through a started service: `make compat`, or with names some of them.

The clients are the ones their users have, pinned in requirements/compat.txt, compat-1.txt and package-lock.json here,
each installed into a folder of its own under build/compat.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys

from httpx2 import AsyncClient

from bench import target
from tests.compat.automem import CALLS, AutomemCaller
from tests.compat.clients import CLIENTS

AUTOMEM = "automem"


async def walk_automem(url: str, key: str) -> None:
    async with AsyncClient(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=60) as client:
        for call in CALLS:
            await call(AutomemCaller(client, ranks=True))
    print(f"{AUTOMEM}: {len(CALLS)} parts of its contract", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", choices=[*CLIENTS, AUTOMEM, []], help="default all")
    names = parser.parse_args().names or [AUTOMEM, *CLIENTS]
    with target.started() as service:
        for name in names:
            if name == AUTOMEM:
                asyncio.run(walk_automem(service.url, service.key))
            elif "npm" in name and shutil.which("npm") is None:
                print(f"{name}: left out, there is no npm")
            else:
                CLIENTS[name].prove(service.url, service.key, folder=name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
