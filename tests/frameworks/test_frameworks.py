"""The bindings to agent frameworks, only with ALL_FRAMEWORKS: fetching the frameworks takes minutes. `make
frameworks` does the same."""

from __future__ import annotations

import os

import pytest

from bench import target
from tests.fakes.openai_server import OpenAiServer
from tests.frameworks.proof import FRAMEWORKS, check_types, install


@pytest.mark.timeout(1800)
@pytest.mark.skipif(not os.environ.get("ALL_FRAMEWORKS"), reason="only with ALL_FRAMEWORKS")
def test_each_framework_walks_through_the_service() -> None:
    install()
    check_types()
    with target.started() as service:
        for prove in FRAMEWORKS.values():
            with OpenAiServer() as model:
                prove(service, model)
