"""`make bench`: the speed of storing texts, then of extracting facts from conversations. Options go to the first.

The others run by name, such as bench.queue, bench.load_conversations or bench.chaos.
"""

from __future__ import annotations

from bench import adds, stores

raise SystemExit(stores.main() or adds.main([]))
