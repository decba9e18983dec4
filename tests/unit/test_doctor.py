"""The doctor's judgement of machines that lack something, and its advice."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.hermetic.launch import PINNED_CLOCK
from cachegrind_bench.measure import doctor, probe
from cachegrind_bench.measure.doctor import (
    Check,
    Diagnosis,
    Level,
    checked,
    examine,
    git_checks,
    host_checks,
    install_lines,
    yama_scope,
)
from cachegrind_bench.render import diagnosis

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(doctor.__file__).resolve().parents[2]


@pytest.fixture
def programs(tmp_path: Path) -> Callable[..., str]:
    """Return a function that makes a PATH of programs which all print their own name."""

    def programs(*names: str) -> str:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        for name in names:
            (folder / name).write_text(f"#!/bin/sh\necho {name}\n")
            (folder / name).chmod(0o755)
        return str(folder)

    return programs


@pytest.fixture(autouse=True)
def _own_scratch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    base = tmp_path / "scratch"
    base.mkdir()
    monkeypatch.setattr(doctor, "SCRATCH_BASE", base)


@pytest.fixture
def a_seal_that_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "probe", lambda *_: {})


def named(found: Diagnosis, name: str) -> Check:
    return next(check for check in found.checks if check.name == name)


# --- Advice --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("manager", "line"),
    [
        ("apt-get", "sudo apt-get install valgrind"),
        ("dnf", "sudo dnf install valgrind"),
        ("pacman", "sudo pacman -S valgrind"),
        ("apk", "sudo apk add valgrind"),
    ],
)
def test_the_line_for_the_package_manager_at_hand(programs: Callable[..., str], manager: str, line: str) -> None:
    assert install_lines(["valgrind"], programs(manager), root=False) == (line,)


def test_without_a_package_manager_no_line_is_given(programs: Callable[..., str]) -> None:
    assert install_lines(["valgrind"], programs(), root=True) == ()


def test_what_a_package_manager_lacks_is_not_asked_of_it(programs: Callable[..., str]) -> None:
    assert install_lines(["libc", "musl"], programs("pacman"), root=True) == ()


@pytest.mark.parametrize(("manager", "line"), [("apt-get", "apt-get install libc6-dbg"), ("apk", "apk add musl-dbg")])
def test_the_debug_package_is_named_alone(programs: Callable[..., str], manager: str, line: str) -> None:
    assert install_lines(["libc", "musl"], programs(manager), root=True) == (line,)


# --- Valgrind ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("a_seal_that_holds")
def test_without_valgrind_all_else_is_examined_and_the_line_that_installs_it_given(
    programs: Callable[..., str], tmp_path: Path
) -> None:
    found = examine({"PATH": programs("dnf")}, tmp_path, valgrind=None)
    check = named(found, "Valgrind")
    assert not found.works
    assert check.level is Level.BAD
    assert any("dnf install valgrind" in fix for fix in check.fixes)
    assert {"randomness", "Python", "git", "scratch directory"} <= {check.name for check in found.checks}
    assert "guest chase" not in {check.name for check in found.checks}


@pytest.mark.usefixtures("a_seal_that_holds")
def test_a_valgrind_that_does_not_work_is_not_a_matter_of_installing(
    programs: Callable[..., str], tmp_path: Path
) -> None:
    found = examine({"PATH": programs("valgrind")}, tmp_path, valgrind=None)
    check = named(found, "Valgrind")
    assert check.level is Level.BAD
    assert "wrapper" in check.found
    assert any("valgrind.bin" in fix for fix in check.fixes)


def test_a_scratch_directory_that_cannot_be_made_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "SCRATCH_BASE", tmp_path / "missing")
    found = examine({"PATH": "/nowhere"}, tmp_path, valgrind=None)
    assert named(found, "scratch directory").level is Level.BAD


# --- The seal ------------------------------------------------------------------------------------------------------------


def test_each_part_that_does_not_hold_has_its_fix(
    monkeypatch: pytest.MonkeyPatch, programs: Callable[..., str], tmp_path: Path
) -> None:
    reasons = dict.fromkeys(
        ("aslr", "randomness", "random_devices", "files", "cpu", "scheduling", "limits", "clock"), "EPERM"
    )
    monkeypatch.setattr(doctor, "probe", lambda *_: reasons)
    monkeypatch.setattr(doctor, "yama_scope", lambda *_: None)
    found = examine({"PATH": programs()}, tmp_path, valgrind=None)
    for part in reasons:
        check = named(found, part.replace("_", " "))
        assert check.level is Level.WARNING
        assert "EPERM" in check.found
        assert check.fixes
    assert any("seccomp=unconfined" in fix for fix in named(found, "aslr").fixes)
    assert named(found, "tmpdir").level is Level.OK


def test_yama_is_blamed_for_unpinned_randomness(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "probe", lambda *_: {"randomness": "no effect"})
    monkeypatch.setattr(doctor, "yama_scope", lambda *_: 2)
    found = examine({"PATH": "/nowhere"}, tmp_path, valgrind=None)
    assert named(found, "randomness").fixes == ("sudo sysctl -w kernel.yama.ptrace_scope=1",)


def test_a_sealed_start_that_fails_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(*_: object) -> dict[str, str]:
        raise MeasurementError("no report", hint="try again")

    monkeypatch.setattr(doctor, "probe", fail)
    check = named(examine({"PATH": "/nowhere"}, tmp_path, valgrind=None), "sealed start")
    assert (check.level, check.fixes) == (Level.BAD, ("try again",))


class Seen:
    """What the probe's program reports in one start after the other."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *, images: object = (), unsealed: dict[str, str] | None = None
    ) -> None:
        self.good: dict[str, Any] = {
            "aslr": True,
            "environment": [],
            "randomness": "00",
            "random_devices": ("00", "00"),
            "cpu": [1] if images is None else [0],  # as the supervisor numbers it
            "scheduling": True,
            "limits": (1, 2),
            "output": True,
            "tmpdir": ("/tmp/x", []),
            "clock": PINNED_CLOCK.epoch_ns // 10**9,
        }
        self.starts: list[dict[str, Any]] = [{}, {}]
        outcome = type("Outcome", (), {"unsealed": unsealed or {}, "images": images})()
        monkeypatch.setattr(probe, "_sealed", lambda *_: ({**self.good, **self.starts.pop(0)}, outcome))

    def reasons(self) -> dict[str, str]:
        return probe.probe(None, {}, 1)  # type: ignore[arg-type]


