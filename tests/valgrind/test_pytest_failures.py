"""`pytest --cg-bench` where benchmarks die, hang, or take something away that the measurement needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.projects import Project

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_process_that_ends_is_the_death_of_its_benchmark_only(project: Project) -> None:
    project.write(
        """
import json, os, signal, tempfile
def leave(): return [os.close(tempfile.mkstemp()[0]) for _ in range(50)]
def test_nothing(benchmark):
    leave()
    os.write(1, b"words before the end\\\\n")
    os._exit(0)
def test_119(benchmark): leave() and os._exit(119)
def test_killed(benchmark): leave() and os.kill(os.getpid(), signal.SIGSEGV)
def test_folder(benchmark): assert benchmark(os.listdir, tempfile.gettempdir()) == []
def test_good(benchmark): benchmark(json.dumps, {str(i): list(range(10)) for i in range(10)})
"""
    )
    found = project.measure(status=1)
    assert {name: item["error"] for name, item in found.items()} == {
        "test_nothing": "cg-bench: the process of this benchmark ended with exit status 0",
        "test_119": "cg-bench: the process of this benchmark ended with exit status 119",
        "test_killed": "cg-bench: the process of this benchmark was killed by SIGSEGV",
        "test_folder": None,
        "test_good": None,
    }
    alone = project.measure("-k", "good or folder")
    for name in ("test_folder", "test_good"):
        assert alone[name]["counts"] == found[name]["counts"]
    assert "words before the end" in project.run("-k", "nothing").stdout


def test_a_file_whose_import_ends_the_process_does_not_end_the_others(project: Project) -> None:
    project.write("import os, sys\nif sys.argv[0] == '-c': os._exit(119)\ndef test_int(benchmark): benchmark(int)\n")
    project.write("def test_good(benchmark): benchmark(int)\n", "test_other.py")
    found = project.measure(status=1)
    assert "the process of its file ended with exit status 119" in found["test_int"]["error"]
    assert found["test_other.py::test_good"]["status"] == "ok"


def test_an_exception_that_ends_pytest_is_reported_with_its_traceback(project: Project) -> None:
    project.write(
        """
import pytest
@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    found = yield
    if item.name == "test_internal":
        raise RuntimeError("a plugin's own mistake")
    return found
""",
        "conftest.py",
    )
    project.write(
        """
def interrupted():
    print("words before the end")
    raise KeyboardInterrupt
def test_interrupt(benchmark): benchmark(interrupted)
def test_internal(benchmark): benchmark(int)
def test_good(benchmark): benchmark(int)
"""
    )
    done = project.run()
    assert done.returncode == 1
    assert "by KeyboardInterrupt" in done.stdout
    assert "in interrupted" in done.stdout
    assert "words before the end" in done.stdout
    assert "RuntimeError: a plugin's own mistake" in done.stdout
    assert "2 failed, 1 passed" in done.stdout


def test_pytest_exit_ends_the_run(project: Project) -> None:
    project.write(
        """
import pytest
def test_good(benchmark): benchmark(int)
def test_exit(benchmark): pytest.exit("the database is down")
def test_behind(benchmark): benchmark(int)
"""
    )
    found = project.measure(status=2)
    assert found["test_good"]["status"] == "ok"
    assert found["test_exit"]["error"] == "cg-bench: this benchmark called pytest.exit: the database is down"
    assert "test_behind" not in found


def test_a_session_that_is_to_stop_is_interrupted(project: Project) -> None:
    project.write(
        "import pytest\n@pytest.fixture(autouse=True, scope='session')\ndef _keep(request): pass\n"
        "def pytest_runtest_logreport(report): S[0].shouldstop = 'enough'\nS = []\n"
        "def pytest_sessionstart(session): S.append(session)\n",
        "conftest.py",
    )
    project.write("def test_int(benchmark): benchmark(int)\n")
    done = project.run()
    assert done.returncode == 2
    assert "Interrupted: enough" in done.stdout


def test_an_instruction_that_valgrind_does_not_know_is_named(project: Project) -> None:
    project.write(
        """
import ctypes, mmap, sys
def test_wide(benchmark):
    code = mmap.mmap(-1, 4096, prot=7)
    code.write(bytes.fromhex("62f17c4858c0c3"))
    if "/vg" in open("/proc/self/maps").read() or "valgrind" in open("/proc/self/maps").read():  # not natively
        ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
