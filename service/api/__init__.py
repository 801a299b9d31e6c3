"""HTTP: each route parses its request, calls one verb or query, and makes the answer."""
