"""Proves the bindings with the frameworks themselves: `make frameworks`, or with names some of them."""

from __future__ import annotations

import argparse
import sys

from bench import target
from tests.fakes.openai_server import OpenAiServer
from tests.frameworks.proof import FRAMEWORKS, check_types, install


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", choices=[*FRAMEWORKS, []], help="default all")
    names = parser.parse_args().names or list(FRAMEWORKS)
    install()
    check_types()
    print("types: mypy --strict finds nothing", flush=True)
    with target.started() as service:
        for name in names:
            with OpenAiServer() as model:
                FRAMEWORKS[name](service, model)
            print(f"{name}: walk and example", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
