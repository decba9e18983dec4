"""Functions to count are found by their names in the source, as far as they are in the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.valgrind.toggles import symbols

if TYPE_CHECKING:
    from pathlib import Path

PARSE_TEXT = "_ZN4text6Parser5parseERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
PARSE_NUMBER, CLONE = "_ZN4text6Parser5parseEi", "_ZN4text6Parser5parseEi.isra.0"
SUMS = "_ZN4text3sumIiEET_S1_", "_ZN4text3sumIlEET_S1_"
RUST = "_ZN5words5count17h2402a54a3ded6e21E"
WORDS = "_Z11parse_wordsPKc"
# The last name is the end of another one, of which linkers make use.
LEAF, CALLED = "_ZN12_GLOBAL__N_14leafEj", "_ZNK4deep12_GLOBAL__N_13TabclEPKc"
NAMES = (LEAF, CALLED, PARSE_TEXT, PARSE_NUMBER, CLONE, f"{CLONE}.cold", *SUMS, RUST, "main", f"_GLOBAL__sub_I_{WORDS}")


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("text::Parser::parse", [PARSE_TEXT, PARSE_NUMBER, CLONE]),
        ("text::Parser::parse(int)", [PARSE_NUMBER]),
        ("*::parse", [PARSE_TEXT, PARSE_NUMBER, CLONE]),
        ("text::sum", SUMS),
        ("text::sum<int>", SUMS[:1]),
        ("text::su?<*", SUMS),
        ("words::count", [RUST]),
        ("parse_words", [WORDS]),
        ("(anonymous namespace)::leaf(unsigned int)", [LEAF]),
        ("(anonymous namespace)::leaf", [LEAF]),
        ("deep::(anonymous namespace)::Tab::operator()", [CALLED]),
        ("parse", []),
        ("main", []),
        ("*::*", []),
        (WORDS, []),
    ],
)
def test_a_pattern_finds_the_mangled_names_of_what_it_matches_in_the_source(
    tmp_path: Path, pattern: str, names: list[str]
) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF\0" + b"\0".join(name.encode() for name in NAMES) + b"\0parse\xff\0parse")
    assert symbols(str(program), [pattern]) == (pattern, *sorted(names))


def test_what_cannot_be_read_has_no_names(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for name in ("empty", "missing", "."):
        assert symbols(str(tmp_path / name), ["parse", "std::*"]) == ("parse", "std::*")
