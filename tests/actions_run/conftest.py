"""What the tests of workflows share: a project, and the packages that the action installs."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import act, github_stub
from tests.actions_run.project import COUNT, NAME, REQUIREMENTS, ROOT, SUITE, WORDS, Project

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def wheels() -> Path:
    """Return a folder with what the action installs, fetched once: its runs then need no network."""
    folder = ROOT / ".tools" / "action-wheels"
    done = folder / "requirements.txt"
    version = "--python-version=" + ".".join(map(str, _python_of_jobs()))
    folder.parent.mkdir(exist_ok=True)
    with (folder.parent / "action-wheels.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # each worker of pytest-xdist comes here
        wanted = f"# {version}\n{REQUIREMENTS.read_text('utf-8')}"
        if not done.exists() or done.read_text("utf-8") != wanted:
            shutil.rmtree(folder, ignore_errors=True)
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", version]
            command += ["--require-hashes", "--only-binary=:all:", "-r", str(REQUIREMENTS), "-d", str(folder)]
            subprocess.run(command, check=True)
            done.write_text(wanted, encoding="utf-8")
    return folder


def _path_of_jobs() -> str:
    """Return the jobs' PATH, which is ours without the virtual environment."""
    here = str(Path(sys.executable).parent)
    return ":".join(entry for entry in os.environ["PATH"].split(":") if entry != here)


def _python_of_jobs() -> tuple[int, int]:
    """Return the version of the Python that the action finds."""
    path = _path_of_jobs()
    code = "import sys; print(*sys.version_info[:2])"
    for name in ("python3", "python3.14", "python3.13", "python3.12", "python3.11"):
        found = shutil.which(name, path=path)
        if found is not None:
            said = subprocess.run([found, "-c", code], capture_output=True, text=True, check=False).stdout.split()
            if len(said) == 2 and (version := (int(said[0]), int(said[1]))) >= (3, 11):
                return version
    return sys.version_info[:2]


@pytest.fixture(scope="session")
def action(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the action with its own set-up done once for all jobs: each takes ten seconds for it otherwise."""
    folder = tmp_path_factory.mktemp("action")
    outputs = folder / "outputs"
    environ = {
        "PATH": _path_of_jobs(),
        "HOME": str(folder),
        "RUNNER_TEMP": str(folder),
        "GITHUB_OUTPUT": str(outputs),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
    }
    subprocess.run([ROOT / "scripts" / "action" / "install.sh"], env=environ, cwd=folder, check=True)
    made = folder / "action"
    shutil.copytree(ROOT / "scripts" / "action", made / "scripts" / "action")
    shutil.copy(ROOT / "action.yml", made)
    line = outputs.read_text("utf-8").strip()
    (made / "scripts" / "action" / "install.sh").write_text(f"#!/bin/sh\necho '{line}' >>\"$GITHUB_OUTPUT\"\n", "utf-8")
    return made


@pytest.fixture
def project(tmp_path: Path, wheels: Path, action: Path) -> Iterator[Project]:
    act.find("act")
    with github_stub.serve() as stub:
        stub.repository(NAME)
        made = Project(tmp_path, stub, wheels, action)
        made.tree.mkdir()
        made.git("init", "--quiet", "--initial-branch=main")
        made.git("init", "--quiet", "--bare", "--initial-branch=main", str(made.origin))
        made.git("remote", "add", "origin", str(made.origin))
        files = {"cg-bench.toml": SUITE, "count.sh": COUNT.format(500), "words.sh": WORDS}
        for name, text in files.items():
            made.write(name, text)
        made.commit("the first")
        made.git("push", "--quiet", "origin", "main")
        yield made