def test_a_seal_that_holds_gives_no_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Seen(monkeypatch).reasons() == {}


def test_random_bytes_that_differ_are_not_pinned_whatever_the_launcher_says(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Seen(monkeypatch)
    seen.starts[1] = {"randomness": "01"}
    assert set(seen.reasons()) == {"randomness"}


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("aslr", False),
        ("cpu", [0, 1]),
        ("scheduling", False),
        ("output", False),
        ("clock", 0),
        ("tmpdir", ("/tmp/x", ["left"])),
    ],
)
def test_a_part_that_looks_wrong_is_reported(monkeypatch: pytest.MonkeyPatch, part: str, value: object) -> None:
    seen = Seen(monkeypatch)
    seen.starts = [{part: value}, {part: value}]
    assert set(seen.reasons()) == {part}


def test_without_a_supervisor_nothing_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = Seen(monkeypatch, images=None).reasons()
    assert set(reasons) == {"randomness", "random_devices", "files", "clock"}


def test_the_launchers_own_reason_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Seen(monkeypatch, unsealed={"aslr": "EPERM"})
    seen.starts = [{"aslr": False}, {"aslr": False}]
    assert seen.reasons() == {"aslr": "EPERM"}


# --- The machine ---------------------------------------------------------------------------------------------------------


def uname_result(release: str, machine: str) -> os.uname_result:
    return os.uname_result(("Linux", "host", release, "#1", machine))


def system(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_yama_is_read(tmp_path: Path) -> None:
    assert yama_scope(tmp_path) is None
    assert yama_scope(system(tmp_path, {"proc/sys/kernel/yama/ptrace_scope": "2\n"})) == 2


@pytest.mark.parametrize(
    ("scope", "root", "told"),
    [(2, False, "warning sysctl"), (2, True, "ok sysctl"), (3, True, "warning boot")],
)
def test_a_strict_yama_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scope: int, root: bool, told: str
) -> None:
    monkeypatch.setattr(doctor, "is_root", lambda: root)
    checks = host_checks(system(tmp_path, {"proc/sys/kernel/yama/ptrace_scope": str(scope)}))
    yama = next(check for check in checks if check.name == "Yama")
    assert f"{yama.level.value} {yama.fixes[0].split()[0]}" == told


@pytest.mark.parametrize(
    ("release", "level", "lacks"),
    [
        ("6.1.0-18-amd64", Level.OK, ""),
        ("5.9.1", Level.OK, ""),
        ("5.4.0-1-generic", Level.WARNING, "random devices"),
        ("4.19.0", Level.WARNING, "random bytes"),
        ("unknown", Level.OK, ""),
    ],
)
def test_old_kernels_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str, level: Level, lacks: str
) -> None:
    machine = os.uname().machine
    monkeypatch.setattr(os, "uname", lambda: uname_result(release, machine))
    kernel = next(check for check in host_checks(tmp_path) if check.name == "kernel")
    assert kernel.level is level
    assert lacks in kernel.found


