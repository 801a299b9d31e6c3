"""The worker: claims jobs, runs them, records how they ended."""
