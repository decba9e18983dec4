"""Function names as people read them, and text that can harm neither a terminal nor a table."""

from __future__ import annotations

import sys

import pytest

from cachegrind_bench.model.text import plain
from cachegrind_bench.valgrind.demangling import demangled


@pytest.mark.parametrize(
    ("raw", "read"),
    [
        ("_ZN3foo3barEv", "foo::bar()"),
        ("_ZNSt6vectorIiSaIiEE9push_backEOi@@GLIBCXX_3.4", "std::vector<int, std::allocator<int> >::push_back(int&&)"),
        ("_Znwm@GLIBCXX_3.4", "operator new(unsigned long)"),
        ("_ZN4core3ptr13drop_in_place17h0123456789abcdefE", "core::ptr::drop_in_place"),
        ("_ZN4core3ptr13drop_in_place17h0123456789abcdefE.llvm.55", "core::ptr::drop_in_place"),
        ("_ZN23_$LT$T$u20$as$u20$X$GT$3fmt17h0123456789abcdefE", "<T as X>::fmt"),
        ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
        ("_RNvNtCskTDW8OvKbhN_4core3fmt5write", "core::fmt::write"),
        ("_RINvNtC3std3mem8align_ofdE", "std::mem::align_of::<f64>"),
    ],
)
def test_names_of_cxx_and_rust_stand_as_in_the_source(raw: str, read: str) -> None:
    assert demangled(raw) == read


@pytest.mark.parametrize(
    "name",
    [
        "main",
        "memcpy@@GLIBC_2.14",
        "???",
        "_Z",
        "_ZN",
        "_RB_",
        "_ZN3foo",
        "_Z\udcff",
    ],
)
def test_every_other_name_stays_as_it_is(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert demangled.__wrapped__(name) == name
    assert capsys.readouterr() == ("", "")


def test_names_are_left_alone_where_no_demangler_can_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    class Missing:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "cxxfilt":
                raise OSError("libstdc++.so.6: cannot open shared object file")

    monkeypatch.delitem(sys.modules, "cxxfilt", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
    assert demangled.__wrapped__("_ZN3foo3barEv") == "_ZN3foo3barEv"


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        ("plain ünïcode 世界 ✓", "plain ünïcode 世界 ✓"),
        ("::error::x", r"\x3a:error::x"),  # commands in the log of a GitHub job
        ("  ::add-mask::x", r"  \x3a:add-mask::x"),
        ("x ##[error]y", r"x ##\x5berror]y"),
        ("std::sort<T>[abi] a ::b #[x]", "std::sort<T>[abi] a ::b #[x]"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("a\nb\r\tc\x00\x7f\x9b", "a\\x0ab\\x0d\\x09c\\x00\\x7f\\x9b"),
        ("\u202eevil\u2066", "\\u202eevil\\u2066"),
        ("a\u200bb\ufeff\u2028", "a\\u200bb\\ufeff\\u2028"),
        ("\udcff", "\\udcff"),
    ],
)
def test_control_characters_and_direction_marks_stand_escaped(text: str, harmless: str) -> None:
    assert plain(text) == harmless
    assert plain(harmless) == harmless
