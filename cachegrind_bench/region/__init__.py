"""Marks what is to be measured inside a program: `with region("parse"): ...`, or `@region("parse")` at a function.

`cg-bench run --regions -- python script.py` reports a benchmark for each region. Entered again, a region adds up.
Everywhere else, and under a plain `cg-bench run`, a region does nothing but check its name.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, cast

if TYPE_CHECKING:
    from cachegrind_bench.region.marks import Marks

__all__ = ["VARIABLE", "region"]

_Parameters = ParamSpec("_Parameters")
_Returned = TypeVar("_Returned")

VARIABLE: Final = "CG_BENCH_MARKS"
LONGEST_NAME: Final = 200
# Flags of a code object, here because `inspect` takes longer to import than many a region to run.
_GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x200
# Read once: what a program asks for itself cannot be measured.
_wanted: Final = os.environ.get(VARIABLE) == "1"  # noqa: TID251 - the environment of the program, not of cg-bench
_marks: Marks | None = None


class region:  # noqa: N801 - reads as what it is at the place where it is used
    """A part of a program to be measured under this name, as a context manager or a decorator.

    Regions cannot be nested: RuntimeError. A decorated coroutine function is measured from its first step to its last,
    with all that the event loop runs in between. ValueError for a name that is empty or too long.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        if callable(name):
            raise TypeError('a region needs a name: @region("parse")')
        if not name or len(name) > LONGEST_NAME:
            raise ValueError(f"the name of a region has 1 to {LONGEST_NAME} characters, not {len(name)}")
        self.name: Final = name

    def __enter__(self) -> None:
        if _wanted:
            (_marks or _begin()).enter(self.name)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if _marks is not None:
            _marks.leave()

    def __call__(self, function: Callable[_Parameters, _Returned]) -> Callable[_Parameters, _Returned]:
        """Return the function as a region: each call enters it."""
        if isinstance(function, staticmethod | classmethod | type):
            raise TypeError("only a function can be a region: put @region(...) below @staticmethod or @classmethod")
        flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
        if flags & (_GENERATOR | _ASYNC_GENERATOR):
            name = getattr(function, "__qualname__", function)
            raise TypeError(f"{name} is a generator: what it does happens after the call; use `with`")
        if not _wanted:
            return function
        if flags & _COROUTINE:
            coroutine = cast("Callable[_Parameters, Coroutine[Any, Any, object]]", function)

            @functools.wraps(coroutine)
            async def measured_coroutine(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> object:
                with self:
                    return await coroutine(*args, **kwargs)

            return cast("Callable[_Parameters, _Returned]", measured_coroutine)

        @functools.wraps(function)
        def measured(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Returned:
            with self:
                return function(*args, **kwargs)

        return measured


def _begin() -> Marks:
    """Turn Valgrind's instrumentation on, at the first region of a process."""
    global _marks  # noqa: PLW0603 - a process has one Valgrind
    from cachegrind_bench.region.marks import Marks

    _marks = Marks()
    _marks.calibrate(region)
    return _marks
