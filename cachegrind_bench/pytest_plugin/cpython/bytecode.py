"""Takes back what CPython has specialised in the code that a benchmark executes, so that it is specialised anew.

Instructions are specialised for the versions of the types that they meet. When types get new versions, each of these
instructions has to miss some fifty times before CPython tries again: until then calls took up to 9 % more, or not,
since what was specialised before depends on what was imported and on other tests.
"""

from __future__ import annotations

import ctypes
import re
import sys
from array import array
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, Final

# PyCodeObject (Include/cpython/code.h): its instructions are the last of it.
_INSTRUCTIONS_OFFSET: Final = CodeType.__basicsize__
# `co_warmup`, -1 of which is one call until instructions adapt; later versions have none, and always adapt.
_WARM_UP_OFFSET: Final = 52
_ADAPTS_AT_ONCE: Final = sys.version_info >= (3, 12)
# The first cache entry of an instruction counts down the misses until it is specialised anew: the upper twelve of its bits, or, on
# 3.11 once it is specialised, all sixteen.
# Compiled code has zeros in these entries, and no instruction is zero.
_COUNTER: Final = re.compile(rb"(?<!\0)\0")
_MOST_MISSES: Final = 0xFFF0
_TOO_FAST: Final = _MOST_MISSES // 20  # what a counter has lost after two calls, of some forty in five layouts
_TOOLS: Final = 6  # that sys.monitoring can have


@contextmanager
def executed() -> Generator[set[CodeType]]:
    """Collect the code that is called in this block; none of it if all of CPython's monitoring tools are in use."""
    codes = set[CodeType]()
    monitoring: Any = getattr(sys, "monitoring", None)
    if monitoring is None:

        def note(frame: FrameType, _event: str, _argument: object) -> None:
            codes.add(frame.f_code)

        before = sys.getprofile()
        sys.setprofile(note)
        try:
            yield codes
        finally:
            sys.setprofile(before)
        return

    tool = next((tool for tool in reversed(range(_TOOLS)) if monitoring.get_tool(tool) is None), None)
    if tool is None:
        yield codes
        return

    def begin(code: CodeType, _offset: int) -> object:
        codes.add(code)
        return monitoring.DISABLE

    monitoring.use_tool_id(tool, "cg-bench")
    for event in (monitoring.events.PY_START, monitoring.events.PY_RESUME):
        monitoring.register_callback(tool, event, begin)
    monitoring.set_events(tool, monitoring.events.PY_START | monitoring.events.PY_RESUME)
    try:
        yield codes
    finally:
        monitoring.set_events(tool, 0)
        monitoring.free_tool_id(tool)


def forget_specialised(codes: set[CodeType]) -> None:
    """Give this code the instructions that it was compiled to; it may be executed right now."""
    for code in codes:
        plain = code.co_code
        ctypes.memmove(id(code) + _INSTRUCTIONS_OFFSET, plain, len(plain))
        if not _ADAPTS_AT_ONCE:
            ctypes.c_short.from_address(id(code) + _WARM_UP_OFFSET).value = -1


def keep_specialised(codes: set[CodeType]) -> dict[int, bytes]:
    """Leave this code as it is specialised, until an instruction has missed 4,095 times (65,520 on 3.11); return it, by its places.

    An instruction that meets several types is specialised for one of them, and after some fifty misses for another one: calls
    took up to 4 % more or less than each other, in cycles of sixty calls.
    """
    kept: dict[int, bytes] = {}
    for code in codes:
        plain = code.co_code
        place = id(code) + _INSTRUCTIONS_OFFSET
        units = array("H", ctypes.string_at(place, len(plain)))
        for counter in _COUNTER.finditer(plain[::2]):
            units[counter.start()] |= _MOST_MISSES
        kept[place] = units.tobytes()
        ctypes.memmove(place, kept[place], len(plain))
    return kept


def restoring(kept: Mapping[int, bytes], prepare: Callable[[], None]) -> Callable[[], None]:
    """Return what prepares a call, and puts back before it what would not stay kept, as two calls have shown: usually nothing.

    In textwrap.wrap, CPython 3.11 tries again and again to specialise what takes the last item of a list, 2,400 times in a call
    of 600 words: calls differed by 0.5 % in a cycle of three.
    """
    changing = [(place, code) for place, code in kept.items() if _runs_out(ctypes.string_at(place, len(code)), code)]
    if not changing:
        return prepare
    # By what CPython does in few steps: all that is executed between simulated calls is translated anew.
    pairs = [(memoryview((ctypes.c_char * len(code)).from_address(place)).cast("B"), code) for place, code in changing]

    def restore() -> None:
        for now, code in pairs:
            now[:] = code
        prepare()

    return restore


def _runs_out(code: bytes, kept: bytes) -> bool:
    if code == kept:
        return False
    pairs = zip(array("H", code), array("H", kept), strict=True)
    return any(most >= _MOST_MISSES and most - left >= _TOO_FAST for left, most in pairs)
