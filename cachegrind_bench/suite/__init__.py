"""Many benchmarks in one run: what to measure, how many at once, what can be re-used."""
