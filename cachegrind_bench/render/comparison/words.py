"""A comparison in words: the verdict in one line, the remarks on one benchmark, and which of Python's functions did it.

Knows the numbers; must not know the formats. What it returns is not yet harmless text.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from cachegrind_bench.compare.change import NOISE_FACTOR, Change
from cachegrind_bench.compare.verdict import (
    BLAMING,
    STILL,
    Cause,
    Comparison,
    Difference,
    FieldDifference,
    Gates,
    State,
    deciding,
)
from cachegrind_bench.model.python_profile import NATIVE
from cachegrind_bench.model.result import Status
from cachegrind_bench.model.symbols import ALLOCATES, FREES, UNKNOWN
from cachegrind_bench.model.text import (
    below,
    change,
    counted,
    exact_percent,
    factor,
    grouped,
    percent,
    share,
    signed,
    some,
)
from cachegrind_bench.render.comparison.builds import build_remarks, other_builds
from cachegrind_bench.render.comparison.estimates import estimate_remarks

if TYPE_CHECKING:
    from cachegrind_bench.compare.allocations import Allocations, Number
    from cachegrind_bench.compare.call_split import CallCause, CallDelta, Caller, CallSplit, Label
    from cachegrind_bench.compare.explain import Details, FunctionDelta
    from cachegrind_bench.compare.hunks import Touched
    from cachegrind_bench.compare.pairing import ObjectChange
    from cachegrind_bench.compare.python_blame import PythonBlame, PythonDelta
    from cachegrind_bench.model.call_graph import Calls

# Where the sources of glibc and musl have what programs call most, as debug information says; or it says nothing.
_OF_LIBC = re.compile(r"^(?:\?\?\?)?$|(?:^|/)(?:malloc|string|sysdeps)/")
_MOST, _ALL = Fraction(1, 2), Fraction(1)
MOST_HUNKS = 5
_MUCH = Fraction(1, 5)  # from here on, how many times the work it is says more
_ADVICE = "\n"  # what follows is advice for the person who measures
_NAMELESS = "code without symbols"
_BUILD_ID = re.compile(r"\b([0-9a-f]{8})[0-9a-f]{24,56}\b")

# Of each state: its mark in text, its sign in Markdown, and the level of its annotations on GitHub, if it has any.
LOOKS = {
    State.REGRESSION: ("✗", "❌", "error"),
    State.FAILED: ("!", "💥", "error"),
    State.SUSPICIOUS: ("?", "❓", "warning"),
    State.NOT_COMPARABLE: ("≠", "🚫", "warning"),
    State.MISSING: ("–", "❓", "warning"),
    State.NOISY: ("~", "🌊", "notice"),
    State.SHIFT: ("≈", "↔️", "notice"),
    State.IMPROVEMENT: ("✓", "✅", "notice"),
    State.NEW: ("+", "🆕", "notice"),
    State.UNCHANGED: ("=", "✔️", None),
}
_PLURALS = {State.REGRESSION: "regressions", State.SUSPICIOUS: "suspicious drops", State.IMPROVEMENT: "improvements"}


def numbered(counts: Mapping[State, int]) -> str:
    """Return how many benchmarks are in each state, worst first, as in `2 regressions, 1 new`."""
    return ", ".join(
        f"{grouped(number)} {_PLURALS.get(state, state.value) if number > 1 else state.value}"
        for state in State
        if (number := counts.get(state, 0))
    )


def remarks(difference: Difference, gates: Gates, root: str = "") -> list[str]:
    """Return remarks on one benchmark, in addition to its numbers; files below `root` are shown relative to it."""
    if difference.growth is not None:
        from cachegrind_bench.render.growth import change_remarks

        return change_remarks(difference.growth, root)
    return [
        *_state_remarks(difference, gates),
        *_gate_remarks(difference, gates),
        *estimate_remarks(difference),
        *_measured_remarks(difference, gates),
        *_object_remarks(difference),
    ]


def _state_remarks(difference: Difference, gates: Gates) -> list[str]:
    state, moved = difference.state, difference.change
    if state is State.FAILED:
        return [
            f"the {name} failed: {(side.error or side.status.value).partition(_ADVICE)[0]}"
            for name, side in (("base", difference.base), ("candidate", difference.candidate))
            if side is not None and side.status is not Status.OK
        ]
    if moved is not None:
        return [remark for remark in [_change_remark(state, moved, gates)] if remark]
    texts = {
        State.MISSING: "the base has it, the candidate does not",
        State.NEW: "only the candidate has it",
        State.NOT_COMPARABLE: _not_comparable(difference),
    }
    return [texts[state]] if state in texts else []


def _change_remark(state: State, moved: Change, gates: Gates) -> str | None:
    if state is State.SUSPICIOUS:
        fewer = percent(-(moved.ir.relative or Fraction(0)))
        return f"{fewer} fewer instructions: does it still do its work? (--max-drop accepts more)"
    if state is State.SHIFT and moved.score.mixed:
        return "up in some memory layouts and down in others: the memory layout matters more than the change"
    if state is State.SHIFT and abs(moved.ir.signed) >= STILL:
        return (
            "the same work, but CPython's method cache, whose entries depend on addresses, "
            f"missed {'more' if moved.ir.signed > 0 else 'less'} often"
        )
    if state is State.SHIFT:
        return (
            f"the same work (Ir moved by less than {exact_percent(STILL)}) at other addresses; "
            f"a regression beyond --threshold-cache {exact_percent(gates.threshold_cache)}"
        )
    if state is State.NOISY:
        noise = deciding(moved, gates).noise
        return (
            f"repeated runs differ by {percent(noise)}: changes up to {percent(NOISE_FACTOR * noise)} cannot be distinguished "
            "from that; 'cg-bench verify' finds the cause"
        )
    return None


def _not_comparable(difference: Difference) -> str:
    if {field.name for field in difference.fields} == {"measured"}:
        counted = [side and side.iterations for side in (difference.base, difference.candidate)]
        if all(counted) and counted[0] != counted[1]:
            before, here = (grouped(number or 0) for number in counted)
            return (
                f"of the base {before} iterations were counted, and {here} here, and iterations need not be alike: "
                "'cg-bench check --base FILE' counts as many as the base"
            )
    if difference.fields:
        return f"measured differently: {fields_text(difference.fields)}"
    base, candidate = difference.base, difference.candidate
    if base is not None and candidate is not None and base.key != candidate.key:
        return f"measured differently: their keys are {base.key} and {candidate.key}"
    return "base and candidate have no memory layout in common"


def fields_text(fields: tuple[FieldDifference, ...]) -> str:
    """Return fields of the key with what differs of both values; build-ids are cut to where they differ."""
    return ", ".join(f"{field.name} {' → '.join(_values(field))}" for field in fields)


def _values(field: FieldDifference) -> tuple[str, str]:
    base, candidate = (value or "unknown" for value in (field.base, field.candidate))
    words = [value.split() for value in (base, candidate)]
    if len(words[0]) == len(words[1]):  # as in a cache geometry: only the caches that differ
        differing = [pair for pair in zip(*words, strict=True) if pair[0] != pair[1]]
        base, candidate = (" ".join(side) for side in zip(*differing, strict=True)) if differing else (base, candidate)
    short = _BUILD_ID.sub(r"\1", base), _BUILD_ID.sub(r"\1", candidate)
    return short if short[0] != short[1] else (base, candidate)


def _gate_remarks(difference: Difference, gates: Gates) -> list[str]:
    found = [
        f"{item.limit.name}{' hits' if item.limit.name in {'L1', 'LL', 'RAM'} else ''} {grouped(item.value)} exceeds the "
        f"limit of {grouped(item.limit.value)}"
        for item in difference.broken
    ]
    found += _allocation_gates(difference, gates)
    moved = difference.change
    if moved is None:
        return found
    if Cause.IR in difference.causes:
        wanted = gates.threshold_ir.get(difference.id)
        limit = (
            f"the threshold of {exact_percent(difference.threshold)}"
            if wanted is None
            else f"--threshold-ir {exact_percent(wanted)}"
        )
        found.append(f"Ir {change(moved.ir.relative)} exceeds {limit}")
    if Cause.CACHE in difference.causes:
        how = "up in some memory layouts and down in others, in their median"
        if not moved.score.mixed:
            served = "worse" if moved.score.signed > 0 else "better"
            how = f"the work is the same (Ir {change(moved.ir.relative)}), but the caches serve it {served},"
        found.append(f"{how} by more than --threshold-cache {exact_percent(gates.threshold_cache)}")
    return found


def _allocation_gates(difference: Difference, gates: Gates) -> list[str]:
    """Say what is wrong with allocations and who makes them, or that they could not be counted."""
    if difference.uncounted:
        sides = " and ".join(difference.uncounted)
        return [f"allocations are not compared: no calls are recorded of the {sides} (run --call-tree)"]
    said = None if difference.allocations is None else allocations(difference.allocations)
    wanted = gates.threshold_allocations.get(difference.id)
    if said is None or Cause.ALLOCATIONS not in difference.causes or wanted is None:
        return [said] if said else []
    return [f"{said}; --threshold-allocations is {exact_percent(wanted)}"]


def _measured_remarks(difference: Difference, gates: Gates) -> list[str]:
    moved = difference.change
    if moved is None:
        return []
    found: list[str] = []
    shift = deciding(moved, gates)
    if shift.noise and difference.state is not State.NOISY:
        found.append(f"repeated runs differ by {percent(shift.noise)}")
    if shift.spread and shift.spread >= difference.threshold:
        found.append(f"its calls differ by {percent(shift.spread)}: smaller changes cannot be distinguished from that")
    if moved.layouts > 1:
        found.append(f"median of {moved.layouts} memory layouts, pair by pair")
    if moved.layouts_left_out:
        found.append(f"{moved.layouts_left_out} memory layouts were measured on one side only")
    if difference.forced:
        found.append("compared by force")
    base, candidate = difference.base, difference.candidate
    if base is not None and candidate is not None:
        # Without the folders of its paths, which differ between two checkouts.
        before, after = ([os.path.basename(word) for word in side.command] for side in (base, candidate))
        if before != after:
            found.append(f"another command: {shlex.join(base.command)} → {shlex.join(candidate.command)}")
    sides = (("base", base), ("candidate", candidate))
    found += [
        f"the {name} counted some processes inexactly" for name, side in sides if side and not side.processes_exact
    ]
    return found


def _object_remarks(difference: Difference) -> list[str]:
    """Name libraries that changed: an upgrade of one must not look like a change of the program's own code."""
    base, candidate = difference.base, difference.candidate
    if difference.change is None or base is None or candidate is None or base.objects == candidate.objects:
        return []
    from cachegrind_bench.compare.pairing import changed_objects

    changed = changed_objects(base.objects, candidate.objects)
    libraries = [item for item in changed if not item.is_executable]
    if not libraries:
        return []
    same = "; the executable is the same" if len(libraries) == len(changed) else ""
    return [f"libraries changed: {', '.join(map(_library, libraries))}{same}"]


