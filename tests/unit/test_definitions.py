"""Qualified names and their lines, compared with what Python itself says of compiled code."""

from __future__ import annotations

import sys
from types import CodeType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachegrind_bench.measure.source_locations import first_lines

SOURCE = """\
import functools
top = lambda: 1
@functools.cache
@functools.wraps(
    top)
def decorated(first=lambda: 2, *, second: "int" = (lambda: 3)()):
    def nested():
        class Inner(Base, metaclass=(lambda: 4)):
            async def method(self):
                return [x async for x in self]
            attribute = lambda self: (y for y in self)
        return Inner
    return nested, (lambda: [z for z in (lambda: 5)()])
class C:
    @property
    def value(self):
        return 1
    @value.setter
    def value(self, new):
        return {k: v for k, v in (w for w in new)}
    if True:
        def conditional(self): pass
total = sum(a for b in (c for c in range(3)) for a in range(b))
"""


def compiled(source: str) -> dict[str, int]:
    """Return the first line of each code object, as Python names it."""
    found: dict[str, int] = {}
    waiting = [compile(source, "x.py", "exec")]
    while waiting:
        code = waiting.pop()
        found[code.co_qualname] = min(code.co_firstlineno, found.get(code.co_qualname, code.co_firstlineno))
        waiting += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return found


def test_every_name_that_python_gives_is_known_with_its_line() -> None:
    found = first_lines(SOURCE.encode())
    expected = compiled(SOURCE)
    # Decorators are before `def`, and Python counts from the first of them.
    expected |= {"decorated": 6, "C.value": 16}
    # Comprehensions are inlined since 3.12, and annotations have functions without a source since 3.14.
    expected = {name: line for name, line in expected.items() if "comp>" not in name and "__annotate__" not in name}
    assert {name: found.get(name) for name in expected} == expected


def test_of_several_definitions_with_one_name_the_first_one_counts() -> None:
    found = first_lines(SOURCE.encode())
    assert found["C.value"] == 16
    assert found["<lambda>"] == 2
    assert found["<module>"] == 1


def test_a_source_with_an_encoding_of_its_own_is_read() -> None:
    assert first_lines(b"# coding: latin-1\ndef f\xe4(): pass\n") == {"<module>": 1, "f\xe4": 2}


@pytest.mark.parametrize("broken", ["def (:\n", "\0\n", "x = " + "(" * 5000 + "\n"])
def test_a_source_that_this_python_cannot_read_is_searched_by_its_indentation(broken: str) -> None:
    source = "class C:\n    x = 1\n    async def method(self):\n\tdef inner(): pass\n\ndef after(): pass\n" + broken
    assert first_lines(source.encode()) == {
        "<module>": 1,
        "C": 1,
        "C.method": 3,
        "C.method.<locals>.inner": 4,
        "after": 6,
    }


def test_expressions_nested_deeply_do_not_matter() -> None:
    source = "x = " + " + ".join(["1"] * 3000) + "\ndef f(): pass\n"
    assert first_lines(source.encode())["f"] == 2


@given(st.binary(max_size=200))
def test_no_bytes_make_it_fail(source: bytes) -> None:
    assert first_lines(source)["<module>"] == 1


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="newer syntax is understood")
def test_newer_syntax_than_ours_loses_no_function() -> None:
    assert first_lines(b"type X = int\ndef f[T](x: T): pass\n")["f"] == 2
