"""The noise hunter's judgement, with a made-up runner in place of Valgrind."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from cachegrind_bench.errors import CommandFailedError, MeasurementError, PlaceError
from cachegrind_bench.hermetic.execution import SEED, Execution, Image, Output
from cachegrind_bench.hermetic.launch import PINNED_CLOCK, Outcome
from cachegrind_bench.measure import axes as axes_module
from cachegrind_bench.measure.axes import AXES, Axis, busy_cpus
from cachegrind_bench.measure.command import Command
from cachegrind_bench.measure.findings import Finding, Verdict, Verification, difference
from cachegrind_bench.measure.plan import Plan
from cachegrind_bench.measure.verify import verify
from cachegrind_bench.model.metrics import DEFAULT_MODEL, EVENTS, FunctionCost, Profile
from cachegrind_bench.render.diagnosis import conclusion, verification
from cachegrind_bench.valgrind.options import Collect, Scope, Tool
from cachegrind_bench.valgrind.processes import Accounts
from cachegrind_bench.valgrind.runner import Measurement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BASE = 1_000_000


def profile(**rows: int | tuple[int, ...]) -> Profile:
    """Return a profile whose functions have these instruction counts, or all nine counts."""
    functions = [
        FunctionCost("file.c", name, value if isinstance(value, tuple) else (value, 0, 0, 0, 0, 0, 0, 0, 0))
        for name, value in rows.items()
    ]
    return Profile(events=EVENTS, functions=tuple(sorted(functions, key=lambda row: row.name)))


class Fake:
    """A runner whose program costs what `cost` says of the target."""

    def __init__(
        self,
        cost: Callable[[Execution], int],
        *,
        unsealed: dict[str, str] | None = None,
        supervised: bool = True,
        forks: bool = False,
        threads: bool = True,
        doubts: tuple[str, ...] = (),
        split_at_first: bool = False,
    ) -> None:
        self.cost = cost
        self.unsealed = unsealed or {}
        self.supervised = supervised
        self.forks = forks
        self.threads = threads
        self.doubts = doubts
        self.split_at_first = split_at_first
        self.tools: list[Tool] = []
        self.executed: list[Execution] = []

    def _outcome(self) -> Outcome:
        image = Image(1, "/bin/x", ["/bin/x"], 0, forked=False)
        image.forks = int(self.forks)
        image.threads = int(self.threads)
        return Outcome(
            exit_status=0,
            signal=None,
            timed_out=False,
            leftover=0,
            wall_ms=1,
            tail=b"",
            unsealed=self.unsealed,
            images=(image,) if self.supervised else None,
        )

    def warm_up(self, execution: Execution) -> Outcome:
        del execution
        return self._outcome()

    def measure_regions(self, execution: Execution, collect: Collect) -> dict[str, Measurement]:
        return {"part": self.measure(execution, collect, Tool.CALLGRIND)}

    def measure(self, execution: Execution, collect: Collect, tool: Tool) -> Measurement:
        assert collect.scope is Scope.PROCESS
        self.tools.append(tool)
        self.executed.append(execution)
        split = self.split_at_first and tool is Tool.CACHEGRIND
        accounts = Accounts(
            profile=profile(main=1000, work=self.cost(execution)), processes=(), doubts=self.doubts, split_needed=split
        )
        return Measurement(tool=tool, outcome=self._outcome(), accounts=accounts)


@pytest.fixture(autouse=True)
def _no_real_load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    @contextlib.contextmanager
    def idle() -> Iterator[None]:
        yield

    monkeypatch.setattr(axes_module, "busy_cpus", idle)
    monkeypatch.setattr(axes_module, "SCRATCH_BASE", tmp_path)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    (cwd / "data").write_text("x")
    return Plan(command=command("/bin/x", "data"), cwd=cwd, environ={"PATH": "/bin"}, cpu=max(os.sched_getaffinity(0)))


def command(*words: str) -> Command:
    return Command(typed=words, argv=words, executable=words[0])


def hunt(plan: Plan, fake: Fake, *keys: str) -> Verification:
    chosen = [axis for axis in AXES if not keys or axis.key in keys]
    return verify(plan, fake, lambda _text: None, axes=chosen)


def of(found: Verification, key: str) -> Finding:
    return next(finding for finding in found.findings if finding.axis.key == key)


def verdicts(found: Verification) -> dict[str, str]:
    return {finding.axis.key: finding.verdict.value for finding in found.findings}


# --- Differences ---------------------------------------------------------------------------------------------------------


class Placed(Fake):
    """A runner whose program does not bear another path, and fails, or is found unfit, there."""

    def __init__(self, error: Exception) -> None:
        super().__init__(lambda _execution: BASE)
        self.error = error

    def warm_up(self, execution: Execution) -> Outcome:
        if not execution.keep_place:
            raise self.error
        return super().warm_up(execution)


@pytest.mark.parametrize("error", [CommandFailedError("it fails"), PlaceError("it moves a file")])
def test_a_command_that_cannot_bear_another_path_is_examined_where_it_is(plan: Plan, error: MeasurementError) -> None:
    if isinstance(error, CommandFailedError):
        error.elsewhere = True
    fake = Placed(error)
    assert hunt(plan, fake, "repeat").held
    kept = "the command fails at another path" if isinstance(error, CommandFailedError) else error.message
    assert {execution.keep_place for execution in fake.executed} == {kept}


def test_equal_profiles_are_identical() -> None:
    assert difference(profile(f=3, g=4), [profile(f=3, g=4)], DEFAULT_MODEL).identical


def test_a_function_without_cost_is_not_a_difference() -> None:
    assert difference(profile(f=3), [profile(f=3, g=0)], DEFAULT_MODEL).identical


def test_rows_that_moved_are_seen_where_the_totals_agree() -> None:
    found = difference(profile(f=3, g=4), [profile(f=4, g=3)], DEFAULT_MODEL)
    assert (found.identical, found.events, found.rows, found.Ir) == (False, (), 2, 0)
    assert [(item.name, item.low, item.high) for item in found.functions] == [("f", 3, 4), ("g", 3, 4)]


def test_the_functions_that_moved_most_come_first_and_five_are_enough() -> None:
    rows = {f"f{number}": 100 for number in range(8)}
    other = {name: 100 + place for place, name in enumerate(rows)}
    found = difference(profile(**rows), [profile(**other)], DEFAULT_MODEL)
    assert [item.name for item in found.functions] == ["f7", "f6", "f5", "f4", "f3"]
    assert (found.rows, found.Ir) == (7, sum(range(8)))


def test_where_instructions_held_the_misses_are_reported() -> None:
    before, after = (10, 0, 0, 5, 1, 0, 0, 0, 0), (10, 0, 0, 5, 3, 0, 0, 0, 0)
    found = difference(profile(f=before, g=5), [profile(f=after, g=6)], DEFAULT_MODEL)
    assert [(item.event, item.low, item.high) for item in found.functions] == [("Ir", 5, 6), ("D1mr", 1, 3)]
    assert found.events == ("Ir", "D1mr")
    assert found.score == 1 + 2 * 4


def test_the_largest_deviation_keeps_its_sign() -> None:
    found = difference(profile(f=100), [profile(f=101), profile(f=90)], DEFAULT_MODEL)
    assert found.Ir == -10
    assert found.relative == pytest.approx(0.1)


# --- Verdicts ------------------------------------------------------------------------------------------------------------


def test_a_program_that_nothing_disturbs_holds_on_every_axis(plan: Plan) -> None:
    found = hunt(plan, Fake(lambda _target: BASE))
    assert found.held
    alone = len(os.sched_getaffinity(0)) == 1
    assert {key: verdict for key, verdict in verdicts(found).items() if key != "cpu"} == {
        axis.key: "held" for axis in AXES if axis.key != "cpu"
    }
    assert of(found, "cpu").verdict is (Verdict.SKIPPED if alone else Verdict.HELD)
    assert conclusion(found).startswith("Repeatable: nothing" if alone else "Repeatable: the counts stayed the same")


def test_every_axis_changes_one_thing(plan: Plan) -> None:
    fake = Fake(lambda _target: BASE)
    hunt(plan, fake)
    plain = fake.executed[0]._asdict()
    changed = {key for execution in fake.executed for key, value in execution._asdict().items() if value != plain[key]}
    assert changed >= {"layout", "cwd", "aslr_off", "seed", "variables", "clock", "output", "elsewhere"}
    for execution in fake.executed:
        assert sum(value != plain[key] for key, value in execution._asdict().items()) <= 1


def test_variables_of_the_caller_are_held_back_from_the_program(plan: Plan) -> None:
    fake = Fake(lambda execution: BASE + len(execution.variables))
    assert of(hunt(plan, fake, "environment"), "environment").verdict is Verdict.HELD


def test_a_clock_that_decides_the_work_is_named(plan: Plan) -> None:
    ticks = itertools.count(1)

    def cost(execution: Execution) -> int:
        return BASE + (next(ticks) * 977 if execution.clock is None else execution.clock.epoch_ns % 1000 * 7)

    found = hunt(plan, Fake(cost))
    assert not found.held
    assert "the clock" in str(of(found, "repeat").cause)
    assert "--pin-clock" in str(of(found, "repeat").advice)
    assert of(found, "clock").verdict is Verdict.MOVED
    # No other axis is blamed: they were tried with the clock pinned.
    others = {key: verdict for key, verdict in verdicts(found).items() if key not in ("repeat", "clock", "cpu")}
    assert set(others.values()) == {"held"}
    assert found.clock_pinned
    assert "Cause: the clock" in conclusion(found)


def test_a_clock_is_found_even_where_the_plain_repeats_agreed(plan: Plan) -> None:
    found = hunt(
        plan, Fake(lambda execution: BASE + (execution.clock.epoch_ns % 1000 if execution.clock else 0)), "clock"
    )
    assert of(found, "repeat").verdict is Verdict.HELD
    assert of(found, "clock").verdict is Verdict.MOVED
    assert "time it reads" in str(of(found, "clock").cause)
    assert "Repeats agree, but the counts change with: clock." in conclusion(found)


def test_a_clock_that_the_user_has_pinned_is_not_a_failure(plan: Plan) -> None:
    pinned = msgspec.structs.replace(plan, clock=PINNED_CLOCK)
    found = hunt(
        pinned, Fake(lambda execution: BASE + (execution.clock.epoch_ns % 1000 if execution.clock else 0)), "clock"
    )
    assert of(found, "clock").verdict is Verdict.DEPENDS
    assert found.held


def test_noise_that_the_clock_explains_nearly_leaves_the_rest_unclear(plan: Plan) -> None:
    ticks = itertools.count(1)

    def cost(execution: Execution) -> int:
        return BASE + next(ticks) * (1 if execution.clock else 9000)

    found = hunt(plan, Fake(cost), "load", "aslr")
    assert "nearly" in str(of(found, "repeat").cause)
    assert of(found, "load").verdict is Verdict.UNCLEAR


def test_noise_without_a_known_cause_is_told_apart_from_a_real_effect(plan: Plan) -> None:
    noise = itertools.cycle([0, 30, 10, 20])

    def cost(execution: Execution) -> int:
        return BASE + next(noise) + (0 if execution.aslr_off else 50_000) + (40_000 if execution.seed != SEED else 0)

    found = hunt(plan, Fake(cost), "load", "aslr", "random")
    assert of(found, "repeat").cause is None
    assert "threads" in str(of(found, "repeat").advice)
    assert of(found, "load").verdict is Verdict.UNCLEAR
    assert of(found, "aslr").verdict is Verdict.DEPENDS
    assert "none of the things" in conclusion(found)


def test_what_the_seal_pins_is_not_a_failure(plan: Plan) -> None:
    def cost(execution: Execution) -> int:
        return BASE + sum(
            (
                execution.layout,
                0 if execution.aslr_off else 10,
                100 if execution.seed != SEED else 0,
                1000 * int(execution.variables["PYTHONHASHSEED"]),
                0 if execution.output is Output.PIPE else 10_000,
                100_000 if execution.keep_place else 0,
                0 if execution.pin_scheduling else 1_000_000,
            )
        )

    found = hunt(plan, Fake(cost))
    depends = {key for key, verdict in verdicts(found).items() if verdict == "depends"}
    assert depends == {"layout", "place", "scheduling", "aslr", "random", "hash-seed", "stdout"}
    assert found.held
    assert "which the seal keeps the same" in conclusion(found)


def test_threads_that_took_turns_as_the_kernel_likes_say_nothing_of_a_cpu(plan: Plan) -> None:
    class Shared(Fake):
        def measure(self, execution: Execution, collect: Collect, tool: Tool) -> Measurement:
            self.unsealed = (
                {} if execution.cpu == plan.cpu else {"scheduling": "another run of cg-bench is on this CPU"}
            )
            return super().measure(execution, collect, tool)

    if len(os.sched_getaffinity(0)) == 1:
        pytest.skip("needs two CPUs")
    found = hunt(plan, Shared(lambda execution: BASE if execution.cpu == plan.cpu else BASE + 1000), "cpu")
    assert of(found, "cpu").verdict is Verdict.SKIPPED
    assert "another run of cg-bench" in str(of(found, "cpu").note)
    assert found.held


def test_axes_that_change_nothing_are_skipped(plan: Plan) -> None:
    kept = msgspec.structs.replace(plan, keep_place=True)
    for fake in (Fake(lambda _target: BASE, threads=False), Fake(lambda _target: BASE, forks=True)):
        assert verdicts(hunt(kept, fake, "place", "scheduling")) == {
            "repeat": "held",
            "place": "skipped",
            "scheduling": "skipped",
        }


@pytest.mark.parametrize(("option", "instead"), [("-I", "-s -P"), ("-E", "leave -E out")])
def test_python_that_ignores_the_hash_seed_is_named(plan: Plan, option: str, instead: str) -> None:
    python = msgspec.structs.replace(plan, command=command("/usr/bin/python3", option, "x.py"))
    found = hunt(python, Fake(lambda execution: BASE + (1000 if execution.seed != SEED else 0)), "random", "hash-seed")
    finding = of(found, "random")
    assert finding.verdict is Verdict.DEPENDS
    assert f"Python with {option} ignores PYTHONHASHSEED" in str(finding.cause)
    assert instead in str(finding.advice)
    assert "ignores it" in str(of(found, "hash-seed").note)
    assert found.held
    assert "ignores PYTHONHASHSEED" in conclusion(found)


def test_random_bytes_that_cannot_be_pinned_are_suspected(plan: Plan) -> None:
    noise = itertools.cycle([0, 700, 300, 500])
    python = msgspec.structs.replace(plan, command=command("/usr/bin/python3", "-I", "x.py"))
    fake = Fake(lambda _target: BASE + next(noise), unsealed={"randomness": "EPERM"}, supervised=False)
    found = hunt(python, fake)
    cause = str(of(found, "repeat").cause)
    assert "cannot be pinned here (EPERM)" in cause
    assert "Python with -I ignores PYTHONHASHSEED" in cause
    assert not found.held
    assert verdicts(found)["random"] == verdicts(found)["clock"] == "skipped"
    assert "EPERM" in str(of(found, "random").note)
    assert all(execution.clock is None for execution in fake.executed)


def test_a_seal_without_supervisor_skips_what_it_would_answer(plan: Plan) -> None:
    found = hunt(plan, Fake(lambda _target: BASE, supervised=False))
    assert of(found, "clock").verdict is Verdict.SKIPPED
    assert found.held


def test_aslr_is_not_tried_where_it_cannot_be_turned_off(plan: Plan) -> None:
    found = hunt(plan, Fake(lambda _target: BASE, unsealed={"aslr": "EPERM"}), "aslr")
    assert of(found, "aslr").verdict is Verdict.SKIPPED


def test_load_that_moves_counts_is_a_failure(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    busy = False

    @contextlib.contextmanager
    def loops() -> Iterator[None]:
        nonlocal busy
        busy = True
        yield
        busy = False

    monkeypatch.setattr(axes_module, "busy_cpus", loops)
    found = hunt(plan, Fake(lambda _target: BASE + 5 * busy), "load", "stdout")
    assert verdicts(found) == {"repeat": "held", "load": "moved", "stdout": "held"}
    assert not found.held


def test_the_only_cpu_cannot_be_left(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {plan.cpu})
    assert "only one CPU" in str(of(hunt(plan, Fake(lambda _target: BASE), "cpu"), "cpu").note)


# --- The working directory -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("per_byte", "verdict"),
    [(0, Verdict.HELD), (1, Verdict.TRACE), (50, Verdict.TRACE), (1000, Verdict.MOVED)],
    ids=["none", "trace", "short", "big"],
)
def test_the_depth_of_the_working_directory(plan: Plan, per_byte: int, verdict: Verdict) -> None:
    found = hunt(plan, Fake(lambda execution: BASE + per_byte * len(execution.cwd)), "cwd")
    assert of(found, "cwd").verdict is verdict
    assert found.held == (verdict is not Verdict.MOVED)


def test_links_that_cost_something_are_no_effect_of_depth(plan: Plan) -> None:
    fake = Fake(lambda execution: BASE + (0 if execution.cwd == str(plan.cwd) else 40_000))
    assert of(hunt(plan, fake, "cwd"), "cwd").verdict is Verdict.HELD


def test_a_command_that_needs_its_own_directory_is_skipped(plan: Plan) -> None:
    def cost(execution: Execution) -> int:
        if execution.cwd != str(plan.cwd):
            raise CommandFailedError("exit status 2", exit_status=2)
        return BASE

    found = hunt(plan, Fake(cost), "cwd")
    assert of(found, "cwd").verdict is Verdict.SKIPPED
    assert found.held


def test_the_mirror_holds_everything_and_goes_again(plan: Plan) -> None:
    with contextlib.ExitStack() as stack:
        mirrors = axes_module.deep_directory(plan.cwd, stack)
        assert not isinstance(mirrors, str)
        shallow, deep = mirrors
        assert [(folder / "data").read_text() for folder in (shallow, deep)] == ["x", "x"]
        assert len(deep.parts) == len(shallow.parts) + 2
    assert not shallow.exists()
    assert (plan.cwd / "data").read_text() == "x"


def test_a_crowded_or_unreadable_directory_is_not_mirrored(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    with contextlib.ExitStack() as stack:
        assert "cannot be listed" in str(axes_module.deep_directory(plan.cwd / "missing", stack))
        monkeypatch.setattr(axes_module, "_MOST_ENTRIES", 0)
        assert "too many" in str(axes_module.deep_directory(plan.cwd, stack))


# --- Failures and processes ----------------------------------------------------------------------------------------------


def test_a_failure_under_an_axis_is_reported_with_its_last_words(plan: Plan) -> None:
    def cost(execution: Execution) -> int:
        if execution.output is Output.TERMINAL:
            raise CommandFailedError("exit status 3", hint="its last lines", exit_status=3)
        return BASE

    found = hunt(plan, Fake(cost), "stdout")
    finding = of(found, "stdout")
    assert (finding.verdict, finding.note, finding.advice) == (Verdict.FAILED, "exit status 3", "its last lines")
    assert found.held  # the seal always uses a pipe


def test_a_failure_of_the_plain_command_ends_the_hunt(plan: Plan) -> None:
    def cost(_execution: Execution) -> int:
        raise CommandFailedError("exit status 3", exit_status=3)

    with pytest.raises(CommandFailedError):
        hunt(plan, Fake(cost))


def test_a_pinned_clock_that_breaks_the_command_explains_nothing(plan: Plan) -> None:
    noise = itertools.cycle([0, 30])

    def cost(execution: Execution) -> int:
        if execution.clock:
            raise CommandFailedError("exit status 3", exit_status=3)
        return BASE + next(noise)

    assert of(hunt(plan, Fake(cost), "load"), "repeat").cause is None


def test_programs_that_start_processes_are_measured_with_callgrind(plan: Plan) -> None:
    fake = Fake(lambda _target: BASE, forks=True)
    assert hunt(plan, fake, "aslr").tool == "callgrind"
    assert set(fake.tools) == {Tool.CALLGRIND}


def test_a_program_that_starts_processes_after_all_is_measured_anew(plan: Plan) -> None:
    fake = Fake(lambda _target: BASE, split_at_first=True)
    assert hunt(plan, fake, "aslr").executions == 4
    assert fake.tools == [Tool.CACHEGRIND, *[Tool.CALLGRIND] * 3]


def test_counts_that_were_lost_explain_noise(plan: Plan) -> None:
    noise = itertools.cycle([0, 30])
    found = hunt(plan, Fake(lambda _target: BASE + next(noise), doubts=("2 processes were killed",)), "load")
    assert of(found, "repeat").cause == "2 processes were killed"
    assert found.warnings == ("2 processes were killed",)


def test_progress_numbers_the_axes(plan: Plan) -> None:
    phases: list[str] = []
    chosen: list[Axis] = [axis for axis in AXES if axis.key in ("load", "aslr")]
    verify(plan, Fake(lambda _target: BASE), phases.append, axes=chosen)
    assert phases[1:] == ["verify 1 of 3: repeat", "verify 2 of 3: CPU load", "verify 3 of 3: ASLR"]


# --- Load ----------------------------------------------------------------------------------------------------------------


def loops_of(pid: int) -> list[int]:
    """Return the living children of a process."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_every_cpu_gets_a_loop_which_ends_with_the_block() -> None:
    before = set(loops_of(os.getpid()))
    with busy_cpus():
        started = set(loops_of(os.getpid())) - before
        assert len(started) == len(os.sched_getaffinity(0))
    assert not started & set(loops_of(os.getpid()))


