"""What went wrong, in words: reads an execution's end and Valgrind's log. Trusts neither status nor banner alone."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Sequence

from cachegrind_bench.errors import CommandFailedError, CommandTimeoutError, MeasurementError
from cachegrind_bench.hermetic.launch import Outcome
from cachegrind_bench.model.text import joined
from cachegrind_bench.valgrind.out_format import decode

# Where the program was then: `main (x.c:4)`, `f (in /usr/lib/libx.so)`.
_WHERE = re.compile(
    r"Unrecognised instruction at address 0x[0-9A-Fa-f]+\.\n\s*at 0x[0-9A-Fa-f]+: (?:\?{3} \(in (.+)\)|(?!\?{3})(.+))"
)
_UNHANDLED = re.compile(r"unhandled instruction bytes: ((?:0x[0-9A-Fa-f]+ ?)+)")
# A program that Valgrind will not start; its caller gets "Permission denied", and often goes on.
_REFUSED = re.compile(r"Can't execute setuid/setgid/setcap executable: (.+)")
# What it says of such a program, or one that may not be read, where that is the command itself.
_DENIED = re.compile(r"^valgrind: .+: Permission denied$", re.MULTILINE)
_LOG_PREFIX = re.compile(r"^(?:==|--)\d+(?:==|--) ?", re.MULTILINE)
_EVEX = "0x62"  # the first byte of every AVX-512 instruction (and of nothing else in 64-bit code)
_NO_RIGHTS = "Valgrind runs no program that has more rights than its caller (setuid), or that may not be read"
_LAST_LINES = "its last lines were:"  # above what the program wrote
_QUOTED = "  | "  # before each line of it
_SHOWN_LINES = 8
# Where an exception of Java or JavaScript, or a panic of Go, came from; what it says is above these lines.
_FRAME = re.compile(r"\s+(?:at |\.\.\. \d+ more|/.+:\d+ \+0x)")
# What every shell and terminal sets, and hardly any program needs.
_OF_SHELLS = frozenset(("COLUMNS", "LINES", "LS_COLORS", "OLDPWD", "PS1", "PS2", "PWD", "SHELL", "SHLVL", "TERM"))


def check_outcome(
    outcome: Outcome, log: str, *, timeout_ms: int | None, held_back: Sequence[str], ignore_status: bool, native: bool
) -> None:
    """Raise the error that this execution's end amounts to, if any; `log` is Valgrind's, empty for a native run."""
    where = "in the warm-up, without Valgrind" if native else "under Valgrind"
    if outcome.timed_out:
        slow = "" if native else "programs run about a hundred times slower under Valgrind: "
        raise CommandTimeoutError(
            f"the command ran longer than {(timeout_ms or 0) / 1000:g} s {where} and was stopped",
            hint=f"{slow}raise the timeout (--timeout), or give it less work",
        )
    if outcome.signal is not None:
        raise _killed(outcome, log, where)
    if outcome.exit_status == 0:
        return
    # Before it has opened its log, Valgrind complains on stderr.
    trouble = None if native else _valgrind_trouble(log) or _valgrind_trouble(decode(outcome.tail))
    if trouble:
        raise MeasurementError(f"Valgrind failed: {trouble}", hint=_last_words(outcome.tail))
    if not native and _DENIED.search(decode(outcome.tail)):
        hint = "measure a copy of the program without these rights, or a program that it starts"
        raise CommandFailedError(_NO_RIGHTS, hint=hint, exit_status=outcome.exit_status)
    if not ignore_status:
        held = advice_on_variables(held_back, decode(outcome.tail))
        unknown = unknown_instruction(signal.SIGILL, log)  # of a process that it started
        met = unknown and f"a process met {unknown[0]}; {unknown[1]}"
        hints = (_last_words(outcome.tail), met, held, "--ignore-exit-status measures it all the same")
        message = f"the command failed with exit status {outcome.exit_status} {where}"
        raise CommandFailedError(message, hint="\n".join(filter(None, hints)), exit_status=outcome.exit_status)


def refused_programs(log: str) -> list[str]:
    """Return a doubt for each program that Valgrind would not execute."""
    why = "has more rights than its caller (setuid), so Valgrind did not run it"
    return [f"{name} {why}" for name in _REFUSED.findall(log)]


def unknown_instruction(number: int, log: str) -> tuple[str, str] | None:
    """Return which instruction Valgrind did not know, and what helps, where this signal is due to one."""
    unhandled = _UNHANDLED.search(log)
    if number != signal.SIGILL or not unhandled:
        return None
    first = unhandled[1].split()
    kind = "an AVX-512 instruction" if _EVEX in first[:2] else "an instruction"
    where = _WHERE.search(_LOG_PREFIX.sub("", log))
    place = "" if where is None else f" in {where[1] or where[2]}"
    return (
        f"{kind}{place} that Valgrind cannot simulate (bytes {' '.join(first[:8])})",
        "compile for a plain target: -march=x86-64-v3 instead of -march=native; Rust: -C target-cpu=x86-64-v3",
    )


def signal_name(number: int) -> str:
    """Return SIGKILL for 9, and so on."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def spoken_of(names: Sequence[str], said: str) -> list[str]:
    """Return those of these variables, held back, that a text names, but for what every shell sets."""
    return [name for name in names if name not in _OF_SHELLS and re.search(rf"\b{re.escape(name)}\b", said)]


def _killed(outcome: Outcome, log: str, where: str) -> MeasurementError:
    number = outcome.signal or 0
    name = signal_name(number)
    if unknown := unknown_instruction(number, log):
        return CommandFailedError(f"the command uses {unknown[0]}", hint=unknown[1], signal=number)
    core = _valgrind_trouble(log)
    message = f"Valgrind was ended by {name}: {core}" if core else f"the command was killed by {name} {where}"
    return CommandFailedError(message, hint=_last_words(outcome.tail), signal=number)


def _valgrind_trouble(log: str) -> str | None:
    text = _LOG_PREFIX.sub("", log)
    for pattern in (
        r"valgrind: the 'impossible' happened:\n\s*(.*)",
        r"Valgrind: (FATAL: .*)",
        r"(Valgrind's memory management: out of memory.*)",
        r"(error: can't open (?:cache simulation output|output data) file.*)",
        r"(valgrind: (?:Unknown option|failed to start tool|Bad option).*)",
        r"(valgrind: mmap\(.*)",
        r"\w+: (\S+:\d+ \(\w+\): Assertion .*)",  # Callgrind's, where a program leaves ten signal handlers by siglongjmp
    ):
        match = re.search(pattern, text)
        if match:
            return match[1].strip()
    return None


def _last_words(tail: bytes) -> str:
    lines = [line for line in decode(tail).splitlines() if line.strip()]
    if not lines:
        return "it wrote nothing before it ended"
    lines = [line for line in lines if not _FRAME.match(line)] or lines
    return "\n".join((_LAST_LINES, *(f"{_QUOTED}{line}" for line in lines[-_SHOWN_LINES:])))


def quotation(lines: Iterable[str]) -> frozenset[str]:
    """Return those lines of an error that repeat what the program wrote."""
    return frozenset(line for line in lines if line == _LAST_LINES or line.startswith(_QUOTED))


def advice_on_variables(names: Sequence[str], said: str) -> str | None:
    """Name the variables that the program did not get, if it spoke of them."""
    spoken = spoken_of(names, said)
    if not spoken:
        return None
    options = " ".join(f"--env {name}" for name in spoken)
    return f"if it needs {joined(spoken)}, which the seal holds back, add {options}, or 'env' in the configuration"