def _library(item: ObjectChange) -> str:
    name = os.path.basename(item.path)
    if item.base is None or item.candidate is None:
        return f"{name} {'added' if item.base is None else 'gone'}"
    before, after = (build_id.removeprefix("sha256:")[:8] for build_id in (item.base, item.candidate))
    return f"{name} ({before} → {after})"


def interpreted(difference: Difference, details: Details | None) -> str | None:
    """Return the name of the interpreter whose functions a profile's rows are, None for a program of its own.

    None as well where the function to blame is one of the script, which the compiler of the interpreter has logged.
    """
    side = difference.candidate or difference.base
    blamed = None if details is None else details.blamed
    if side is not None and side.iterations is not None and blamed is not None and blamed.file != UNKNOWN:
        return None
    if side is None or side.key_fields.get("interpreter", "none") == "none":
        return None
    from cachegrind_bench.compare.pairing import is_library

    programs = [os.path.basename(item.path) for item in side.objects if not is_library(item.path)]
    return programs[0] if programs else "the interpreter"


def headline(comparison: Comparison, details: Mapping[str, Details]) -> str:
    """Return the verdict in one line: the worst benchmark's state, what it is about, and how the others fared."""
    total = len(comparison.differences)
    if not total:
        return "not comparable: neither side has a benchmark to compare"
    if comparison.without_base and comparison.verdict is State.NEW:
        return f"no baseline: nothing was compared, {counted(total, 'benchmark')} measured"
    worst = comparison.differences[0]
    parts = [_about(worst, comparison, details)]
    if total > 1:
        parts.append(numbered(comparison.count()))
    if not comparison.compared and comparison.verdict is not State.FAILED:
        parts.append("nothing was compared")
    if any(item.forced for item in comparison.differences):
        parts.append("compared by force")
    return f"{comparison.verdict.value}: {'; '.join(parts)}"


