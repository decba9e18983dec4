"""What identifies a function across rebuilds: real names of gcc, g++, rustc and go, built twice or changed a little."""

from __future__ import annotations

import pytest

from cachegrind_bench.model.symbols import folded
from cachegrind_bench.valgrind.demangling import demangled


@pytest.mark.parametrize(
    ("raw", "identity"),
    [
        ("main.cold", "main"),
        ("get_common_indices.constprop.0", "get_common_indices"),
        ("ptmalloc_init.part.0", "ptmalloc_init"),
        ("parse.isra.0.constprop.1.cold.12", "parse"),
        ("list_add.lto_priv.3.lto_priv.0", "list_add"),
        ("step.__uniq.10923847238472.llvm.55", "step"),
        ("fgets.localalias", "fgets"),
        ("helper.1", "helper"),  # a function within a function, as gcc has them
        ("OUTLINED_FUNCTION_17", "OUTLINED_FUNCTION_"),
    ],
)
def test_copies_that_compilers_make_of_a_function_are_that_function(raw: str, identity: str) -> None:
    assert folded(raw) == identity


@pytest.mark.parametrize(
    ("raw", "identity"),
    [
        ("memcpy@@GLIBC_2.14", "memcpy"),
        ("memcpy@GLIBC_2.2.5", "memcpy"),
        ("_IO_do_write@@GLIBC_2.2.5", "_IO_do_write"),
        ("_Znwm@GLIBCXX_3.4", "_Znwm"),
    ],
)
def test_the_version_of_a_symbol_does_not_matter(raw: str, identity: str) -> None:
    assert folded(raw) == identity


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # Two builds of one crate with metadata of different lengths: the references within the names move.
        ("_RINvCs6xxl1lAjzDf_1a5applyNCNvB2_4mains0_0EB2_", "_RINvCs4xl1lAjzDf_1a5applyNCNvB2_4mains0_0EB2_"),
        ("_RNvNtCsgEmfK2I1SDS_4core5panic", "_RNvNtCs1_4core5panic"),
        ("_ZN1a5apply17h5ec9d6b6b1836e08E", "_ZN1a5apply17h0123456789abcdefE"),
        ("_ZN1a5apply17h5ec9d6b6b1836e08E", "_ZN1a5apply17h0123456789abcdefE.llvm.8829"),
        ("_ZN1a5apply17h5ec9d6b6b1836e08E", "_ZN1a5apply17h0123456789abcdefE.cold"),
    ],
)
def test_the_hashes_of_rust_do_not_matter(one: str, other: str) -> None:
    assert folded(one) == folded(other)
    assert "17h" not in folded(one)


def test_the_hashes_do_not_matter_in_a_name_that_the_library_cannot_read(capsys: pytest.CaptureFixture[str]) -> None:
    name = (
        "_RINvNtCs{}_4core3ptr13drop_in_placeINtNtCs{}_5alloc5boxed3BoxDG0_INtNtNtB{}_3ops8function2FnT"
        "RL1_INtNtCsjrHSEGnQ3l9_3std5panic13PanicHookInfoL0_EEEp6OutputuNtNtB4_6marker4SyncNtB2N_4SendEL_EEB1T_"
    )
    long, short = name.format("gEmfK2I1SDS", "slNYArtu3iFV", "4"), name.format("gE2I1SDS", "lNY3iFV", "f")
    assert demangled(long) == long
    assert folded(long) == folded(short)
    assert capsys.readouterr().out == ""  # the library would print there, in the middle of a report


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("_Z4callIZ4mainEUliE1_EiT_", "_Z4callIZ4mainEUliE2_EiT_.constprop.0"),  # g++: {lambda(int)#3}
        ("_ZN2OpUt_3getEv", "_ZN2OpUt0_3getEv"),  # {unnamed type#1}
        ("_ZZ4mainENK3$_0clEi", "_ZZ4mainENK4$_12clEi"),  # clang
        ("_RINvCs6xxl1lAjzDf_1a5applyNCNvB2_4mains0_0EB2_", "_RINvCs6xxl1lAjzDf_1a5applyNCNvB2_4mains1_0EB2_"),
        ("main.(*T).F.func1.1", "main.(*T).F.func2.3"),
        ("main.main.gowrap1", "main.main.gowrap2"),
        ("main.f-range1", "main.f-range2"),
        ("main.init.0", "main.init.1"),
    ],
)
def test_the_number_of_what_has_no_name_does_not_matter(one: str, other: str) -> None:
    assert folded(one) == folded(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("main.f.func1", "main.f.func1.1"),  # a closure, and the one within it
        ("main.f", "main.f.func1"),
        ("_Z4callIZ4mainEUliE_EiT_", "_Z4callIZ4mainEUllE_EiT_"),  # {lambda(int)} and {lambda(long)}
        ("_ZN3foo3barEv", "_ZN3foo3barEi"),
        ("main", "main._omp_fn.0"),
        ("internal/poll.init.OnceValue[go.shape.bool].func4", "os.init.func1"),
        ("pkg.part", "pkg.isra"),
        ("java.lang.String.indexOf", "java.lang.String.length"),
        ("camlStdlib__List.map_481", "camlStdlib__List.iter_481"),
        ("h.func", "h.func2x"),
    ],
)
def test_different_functions_stay_different(one: str, other: str) -> None:
    assert folded(one) != folded(other)


@pytest.mark.parametrize(
    "name", ["???", "", "(below main)", ".cold", ".", "..", "a.", "@", "x@", "@V", "0", "main", "_R"]
)
def test_a_name_is_never_folded_away(name: str) -> None:
    assert folded(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "a" + ".cold" * 100_000 + "x",
        "." * 100_000 + "cold",
        "a" + ".1" * 100_000,
        "_ZN" * 100_000,
        "_R" + "B_" * 100_000,
        "a" + "@b" * 100_000 + "!",
        ".func1" * 100_000 + "x",
        "_ZN" + "17h0123456789abcdef" * 20_000,
    ],
)
def test_huge_names_are_answered_quickly(name: str) -> None:
    assert folded(folded(name)) == folded(name)


def test_references_as_real_names_have_them_are_followed() -> None:
    assert demangled("_Z1f1PIiiES_IS0_S0_E") == "f(P<int, int>, P<P<int, int>, P<int, int> >)"
