"""`make bench`: the speed of storing. The others go by name: bench.queue, bench.load_conversations, bench.chaos."""

from __future__ import annotations

from bench.stores import main

raise SystemExit(main())
