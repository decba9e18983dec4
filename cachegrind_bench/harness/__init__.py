"""Benchmarks that somebody else lists: an adapter for each harness, found by the name of its key in the configuration."""