def test_load_does_not_outlive_a_killed_owner() -> None:
    code = "import time; from cachegrind_bench.measure.axes import busy_cpus\nwith busy_cpus(): print('busy', flush=True); time.sleep(60)"
    root = str(Path(axes_module.__file__).parents[2])
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env={"PYTHONPATH": root}) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"busy\n"
        loops = loops_of(owner.pid)
        assert loops
        owner.send_signal(signal.SIGKILL)
    wait_for(lambda: not any(is_running(pid) for pid in loops))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


# --- Reports -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def noisy(plan: Plan) -> Verification:
    ticks = itertools.count(1)

    def cost(execution: Execution) -> int:
        clock = next(ticks) * 977 if execution.clock is None else 0
        return BASE + clock + (5000 if execution.output is Output.NULL else 0) + (1000 if execution.seed != SEED else 0)

    hostile = msgspec.structs.replace(plan, command=command("/usr/bin/python3", "-I", "x|<b>\x1b[31m.py"))
    return hunt(hostile, Fake(cost), "cwd", "random", "clock", "stdout")


def test_the_table_has_a_line_for_each_axis_and_functions_below_a_failure(noisy: Verification) -> None:
    text = verification(noisy, "table")
    lines = text.splitlines()
    marks = {line.strip()[0] for line in lines if line.startswith("  ") and line.strip()[:1] in ("✓", "✗", "~", "–")}
    assert marks == {"✓", "✗", "~"}
    place = next(number for number, line in enumerate(lines) if "✗  repeat" in line)
    assert lines[place + 1].strip().startswith("cause: the clock")
    assert lines[place + 2].split() == ["Ir", "1,000,977", "…", "1,001,954", "work"]
    assert lines[place + 3].strip().startswith("→ --pin-clock")
    assert "\x1b" not in text
    assert lines[-1].startswith("Not repeatable. Cause: the clock")
    assert not any(line != line.rstrip() for line in lines)


