"""The list of C, C++ and Rust programs: sources as crates.io has them, and a program of ours in `programs/` that uses them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DRIVERS = Path(__file__).resolve().parent / "programs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Sources below `folder` of a crate, what is compiled, and the function that holds the planted loop."""

    name: str
    crate: str
    version: str
    folder: str
    driver: str
    compiled: tuple[str, ...]
    plant: tuple[str, str]
    flags: tuple[str, ...] = ()
    library: str = "-lm"


PROGRAMS = (
    Program(
        name="bzip2",
        crate="bzip2-sys",
        version="0.1.13+1.0.8",
        folder="bzip2-1.0.8",
        driver="bzip2.c",
        compiled=tuple(
            f"{name}.c" for name in ("blocksort", "huffman", "crctable", "randtable", "compress", "decompress", "bzlib")
        ),
        plant=("compress.c", "BZ2_compressBlock"),
    ),
    Program(
        name="lz4",
        crate="lz4-sys",
        version="1.11.1+lz4-1.10.0",
        folder="liblz4/lib",
        driver="lz4.c",
        compiled=("lz4.c", "lz4hc.c"),
        plant=("lz4.c", "LZ4_decompress_safe"),
    ),
    Program(
        name="snappy",
        crate="snappy_src",
        version="0.2.5+snappy.1.2.2",
        folder="snappy",
        driver="snappy.cc",
        compiled=("snappy.cc", "snappy-sinksource.cc", "snappy-stubs-internal.cc"),
        plant=("snappy.cc", "Uncompress"),
        library="-lcrypt",
    ),
    Program(
        name="regex-lite",
        crate="regex-lite",
        version="0.1.6",
        folder=".",
        driver="regex_lite.rs",
        compiled=("src/lib.rs",),
        plant=("src/string.rs", "captures_iter"),
        flags=("--cfg", 'feature="std"', "--cfg", 'feature="string"'),
    ),
)