def _about(worst: Difference, comparison: Comparison, details: Mapping[str, Details]) -> str:
    moved, gates = worst.change, comparison.gates
    if worst.state is State.UNCHANGED and len(comparison.differences) > 1:
        return "every benchmark is within its threshold"
    if moved is None:
        return f"{worst.id} ({remarks(worst, gates)[0]})"
    shift = deciding(moved, gates)
    if moved.base == moved.candidate and worst.state is State.UNCHANGED:
        return f"all nine counts of {worst.id} are the same"
    moves = f"{gates.metric.value} {change(shift.relative)}"
    if shift.relative is None:
        moves += f" to {grouped(comparison.weigh(moved.candidate))}"
    held = Cause.THRESHOLD in worst.causes or worst.state is State.UNCHANGED
    threshold = f"threshold {exact_percent(worst.threshold)}" * (held and worst.state is not State.IMPROVEMENT)
    if Cause.THRESHOLD in worst.causes and shift.relative is not None and abs(shift.relative) >= _MUCH:
        within = ", ".join(filter(None, (moves, threshold)))
        text = f"{worst.id} does {factor(1 + shift.relative)} times the work of the base ({within})"
    else:
        text = f"{worst.id} {moves}{threshold and f' ({threshold})'}"
    reasons = [*_state_remarks(worst, gates), *_gate_remarks(worst, gates)]
    text = ", ".join([text, *reasons])
    found = _culprit(details.get(worst.id))
    by_allocations = {*worst.causes} == {Cause.ALLOCATIONS}  # who makes them has been said
    known = details.get(worst.id)
    built = [] if worst.state is State.UNCHANGED else [*build_remarks(worst), *build_file_remarks(known)]
    text = "; ".join([text, *lonely_remarks(known)]) if worst.state in BLAMING else text
    if worst.state in BLAMING and other_build(worst, known):
        return "; ".join([*built, text, *_object_remarks(worst)])
    if found is not None and worst.state in BLAMING and not by_allocations:
        name, where, part = found
        at = f" ({where})" if where else ""
        said = cause(details[worst.id])
        if said is not None:
            part = abs(_explained(details[worst.id]))
            text += f": {said}" if part > _MOST else f"; largest share, {percent(part)}: {said}"
        else:
            text += f", most of it in {name}{at}" if part > _MOST else f", largest share: {name}{at}, {percent(part)}"
    return "; ".join([*built, text, *_object_remarks(worst)])


