"""How well counts predict time: `python -m benchmarks.truth`."""
