"""The kernels of `calibrate`: compiled by the user's compiler, counted as regions, and timed where they run natively."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec.structs import replace

from cachegrind_bench import process
from cachegrind_bench.errors import MeasurementError, UsageError
from cachegrind_bench.measure.benchmarks import measured_benchmarks
from cachegrind_bench.measure.command import resolve
from cachegrind_bench.measure.plan import Plan, Progress
from cachegrind_bench.model.calibration import Sample
from cachegrind_bench.model.metrics import weighed_events
from cachegrind_bench.model.text import printable
from cachegrind_bench.valgrind.options import Collect, Scope

if TYPE_CHECKING:
    from cachegrind_bench.measure.session import Session

Times: TypeAlias = Mapping[str, tuple[int, ...]]  # picoseconds of each start, by the kernel's name

STARTS = 3
_SOURCE = Path(__file__).with_name("kernels.c")
_INCLUDE = Path(__file__).parent.parent / "include"
_OPTIONS = ("-O2", "-fno-strict-aliasing", "-DCG_BENCH_REQUIRE")
_ERROR = re.compile(r"(?:fatal )?error: (.*)")
_PICO = 1000  # in a nanosecond


class Compiler(msgspec.Struct, frozen=True):
    """The user's compiler: the words that call it, and what it says it is."""

    words: tuple[str, ...]
    version: str

    @classmethod
    def find(cls, environ: Mapping[str, str]) -> Compiler:
        """Return $CC, or cc. UsageError if it cannot be run."""
        text = environ.get("CC") or "cc"
        hint = "install one (Debian, Ubuntu: apt install gcc libc6-dev), or name it in the variable CC"
        try:
            words = *shlex.split(text), "--version"
            done = process.run(words, env=environ)
        except (MeasurementError, ValueError) as error:
            raise UsageError(f"calibrate needs a C compiler, and there is no {text!r}", hint=hint) from error
        if done.status != 0:
            raise UsageError(f"{text!r} is not a C compiler: {done.end} with --version", hint=hint)
        return cls(words[:-1], printable(done.stdout).partition("\n")[0].strip())

    def compile(self, folder: Path, environ: Mapping[str, str]) -> Path:
        """Return the compiled kernels, in this folder. MeasurementError if that fails."""
        program = folder / "kernels"
        done = process.run([*self.words, *_OPTIONS, f"-I{_INCLUDE}", "-o", program, _SOURCE], env=environ)
        if done.status == 0 and program.exists():
            return program
        said = printable(done.stderr)
        reason = _ERROR.search(said)
        hint = "install Valgrind's headers and those of the C library (Debian, Ubuntu: apt install valgrind libc6-dev)"
        why = reason[1] if reason else said.strip().rpartition("\n")[2] or done.end
        raise MeasurementError(f"{shlex.join(self.words)} cannot compile the kernels: {why}", hint=hint)


def timed(program: Path, plan: Plan, cpu: int | None, progress: Progress, only: Sequence[str] = ()) -> Times:
    """Time the kernels on this CPU, or `only` those of these names. MeasurementError if that fails."""
    starts: list[dict[str, int]] = []
    for number in range(1, STARTS + 1):
        progress(f"timing the kernels, start {number} of {STARTS}, without Valgrind")
        starts.append(_timed([program, "time", str(cpu or 0), *only], plan))
    return {name: tuple(start[name] for start in starts) for name in starts[0]}


def counted(program: Path, plan: Plan, session: Session, progress: Progress, times: Times) -> list[Sample]:
    """Count the kernels that were timed. MeasurementError if that fails."""
    command = resolve([str(program), "count", *times], plan.environ, plan.cwd)
    counting = replace(plan, command=command, collect=Collect(scope=Scope.REGIONS), warmup=0)
    found: list[Sample] = []
    for benchmark in measured_benchmarks(counting, session, progress):
        name = benchmark.id.rpartition("::")[2]
        if benchmark.counts is None or benchmark.branches is None:
            raise MeasurementError(f"kernel {name} was not counted: {benchmark.error}")
        found.append(Sample(name, tuple(weighed_events(benchmark.counts, benchmark.branches).values()), times[name]))
    return found


def _timed(command: Sequence[str | Path], plan: Plan) -> dict[str, int]:
    """Return the picoseconds of each kernel."""
    done = process.run(command, env=plan.environ, cwd=plan.cwd)
    if done.status != 0:
        raise MeasurementError(f"the kernels cannot be timed: {done.end} {printable(done.stderr).strip()}".rstrip())
    lines = (line.split() for line in printable(done.stdout).splitlines())
    return {name: int(nanoseconds) * _PICO for name, nanoseconds in lines}