def other_build(item: Difference, details: Details | None) -> str | None:
    """Say that base and candidate were built otherwise, where functions are not to blame; None where they may be."""
    if other_builds(item):
        return "another build"
    if details is None:
        return None
    if details.only_build_files:
        return "build files"
    return "functions of one side only" if details.lonely else None


def build_file_remarks(details: Details | None) -> list[str]:
    """Name files of the build that changed between the commits."""
    if details is None or not details.build_files:
        return []
    only = ", and no source file did" if details.only_build_files else ""
    return [f"{some(details.build_files, MOST_HUNKS)} changed{only}"]


def lonely_remarks(details: Details | None) -> list[str]:
    """Say that functions do not compare where most of the cost is in those of one side only."""
    if details is None or details.lonely is None:
        return []
    gone, new = details.lonely
    sides = f"{grouped(gone)} of the base and {grouped(new)} of the candidate"
    most = f"most of the cost is in functions of one side only, {sides}, so functions are not compared"
    return [f"the build differs, or the code was written anew: {most}"]


def chief(details: Details | None) -> PythonDelta | None:
    """Return the Python function to name first, if there is one."""
    return None if details is None or details.python is None else details.python.chief


def place(item: Difference, details: Details | None, root: str) -> tuple[str, int] | None:
    """Return file and line (0 if unknown) of the function to blame, as GitHub wants them; None where it is not of the project.

    The project is what is below `root`.
    """
    row = chief(details)
    worst = None if item.growth is None else item.growth.candidate.worst
    hunk = None if details is None or details.hunks is None else details.hunks.chief
    if worst is not None:
        path, line = below(worst.file, root), worst.line
        inside = worst.file.startswith("/") and "site-packages" not in path.split("/")
    elif {*item.causes} == {Cause.ALLOCATIONS} and item.allocations is not None:
        found = item.allocations
        label = found.user or found.made.callers[0].label
        path, line = below(label.file, root), label.line
        inside = label.file.startswith("/") or os.path.isfile(os.path.join(root, path))
    elif hunk is not None:  # what a reviewer looks at
        path, line, inside = hunk.file, hunk.first, True
    elif row is not None:
        path, line = below(row.function.file, root), row.function.line
        inside = path.endswith(".py") and "site-packages" not in path.split("/")
    elif details is None or details.blamed is None or interpreted(item, details) is not None:
        return None
    else:
        own = details.user if details.cause is None else _own(details.cause)
        file, line = (details.blamed.file, 0) if own is None else (own.file, own.line)
        path = below(file, root)
        # Rust's compiler writes relative paths, and so do those who build a distribution's libraries.
        inside = file.startswith("/") or os.path.isfile(os.path.join(root, path))
    return (path, line) if inside and path.isprintable() and not path.startswith(("/", "../")) else None


