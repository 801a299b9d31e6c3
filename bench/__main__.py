"""`make bench`: the speed of storing texts, then of conversations that become facts. Options go to the first.

The others go by name: bench.queue, bench.load_conversations, bench.chaos.
"""

from __future__ import annotations

from bench import adds, stores

raise SystemExit(stores.main() or adds.main([]))
