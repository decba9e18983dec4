"""Programs of known growth, and what `cg-bench growth` says of them: `python -m benchmarks.growth`."""