def test_markdown_is_escaped(noisy: Verification) -> None:
    text = verification(noisy, "markdown")
    assert "<b>" not in text
    assert "\x1b" not in text
    assert text.count("\n| ✗ |") == 2
    assert "**clock**" in text


def test_json_says_everything(noisy: Verification) -> None:
    document = json.loads(verification(noisy, "json"))
    assert document["schema"] == "cg-bench.verify/1"
    assert document["held"] is False
    assert document["clock_pinned"] is True
    axes = {axis["axis"]: axis for axis in document["axes"]}
    assert axes["clock"]["verdict"] == "moved"
    assert axes["repeat"]["difference"]["functions"][0]["name"] == "work"
    assert axes["stdout"]["difference"]["Ir"] == 5000
    assert axes["random"]["held"] is True


def test_a_change_of_misses_alone_is_reported_by_the_score() -> None:
    before, after = (100, 0, 0, 50, 1, 0, 0, 0, 0), (100, 0, 0, 50, 3, 0, 0, 0, 0)
    finding = Finding(
        axis=AXES[2],
        verdict=Verdict.DEPENDS,
        difference=difference(profile(f=before), [profile(f=after)], DEFAULT_MODEL),
    )
    found = Verification(
        command="x", tool="cachegrind", ir=1, executions=2, findings=(finding,), clock_pinned=False, warnings=()
    )
    assert "ΔIr 0, score +8" in verification(found, "table")
