"""Patterns on benchmark ids, the same for every option that takes one."""

from __future__ import annotations

import fnmatch


def matches(benchmark_id: str, pattern: str) -> bool:
    """Tell whether an id is exactly this, or fits its `*` and `?`; brackets are literal, since ids contain them."""
    return benchmark_id == pattern or fnmatch.fnmatchcase(benchmark_id, pattern.replace("[", "[[]"))
