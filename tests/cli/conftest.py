"""The command line in this process, with a runner that replays a recorded out file instead of running Valgrind."""

from __future__ import annotations

import contextlib
import copy
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from cachegrind_bench.cli import main
from cachegrind_bench.measure.session import Identity, Session
from cachegrind_bench.model.metrics import merge_profiles
from cachegrind_bench.model.result import Environment, ProcessCost
from cachegrind_bench.valgrind.out_file import parse_cachegrind
from cachegrind_bench.valgrind.processes import Accounts
from cachegrind_bench.valgrind.runner import Measurement
from tests.unit.samples import outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from cachegrind_bench.hermetic.execution import Execution
    from cachegrind_bench.hermetic.launch import Outcome
    from cachegrind_bench.valgrind.options import Collect, Tool

RECORDED = Path(__file__).resolve().parent.parent / "data" / "valgrind" / "3.24.0" / "tiny.cache-yes.cgout"


@dataclass
class ReplayRunner:
    """Measures by reading the recorded out file. `failures` are raised, or called, first: one for each execution."""

    executed: list[Execution] = field(default_factory=list)
    collected: list[Collect] = field(default_factory=list)
    asked: dict[str, Any] = field(default_factory=dict)
    failures: list[BaseException | Callable[[], None] | None] = field(default_factory=list)

    def _execute(self, execution: Execution) -> Outcome:
        self.executed.append(execution)
        failure = self.failures.pop(0) if self.failures else None
        if isinstance(failure, BaseException):
            raise failure
        if failure is not None:
            failure()
        self.asked["echo"](b"said by the program\n")
        return outcome()

    def warm_up(self, execution: Execution) -> Outcome:
        return self._execute(execution)

    def measure(self, execution: Execution, collect: Collect, tool: Tool) -> Measurement:
        self.collected.append(collect)
        found = self._execute(execution)
        profile = merge_profiles([parse_cachegrind(RECORDED).profile])
        cost = ProcessCost(executable=execution.executable, counts=profile.counts())
        accounts = Accounts(profile=profile, processes=(cost,), doubts=(), split_needed=False)
        return Measurement(tool=tool, outcome=found, accounts=accounts)


@dataclass(frozen=True, kw_only=True)
class ReplaySetup:
    """Hands each benchmark of a suite the one runner, with an ear of its own for what its program says."""

    runner: ReplayRunner
    asked: dict[str, Any]
    environment: Environment

    @contextlib.contextmanager
    def session(self, **own: Any) -> Generator[Session]:
        runner = copy.copy(self.runner)
        runner.asked = self.runner.asked = {**self.asked, **own}
        yield Session(runner=runner, environment=self.environment)  # type: ignore[arg-type]  # it stands in


@pytest.fixture
def replay(monkeypatch: pytest.MonkeyPatch) -> ReplayRunner:
    """Put the replaying runner, a fixed machine and a fixed clock in place."""
    runner = ReplayRunner()
    fields = {"architecture": "x86_64", "guest_chase": "off", "valgrind": "3.24.0"}

    def valgrind_setup(**asked: Any) -> ReplaySetup:
        info = {f"env.{name}": value for name, value in asked["passed"].items()}
        return ReplaySetup(runner=runner, asked=asked, environment=Environment(key="0" * 12, fields=fields, info=info))

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            del tz
            return datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)

    monkeypatch.setattr("cachegrind_bench.measure.session.valgrind_setup", valgrind_setup)
    monkeypatch.setattr(
        "cachegrind_bench.measure.run.identify", lambda *_: Identity(objects=(), key_fields={"libc": "abc"})
    )
    monkeypatch.setattr("cachegrind_bench.vcs.commits.commit_info", lambda *_: None)
    monkeypatch.setattr("cachegrind_bench.cli.options.datetime", Clock)
    return runner


@dataclass(frozen=True)
class Told:
    """What a call of the command line gave."""

    code: int
    out: str
    err: str


class CommandLine(Protocol):
    """Run cg-bench with these arguments in this process."""

    def __call__(self, *arguments: str) -> Told: ...


@pytest.fixture
def cg_bench(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    def run(*arguments: str) -> Told:
        capsys.readouterr()
        before = dict(os.environ)
        try:
            code = main.run(arguments)
        finally:  # what a command sets for the programs it starts, it sets for itself
            os.environ.clear()
            os.environ.update(before)
        captured = capsys.readouterr()
        return Told(code, captured.out, captured.err)

    return run


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def commands() -> Sequence[str]:
    return list(main.COMMANDS)
