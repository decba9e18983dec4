"""What copying and clearing a byte costs in instructions, by size, with the seal and without its part for copies.

    python -m benchmarks.copies

Prints the figures of docs/what-makes-runs-differ.md. Each size of each kind is a region of one program; 256 bytes to 16 MiB.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SIZES = tuple(1 << power for power in range(8, 25))
SHOWN = tuple(1 << power for power in (8, 10, 12, 16, 20, 24))
UNSEALED = ("--env", "GLIBC_TUNABLES=")
NATIVE = r"""
#include <cg_bench.h>
#include <malloc.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static char *from, *to;
template <typename Work> static void measure(const char *kind, long bytes, Work work)
{
    char name[64];
    snprintf(name, sizeof name, "%s %ld", kind, bytes);
    work(); // finds the function in the library
    cg_bench::region region{name};
    for (int round = 0; round < ROUNDS; round++)
        work();
}

int main()
{
    mallopt(M_MMAP_MAX, 0); // or the kernel moves large blocks by their pages
    from = (char *)calloc(1, LARGEST + 64), to = (char *)calloc(1, LARGEST + 64);
    for (long bytes = 256; bytes <= LARGEST; bytes *= 2) {
        measure("memset", bytes, [=] { memset(to, 7, bytes); asm volatile("" ::: "memory"); });
        measure("memcpy", bytes, [=] { memcpy(to, from, bytes); asm volatile("" ::: "memory"); });
        measure("memmove", bytes, [=] { memmove(from + 1, from, bytes); asm volatile("" ::: "memory"); });
        std::vector<char> one(bytes, 1);
        measure("vector", bytes, [&] { std::vector<char> copy(one); asm volatile("" ::"r"(copy.data()) : "memory"); });
        char *blocks[ROUNDS + 1], *walls[ROUNDS + 1];
        for (int round = 0; round <= ROUNDS; round++)
            blocks[round] = (char *)malloc(bytes), walls[round] = (char *)malloc(32);
        int round = 0;
        measure("realloc", bytes, [&] { blocks[round] = (char *)realloc(blocks[round], 2 * bytes), round++; });
        for (round = 0; round <= ROUNDS; round++)
            free(blocks[round]), free(walls[round]);
    }
}
"""
PYTHON = """
from cachegrind_bench.region import region
size = 256
while size <= {largest}:
    data, numbers = bytearray(size), [None] * (size // 8)
    for kind, work in (
        ("bytes(data)", lambda: bytes(data)),
        ("bytearray() + data", lambda: bytearray() + data),
        ("[None] * n", lambda: [None] * (size // 8)),
        ("list[:]", lambda: numbers[:]),
    ):
        work()
        with region(f"{{kind}} {{size}}"):
            for _ in range({rounds}):
                work()
    size *= 2
"""
ROUNDS = 4


def costs(result: Path) -> Iterator[tuple[str, int, float]]:
    """Yield the kind, the size, and the instructions for each byte of each region."""
    for found in json.loads(result.read_text("utf-8"))["benchmarks"]:
        kind, _, size = found["id"].rpartition("::")[2].rpartition(" ")
        yield kind, int(size), found["counts"]["Ir"] / int(size) / ROUNDS


def measured(
    folder: Path, options: tuple[str, ...] = (), largest: int = SIZES[-1]
) -> Mapping[str, Mapping[int, float]]:
    """Return the instructions for each byte, by kind and size."""
    source, program, script = folder / "copies.cpp", folder / "copies", folder / "copies.py"
    source.write_text(NATIVE, "utf-8")
    script.write_text(PYTHON.format(largest=largest, rounds=ROUNDS), "utf-8")
    flags = f"-I{ROOT}/cachegrind_bench/include", f"-DROUNDS={ROUNDS}", f"-DLARGEST={largest}L", "-DCG_BENCH_REQUIRE"
    subprocess.run(["c++", "-O2", "-g", *flags, "-o", program, source], check=True)
    found: dict[str, dict[int, float]] = {}
    for command in ([str(program)], [sys.executable, str(script)]):
        result = folder / "result.json"
        run = [sys.executable, "-m", "cachegrind_bench", "run", "-q", "--warmup", "0", "--regions", *options]
        subprocess.run([*run, "-o", str(result), "--", *command], check=True)
        for kind, size, each in costs(result):
            found.setdefault(kind, {})[size] = each
    return found


def largest_rise(found: Mapping[int, float]) -> float:
    """Return by what factor the cost of a byte rises at most where the size doubles."""
    return max(found[2 * size] / each for size, each in found.items() if 2 * size in found)


def main() -> None:
    """Print the table."""
    folder = Path(tempfile.mkdtemp())
    try:
        sealed, unsealed = measured(folder), measured(folder, UNSEALED)
    finally:
        shutil.rmtree(folder)
    print("| Instructions for each byte |", *[f"{size:,} |" for size in SHOWN], "largest rise |")
    print("| --- " * (2 + len(SHOWN)) + "|")
    for kind in sealed:
        for found, words in ((unsealed, "without the seal"), (sealed, "with it")):
            cells = [f"{found[kind][size]:.2g} |" for size in SHOWN]
            print(f"| `{kind}`, {words} |", *cells, f"{largest_rise(found[kind]):.2f} |")


if __name__ == "__main__":
    main()
