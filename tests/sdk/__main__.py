"""Generates clients, checks their types and has each walk through the service: `make sdk`, or with names some of them.

What is generated lies in build/sdk. The tools are pinned in requirements/sdk.txt and tests/sdk/package-lock.json, and
nothing of what they make is changed by hand.
"""

from __future__ import annotations

import argparse
import sys

from bench import target
from tests.sdk.generators import DOCUMENT, GENERATORS, install_node, install_python, lint


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", choices=[*GENERATORS, []], help="default all")
    names = parser.parse_args().names or list(GENERATORS)
    install_python()
    install_node()
    lint()
    with target.started() as service:
        for name in names:
            print(f"{name}: {DOCUMENT.name} -> client, types, walk", flush=True)
            GENERATORS[name].prove(service.url, service.key)
    print(f"{len(names)} clients: generated, type-checked, and they walked through the service.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
