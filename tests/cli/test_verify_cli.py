"""`cg-bench verify` and `cg-bench doctor`: options, formats and exit codes, with the hunt itself replaced."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import msgspec
import pytest

from cachegrind_bench.cli import verify as verify_command
from cachegrind_bench.cli.main import run
from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.measure import doctor as doctor_module
from cachegrind_bench.measure import verify as verify_module
from cachegrind_bench.measure.axes import AXES
from cachegrind_bench.measure.doctor import Diagnosis, Level, checked
from cachegrind_bench.measure.findings import Finding, Verdict, Verification
from cachegrind_bench.measure.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HELD = Verification(
    command="true",
    tool="cachegrind",
    ir=1,
    executions=2,
    findings=(Finding(axis=AXES[0], verdict=Verdict.HELD),),
    clock_pinned=False,
    warnings=(),
)
MOVED = msgspec.structs.replace(HELD, findings=(Finding(axis=AXES[0], verdict=Verdict.MOVED, advice="mend it"),))
Outcome = Verification | Exception


@pytest.fixture
def hunted(monkeypatch: pytest.MonkeyPatch) -> Callable[[Outcome], dict[str, Any]]:
    """Return a function that sets the outcome of the hunt; what it returns is filled with how it was called."""

    def hunted(outcome: Outcome) -> dict[str, Any]:
        called: dict[str, Any] = {}

        def verify(plan: object, runner: object, progress: object, **how: Any) -> Verification:
            called.update(how, plan=plan, runner=runner, progress=progress)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        @contextlib.contextmanager
        def session(**how: Any) -> Iterator[Session]:
            called.update(how)
            yield Session(runner=Mock(), environment=Mock())

        monkeypatch.setattr(verify_module, "verify", verify)
        monkeypatch.setattr("cachegrind_bench.measure.session.valgrind_setup", lambda **_: Mock(session=session))
        return called

    return hunted


def test_the_axes_on_the_command_line_are_those_that_are_measured() -> None:
    assert tuple(axis.key for axis in AXES) == verify_command.AXES


@pytest.mark.parametrize(
    ("outcome", "code"),
    [(HELD, 0), (MOVED, 1), (MeasurementError("it failed"), 4), (RuntimeError("a bug"), 70)],
    ids=["held", "moved", "failed", "bug"],
)
def test_the_exit_code_reports_the_outcome(
    hunted: Callable[[Outcome], dict[str, Any]], outcome: Outcome, code: int
) -> None:
    hunted(outcome)
    assert run(["verify", "--", "true"]) == code


def test_options_belong_to_us_before_the_command_and_to_it_after(
    hunted: Callable[[Outcome], dict[str, Any]],
) -> None:
    called = hunted(HELD)
    assert run(["verify", "--pin-clock", "--timeout", "2s", "--env", "A=b", "true", "--only", "--help"]) == 0
    plan = called["plan"]
    assert plan.command.typed == ("true", "--only", "--help")
    assert (plan.clock is not None, plan.timeout_ms, plan.request.values) == (True, 2000, {"A": "b"})
    assert [axis.key for axis in called["axes"]] == list(verify_command.AXES)


def test_axes_can_be_chosen_and_left_out(hunted: Callable[[Outcome], dict[str, Any]]) -> None:
    called = hunted(HELD)
    assert run(["verify", "--only", "clock", "--only", "cwd", "--", "true"]) == 0
    assert [axis.key for axis in called["axes"]] == ["cwd", "clock"]
    assert run(["verify", "--skip", "load", "--", "true"]) == 0
    assert "load" not in [axis.key for axis in called["axes"]]
    assert len(called["axes"]) == len(AXES) - 1


@pytest.mark.parametrize(
    "words",
    [
        ["--only", "weather", "--", "true"],
        ["--only", "cwd", "--skip", "cwd", "--", "true"],
        ["--skip", "repeat", "true"],
        [],
    ],
)
def test_bad_usage_is_exit_2(hunted: Callable[[Outcome], dict[str, Any]], words: list[str]) -> None:
    hunted(HELD)
    assert run(["verify", *words]) == 2


def test_a_missing_command_is_reported(
    hunted: Callable[[Outcome], dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    hunted(HELD)
    assert run(["verify", "--", "./not-there"]) == 2
    assert "command not found" in capsys.readouterr().err


@pytest.mark.parametrize(("form", "start"), [("table", "true\n"), ("markdown", "### true\n"), ("json", "{")])
def test_formats(
    hunted: Callable[[Outcome], dict[str, Any]], capsys: pytest.CaptureFixture[str], form: str, start: str
) -> None:
    hunted(MOVED)
    assert run(["verify", "--format", form, "--", "true"]) == 1
    text = capsys.readouterr().out
    assert text.startswith(start)
    if form == "json":
        assert json.loads(text)["held"] is False


def test_help_explains_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "--help"]) == 0
    text = capsys.readouterr().out
    assert "Exit code: 0 if nothing is marked ✗" in text


# --- doctor --------------------------------------------------------------------------------------------------------------


def test_the_programs_output_is_dropped(
    hunted: Callable[[Outcome], dict[str, Any]], capfd: pytest.CaptureFixture[str]
) -> None:
    called = hunted(HELD)
    run(["verify", "--", "true"])
    capfd.readouterr()
    called["echo"](b"chatter\n")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("works", "code"), [(True, 0), (False, 4)])
def test_the_doctors_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], works: bool, code: int
) -> None:
    found = Diagnosis(checks=(checked(Level.OK, "good", "fine"),), works=works)
    monkeypatch.setattr(doctor_module, "examine", lambda *_, **__: found)
    assert run(["doctor"]) == code
    assert "✓ good  fine" in capsys.readouterr().out
    assert run(["doctor", "--format", "json"]) == code
    assert json.loads(capsys.readouterr().out)["works"] is works
