"""Programs with threads, and how far their counts vary: `python -m benchmarks.threads`."""
