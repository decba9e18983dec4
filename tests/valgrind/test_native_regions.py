"""Regions in C, C++ and Rust: what stands between the marks is counted, and the marks are not.

The C header is compiled with every warning an embedding project may have turned on. The Rust code is the text of
docs/regions.md itself.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT, without

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.valgrind.conftest import CgBench, Finished

DATA = ROOT / "tests" / "data" / "native"
INCLUDE = ROOT / "cachegrind_bench" / "include"
PAGE = ROOT / "docs" / "regions.md"

STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wshadow", "-Wconversion", "-Wundef", "-Wcast-qual")
STRICT_C = (*STRICT, "-Wmissing-prototypes", "-Wstrict-prototypes", "-Wredundant-decls")
STRICT_CXX = (*STRICT, "-Wold-style-cast", "-Wzero-as-null-pointer-constant", "-Wmissing-declarations")
C_COMPILERS = {"gcc": "g++", "clang": "clang++"}
DWARF = "-gdwarf-4"  # what every Valgrind since 3.16 reads, whatever the compiler
PERCENT = "100% é\n"  # as regions.c and main.rs have it

RUST_MAIN = """
mod cg_bench;

#[inline(never)]
fn burn(turns: u64) {
    for turn in 0..turns {
        std::hint::black_box(turn);
    }
}