def lacks_debug_information(item: Difference, details: Details) -> bool:
    """Return whether the file of the native function to blame is unknown."""
    return details.blamed is not None and details.blamed.file == UNKNOWN and interpreted(item, details) is None


def _own(found: CallCause) -> Label:
    """Return the function whose code did it, or the caller of one of the system's."""
    return found.caller.label if found.caller is not None and found.culprit.code.is_system else found.culprit


def culprit(details: Details | None) -> str:
    """Return the function that explains most, Python's before the program's, with its share where that is small; or nothing."""
    found = _culprit(details)
    if found is None:
        return ""
    name, _place, part = found
    return name if part > _MOST else f"{name} ({percent(part)})"


def _culprit(details: Details | None) -> tuple[str, str, Fraction] | None:
    """Return the name of the function that explains most, its place where it is Python's, and its share."""
    if details is None:
        return None
    row = chief(details)
    if row is not None and details.python is not None:
        total = details.python.total
        return row.function.name, row.function.place, abs(Fraction(row.blame, total)) if total else Fraction(0)
    found = details.cause
    if found is not None and details.calls is not None:
        from cachegrind_bench.compare.call_split import Kind

        name = function_name(found.culprit)
        if found.caller is not None and found.kind is Kind.OWN:
            name += f" (from {function_name(found.caller.label)})"
        return name, "", Fraction(found.ir, details.calls.total)
    if details.blamed is None:
        return None
    return _named(details.blamed.name) + _user(details.blamed, details.user), "", details.blamed_share


def _user(blamed: FunctionDelta, user: Label | None) -> str:
    """Say who called a function of the system, or that it is of libc, where a row of its own says little."""
    from cachegrind_bench.model.call_graph import Code

    if user is not None:
        return f" (from {function_name(user)})"
    of_libc = Code("", blamed.file, blamed.name).is_system and _OF_LIBC.search(blamed.file)
    return " (libc)" if of_libc else ""


