"""A byte that is copied or cleared costs as many instructions on both sides of the sizes at which libc changes its way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.copies import largest_rise, measured

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.usefixtures("valgrind_path")
def test_no_size_of_a_copy_costs_much_more_for_each_byte_than_half_of_it(tmp_path: Path) -> None:
    rises = {kind: largest_rise(found) for kind, found in measured(tmp_path, largest=1 << 17).items()}
    assert {"memset", "memcpy", "memmove", "realloc", "vector", "bytes(data)", "list[:]"} <= rises.keys()
    assert max(rises.values()) < 2, f"it was 15 where libc copied by `rep movsb`: {rises}"
