"""Remarks on counts: output under Valgrind only, the share of a wrapper program, repeated string instructions."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING

from cachegrind_bench.hermetic.elf import UnusableError, code_at
from cachegrind_bench.model.text import percent

if TYPE_CHECKING:
    from cachegrind_bench.hermetic.launch import Outcome
    from cachegrind_bench.model.call_graph import CallGraph
    from cachegrind_bench.model.metrics import Counts
    from cachegrind_bench.valgrind.runner import Measurement

# Intel's manual, volume 2, REP: a prefix F3 or F2, and perhaps one of the size or the address, before REX and one of these bytes.
_REPEATED = re.compile(
    rb"[\x66\x67]*(?P<repeat>[\xf2\xf3])[\x66\x67]*(?P<rex>[\x40-\x4f]?)(?P<code>[\xa4-\xa7\xaa-\xaf])", re.DOTALL
)
_NAMES = {0xA4: "movs", 0xA6: "cmps", 0xAA: "stos", 0xAC: "lods", 0xAE: "scas"}
_LONGEST = 15
_HUNDREDTH = 100
_WIDE = 8  # of REX
_COMPLAINT = re.compile(
    r"(?i)error|fail|denied|cannot|can't|unable|time(d )?-?out|refused|no such file|not permitted|read-only"
)
# Numbers, and folders from the beginning of a word: what a shell starts has its whole path as its name.
_VARIES = re.compile(r"\d+|(?<![^\s'\"])[^\s'\"]*/")
_SHOWN = 200


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


def unlike(native: Outcome, measured: Outcome) -> list[str]:
    """Say that the program failed in some way under Valgrind only: what was measured may be how it deals with that."""
    if native.exit_status != measured.exit_status:
        ends = f"exit status {measured.exit_status} under Valgrind, and {native.exit_status} without"
        return [f"the command ended with {ends}: it may have done other work"]
    before, after = ([_VARIES.sub("", line) for line in _lines(outcome)] for outcome in (native, measured))
    for line, plain in zip(_lines(measured), after, strict=True):
        if _COMPLAINT.search(line) and plain not in before:
            return [f"the command wrote this under Valgrind only, and may have done other work: {line[:_SHOWN]}"]
    return []


def _lines(outcome: Outcome) -> list[str]:
    return outcome.tail.decode("utf-8", "backslashreplace").splitlines()


def wrapper_notes(measurement: Measurement, counts: Counts, script: str | None) -> list[str]:
    """Name a program that only started the real one by exec: its share is in the score."""
    images = measurement.outcome.images or ()
    if not images:
        return []
    main = [image for image in images if image.pid == images[0].pid]
    if len(main) < 2:
        return []
    shares = {item.executable: item.counts.Ir for item in measurement.accounts.processes}
    first, last = main[0].path, main[-1].path
    share = shares.get(first, 0)
    if first == last or not share:
        return []
    share_percent = 100 * share / (counts.Ir or 1)
    note = (
        f"{first}{f', running {script},' if script else ''} executed {last} in its place: {share:,} instructions "
        f"({share_percent:.1f} %) of this score are its own; measure {last} itself if they do not belong"
    )
    return [note]
