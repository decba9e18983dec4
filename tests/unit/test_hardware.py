"""What `verify --hardware` says of counts, counters and the clock; and counters that every machine has."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachegrind_bench.errors import CommandFailedError, UsageError
from cachegrind_bench.measure import hardware
from cachegrind_bench.measure.command import Command
from cachegrind_bench.measure.hardware import EXECUTIONS, Native, executed
from cachegrind_bench.measure.plan import Plan
from cachegrind_bench.model.metrics import Branches
from cachegrind_bench.render import table
from cachegrind_bench.render.hardware import report
from tests.cli.test_calibrate import MODEL
from tests.unit.samples import VECTOR, benchmark, result, times

MILLION = result(
    benchmark(counts=times(VECTOR, 1_000_000), branches=Branches(Bc=10_000_000, Bcm=1_000_000, Bi=0, Bim=0))
)
COUNTED = Native(
    picoseconds=400_000_000_000,
    events={"instructions": 1_400_000_000, "mispredicted branches": 500_000, "LL misses": 53_000_000},
    why_none=None,
)


def plan(tmp_path: Path, script: str, **changes: object) -> Plan:
    command = Command(typed=("sh",), argv=("sh", "-c", script), executable="/bin/sh")
    return Plan(command=command, cwd=tmp_path, environ={}, **changes)  # type: ignore[arg-type]


def test_events_of_valgrind_and_the_hardware_are_next_to_each_other() -> None:
    text = table.render(report(MILLION, COUNTED, MODEL))
    assert "instructions           1,353,000,000  1,400,000,000" in text
    assert [line.split()[-2:] for line in text.splitlines()[3:7]] == [
        ["+3.47", "%"],
        ["-50", "%"],
        ["0", "%"],
        ["+8.7", "%"],
    ]
    assert "time by laptop         about" not in text
    assert "none of what the hardware says is stored" in text


def test_without_counters_the_estimate_is_held_against_the_clock() -> None:
    text = table.render(report(MILLION, Native(picoseconds=10**12, events={}, why_none="ENOENT"), None))
    assert "no counters of the hardware here (ENOENT)" in text
    assert "estimate  7,363,000,000  1.0 s  140 ps for each point" in text
    assert "so short a program" not in text
    brief = Native(picoseconds=10**9, events={}, why_none="ENOENT")
    assert "in so short a program, most of the time is " in table.render(report(MILLION, brief, None))


def test_counts_without_branches_are_refused() -> None:
    with pytest.raises(UsageError, match="needs counts of branches"):
        report(result(benchmark()), COUNTED, None)


def test_the_least_of_several_executions_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "_HARDWARE", 1)  # software: these every kernel counts
    monkeypatch.setattr(hardware, "_EVENTS", {"task clock": 1, "page faults": 2})
    phases: list[str] = []
    found = executed(plan(tmp_path, 'echo x >>"$0"; i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done'), phases.append)
    assert len(phases) == EXECUTIONS
    if found.why_none is not None:
        pytest.skip(found.why_none)
    assert 1_000_000 < found.events["task clock"] < 2 * found.picoseconds // 1000
    assert 0 < found.events["page faults"] < 10_000


def test_without_permission_there_are_no_counters_and_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "_CALLS", {})
    found = executed(plan(tmp_path, "exit 0"), lambda _phase: None)
    assert found.events == {}
    assert str(found.why_none).startswith("perf_event_open: ENOSYS")
    assert found.picoseconds > 0


@pytest.mark.parametrize(
    ("script", "timeout", "said"),
    [
        ("exit 3", None, "failed: exit status 3"),
        ("kill -9 $$", None, "failed: signal 9"),
        ("sleep 9", 50, "did not end in time"),
    ],
)
def test_a_command_that_fails_is_an_error(tmp_path: Path, script: str, timeout: int | None, said: str) -> None:
    with pytest.raises(CommandFailedError, match=said):
        executed(plan(tmp_path, script, timeout_ms=timeout), lambda _phase: None)


def test_a_failure_can_be_accepted(tmp_path: Path) -> None:
    assert executed(plan(tmp_path, "exit 3", ignore_exit_status=True), lambda _phase: None).picoseconds > 0


def test_what_the_command_leaves_running_is_ended(tmp_path: Path) -> None:
    executed(plan(tmp_path, "(setsid sh -c 'echo $$ >>pids; exec sleep 300' &); while ! [ -s pids ]; do :; done"), str)
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert pids
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
