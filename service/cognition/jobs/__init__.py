"""Jobs that learn strategies."""
