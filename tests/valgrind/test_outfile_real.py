"""The readers of out files against what real Valgrinds write."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.errors import FileFormatError
from cachegrind_bench.valgrind.callgrind_file import parse_callgrind
from cachegrind_bench.valgrind.out_file import parse_cachegrind
from cachegrind_bench.valgrind.out_format import decode

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.conftest import CompileC

EVIL = b"a\nsummary: 1\nevents: X\nfn=evil\n1 1"
GEOMETRY = ["--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"]
PROGRAM = """
static volatile unsigned long sum;
__attribute__((noinline)) void burn(long n) { for (long i = 0; i < n; i++) sum += i; }
__attribute__((noinline)) long recurse(long n) { return n < 2 ? n : recurse(n - 1) + recurse(n - 2); }
int main(void) { burn(10000); return recurse(10) == 0; }
"""


def measure(valgrind: Path, out: Path, command: Sequence[bytes], *options: str, tool: str = "cachegrind") -> None:
    own = [
        f"--tool={tool}",
        "--command-line-only=yes",
        "--vgdb=no",
        f"--{tool}-out-file={out}",
        f"--log-file={out}.log",
    ]
    path = os.fsencode(out.parent) + b":/usr/bin:/bin"
    arguments = [os.fsencode(valgrind), *map(os.fsencode, [*own, *GEOMETRY, *options]), *command]
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL, cwd=out.parent, env={b"PATH": path})


def script(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def test_an_argument_that_forges_the_header_changes_no_count(each_valgrind: Path, tmp_path: Path) -> None:
    command = [b"true", EVIL, b"", b"  x ", b"\n", b"b\xff\r\nc", b""]
    measure(each_valgrind, tmp_path / "out", command)
    out = parse_cachegrind(tmp_path / "out", command=command)
    assert out.command_line == decode(b" ".join(command))
    assert out.profile.counts().Ir > 1000
    assert "evil" not in {row.name for row in out.profile.functions}
    with pytest.raises(FileFormatError, match="the `events:` line belongs here"):
        parse_cachegrind(tmp_path / "out")


def test_the_command_line_of_a_script_is_recognised(each_valgrind: Path, tmp_path: Path) -> None:
    script(tmp_path / "script", "#!/bin/sh -u\n:\n")
    for program in (b"./script", b"script", os.fsencode(tmp_path / "script")):
        command = [program, b"a b", EVIL]
        measure(each_valgrind, tmp_path / "out", command)
        found = parse_cachegrind(tmp_path / "out", command=command)
        assert found.command_line.endswith(decode(b" ".join(command))), program


def test_a_program_that_the_command_becomes_is_told_apart(each_valgrind: Path, tmp_path: Path) -> None:
    command = [b"sh", b"-c", b"exec true x"]
    measure(each_valgrind, tmp_path / "out", command, "--trace-children=yes")
    out = parse_cachegrind(tmp_path / "out", command=command)
    assert out.command_line.endswith("true x")


@pytest.mark.parametrize(
    "options", [["--cache-sim=no"], [], ["--branch-sim=yes"], ["--cache-sim=no", "--branch-sim=yes"]]
)
def test_every_set_of_events_is_read(each_valgrind: Path, tmp_path: Path, options: list[str]) -> None:
    measure(each_valgrind, tmp_path / "out", [b"true"], *options)
    out = parse_cachegrind(tmp_path / "out")
    assert ("DLmw" in out.events) == ("--cache-sim=no" not in options)
    assert ("Bim" in out.events) == ("--branch-sim=yes" in options)


def test_callgrind_and_cachegrind_agree_on_every_function(
    each_valgrind: Path, tmp_path: Path, compile_c: CompileC
) -> None:
    program = [os.fsencode(compile_c(PROGRAM, "-O1", "-g"))]
    same = "--vex-guest-chase=no"
    measure(each_valgrind, tmp_path / "out", program, same)
    # Without these, code of the PLT is booked to its callers, and recursion levels are functions of their own.
    measure(each_valgrind, tmp_path / "out2", program, same, "--skip-plt=no", "--separate-recs=1", tool="callgrind")
    cachegrind = parse_cachegrind(tmp_path / "out", command=program)
    (callgrind,) = parse_callgrind(tmp_path / "out2")
    assert callgrind.trigger == "Program termination"
    assert callgrind.header_summary[callgrind.events.index("Ir")] == cachegrind.profile.counts().Ir
    ours = {row.name: row.counts[0] for row in cachegrind.profile.functions}
    theirs = {row.name: row.counts[0] for row in callgrind.profile.functions}
    for name in ("main", "burn", "recurse"):
        assert ours[name] == theirs[name], name


def test_callgrind_escapes_the_command_line_and_cachegrind_does_not(each_valgrind: Path, tmp_path: Path) -> None:
    command = [b"true", EVIL, b"a\\nb", b"\\"]
    measure(each_valgrind, tmp_path / "out", command, "--dump-instr=yes", "--collect-jumps=yes", tool="callgrind")
    (part,) = parse_callgrind(tmp_path / "out")
    assert part.command_line == decode(b" ".join(command))
    assert part.profile.counts().Ir > 1000
