"""`cg-bench backfill --workers`: the counts of one machine, on workers that are real processes, reached over TCP, and killed."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.valgrind.conftest import environment
from tests.valgrind.test_backfill import ENVIRON, backfill, counts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from tests.valgrind.conftest import CgBench

__all__ = ["backfill"]
pytest.importorskip("distributed")
COMMITS = 9
LIMIT_S = 200


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Return a function that starts a part of Dask, which does not outlive the test."""
    with contextlib.ExitStack() as stack:

        def started(*words: str, **variables: str) -> subprocess.Popen[bytes]:
            own = {"HOME": str(tmp_path), "DASK_TEMPORARY_DIRECTORY": str(tmp_path), **variables}
            with (tmp_path / "dask.log").open("ab") as log:
                command = [sys.executable, "-m", "distributed.cli.dask_" + words[0], *words[1:], "--no-dashboard"]
                found = subprocess.Popen(command, env=environment(own), stdout=log, stderr=log, cwd=tmp_path)
            stack.callback(found.wait)
            stack.callback(found.kill)
            return found

        yield started


def wait_for(stored: Callable[[], int], number: int) -> None:
    end = time.monotonic() + LIMIT_S
    while stored() < number:
        assert time.monotonic() < end
        time.sleep(0.2)


@pytest.mark.slow
@pytest.mark.parametrize("backfill", [COMMITS], indirect=True)
def test_workers_that_die_and_a_command_that_is_killed_lose_and_double_nothing(
    backfill: CgBench,
    start: Callable[..., subprocess.Popen[bytes]],
    valgrind_versions: Mapping[str, Path],
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    scheduler = start("scheduler", "--host", "127.0.0.1", "--port", url.rpartition(":")[2])
    workers = [start("worker", url, "--no-nanny", "--nthreads", "1", "--name", str(number)) for number in range(3)]
    wait = f"from distributed import Client\nwith Client({url!r}) as client: client.wait_for_workers(3)"
    subprocess.run([sys.executable, "-c", wait], check=True, timeout=LIMIT_S)
    # This one may come too late to be asked beforehand.
    other = f"{valgrind_versions['3.24'].parent}:{os.environ['PATH']}"
    workers.append(start("worker", url, "--no-nanny", "--nthreads", "1", "--name", "3", PATH=other))
    here = backfill("backfill", "main", "--every-commit", "-j", "1", "--store", "file:here", env=ENVIRON)
    assert here.stdout.startswith(f"{COMMITS} commits: {COMMITS} measured now"), here.stderr
    runs = backfill.cwd / "there" / "runs"

    def stored() -> int:
        return len(list(runs.rglob("*.json")))

    words = "backfill", "main", "--every-commit", "--store", "file:there", "--workers", url
    killed = backfill.start(*words)
    wait_for(stored, 2)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    again = backfill.start(*words)
    wait_for(stored, 4)
    workers[0].kill()
    stdout, stderr = (text.decode() for text in again.communicate(timeout=LIMIT_S))
    assert again.returncode == 0, stderr
    assert re.match(rf"{COMMITS} commits: \d+ measured now, \d+ known before\n", stdout), stdout + stderr
    assert len(re.findall(r"is not used: valgrind is 3\.24\S*, not 3\.", stderr)) == 1, stderr
    assert stored() == COMMITS
    assert counts(backfill, "file:there") == counts(backfill, "file:here")
    scheduler.kill()
    gone = backfill("backfill", "main", "--workers", url, "--store", "file:other", env=ENVIRON)
    assert gone.code == 4
    assert "cannot be reached" in gone.stderr
