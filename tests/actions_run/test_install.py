"""The action's set-up: what lies in the checkout has no part in it, and what is wrong is said in one line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INSTALL = ROOT / "scripts" / "action" / "install.sh"
README = (ROOT / "README.md").read_text("utf-8")
VALGRIND = ROOT / "scripts" / "action" / "valgrind.sh"


def run(script: Path, place: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(place.parent), "RUNNER_TEMP": str(place.parent), **variables}
    return subprocess.run([str(script)], cwd=place, env=environ, capture_output=True, text=True, check=False)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / "checkout"
    made.mkdir()
    return made


@pytest.mark.slow
def test_nothing_of_the_checkout_is_executed(place: Path, wheels: Path) -> None:
    seen = place.parent / "seen"
    for name in (
        "venv",
        "ensurepip",
        "pip",
        "logging",
        "random",
        "hatchling",
        "click",
        "sitecustomize",
        "cachegrind_bench",
    ):
        (place / f"{name}.py").write_text(f"open({str(seen)!r}, 'a').write({name!r})\n", encoding="utf-8")
    outputs = place.parent / "outputs"
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    done = run(INSTALL, place, GITHUB_OUTPUT=str(outputs), PYTHONPATH=str(place), **offline)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not seen.exists()
    python = outputs.read_text("utf-8").strip().removeprefix("python=")
    said = run(VALGRIND, place, CG_BENCH_PYTHON=python, INPUT_VALGRIND="skip", PYTHONPATH=str(place))
    assert "This machine can measure" in said.stdout, said.stdout + said.stderr
    assert not seen.exists()


@pytest.mark.slow
def test_the_readmes_copy_of_the_action_in_a_folder_installs_itself(place: Path, wheels: Path) -> None:
    (command,) = re.findall(r"```\n(git -C \.\./cachegrind-bench archive .*?)```", README, re.DOTALL)
    (place.parent / "cachegrind-bench").symlink_to(ROOT)
    subprocess.run(["sh", "-ec", command], cwd=place, check=True)
    copy = place / ".github" / "cg-bench"
    assert (copy / "action.yml").is_file()
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    done = run(
        copy / "scripts" / "action" / "install.sh", place, GITHUB_OUTPUT=str(place.parent / "outputs"), **offline
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cg-bench, version " in done.stdout


@pytest.mark.parametrize("python", ["/bin/false", "/nowhere/python", "no such thing"])
def test_a_python_that_will_not_do_is_named(place: Path, python: str) -> None:
    done = run(INSTALL, place, INPUT_PYTHON=python)
    assert (done.returncode, done.stdout) == (
        1,
        f"::error title=cg-bench::python: {python} is no Python 3.11 or newer\n",
    )


def test_another_system_is_reported_what_runner_to_use(place: Path, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "uname").write_text("#!/bin/sh\necho Darwin\n", encoding="utf-8")
    (programs / "uname").chmod(0o755)
    done = run(INSTALL, place, PATH=f"{programs}:{os.environ['PATH']}")
    assert done.returncode == 1
    assert "Valgrind needs Linux, and this runner is Darwin: use runs-on: ubuntu-24.04" in done.stdout


def test_a_wrong_word_for_valgrind_is_refused(place: Path) -> None:
    done = run(VALGRIND, place, CG_BENCH_PYTHON=sys.executable, INPUT_VALGRIND="mine")
    assert (done.returncode, done.stdout) == (
        2,
        "::error title=cg-bench::valgrind: 'mine' is neither 'system' nor 'skip'\n",
    )


@pytest.mark.parametrize("newline", ["\n", "\r", "\\n"])
def test_no_input_begins_another_line_of_the_log(place: Path, newline: str) -> None:
    hostile = f"x{newline}::error::y"
    for done in (
        run(VALGRIND, place, CG_BENCH_PYTHON=sys.executable, INPUT_VALGRIND=hostile),
        run(INSTALL, place, INPUT_PYTHON=hostile),
    ):
        assert done.returncode in {1, 2}
        assert len(done.stdout.splitlines()) == 1


def test_what_the_action_installs_is_what_the_package_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wanted = [
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["github"],
        *project["build-system"]["requires"],
    ]
    pinned = (ROOT / "scripts" / "action" / "requirements.txt").read_text("utf-8")
    names = {
        line.partition("==")[0] for line in pinned.splitlines() if "==" in line and not line.startswith((" ", "#"))
    }
    assert {item.split(">")[0].lower() for item in wanted} <= names
