"""`pytest --cg-bench` in odd places, and ended early: nothing stays."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import iniconfig
import pytest

from tests.valgrind.measuring import measure

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow

_PATIENCE_S = 600
_ENDS = [(signal.SIGINT, 2), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGHUP, -signal.SIGHUP)]
_HANGS = """
import os, pathlib, time
def test_it(benchmark):
    seen = pathlib.Path("{folder}/seen")
    if not seen.exists():
        seen.touch()  # the native run
        return benchmark(int)
    pathlib.Path(os.environ["TMPDIR"], "left").touch()
    pathlib.Path("{folder}/hangs").touch()
    benchmark(time.sleep, 600)
"""


def test_a_file_that_cannot_be_collected_hinders_others_only_if_wanted(folder: Path) -> None:
    (folder / "test_bad.py").write_text("import nothing_of_this_name\n")
    (folder / "test_good.py").write_text("def test_it(benchmark): benchmark(int)\n")
    interrupted = measure(folder)
    assert interrupted.status == 2
    assert "nothing_of_this_name" in interrupted.said
    assert not interrupted.found
    rest = measure(folder, "--continue-on-collection-errors")
    assert rest.status == 1
    assert rest.found["test_it"]["status"] == "ok"


def test_the_rootdir_may_have_any_name(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/my \xff \xc3\xa4 project"))
    folder.mkdir()
    (folder / "test_it.py").write_text("def test_it(benchmark): assert benchmark(int, '7') == 7\n")
    done = measure(folder)
    assert done.status == 0, done.said
    assert done.found["test_it"]["status"] == "ok"


def test_a_package_that_pytest_itself_needs_is_measured_from_the_working_directory(folder: Path) -> None:
    shutil.copytree(Path(iniconfig.__file__).parent, folder / "iniconfig")
    with (folder / "iniconfig" / "__init__.py").open("a") as file:
        file.write("\nDEVELOPED = True\n")
    (folder / "test_it.py").write_text(
        "import iniconfig\ndef test_it(benchmark): assert benchmark(lambda: iniconfig.DEVELOPED)\n"
    )
    done = measure(folder)
    assert done.status == 0, done.said


def test_the_rootdir_may_be_read_only(folder: Path) -> None:
    (folder / "test_it.py").write_text("def test_it(benchmark): assert benchmark(int, '7') == 7\n")
    script = 'mount --bind . . && mount -o remount,ro,bind . && cd "$PWD" && ! touch new 2>/dev/null && exec "$@"'
    before = ("unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh")
    if subprocess.run([*before, "true"], cwd=folder, capture_output=True, check=False).returncode != 0:
        pytest.skip("needs a mount namespace of its own (unshare), for a folder that root cannot write either")
    done = measure(folder, "-W", "ignore", before=before)
    assert done.status == 0, done.said
    assert sorted(path.name for path in folder.iterdir()) == ["pytest.ini", "test_it.py"]


def _working_in(folder: Path) -> dict[int, list[bytes]]:
    """Return the processes that work in this folder, and their arguments."""
    found: dict[int, list[bytes]] = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").samefile(folder):  # the path may be another one there
                found[int(process.name)] = (process / "cmdline").read_bytes().split(b"\0")
    return found


def _wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks at processes in /proc")
@pytest.mark.parametrize(("number", "status"), _ENDS)
def test_what_ends_pytest_ends_all_and_leaves_nothing(folder: Path, number: signal.Signals, status: int) -> None:
    (folder / "test_it.py").write_text(_HANGS.format(folder=folder.parent))
    argv = [sys.executable, "-m", "pytest", "--cg-bench"]
    with subprocess.Popen(argv, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        try:
            _wait_for((folder.parent / "hangs").exists, "the benchmark did not begin")
            exchange = next(
                Path(os.fsdecode(word))
                for words in _working_in(folder).values()
                for word in words
                if word.startswith(b"/tmp/cg-bench.") and word.rpartition(b"/")[2].isdigit()
            )
            mark = exchange / "mark"
            mark.touch()
            run.send_signal(number)
            assert run.wait(_PATIENCE_S) == status
        finally:
            run.kill()
    _wait_for(lambda: not _working_in(folder), "a process is left")
    assert not mark.exists()
