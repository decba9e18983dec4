"""`python -m cachegrind_bench` is `cg-bench`."""

from cachegrind_bench.cli.main import main

main()