def _named(name: str) -> str:
    from cachegrind_bench.valgrind.demangling import demangled

    return _NAMELESS if name == UNKNOWN else demangled(name)


def cause(details: Details) -> str | None:
    """Say what happened, from calls: what is called more often and by whom, or costs more in each call; None if unknown."""
    found = details.cause
    if found is None:
        return None
    from cachegrind_bench.compare.call_split import Kind

    name = f"{function_name(found.function)}{f' ({at})' if (at := _short(found.function)) else ''}"
    caller = found.caller and function_name(found.caller.label)
    if found.caller is not None and found.caller.label.line:
        caller = f"{caller} ({_short(found.caller.label)})"
    before, after = found.base.number, found.candidate.number
    if found.kind is Kind.CALLED:
        allocated = _by_allocations(details)
        if allocated is not None:
            return allocated
        text = f"{name} is called {grouped(after)} instead of {counted(before, 'time')}"
        if found.caller is None:
            return text
        here = found.caller.candidate.number - found.caller.base.number
        some = "" if here == after - before else f"{grouped(abs(here))} {'more' if here > 0 else 'fewer'} "
        return f"{text}, {some}from {'itself' if found.caller.label == found.function else caller}"
    by = f", called from {caller}" if caller else ""
    own = _instead(found.base, found.candidate)
    if before == after == 1:
        itself, comma = (" itself", "") if found.kind is Kind.OWN else (", with what it calls", ",")
        return f"{name}{itself}{comma} costs {own} instructions{by}"
    if found.kind is Kind.INCLUSIVE or found.whole == (found.base, found.candidate):
        return f"each call of {name} costs {own} instructions{by}"
    if found.whole is None:  # what calls within a recursion cost contains one another
        return f"each call of {name} costs {own} instructions in its own code{by}"
    return f"each call of {name} costs {_instead(*found.whole)} instructions, {own} in its own code{by}"


def _instead(base: Calls, candidate: Calls) -> str:
    return f"{each_call(candidate)} instead of {each_call(base)}"


def _by_allocations(details: Details) -> str | None:
    """Say how many more allocations the function makes that explains most by making them; None if something else does."""
    found, known = details.cause, details.allocations
    if found is None or known is None or found.caller is None:
        return None
    if not (ALLOCATES.match(found.function.name) or FREES.match(found.function.name)):
        return None
    callers = known.made.callers or known.freed.callers
    chief = known.user or (callers[0].label if callers else None)
    return allocations(known) if chief == found.caller.label else None


def each_call(calls: Calls) -> str:
    """Return what one of these calls costs, in the mean."""
    return grouped(round(Fraction(calls.ir, calls.number))) if calls.number else "0"


def function_name(label: Label) -> str:
    """Return what a function is called; code without a name, by its library."""
    if label.name == UNKNOWN and label.object not in {"", UNKNOWN}:
        return f"{_NAMELESS} in {os.path.basename(label.object)}"
    return _named(label.name)


def _short(label: Label) -> str:
    """Return where a function is, without the folders of an absolute path; of the system's, only the library."""
    path = label.object if label.code.is_system else label.place
    return os.path.basename(path) if path.startswith("/") else path


def cause_remarks(details: Details | None) -> list[str]:
    """Say what happened, and how much of the difference that is."""
    said = None if details is None else cause(details)
    if details is None or details.cause is None or said is None:
        return []
    found = details.cause
    part = f", {_part(found.ir, _total(details))}"
    many = f"; it is one of {grouped(found.members)} functions that call each other" if found.members > 1 else ""
    return [f"{said}: {signed(found.ir)} instructions{part}{many}"]


def _explained(details: Details) -> Fraction:
    """Return which part of the difference of instructions the cause explains."""
    total = _total(details)
    return Fraction(details.cause.ir, total) if details.cause and total else Fraction(0)