def test_a_machine_without_a_table_of_calls_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: uname_result("6.1", "riscv64"))
    check = next(check for check in host_checks(tmp_path) if check.name == "architecture")
    assert check.level is Level.WARNING


# --- git -----------------------------------------------------------------------------------------------------------------


def test_git_that_is_missing_can_be_installed(programs: Callable[..., str], tmp_path: Path) -> None:
    (check,) = git_checks({"PATH": programs("apk")}, tmp_path)
    assert check.level is Level.WARNING
    assert check.fixes[0].endswith("apk add git")


@pytest.mark.skipif(shutil.which("git") is None, reason="no git")
def test_a_repository_is_found(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    outside = git_checks(environ, tmp_path)
    assert outside[1].found.startswith("none here")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True, env=environ)
    assert git_checks(environ, tmp_path)[1].found == str(tmp_path.resolve())


def test_a_repository_of_somebody_else_is_explained(programs: Callable[..., str], tmp_path: Path) -> None:
    git = Path(programs("git"), "git")
    git.write_text("#!/bin/sh\necho 'fatal: detected dubious ownership in repository' >&2\nexit 128\n")
    check = git_checks({"PATH": str(git.parent)}, tmp_path)[1]
    assert check.level is Level.WARNING
    assert "safe.directory" in check.fixes[0]


def test_a_git_that_does_not_run_is_reported(programs: Callable[..., str], tmp_path: Path) -> None:
    git = Path(programs("git"), "git")
    git.write_text("#!/nowhere/at/all\n")
    (check,) = git_checks({"PATH": str(git.parent)}, tmp_path)
    assert "does not run" in check.found


def test_a_git_that_hangs_is_waited_for_with_a_line_and_reported(
    programs: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    monkeypatch.setattr("cachegrind_bench.waiting._FIRST_S", 0.1)
    monkeypatch.setattr("cachegrind_bench.measure.doctor._GIT_S", 1)
    git = Path(programs("git"), "git")
    git.write_text("#!/bin/sh\n[ $1 = --version ] || exec sleep 60\n")
    path = os.pathsep.join([str(git.parent), os.environ["PATH"]])
    check = git_checks({"PATH": path}, tmp_path)[1]
    assert said[0].startswith("waiting for git, ")
    assert check.level is Level.WARNING
    assert check.found == "git has not answered for 1 s: results carry no commit"


# --- Reports -------------------------------------------------------------------------------------------------------------


def diagnosed(*checks: Check, works: bool = True) -> Diagnosis:
    return Diagnosis(checks=tuple(replace(check, section="first") for check in checks), works=works)


def test_the_table_shows_marks_fixes_and_the_outcome() -> None:
    same = ("do this",)
    text = diagnosis.machine(
        diagnosed(
            checked(Level.OK, "good", "fine", "not needed"),
            checked(Level.WARNING, "half", "so \x1b[31mso", *same),
            checked(Level.WARNING, "more", "so so", *same),
            checked(Level.BAD, "bad", "broken"),
            works=False,
        ),
        "table",
    )
    assert text.splitlines() == [
        "first",
        "  ✓ good  fine",
        "  ! half  so \\x1b[31mso",
        "          fix: do this",
        "  ! more  so so",
        "          fix: as above",
        "  ✗ bad   broken",
        "",
        "This machine cannot measure yet: see the lines marked ✗.",
    ]


def test_what_is_found_fits_a_terminal_and_a_fix_stays_one_line_to_copy() -> None:
    half = checked(Level.WARNING, "half", "so so " * 4, "sudo apt-get install it all")
    assert diagnosis.machine(diagnosed(half), "table", width=24).splitlines()[1:5] == [
        "  ! half  so so so so so",
        "          so so so",
        "          fix: sudo apt-get install it all",
        "",
    ]


def test_the_outcome_counts_what_is_to_mend() -> None:
    good, half = checked(Level.OK, "good", "fine"), checked(Level.WARNING, "half", "so so")
    assert diagnosis.machine(diagnosed(good), "table").endswith("\nThis machine can measure, fully sealed.\n")
    assert "with 1 thing to fix" in diagnosis.machine(diagnosed(half), "table")
    assert "with 2 things to fix" in diagnosis.machine(diagnosed(half, half), "table")


def test_json_says_everything() -> None:
    half = checked(Level.WARNING, "half", "so so", "do this")
    document = json.loads(diagnosis.machine(diagnosed(half), "json"))
    assert document["schema"] == "cg-bench.doctor/1"
    assert document["works"] is True
    assert document["checks"] == [
        {"section": "first", "name": "half", "level": "warning", "found": "so so", "fixes": ["do this"]}
    ]
