"""The measured processes of pytest's benchmarks: started, followed, and read. Knows what pytest has collected, not pytest."""
