"""Benchmarks and evaluations; nothing in service/ imports them."""
