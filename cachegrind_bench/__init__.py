"""cachegrind-bench: exact, repeatable performance numbers from Valgrind's Cachegrind.

docs/code-map.md says where things are, and where to add some.
"""

from cachegrind_bench._version import __version__

__all__ = ["__version__"]
