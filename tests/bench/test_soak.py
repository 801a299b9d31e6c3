"""What `make soak` calls flat. That its requests are answered as it expects: tests/bench/test_soak_mix.py."""

from __future__ import annotations

from bench.soak import growths, quarters


def judged(megabytes: list[float], name: str = "api") -> list[str]:
    return growths(quarters([{name: each, "worker": 85.0} for each in megabytes]))


def test_flat_memory() -> None:
    assert judged([100.0, 150.0, *[250.0] * 30]) == [], "the warm-up does not count"
    assert judged([250.0, 252.0] * 20) == [], "a process more or less is no growth"
    assert judged([10.0 + number / 20 for number in range(40)]) == [], "nor is a megabyte"
    assert judged([30.0 + number for number in range(60)], "postgres (shared)") == [], "Postgres fills its buffers"


def test_memory_that_grows() -> None:
    found = judged([200.0 + 2 * number for number in range(60)])
    assert [each.split(":")[0] for each in found] == ["api", "api"], "since the third quarter, and since the first"
    (slowly,) = judged([200.0 + number * 0.75 for number in range(60)])
    assert "since the first" in slowly
