"""Is done before the first requests what they would have to pay for?"""

from __future__ import annotations

import sys

import pytest

from service import warmup
from service.language import temporal
from service.resources import Resources


async def test_rules_are_loaded_without_keeping_the_event_loop_waiting(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, seen = sys.getswitchinterval(), []
    monkeypatch.setattr(temporal, "warm", lambda: seen.append(sys.getswitchinterval()))
    await warmup.load_rules(resources)
    assert seen == [pytest.approx(warmup.POLITE_S)]
    assert sys.getswitchinterval() == usual


async def test_rules_that_cannot_be_loaded_leave_no_trace(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing() -> None:
        raise ImportError

    usual = sys.getswitchinterval()
    monkeypatch.setattr(temporal, "warm", failing)
    with pytest.raises(ImportError):
        await warmup.load_rules(resources)
    assert sys.getswitchinterval() == usual