"""
    )
    error = project.measure(status=1)["test_wide"]["error"]
    assert "used an AVX-512 instruction that Valgrind cannot simulate (bytes 0x62 0xF1" in error
    assert "x86-64-v3" in error


def test_a_variable_that_was_held_back_is_named(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write(
        """
import os, pytest
@pytest.fixture
def url(): return os.environ["DATABASE_URL"]
def test_fixture(benchmark, url): benchmark(int)
def test_call(benchmark): benchmark(lambda: os.environ["DATABASE_URL"])
def test_dead(benchmark): pytest.exit("no DATABASE_URL")
"""
    )
    monkeypatch.setenv("DATABASE_URL", "sqlite://")
    done = project.run("-k", "not dead")
    assert done.stdout.count("add --cg-bench-env=DATABASE_URL") == 2
    assert "add --cg-bench-env=DATABASE_URL" in project.run("-k", "dead").stdout
    assert "holds back" not in project.run("--cg-bench-env=DATABASE_URL", "-k", "not dead").stdout


def test_a_benchmark_that_takes_too_long_is_ended_and_the_others_are_measured(project: Project) -> None:
    project.write(
        """
import subprocess, threading
def test_first(benchmark): benchmark(int)
def test_lock(benchmark): benchmark(threading.Event().wait)
def test_program(benchmark): benchmark(subprocess.run, ["sleep", "1000"])
def test_last(benchmark): benchmark(int)
"""
    )
    found = project.measure("--cg-bench-timeout=6s", status=1)
    for name in ("test_lock", "test_program"):
        assert "took longer than 6 s under Valgrind" in found[name]["error"]
    assert [found[name]["status"] for name in ("test_first", "test_last")] == ["ok", "ok"]


def test_the_configuration_may_have_the_time_limit(project: Project) -> None:
    project.write("import threading\ndef test_lock(benchmark): benchmark(threading.Event().wait)\n")
    (project.folder / "cg-bench.toml").write_text("timeout = 3\n")
    found = project.measure(status=1)
    assert "took longer than 3 s under Valgrind" in found["test_lock"]["error"]


def test_a_time_limit_that_is_not_a_time_is_bad_usage(project: Project) -> None:
    project.write("def test_int(benchmark): benchmark(int)\n")
    done = project.run("--cg-bench-timeout=soon")
    assert done.returncode == 4
    assert "'soon' is not a time" in done.stderr


def test_what_nobody_foresaw_is_shown_and_not_green(project: Project) -> None:
    project.write(
        """
from cachegrind_bench.harness.pytest_session.session import Lane
def read_costs(*_):
    raise KeyError("nobody foresaw this")
Lane.read_costs = read_costs
""",
        "conftest.py",
    )
    project.write("def test_int(benchmark): benchmark(int)\n")
    done = project.run()
    assert done.returncode == 3
    assert "in read_costs" in done.stdout
    assert "nobody foresaw this" in done.stdout


def test_a_test_may_replace_what_the_measurement_needs(project: Project) -> None:
    project.write(
        """
import builtins, io, os, pytest
@pytest.fixture
def replaced(monkeypatch):
    def refuse(*_, **__): raise OSError("replaced by a test")
    for name in ("fork", "listdir", "scandir", "getpid", "waitpid", "unlink", "rename", "_exit", "stat"):
        monkeypatch.setattr(os, name, refuse)
    monkeypatch.setattr(io, "open", refuse)
    monkeypatch.setattr(builtins, "open", refuse)
def test_replaced(benchmark, replaced): benchmark(int)
"""
    )
    assert project.measure()["test_replaced"]["status"] == "ok"


def test_why_counts_could_not_be_read_is_reported(project: Project) -> None:
    project.write(
        """
import os, shutil
out = os.path.join(os.path.dirname(os.environ["TMPDIR"]), "out") if "TMPDIR" in os.environ else ""
def test_without(benchmark): benchmark(shutil.rmtree, out, ignore_errors=True)
"""
    )
    done = project.run()
    assert done.returncode == 1
    assert "No such file or directory" in done.stdout
    assert "disk full" not in done.stdout


def test_a_process_that_a_benchmark_forks_and_lets_return_reports_nothing(project: Project, tmp_path: Path) -> None:
    ends = tmp_path / "ends"
    project.write(
        f"""
