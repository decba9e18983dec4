"""Another compiler, or other options: read from the files, compared, and named before any function."""

from __future__ import annotations

import subprocess
from shutil import which
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.compare.compilers import other_compilers
from cachegrind_bench.compare.explained import Explained
from cachegrind_bench.hermetic.fingerprint import fingerprint
from cachegrind_bench.hermetic.producers import producers
from cachegrind_bench.model.result import ObjectFile
from cachegrind_bench.render.comparison.view import view
from cachegrind_bench.vcs.diff import is_build_file, is_source
from tests.unit.comparing import compared, counts, measured

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import CompileC

PROGRAM = "int main(void) { return 0; }\n"
GNU = "GNU C17 12.2.0 -mtune=generic -O1 -fasynchronous-unwind-tables"
COMMENT, CLANG = "GCC: (Debian 12.2.0-14+deb12u1) 12.2.0", "Debian clang version 14.0.6"


def test_a_file_says_which_compiler_made_it_and_with_which_options(compile_c: CompileC) -> None:
    made = fingerprint(str(compile_c(PROGRAM, "-O1", "-g"))).objects
    (with_options,) = (item for item in made if item.compilers)
    assert any(text.startswith("GNU C") and " -O1" in text for text in with_options.compilers)
    (without,) = producers(str(compile_c(PROGRAM, "-O1")))
    assert without.startswith("GCC: ")
    assert all(item.compilers == () for item in fingerprint("/bin/sh").objects)
    assert producers(__file__) == producers("missing") == ()


@pytest.mark.skipif(which("clang") is None, reason="no clang")
def test_a_program_of_clang_says_so_with_debug_information_and_without(tmp_path: Path) -> None:
    source = tmp_path / "main.c"
    source.write_text(PROGRAM)
    for name, options in (("debug", ["-g"]), ("plain", [])):
        subprocess.run(["clang", *options, "-o", tmp_path / name, source], check=True)
        assert any("clang version" in text for text in producers(str(tmp_path / name)))


@pytest.mark.parametrize(
    ("base", "candidate", "said"),
    [
        ([GNU], [GNU.replace("-O1", "-O0")], "prog is built otherwise: GNU C17 12.2.0 -O1 → -O0"),
        ([GNU], [GNU + " -flto"], "prog is built otherwise: GNU C17 12.2.0 without → -flto"),
        ([GNU], [CLANG, COMMENT], f"prog is built otherwise: GNU C17 12.2.0 → {CLANG}"),
        ([COMMENT], [CLANG, COMMENT], f"prog is built otherwise: {COMMENT} → {CLANG}"),
        ([GNU], [GNU.replace("12.2.0", "12.3.0")], "prog is built otherwise: GNU C17 12.2.0 → GNU C17 12.3.0"),
        ([GNU], [GNU, "GNU C++17 12.2.0 -O3"], "prog is built otherwise: also by GNU C++17 12.2.0 -O3"),
        ([GNU], [GNU.replace(" -O1", " -g3 -O1")], None),
        ([GNU], [COMMENT], None),
        ([], [GNU], None),
    ],
)
def test_what_is_built_otherwise_comes_first_and_no_function_is_blamed(
    base: list[str], candidate: list[str], said: str | None
) -> None:
    def side(compilers: list[str], build_id: str) -> ObjectFile:
        return ObjectFile(path=f"/{build_id}/prog", build_id=build_id, compilers=tuple(compilers))

    one, other = side(base, "a"), side(candidate, "b")
    found = compared(measured(objects=(one,)), measured(objects=(other,), value=counts(1_100_000)))
    shown = view(Explained(comparison=found, details={}, names=("x", "y")))
    assert shown.notices == (() if said is None else (said,))
    assert shown.headline.startswith("regression: sieve score +10 %" if said is None else f"regression: {said}; sieve")
    assert (other_compilers(base, candidate) == ((), ())) == (said is None)


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("Makefile", "build"),
        ("lib/CMakeLists.txt", "build"),
        ("rust/Cargo.lock", "build"),
        ("src/build.rs", "build"),
        ("setup.py", "build"),
        ("src/make.c", "source"),
        ("pkg/rows.py", "source"),
        ("README.md", "other"),
    ],
)
def test_files_of_the_build_are_told_from_sources(file: str, kind: str) -> None:
    assert (is_build_file(file), is_source(file)) == (kind == "build", kind == "source")


def test_a_file_whose_debug_information_is_damaged_names_none(compile_c: CompileC, tmp_path: Path) -> None:
    program = PROGRAM + "".join(f"int a_function_of_a_long_name_{number};\n" for number in range(100))
    whole = compile_c(program, "-g", "-gz").read_bytes()
    (tmp_path / "program").write_bytes(whole.replace(b"\x78\x9c", b"\x78\x9d"))  # how zlib's data begins
    assert producers(str(tmp_path / "program")) == ()
