"""Says where one instruction weighs that repeats itself: Valgrind counts it for each byte or word, and a CPU takes many at a time."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING

from cachegrind_bench.hermetic.elf import UnusableError, code_at
from cachegrind_bench.model.text import percent

if TYPE_CHECKING:
    from cachegrind_bench.model.call_graph import CallGraph

# Intel's manual, volume 2, REP: a prefix F3 or F2, and perhaps one of the size or the address, before REX and one of these bytes.
_REPEATED = re.compile(
    rb"[\x66\x67]*(?P<repeat>[\xf2\xf3])[\x66\x67]*(?P<rex>[\x40-\x4f]?)(?P<code>[\xa4-\xa7\xaa-\xaf])", re.DOTALL
)
_NAMES = {0xA4: "movs", 0xA6: "cmps", 0xAA: "stos", 0xAC: "lods", 0xAE: "scas"}
_LONGEST = 15
_HUNDREDTH = 100
_WIDE = 8  # of REX


def counted_by_element(calls: CallGraph | None, ir: int) -> list[str]:
    """Return a sentence for each such instruction of at least a hundredth of these, where instructions are counted one by one."""
    if calls is None:
        return []
    found: list[str] = []
    for (code, address), own in sorted(calls.heavy.items(), key=lambda item: -item[1]):
        if own * _HUNDREDTH < ir:
            continue
        try:
            name = string_instruction(code_at(code.object, address, _LONGEST))
        except (OSError, UnusableError):
            continue
        if name is not None:
            what = "byte" if name.endswith("b") else "word"
            found.append(
                f"{percent(Fraction(own, ir))} of the instructions are one `{name}` in {code.name}: Valgrind counts it once for each {what}, "
                "and a CPU takes many at a time"
            )
    return found


def string_instruction(code: bytes) -> str | None:
    """Return the name of the instruction that begins here (AT&T), if it repeats itself."""
    match = _REPEATED.match(code)
    if match is None:
        return None
    kind = match["code"][0]
    wide = match["rex"] and match["rex"][0] & _WIDE
    size = "b" if kind % 2 == 0 else "q" if wide else "w" if b"\x66" in match[0] else "l"
    name = _NAMES[kind & ~1]
    compares = name in {"cmps", "scas"}
    repeat = "repne" if match["repeat"] == b"\xf2" and compares else "repe" if compares else "rep"
    return f"{repeat} {name}{size}"
