"""`cg-bench backfill --workers`: the counts of one machine, on workers that are real processes, reached over TCP, and killed."""

from __future__ import annotations

import contextlib
import json
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
from tests.valgrind.test_backfill import CONFIGURATION, ENVIRON, backfill, counts

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


@pytest.fixture
def url() -> str:
    """Return an address for a scheduler."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{free.getsockname()[1]}"


def wait_for_workers(url: str, number: int) -> None:
    wait = f"from distributed import Client\nwith Client({url!r}) as client: client.wait_for_workers({number})"
    subprocess.run([sys.executable, "-c", wait], check=True, timeout=LIMIT_S)


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
    url: str,
) -> None:
    scheduler = start("scheduler", "--host", "127.0.0.1", "--port", url.rpartition(":")[2])
    workers = [start("worker", url, "--no-nanny", "--nthreads", "1", "--name", str(number)) for number in range(3)]
    wait_for_workers(url, 3)
    # This one may come too late to be asked beforehand.
    other = f"{valgrind_versions['3.24'].parent}:{os.environ['PATH']}"
    workers.append(start("worker", url, "--no-nanny", "--nthreads", "1", "--name", "3", PATH=other))
    here = backfill("backfill", "main", "--every-commit", "--fresh", "-j", "1", "--store", "file:here", env=ENVIRON)
    assert here.stdout.startswith(f"{COMMITS} commits: {COMMITS} measured now"), here.stderr
    runs = backfill.cwd / "there" / "runs"

    def stored() -> int:
        return len(list(runs.rglob("*.json")))

    words = "backfill", "main", "--every-commit", "--fresh", "--store", "file:there", "--workers", url
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


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return words for a scheduler and workers that are reached by TLS alone, and set the variables for those that ask."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    new = (
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-subj",
        "/CN=localhost",
    )
    made = ["openssl", *new, "-days", "2", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True)
    for name, path in (("CA_FILE", certificate), ("CLIENT__CERT", certificate), ("CLIENT__KEY", key)):
        monkeypatch.setenv(f"DASK_DISTRIBUTED__COMM__TLS__{name}", str(path))
    return {"--tls-ca-file": str(certificate), "--tls-cert": str(certificate), "--tls-key": str(key)}


@pytest.mark.slow
@pytest.mark.parametrize("backfill", [3], indirect=True)
def test_a_suite_and_parts_of_commits_are_measured_by_workers_behind_tls_until_the_scheduler_goes(
    backfill: CgBench, start: Callable[..., subprocess.Popen[bytes]], url: str, tls: dict[str, str], tmp_path: Path
) -> None:
    url = url.replace("tcp", "tls")
    words = [word for pair in tls.items() for word in pair]
    scheduler = start("scheduler", "--host", "127.0.0.1", "--port", url.rpartition(":")[2], "--protocol", "tls", *words)
    useless = start("worker", url, "--no-nanny", *words, PATH=str(tmp_path / "nothing"))
    wait_for_workers(url, 1)
    asked = "--workers", url
    assert backfill("fleet", *asked).code == 3
    second = CONFIGURATION.replace('"sum"', '"again"').partition("]\n")[2]
    (backfill.cwd / "cg-bench.toml").write_text(CONFIGURATION + second)
    for git in (("add", "-A"), ("commit", "-q", "-m", "Benchmarks")):
        subprocess.run(["git", *git], cwd=backfill.cwd, env={**os.environ, **ENVIRON}, check=True)
    none = backfill("run", *asked)
    assert (none.code, "Valgrind was not found on PATH" in none.stderr) == (3, True)
    useless.kill()
    useless.wait()
    for _ in range(2):
        start("worker", url, "--no-nanny", "--nthreads", "1", *words)
    wait_for_workers(url, 2)
    fleet = backfill("fleet", *asked)
    assert (fleet.code, fleet.stdout.partition("\n")[0]) == (0, "2 workers: 2 measure alike"), fleet.stderr
    plain = backfill("fleet", *asked, env=dict.fromkeys(name for name in os.environ if "DASK" in name))
    assert plain.code == 4, "without a certificate"
    found = list[dict[str, object]]()
    for more in (), asked, (*asked, "--clone", str(backfill.cwd)):
        assert backfill("run", "-o", str(tmp_path / "result.json"), *more).code == 0
        result = json.loads((tmp_path / "result.json").read_bytes())
        assert result["commit"]["branch"] == "main"
        found.append({item["id"]: (item["key"], item["counts"]) for item in result["benchmarks"]})
    assert list(found[0]) == ["sum", "again"]
    assert found[0] == found[1] == found[2]
    (backfill.cwd / "sum.c").write_text("changed")
    assert "changes that are not committed" in backfill("run", *asked).stderr
    all_of_it = "backfill", "main", "--every-commit", "--fresh", "--split", "2", *asked
    split = backfill(*all_of_it, "--store", "file:there", env=ENVIRON)
    assert split.stdout.startswith("4 commits: 4 measured now"), split.stderr
    here = backfill("backfill", "main", "--every-commit", "--fresh", "-j", "1", "--store", "file:here", env=ENVIRON)
    assert here.stdout.startswith("4 commits: 4 measured now"), here.stderr
    assert counts(backfill, "file:there") == counts(backfill, "file:here")
    lost = backfill.start(*all_of_it, "--store", "file:lost")
    wait_for(lambda: len(list((backfill.cwd / "lost").rglob("*.json"))), 1)
    scheduler.kill()
    stderr = lost.communicate(timeout=LIMIT_S)[1].decode()
    assert lost.returncode == 4, stderr
    assert "the Dask scheduler went away\n  what was measured is stored: call again to go on" in stderr
    assert counts(backfill, "file:lost").items() <= counts(backfill, "file:here").items()
