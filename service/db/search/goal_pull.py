"""How strongly do the active goals of a scope pull at a memory?

Two pieces of the statement that measures candidates (hybrid.py), so they cost no round trip: the goals, held once, and
for each candidate `goal_tied` (tied to one of them by hand) and `goal_near` (the greatest cosine of its text to one of
their descriptions). Without active goals both are NULL.
"""

from __future__ import annotations

MOST = 8
"""Active goals that pull: the first by priority. More would pull at everything."""

ACTIVE = """
active_goals AS MATERIALIZED (
    SELECT g.id, gv.embedding FROM (
        SELECT g.workspace_id, g.id FROM goal g WHERE {scope} AND g.status = 'active'
        ORDER BY g.priority DESC, g.created_at DESC, g.id LIMIT {most}
    ) g LEFT JOIN goal_vector gv ON gv.workspace_id = g.workspace_id AND gv.goal_id = g.id
        AND gv.generation = {generation}
)
"""

PULL = """
LEFT JOIN LATERAL (
    SELECT bool_or(EXISTS (SELECT FROM goal_memory gm WHERE gm.workspace_id = m.workspace_id AND gm.goal_id = a.id
                           AND gm.memory_id = m.id)) AS goal_tied,
           max(1 - (a.embedding <=> t.embedding)) AS goal_near
    FROM active_goals a
) pull ON true
"""
"""Behind the joins of `memory m` with its text vector `t`."""


def active(scope: str, generation: int) -> str:
    """The named query of the goals; `scope` is the condition on `memory m`, whose columns a goal has too."""
    return ACTIVE.format(scope=scope.replace("m.", "g."), most=MOST, generation=int(generation))
