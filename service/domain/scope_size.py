"""From how many rows on a scope is searched in another way (docs/retrieval.md). The planner has no say in it: under
row-level security it cannot tell how many rows a scope has."""

EXACT_ROWS = 20_000
"""Up to here every vector is compared: 20 ms, and exact."""

BINARY_ROWS = 150_000
"""Up to here the binary quantisation of every vector is read; beyond it the graph of the index is walked."""