def _total(details: Details) -> int:
    """Return the difference of instructions by the calls that the cause is found in."""
    split = details.calls if details.python_calls is None else details.python_calls
    return 0 if split is None else split.total


def _part(ir: int, total: int) -> str:
    """Say how much of the difference this is; where it is more than all, what others cost less."""
    share_of_it = Fraction(ir, total) if total else Fraction(0)
    if share_of_it < _ALL + Fraction(1, 200):
        return f"{percent(min(share_of_it, _ALL))} of the difference"
    return f"all else {signed(total - ir)}"


def calls_table(found: CallSplit) -> list[tuple[str, ...]]:
    """Return the heading and the rows of a table; the blames of all rows add up to that of the last one.

    What each call costs is with what it calls.
    """
    rows: list[tuple[str, ...]] = [
        ("blame", "Δ cost", "by calls", "by cost of each", "calls", "each", "function", "called from")
    ]
    shown = [row for row in found.rows if is_worth_a_row(max(abs(row.blame), abs(row.by_calls)), found.total)]
    for row in shown:
        before, after = row.base, row.candidate
        each = [each_call(side) if side.number else "–" for side in (before, after)]
        delta = after.ir - before.ir
        numbers = (
            *map(signed, (row.blame, delta, row.by_calls, row.by_cost)),
            _arrow(grouped(before.number), grouped(after.number)),
        )
        rows.append((*numbers, _arrow(*each), *ends(row)))
    rest = found.total - sum(row.blame for row in shown)
    if rest or len(shown) < len(found.rows):
        rows.append((signed(rest), *[""] * 5, "everything else", ""))
    return [*rows, (signed(found.total), *[""] * 5, "total", "")]


def ends(row: CallDelta) -> tuple[str, str]:
    """Return what was called, and from where."""
    more = f" and {counted(row.members - 1, 'other')} in a circle" if row.members > 1 else ""
    return function_name(row.label) + more, ", ".join(map(calls_from, row.callers))


def _arrow(before: str, after: str) -> str:
    return after if before == after else f"{before} → {after}"


def calls_from(caller: Caller) -> str:
    """Return a caller, and how often it calls."""
    return f"{function_name(caller.label)} {_arrow(grouped(caller.base.number), grouped(caller.candidate.number))}"


def python_remarks(details: Details | None) -> list[str]:
    """Say which function did it, and how."""
    row = chief(details)
    if details is None or details.python is None or row is None:
        return []
    total = details.python.base_total
    share_of_all = f"{change(Fraction(row.blame, total))} " if total else ""
    often = f"by calling others {'more' if row.called > 0 else 'less'} often"
    how = f"{signed(row.blame)} instructions"
    if not row.called:
        how += " of its own"
    else:
        how += f", of which {signed(row.called)} {often}" if row.own else f" {often}"
    calls = f"{grouped(row.base.calls)} → {counted(row.candidate.calls, 'call')}"
    return [f"in Python: {row.function.name}, {row.function.place}, {share_of_all}({how}; {calls})"]


def hunk_remarks(details: Details | None) -> list[str]:
    """Say which hunks of the change are in the functions that explain the difference, and where nothing can be said."""
    if details is None or details.hunks is None:
        return []
    found = details.hunks
    if found.idle:
        return [
            "nothing that changed between the commits was executed: a compiler, a library or the memory layout did it"
        ]
    if found.through is not None:
        way = found.through
        part = f"{percent(min(Fraction(way.function.ir, found.total), _ALL))} of it is called from {_changed(way)}"
        own = f"{percent(Fraction(found.ir, found.total))} of the difference is of functions that the change touches"
        return [f"{own if found.touched else 'no function that explains the difference was changed'}, but {part}"]
    if not found.touched:
        if details.python is None and details.blamed is not None and details.blamed.file == UNKNOWN:
            return []  # without debug information it is not known where the function is
        unsaid = "constants, arguments, and code that was inlined where lines are not recorded (--lines)"
        what = f"no function that explains the difference was changed{_inlined(details)}"
        return [f"{what}; what other lines do, such as {unsaid}, cannot be said"]
    part = f", {_part(found.ir, found.total)}," if found.total else ""
    places = "; ".join(map(_changed, found.touched[:MOST_HUNKS]))
    return [f"{signed(found.ir)} instructions{part} are of functions that the change touches: {places}"]