fn main() {
    let what = std::env::args().nth(1).unwrap_or_default();
    {
        let _region = cg_bench::region("empty");
    }
    for _ in 0..3 {
        {
            let _region = cg_bench::region("burn");
            burn(1000);
        }
        burn(50000);
    }
    {
        let _region = cg_bench::region("100% \\u{e9}\\n");
        burn(2000);
    }
    if what == "nested" {
        let _outer = cg_bench::region("outer");
        let _inner = cg_bench::region("inner");
    }
    let _region = cg_bench::region("empty");
}
"""


def run(*words: str | Path, cwd: Path | None = None, marked: bool = False) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **({"CG_BENCH_MARKS": "1"} if marked else {})}
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False)


def built(to: Path, *words: str | Path) -> Path:
    """Run a compiler, which must be content, and return the program."""
    if shutil.which(str(words[0])) is None or run(words[0], "--version").returncode:
        without(f"no {words[0]} that runs (`scripts/setup.sh test-slow` installs it)")
    done = run(*words, "-o", to, cwd=to.parent)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return to


def c_program(folder: Path, *flags: str, compiler: str = "gcc") -> Path:
    sources = (DATA / "regions.c", DATA / "other.c")
    return built(folder / "program", compiler, *STRICT_C, f"-I{INCLUDE}", DWARF, *flags, *sources)


def regions(finished: Finished) -> dict[str, dict[str, Any]]:
    """Return the benchmarks by the names of their regions."""
    assert finished.code == 0, finished.stderr
    assert finished.result is not None
    return {benchmark["id"].rpartition("::")[2]: benchmark for benchmark in finished.result["benchmarks"]}


def instructions(finished: Finished) -> dict[str, int]:
    return {name: benchmark["counts"]["Ir"] for name, benchmark in regions(finished).items()}


def check(counts: dict[str, int], *, calls: int = 50) -> None:
    """Empty regions cost nothing, and four times 1,000 turns twice as much as once 2,000, give or take the calls."""
    assert set(counts) == {"empty", "burn", PERCENT}
    assert counts["empty"] == 0
    assert abs(counts["burn"] - 2 * counts[PERCENT]) <= calls
    assert counts[PERCENT] >= 2000


# --- C and C++ -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flags", ["-O0", "-O1", "-O2", "-O3", "-Os", "-O2 -flto", "-O2 -fPIC -fno-plt", "-O3 -static"])
def test_regions_in_c_are_counted_without_their_marks(cg_bench: CgBench, tmp_path: Path, flags: str) -> None:
    program = c_program(tmp_path, *flags.split())
    finished = cg_bench.run(program, options=["--regions", "--repeat", "2"])
    check(instructions(finished))
    for benchmark in regions(finished).values():
        first, second = benchmark["runs"]
        assert first["counts"] == second["counts"]


def test_every_valgrind_counts_the_same_regions(
    cg_bench: CgBench, tmp_path: Path, valgrind_versions: Mapping[str, Path]
) -> None:
    program = c_program(tmp_path, "-O2")
    found = [
        instructions(cg_bench.run(program, options=["--regions", "--valgrind", str(valgrind)]))
        for valgrind in valgrind_versions.values()
    ]
    assert all(counts == found[0] for counts in found)


@pytest.mark.parametrize("compiler", list(C_COMPILERS))
@pytest.mark.parametrize("standard", ["c99", "c11", "gnu17"])
def test_the_header_compiles_without_a_warning_in_c(tmp_path: Path, compiler: str, standard: str) -> None:
    c_program(tmp_path, f"-std={standard}", "-D_POSIX_C_SOURCE=200809L", "-O2", compiler=compiler)


@pytest.mark.parametrize("compiler", list(C_COMPILERS.values()))
@pytest.mark.parametrize("standard", ["c++11", "c++14", "c++17", "c++20"])
def test_the_header_compiles_without_a_warning_in_cxx(tmp_path: Path, compiler: str, standard: str) -> None:
    flags = (*STRICT_CXX, f"-std={standard}", f"-I{INCLUDE}", "-O2", "-c")
    built(tmp_path / "object.o", compiler, *flags, DATA / "regions.cpp")


def test_clang_counts_the_same_regions(cg_bench: CgBench, tmp_path: Path) -> None:
    program = c_program(tmp_path, "-O2", compiler="clang")
    # It unrolls the loop, and the turns that are left over are a larger share of 1,000.
    check(instructions(cg_bench.run(program, options=["--regions"])), calls=400)


def test_c_and_cxx_share_one_state_and_an_exception_leaves_a_region(cg_bench: CgBench, tmp_path: Path) -> None:
    other = built(tmp_path / "other.o", "gcc", f"-I{INCLUDE}", "-O2", DWARF, "-c", DATA / "other.c")
    flags = (f"-I{INCLUDE}", "-O2", DWARF)
    program = built(tmp_path / "program", "g++", *flags, DATA / "regions.cpp", other)
    counts = instructions(cg_bench.run(program, options=["--regions"]))
    assert set(counts) == {"empty", "burn", "thrown", "caught"}
    assert counts["empty"] == counts["caught"] == 0
    assert counts["burn"] > 2000  # one of the two here, one in the other file
    assert counts["thrown"] > 1000  # what the exception costs


def test_a_library_shares_the_state_of_its_program(cg_bench: CgBench, tmp_path: Path) -> None:
    # The library's call of its own `burn` is no matter of the linker; those of the marks are.
    flags = (f"-I{INCLUDE}", "-O2", DWARF, "-fno-semantic-interposition")
    library = built(tmp_path / "libother.so", "gcc", *flags, "-fPIC", "-shared", "-Wl,-z,lazy", DATA / "other.c")
    program = built(
        tmp_path / "program", "gcc", *flags, DATA / "regions.c", library, f"-Wl,-rpath,{tmp_path}", "-Wl,-z,now"
    )
    check(instructions(cg_bench.run(program, options=["--regions"])))


def test_a_forked_child_adds_its_regions(cg_bench: CgBench, tmp_path: Path) -> None:
    program = c_program(tmp_path, "-O2")
    alone = instructions(cg_bench.run(program, options=["--regions"]))
    forked = instructions(cg_bench.run(program, "fork", options=["--regions"]))
    assert forked["empty"] == 0
    assert abs(forked["burn"] - 2 * alone["burn"]) <= 50  # 4,000 turns more


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ("nested", 'regions do not nest, and the last one was not left before this: "inner"'),
        ("left", 'a region was left that was not entered; last mark: "cg-bench:region:empty"'),
        ("unnamed", 'a region needs a name: ""'),
        ("long", "the name of a region is longer than 200 bytes"),
    ],
)
def test_a_mistake_ends_the_program_with_a_message(tmp_path: Path, mistake: str, message: str) -> None:
    program = c_program(tmp_path, "-O2")
    done = run(program, mistake, marked=True)
    assert done.returncode < 0
    assert message in done.stderr
    assert run(program, mistake).returncode == 0  # nobody measures


def test_a_failing_program_says_what_was_wrong_with_its_regions(cg_bench: CgBench, tmp_path: Path) -> None:
    finished = cg_bench.run(c_program(tmp_path, "-O2"), "nested", options=["--regions"])
    assert finished.code == 4
    assert "regions do not nest" in finished.stderr


def test_a_program_that_enters_no_region_is_an_error(cg_bench: CgBench, tmp_path: Path) -> None:
    finished = cg_bench.run(c_program(tmp_path, "-O2"), "none", options=["--regions"])
    assert finished.code == 4
    assert "region" in finished.stderr


@pytest.mark.parametrize("off", ["-DCG_BENCH_DISABLE", "-DNVALGRIND"])
def test_marks_can_be_compiled_away(tmp_path: Path, off: str) -> None:
    program = c_program(tmp_path, "-O2", off, "-D_POSIX_C_SOURCE=200809L", "-includeunistd.h", "-includestddef.h")
    assert run(program, "nested", marked=True).returncode == 0
    assert b"cg-bench" not in program.read_bytes()


def test_without_valgrinds_headers_marks_are_empty_unless_they_are_required(tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text(
        '#include <cg_bench.h>\nint main(void) { cg_bench_region_begin("a"); return CG_BENCH_ENABLED; }\n'
    )
    headers = run("gcc", "-print-file-name=include").stdout.strip()
    flags = ("-nostdinc", f"-I{headers}", f"-I{INCLUDE}", *STRICT_C)
    assert run(built(tmp_path / "program", "gcc", *flags, tmp_path / "program.c"), marked=True).returncode == 0
    done = run("gcc", *flags, "-DCG_BENCH_REQUIRE", "-c", "program.c", cwd=tmp_path)
    assert done.returncode != 0
    assert "no <valgrind/callgrind.h>" in done.stderr


def test_the_header_is_in_the_package() -> None:
    import cachegrind_bench

    assert cachegrind_bench.__file__ is not None
    folder = os.path.dirname(cachegrind_bench.__file__)
    assert os.path.exists(os.path.join(folder, "include", "cg_bench.h"))


# --- Rust ----------------------------------------------------------------------------------------------------------------


def rust_program(folder: Path, *flags: str) -> Path:
    """Build a program with the module of docs/regions.md."""
    blocks = re.findall(r"^```rust\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (module,) = (block for block in blocks if "fn cg_bench_toggle_region" in block)
    version = re.match(r"rustc (\d+)\.(\d+)", run("rustc", "--version").stdout) if shutil.which("rustc") else None
    if version is None or (int(version[1]), int(version[2])) < (1, 82):
        without(f"no rustc of 1.82 or newer, but {version[0] if version else 'none that runs'}")
    (folder / "cg_bench.rs").write_text(module, encoding="utf-8")
    (folder / "main.rs").write_text(RUST_MAIN, encoding="utf-8")
    return built(folder / "program", "rustc", "-D", "warnings", "-g", *flags, "main.rs")


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags", ["--edition=2021 -O", "--edition=2024 -O", "--edition=2021 -Copt-level=3 -Clto=fat -Ccodegen-units=1"]
)
def test_the_rust_module_of_the_documentation_counts_without_its_marks(
    cg_bench: CgBench, tmp_path: Path, flags: str
) -> None:
    counts = instructions(cg_bench.run(rust_program(tmp_path, *flags.split()), options=["--regions"]))
    assert set(counts) == {"empty", "burn", PERCENT}
    assert counts["empty"] == 0
    assert abs(2 * counts["burn"] - 3 * counts[PERCENT]) <= 50


def test_the_rust_module_counts_in_a_debug_build(cg_bench: CgBench, tmp_path: Path) -> None:
    counts = instructions(cg_bench.run(rust_program(tmp_path, "--edition=2021"), options=["--regions"]))
    assert 0 <= counts["empty"] <= 20  # what the compiler leaves between the two marks
    assert counts["burn"] > counts[PERCENT] > 0


def test_nested_regions_in_rust_panic(tmp_path: Path) -> None:
    program = rust_program(tmp_path, "--edition=2021", "-O")
    done = run(program, "nested", marked=True)
    assert done.returncode == 101
    assert 'regions do not nest: "inner"' in done.stderr
    assert run(program, "nested").returncode == 0
