"""Response models of turns."""