def _inlined(details: Details) -> str:
    """Say why a function that was not changed may be called on one side only."""
    found = details.cause
    if found is None or (found.base.number and found.candidate.number):
        return ""
    side = "candidate" if found.base.number else "base"
    return f": {function_name(found.function)} may be inlined in the {side}, which has no calls of it"


def _changed(row: Touched) -> str:
    return f"{_named(row.function.name)} at {some([hunk.place for hunk in row.hunks], MOST_HUNKS)}"


def allocation_remarks(item: Difference, details: Details | None) -> list[str]:
    """Say how many more or fewer allocations there are, and from where, unless the verdict or the cause says so."""
    if details is None or item.allocations is not None or _by_allocations(details) is not None:
        return []
    known = details.allocations
    said = None if known is None else allocations(known)
    return [said] if said else []


def allocations(found: Allocations) -> str | None:
    """Say how many more or fewer allocations there are, and whether fewer of them are freed; None where nothing changed."""
    made, freed = found.made, found.freed
    if not made.callers:
        return _more(freed, "free", found.user) if freed.delta else None
    text = _more(made, "allocation", found.user)
    if found.kept <= 0 or made.delta <= 0:
        return text
    if freed.delta <= 0:
        less = counted(-freed.delta, "fewer free") if freed.delta else "no more frees"
        return f"{text}, and {less}"
    return f"{text}, but only {counted(freed.delta, 'more free')}"


def _more(number: Number, what: str, user: Label | None) -> str:
    """Say how much more often it is done, and which caller changed most."""
    chief, delta = number.callers[0], number.delta
    own = chief.candidate.number - chief.base.number
    some = f"{grouped(abs(own))} {'more' if own > 0 else 'fewer'} " if own != delta else ""
    label = user or chief.label
    at = f" ({place})" if (place := _short(label)) else ""
    through = f", through {function_name(chief.label)}" if user is not None else ""
    counts = f"{grouped(number.base)} → {grouped(number.candidate)}"
    how = counted(abs(delta), f"{'more' if delta > 0 else 'fewer'} {what}") if delta else f"as many {what}s"
    return f"{how} ({counts}), {some}from {function_name(label)}{at}{through}"


def is_worth_a_row(part: int, whole: int) -> bool:
    """Return whether this is at least half a percent of the whole change, or all cancels out."""
    return 200 * abs(part) >= abs(whole)


def python_table(found: PythonBlame) -> list[tuple[str, ...]]:
    """Return the heading and the rows of a table; the last row is the sum of the others."""
    total = found.total

    def cells(blame: int, own: int, *texts: str) -> tuple[str, ...]:
        return signed(blame), share(blame, total), signed(own), *texts

    rows: list[tuple[str, ...]] = [("blame", "of Δ", "own code", "calls", "Python function", "line")]
    shown = [
        row
        for row in found.rows
        if row.base.calls != row.candidate.calls or is_worth_a_row(row.blame, total) or is_worth_a_row(row.own, total)
    ]
    rest = [*found.rest, *(row for row in found.rows if row not in shown)]
    for row in shown:
        before, after = grouped(row.base.calls), grouped(row.candidate.calls)
        calls = after if before == after else f"{before} → {after}"
        rows.append(cells(row.blame, row.own, calls, row.function.name, row.function.place))
    if rest:
        others = counted(len(rest), "other function")
        rows.append(cells(sum(row.blame for row in rest), sum(row.own for row in rest), "", others))
    if found.native or found.native_blame:
        rows.append(cells(found.native_blame, found.native, "", NATIVE))
    own = sum(row.own for row in (*found.rows, *found.rest)) + found.native
    return [*rows, cells(total, own, "", "total")]
