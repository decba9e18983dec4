"""cachegrind-bench: exact, repeatable performance numbers from Valgrind's Cachegrind."""

from cachegrind_bench._version import __version__

__all__ = ["__version__"]
