"""A byte that is copied or cleared costs as many instructions on both sides of the sizes at which libc changes its way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.copies import largest_rise, measured

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import CompileC
    from tests.valgrind.conftest import CgBench


@pytest.mark.slow
@pytest.mark.usefixtures("valgrind_path")
def test_no_size_of_a_copy_costs_much_more_for_each_byte_than_half_of_it(tmp_path: Path) -> None:
    rises = {kind: largest_rise(found) for kind, found in measured(tmp_path, largest=1 << 17).items()}
    assert {"memset", "memcpy", "memmove", "realloc", "vector", "bytes(data)", "list[:]"} <= rises.keys()
    assert max(rises.values()) < 2, f"it was 15 where libc copied by `rep movsb`: {rises}"


REPEATS = """
static char to[1 << 16];
__attribute__((noinline)) static void clear(void) {
    void *place = to;
    unsigned long left = sizeof to;
    __asm__ volatile("rep stosb" : "+D"(place), "+c"(left) : "a"(0) : "memory");
}
int main(void) {
    for (int turn = 0; turn < 10; turn++) clear();
    return to[1];
}
"""


def test_an_instruction_of_the_program_itself_that_counts_once_for_each_byte_is_told(
    cg_bench: CgBench, compile_c: CompileC
) -> None:
    found = cg_bench.run(compile_c(REPEATS), options=["--toggle", "main", "--call-tree"]).benchmark
    (said,) = (text for text in found["warnings"] if "`rep stosb`" in text)
    assert " % of the instructions are one `rep stosb` in clear: Valgrind counts it once for each byte" in said
