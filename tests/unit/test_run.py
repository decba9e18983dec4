"""Measuring by plan: how often, in which order, under which tool, and what comes of it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cachegrind_bench.errors import CommandFailedError, MeasurementError
from cachegrind_bench.harness.engine.loop import Loop
from cachegrind_bench.hermetic.environment import Request
from cachegrind_bench.hermetic.execution import Execution
from cachegrind_bench.hermetic.launch import PINNED_CLOCK
from cachegrind_bench.measure.command import Command
from cachegrind_bench.measure.plan import Plan, Progress, execution_of
from cachegrind_bench.measure.run import Executions, lower_median, measure_whole
from cachegrind_bench.measure.session import Identity
from cachegrind_bench.model.metrics import DEFAULT_MODEL, IR_MODEL
from cachegrind_bench.model.result import Environment, ProcessCost, SealState, Status, comparability_key
from cachegrind_bench.valgrind.options import Collect, Tool
from cachegrind_bench.valgrind.processes import Accounts
from cachegrind_bench.valgrind.runner import Measurement
from tests.unit.samples import VECTOR, image, outcome, profile_of, times

if TYPE_CHECKING:
    from cachegrind_bench.hermetic.launch import Outcome
    from cachegrind_bench.model.metrics import Counts
    from cachegrind_bench.model.result import Benchmark

ENV = Environment(key="k", fields={"guest_chase": "off", "valgrind": "3.24.0"}, info={})
IDENTITY = Identity(objects=(), key_fields={"libc": "abc", "interpreter": "none"})


def measurement(counts: Counts = VECTOR, *, tool: Tool = Tool.CACHEGRIND, **changes: Any) -> Measurement:
    accounts: dict[str, Any] = {
        "profile": profile_of(main=counts),
        "processes": (ProcessCost(executable="/bin/p", counts=counts),),
        "doubts": (),
        "split_needed": False,
    }
    accounts |= {name: changes.pop(name) for name in list(changes) if name in accounts}
    return Measurement(tool=tool, outcome=outcome(**changes), accounts=Accounts(**accounts))


@dataclass
class FakeRunner:
    """Notes what it is asked to do, and answers from a list; an exception in the list is raised."""

    log: list[str]
    measured: list[Measurement | Exception] = field(default_factory=list)
    warm: Outcome | Exception = field(default_factory=outcome)
    executed: list[Execution] = field(default_factory=list)
    collected: list[Collect] = field(default_factory=list)

    def warm_up(self, execution: Execution) -> Outcome:
        self.log.append("warm-up")
        self.executed.append(execution)
        if isinstance(self.warm, Exception):
            raise self.warm
        return self.warm

    def measure(self, execution: Execution, collect: Collect, tool: Tool) -> Measurement:
        self.log.append(tool.value)
        self.collected.append(collect)
        self.executed.append(execution)
        found = self.measured.pop(0) if self.measured else measurement()
        if isinstance(found, Exception):
            raise found
        return replace(found, tool=tool)

    def measure_regions(self, execution: Execution, collect: Collect) -> dict[str, Measurement]:
        return {"part": self.measure(execution, collect, Tool.CALLGRIND)}


def progress(log: list[str]) -> Progress:
    return lambda text: log.append(f"[{text}]")


@pytest.fixture(autouse=True)
def _identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cachegrind_bench.measure.run.identify", lambda _executable, _variables: IDENTITY)


def plan(**changes: Any) -> Plan:
    command = Command(typed=("p", "a b"), argv=("/bin/p", "a b"), executable="/bin/p")
    values: dict[str, Any] = {"command": command, "cwd": Path("/tmp"), "environ": {"PATH": "/bin", "SECRET": "x"}}
    return Plan(**{**values, **changes})


def run(runner: FakeRunner, **changes: Any) -> Benchmark:
    return measure_whole(Executions(plan(**changes), runner, ENV, progress(runner.log)))


def executions(runner: FakeRunner) -> list[str]:
    return [line for line in runner.log if not line.startswith("[")]


# How often


def test_a_command_is_warmed_up_once_and_measured_once() -> None:
    runner = FakeRunner([])
    found = run(runner)
    assert runner.log == [
        "[warm-up, without Valgrind]",
        "warm-up",
        "[measuring under Cachegrind]",
        "cachegrind",
    ]
    assert (found.id, found.status, found.tool) == ("p 'a b'", Status.OK, "cachegrind")


def test_an_execution_of_more_than_a_minute_is_announced_by_the_time_without_valgrind() -> None:
    runner = FakeRunner([], warm=outcome(wall_ms=900))
    run(runner)
    assert "[measuring under Cachegrind]" in runner.log
    runner = FakeRunner([], warm=outcome(wall_ms=8000))
    run(runner)
    assert "[measuring under Cachegrind, up to about 8 min: it took 8.0 s without Valgrind]" in runner.log


@pytest.mark.parametrize(("warmup", "repeat"), [(0, 1), (2, 1), (0, 3), (3, 2)])
def test_a_command_is_executed_as_often_as_the_plan_says(warmup: int, repeat: int) -> None:
    runner = FakeRunner([])
    found = run(runner, warmup=warmup, repeat=repeat)
    assert executions(runner) == ["warm-up"] * warmup + ["cachegrind"] * repeat
    assert len(executions(runner)) == warmup + repeat
    assert len(found.runs) == repeat
    assert found.wall_ms == 5 * repeat
    if repeat == 3:
        assert "[measuring 2 of 3 under Cachegrind]" in runner.log


def test_every_layout_is_measured_as_often_as_the_plan_says_and_noted_with_each_run() -> None:
    counts = [times(VECTOR, factor) for factor in (5, 1, 4, 2, 6, 3)]
    runner = FakeRunner([], measured=[measurement(item) for item in counts])
    found = run(runner, layouts=3, repeat=2)
    assert executions(runner) == ["warm-up"] + ["cachegrind"] * 6
    assert [execution.layout for execution in runner.executed] == [0, 0, 0, 1, 1, 2, 2]
    assert [(item.layout, item.counts) for item in found.runs] == list(zip((0, 0, 1, 1, 2, 2), counts, strict=True))
    assert found.counts == times(VECTOR, 3)  # the lower median of all runs
    assert "[measuring 4 of 6 under Cachegrind]" in runner.log


def test_a_layout_means_the_same_however_many_are_measured() -> None:
    few, many = FakeRunner([]), FakeRunner([])
    run(few, layouts=2)
    run(many, layouts=5)
    assert many.executed[: len(few.executed)] == few.executed


def test_all_layouts_are_measured_again_where_processes_turn_up_in_a_later_one() -> None:
    runner = FakeRunner([], measured=[measurement(), measurement(split_needed=True)])
    found = run(runner, warmup=0, layouts=2)
    assert [execution.layout for execution in runner.executed] == [0, 1, 0, 1]
    assert executions(runner) == ["cachegrind", "cachegrind", "callgrind", "callgrind"]
    assert [item.layout for item in found.runs] == [0, 1]


def test_a_failing_warm_up_ends_the_run() -> None:
    runner = FakeRunner([], warm=CommandFailedError("x", exit_status=1))
    with pytest.raises(CommandFailedError):
        run(runner, repeat=5)
    assert executions(runner) == ["warm-up"]


def test_a_failing_measurement_ends_the_run() -> None:
    runner = FakeRunner([], measured=[measurement(), MeasurementError("x")])
    with pytest.raises(MeasurementError):
        run(runner, repeat=5)
    assert executions(runner) == ["warm-up", "cachegrind", "cachegrind"]


def test_orphans_that_the_warm_up_had_to_end_are_not_waited_for_as_long_again() -> None:
    patient, short = (FakeRunner([], warm=outcome(leftover=leftover)) for leftover in (0, 1))
    for runner in (patient, short):
        run(runner)
    assert [execution.grace_ms for execution in (*patient.executed, *short.executed)] == [10_000, 10_000, 10_000, 2_000]


# Under which tool


@pytest.mark.parametrize("change", [{"forks": 1}, {"forked": True}, {"replaced": True}])
def test_a_warm_up_that_starts_processes_leads_to_callgrind_at_once(change: dict[str, Any]) -> None:
    runner = FakeRunner([], warm=outcome(images=(image(7, "/bin/p", **change),)))
    assert run(runner).tool == "callgrind"
    assert executions(runner) == ["warm-up", "callgrind"]


def test_a_measurement_that_turns_out_to_start_processes_is_done_again_under_callgrind() -> None:
    runner = FakeRunner([], measured=[measurement(), measurement(split_needed=True, doubts=("x",))])
    found = run(runner, warmup=0, repeat=2)
    assert executions(runner) == ["cachegrind", "cachegrind", "callgrind", "callgrind"]
    assert found.tool == "callgrind"
    assert found.key_fields["tool"] == "callgrind"
    assert len(found.runs) == 2
    assert found.processes_exact


# Around each execution


def trace(folder: Path) -> list[str]:
    path = folder / "trace"
    return path.read_text().split() if path.exists() else []


def test_preparation_and_cleaning_surround_every_execution(tmp_path: Path) -> None:
    def note(word: str) -> None:
        with (tmp_path / "trace").open("a") as file:
            file.write(f"{word}\n")

    class Tracing(FakeRunner):
        def warm_up(self, execution: Execution) -> Outcome:
            note("warm")
            return super().warm_up(execution)

        def measure(self, execution: Execution, collect: Collect, tool: Tool) -> Measurement:
            note("measured")
            return super().measure(execution, collect, tool)

    run(
        Tracing([]),
        cwd=tmp_path,
        repeat=2,
        prepare="echo before >> trace",
        cleanup="echo after >> trace",
        environ=dict(os.environ),
    )
    assert trace(tmp_path) == ["before", "warm", "after", "before", "measured", "after", "before", "measured", "after"]


def test_the_program_is_identified_once_after_it_was_prepared_and_before_it_is_cleaned_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, seen = tmp_path / "program", list[bool]()

    def identify(_executable: str, _variables: object) -> Identity:
        seen.append(program.exists())
        return IDENTITY

    monkeypatch.setattr("cachegrind_bench.measure.run.identify", identify)
    changed = plan(
        cwd=tmp_path, environ={"PATH": "/usr/bin:/bin"}, prepare="touch program", cleanup="rm program", repeat=2
    )
    runner = FakeRunner([])
    measure_whole(Executions(changed, runner, ENV, progress(runner.log)))
    assert seen == [True]


def test_cleaning_happens_after_a_failure_too_and_does_not_hide_it(tmp_path: Path) -> None:
    runner = FakeRunner([], measured=[CommandFailedError("the command failed", exit_status=3)])
    with pytest.raises(CommandFailedError, match="the command failed"):
        run(runner, cwd=tmp_path, warmup=0, cleanup="echo after >> trace; exit 1", environ=dict(os.environ))
    assert trace(tmp_path) == ["after"]


def test_a_failing_preparation_is_reported_with_its_words_and_cleaned_up(tmp_path: Path) -> None:
    runner = FakeRunner([])
    with pytest.raises(MeasurementError) as caught:
        run(
            runner,
            cwd=tmp_path,
            prepare="echo oh no >&2; exit 7",
            cleanup="echo after >> trace",
            environ=dict(os.environ),
        )
    assert caught.value.message == "the --prepare command failed with exit status 7: echo oh no >&2; exit 7"
    assert caught.value.hint == "oh no"
    assert executions(runner) == []
    assert trace(tmp_path) == ["after"]


def test_a_failing_cleaning_is_reported(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match=r"the --cleanup command failed with signal 9: kill -9 \$\$") as caught:
        run(FakeRunner([]), cwd=tmp_path, cleanup="kill -9 $$", environ=dict(os.environ))
    assert caught.value.hint is None


# What comes of it


def test_the_lower_median_is_the_result() -> None:
    factors = [5, 1, 4, 2]
    runner = FakeRunner([], measured=[measurement(times(VECTOR, factor)) for factor in factors])
    found = run(runner, repeat=4)
    assert found.counts == times(VECTOR, 2)
    assert found.profile is not None
    assert found.profile.counts() == found.counts
    assert [item.counts.Ir for item in found.runs] == [1353 * factor for factor in factors]
    assert found.score is not None
    assert (found.score.model, found.score.value) == ("l1+5ll+30ram", 2 * 3418)


@pytest.mark.parametrize(("factors", "chosen"), [([3], 3), ([3, 1], 1), ([3, 1, 2], 2), ([4, 3, 2, 1], 2)])
def test_of_two_in_the_middle_the_lower_is_taken(factors: list[int], chosen: int) -> None:
    found = lower_median([measurement(times(VECTOR, factor)) for factor in factors], DEFAULT_MODEL)
    assert found.accounts.profile.counts() == times(VECTOR, chosen)


def test_of_equal_scores_the_fewest_instructions_come_first() -> None:
    # One instruction fewer and one read more: the same accesses, and so the same score.
    other = replace(VECTOR, Ir=VECTOR.Ir - 1, Dr=VECTOR.Dr + 1)
    assert lower_median([measurement(VECTOR), measurement(other)], DEFAULT_MODEL).accounts.profile.counts() == other


def test_the_model_is_part_of_the_score_only() -> None:
    default, plain = run(FakeRunner([])), run(FakeRunner([]), model=IR_MODEL)
    assert plain.score is not None
    assert (plain.score.model, plain.score.value) == ("ir", 1353)
    assert plain.key == default.key


def test_the_key_covers_machine_identity_and_what_was_pinned() -> None:
    found = run(FakeRunner([]))
    assert found.key == comparability_key({**ENV.fields, **found.key_fields})
    assert found.key_fields == {
        **IDENTITY.key_fields,
        "seal.environment": "pinned",
        "seal.randomness": "pinned",
        "seal.copies": "pinned",
        "seal.cpu": "pinned",
        "seal.clock": "kept",
        "tool": "cachegrind",
    }
    loose = run(FakeRunner([], measured=[measurement(unsealed={"cpu": "EINVAL"})]))
    assert loose.key != found.key
    assert run(FakeRunner([], measured=[measurement(unsealed={"aslr": "EPERM"})])).key == found.key


def test_an_ignored_failure_is_reported() -> None:
    found = run(FakeRunner([], measured=[measurement(exit_status=3)]), ignore_exit_status=True)
    assert found.exit_status == 3
    assert found.warnings == (
        "the command ended with exit status 3, which was ignored",
        "the command ended with exit status 3 under Valgrind, and 0 without: it may have done other work",
    )


def test_doubts_are_warnings_and_make_the_account_inexact() -> None:
    found = run(FakeRunner([], measured=[measurement(doubts=("lost",))]))
    assert found.warnings == ("lost",)
    assert not found.processes_exact


def test_a_launcher_in_front_of_the_program_is_named_with_its_share() -> None:
    processes = (
        ProcessCost(executable="/bin/sh", counts=VECTOR),
        ProcessCost(executable="/bin/p", counts=times(VECTOR, 3)),
    )
    images = (image(7, "/bin/sh", replaced=True), image(7, "/bin/p"), image(8, "/bin/x", forked=True))
    found = run(FakeRunner([], measured=[measurement(times(VECTOR, 4), processes=processes, images=images)]), warmup=0)
    (warning,) = found.warnings
    assert warning == (
        "/bin/sh executed /bin/p in its place: 1,353 instructions (25.0 %) of this score are its own; "
        "measure /bin/p itself if they do not belong"
    )


@pytest.mark.parametrize(
    "images",
    [
        None,
        (),
        (image(7, "/bin/p"),),
        (image(7, "/bin/p"), image(8, "/bin/x", forked=True)),
        (image(7, "/bin/p", replaced=True), image(7, "/bin/p")),
        (image(7, "/bin/lost", replaced=True), image(7, "/bin/p")),
    ],
    ids=["unsupervised", "none", "alone", "child", "itself", "uncounted"],
)
def test_no_launcher_is_named_where_there_was_none(images: Any) -> None:
    assert run(FakeRunner([], measured=[measurement(images=images)]), warmup=0).warnings == ()


def test_a_full_seal_can_be_demanded_and_is_checked_after_the_first_execution() -> None:
    runner = FakeRunner([], warm=outcome(unsealed={"aslr": "EPERM"}))
    with pytest.raises(MeasurementError, match=r"not fully sealed.*aslr \(EPERM\)"):
        run(runner, require_sealed=True)
    assert executions(runner) == ["warm-up"]
    assert run(FakeRunner([]), require_sealed=True).status is Status.OK


def test_a_pinned_clock_is_part_of_the_seal() -> None:
    found = run(FakeRunner([]), clock=PINNED_CLOCK)
    assert found.seal["clock"].state is SealState.PINNED


def test_bytes_that_are_no_text_are_stored_escaped() -> None:
    typed = ("p", "\udcff")
    command = Command(typed=typed, argv=typed, executable="p", notes=("see /\udcfe",))
    found = run(FakeRunner([]), command=command)
    assert (found.command, found.warnings, found.id) == (("p", "\\xff"), ("see /\\xfe",), "p '\\xff'")


def test_the_execution_is_what_the_plan_says() -> None:
    found = execution_of(
        plan(
            request=Request(values={"A": "1"}),
            stdin=Path("/x"),
            timeout_ms=5,
            cpu=1,
            clock=PINNED_CLOCK,
            ignore_exit_status=True,
        )
    )
    assert (found.argv, found.executable, found.cwd, found.stdin) == (("/bin/p", "a b"), "/bin/p", "/tmp", "/x")
    assert (found.timeout_ms, found.cpu, found.clock, found.ignore_status) == (5, 1, PINNED_CLOCK, True)
    assert (found.variables["A"], found.variables["PATH"].lstrip("/")) == ("1", "bin")
    assert found.held_back == ("SECRET",)
    assert execution_of(plan()).stdin is None
    assert (plan().collected.lines, plan(lines=True).collected.lines) == (False, True)
    logged = Loop(words={}, native=(), log=("--log={}",)).collect
    assert plan(collect=logged).collected.by_instruction, "code that is compiled is known by its addresses"
    assert plan(id="name").benchmark_id == "name"
