"""Working memory: what an agent keeps for one session."""