import os, pytest
@pytest.fixture
def ended():
    yield
    with open({str(ends)!r}, "a") as file: file.write("ended\\n")
def fork():
    if os.fork(): os.wait()
def test_fork(benchmark, ended): benchmark(fork)
def test_raises(benchmark, ended):
    if os.fork(): os.wait()
    else: raise ValueError
    benchmark(int)
def test_good(benchmark): benchmark(int)
"""
    )
    found = project.measure()
    assert {name: item["status"] for name, item in found.items()} == dict.fromkeys(
        ("test_fork", "test_raises", "test_good"), "ok"
    )
    # Once natively, and once under Valgrind; what was forked in the test itself ends its own fixtures.
    assert ends.read_text().count("ended") == 2 * (1 + 2)


def test_a_benchmark_whose_process_cannot_be_copied_is_measured_in_it(project: Project) -> None:
    project.write(
        """
import os, subprocess
from concurrent.futures import ThreadPoolExecutor
def test_pool(benchmark):
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(abs, range(10)))
        assert benchmark(lambda: pool.submit(sum, range(1000)).result()) == 499500
def test_own_process(benchmark):
    own = os.getpid()
    def call():
        assert os.getpid() == own
        return sum(range(1000))
    assert benchmark(call) == 499500
def test_tenth(benchmark):
    calls = []
    def call():
        calls.append(None)
        assert len(calls) < 10
    benchmark(call)
"""
    )
    found = project.measure(status=1)
    assert {name: item["status"] for name, item in found.items()} == {
        "test_pool": "ok",
        "test_own_process": "ok",
        "test_tenth": "failed",
    }
    assert "assert 10 < 10" in found["test_tenth"]["error"]
    assert found["test_own_process"]["counts"]["Ir"] < found["test_pool"]["counts"]["Ir"]


def test_a_process_that_a_setup_starts_is_not_counted(project: Project) -> None:
    project.write(
        """
import subprocess
def test_plain(benchmark): benchmark.pedantic(sorted, ([3, 1, 2] * 100,), setup=lambda: None)
def test_starts(benchmark): benchmark.pedantic(sorted, ([3, 1, 2] * 100,), setup=lambda: subprocess.run(["true"]) and None)
"""
    )
    plain, starts = project.measure().values()
    assert abs(starts["counts"]["Ir"] - plain["counts"]["Ir"]) < 100
    assert not starts["warnings"]


def test_sigchld_may_be_ignored_or_handled_by_benchmarks_and_their_files(project: Project) -> None:
    project.write(
        """
import os, signal
def bury(*_):
    try:
        while os.waitpid(-1, os.WNOHANG)[0]: pass
    except ChildProcessError: pass
def handler(new): signal.signal(signal.SIGCHLD, new)
handler(bury)
def test_file(benchmark):
    assert signal.getsignal(signal.SIGCHLD) is bury
    benchmark(sorted, [3, 1, 2] * 100)
def test_test(benchmark):
    handler(signal.SIG_IGN)
    benchmark(sorted, [3, 1, 2] * 100)
def test_call(benchmark): benchmark(handler, signal.SIG_IGN)
def test_dead(benchmark): os._exit(5)
"""
    )
    found = project.measure(status=1)
    assert {name: item["error"] for name, item in found.items()} == {
        "test_file": None,
        "test_test": None,
        "test_call": None,
        "test_dead": "cg-bench: the process of this benchmark ended with exit status 5",
    }


def test_a_benchmark_that_kills_its_group_is_alone_and_one_that_kills_its_parent_is_named(project: Project) -> None:
    project.write(
        """
import os, signal
def test_group(benchmark): os.kill(0, signal.SIGKILL)
def test_good(benchmark): benchmark(int)
def test_parent(benchmark):
    os.kill(os.getppid(), signal.SIGKILL)
    os._exit(0)
def test_last(benchmark): benchmark(int)
"""
    )
    found = project.measure(status=1)
    lost = "cg-bench: this benchmark was not run: the process of its file was killed by SIGKILL while test_it.py::test_parent ran"
    assert {name: item["error"] for name, item in found.items()} == {
        "test_group": "cg-bench: the process of this benchmark was killed by SIGKILL",
        "test_good": None,
        "test_parent": lost,
        "test_last": lost,
    }
