"""What benchmarks of other frameworks cost under cg-bench, how exactly they repeat, and gungraun with the same functions."""
