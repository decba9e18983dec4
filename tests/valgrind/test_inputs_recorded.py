"""What real programs are found to read; and that a stored result is used again exactly while none of that changes."""

from __future__ import annotations

import os
import socket
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cachegrind_bench.hermetic.execution import Execution
from cachegrind_bench.hermetic.launch import launch
from cachegrind_bench.hermetic.scratch import scratch
from cachegrind_bench.hermetic.trace_notes import Recording
from cachegrind_bench.measure.command import resolve
from cachegrind_bench.measure.plan import Plan, execution_of
from cachegrind_bench.measure.run import Executions, measure_whole, surrounded
from cachegrind_bench.measure.session import SCRATCH_BASE, valgrind_setup
from cachegrind_bench.model.metrics import EVENTS
from cachegrind_bench.model.result import Result
from cachegrind_bench.suite.cache import Cache, RecordingRunner, key_of
from cachegrind_bench.valgrind.options import WHOLE, Geometry, Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from cachegrind_bench.measure.session import Session
    from cachegrind_bench.model.result import Benchmark
    from tests.conftest import CompileC

ENVIRON = {"PATH": os.defpath, "HOME": "/nonexistent"}


def record(code: str, cwd: Path, *arguments: str, stdin: Path | None = None) -> Recording:
    """Run a small Python program natively and return what it was seen to read, but for the start of Python."""
    argv = (sys.executable, "-I", "-S", "-c", f"import os, sys\n{code}", *arguments)
    with scratch(SCRATCH_BASE) as place:
        place.renew()
        execution = Execution(
            argv,
            {"TMPDIR": str(place.tmp)},
            str(cwd),
            stdin=None if stdin is None else str(stdin),
            record_files=True,
            timeout_ms=60_000,
        )
        outcome = launch(execution, place, echo=lambda _chunk: None)
    assert outcome.exit_status == 0, outcome.tail.decode()
    assert outcome.recording is not None
    return outcome.recording


def inputs(recording: Recording, below: Path) -> dict[tuple[str, str], str]:
    """Return the values of inputs below a folder, by kind and relative path."""
    assert recording.incomplete is None
    prefix = f"{below}/"
    return {
        (item.kind, item.path.removeprefix(prefix)): item.value
        for item in recording.inputs
        if item.path.startswith(prefix)
    }


# What is seen


def test_every_way_to_read_is_seen(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("a", "b", "c", "d", "e", "f", "in"):
        (tmp_path / name).write_text(name)
    (tmp_path / "link").symlink_to("f")
    code = """
open("a").read()
os.stat("b")
os.access("c", os.R_OK)
os.lstat("link"), os.readlink("link")
os.listdir("folder")
folder = os.open("folder", os.O_RDONLY | os.O_DIRECTORY)
os.close(os.open("../d", os.O_RDONLY, dir_fd=folder))
os.fchdir(folder)
open(".//../e", "r+").close()
for name in ("../none1", "/proc/self/cwd/../none2"):
    try: open(name)
    except OSError: pass
assert not os.path.exists("../none3")
"""
    found = inputs(record(code, tmp_path, stdin=tmp_path / "in"), tmp_path)
    assert sorted(found) == [
        ("file", "a"),
        ("file", "folder/../d"),
        ("file", "folder/../e"),
        ("file", "folder/../none1"),
        ("file", "in"),
        ("file", "none2"),
        ("link", "link"),
        ("list", "folder"),
        ("look", "b"),
        ("look", "c"),
        ("look", "folder/../none3"),
    ]
    assert found["link", "link"] == "-> f"
    assert found["file", "none2"] == found["look", "folder/../none3"] == "ENOENT"


def test_programs_that_are_executed_and_what_they_read_is_seen(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\ncat data\n")
    script.chmod(0o755)
    (tmp_path / "data").write_text("x")
    recording = record('os.spawnv(os.P_WAIT, "./script", ["./script"])', tmp_path)
    assert {("file", "script"), ("file", "data")} <= set(inputs(recording, tmp_path))
    paths = {item.path for item in recording.inputs}
    assert any(path.endswith("/cat") for path in paths)
    assert any("libc.so" in path for path in paths)


def test_what_it_writes_and_reads_back_is_not_an_input(tmp_path: Path) -> None:
    code = """
open("out", "w").write("x"); open("out").read(); os.stat("out")
os.mkdir("new"); open("new/file", "x").close(); os.listdir("new"); os.stat("new/file")
os.rename("new/file", "new/moved"); open("new/moved").read()
import tempfile
with tempfile.TemporaryFile() as file: file.write(b"x")
open(os.environ["TMPDIR"] + "/t", "w").close(); open(os.environ["TMPDIR"] + "/t").read()
os.unlink("out"); os.unlink("new/moved"); os.rmdir("new")
"""
    found = inputs(record(code, tmp_path), tmp_path)
    assert set(found.values()) == {"ENOENT"}
    assert ("link", "new") in found  # mkdir would have failed


def test_a_way_out_of_its_own_files_is_followed(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("x")
    code = """
inside = os.environ["TMPDIR"] + "/link"
os.symlink(os.getcwd() + "/data", inside)
open(inside).read()
os.unlink(inside)
"""
    assert ("file", "data") in inputs(record(code, tmp_path), tmp_path)


def test_what_its_preparation_makes_is_an_input_even_if_it_is_used_up(tmp_path: Path) -> None:
    (tmp_path / "work").write_text("x")
    found = inputs(record('data = open("work").read(); os.unlink("work")', tmp_path), tmp_path)
    assert found["file", "work"].startswith("100")


TRY = "\ntry: {}\nexcept OSError: pass\n"
# Calls that fail, and what is read after them, which is then not the run's own work.
FAILURES = {
    "a folder that is not empty is not removed": ("os.rmdir('full')", "full/in"),
    "nor by way of unlink": ("os.unlink('full')", "full/in"),
    "a link takes no other's place": ("os.link('data', 'there')", "there"),
    "a folder is not emptied by opening it": ("open('full', 'w')", "full/in"),
    "a file does not take the place of a folder": ("os.rename('data', 'full')", "full/in"),
    "nor a folder that of one that is not empty": ("os.rename('empty', 'full')", "full/in"),
    "what is there is not made once more": ("os.mkdir('full')", "full/in"),
    "what is there is not created": ("open('there', 'x')", "there"),
}


@pytest.mark.parametrize("what", FAILURES)
def test_after_a_call_that_failed_what_is_read_is_an_input(what: str, tmp_path: Path) -> None:
    for name in ("full", "empty"):
        (tmp_path / name).mkdir()
    for name in ("data", "there", "full/in"):
        (tmp_path / name).write_text(name)
    call, read = FAILURES[what]
    found = record(TRY.format(call) + f"open({read!r}).read()", tmp_path)
    if found.incomplete is None:  # more than can be known is no mistake either
        assert ("file", read) in inputs(found, tmp_path)
    else:
        assert found.incomplete.startswith("it moves the folder")


def test_what_a_run_makes_anew_is_its_own_whatever_was_there(tmp_path: Path) -> None:
    for name in ("gone", "emptied", "replaced", "folder"):
        (tmp_path / name).mkdir() if name == "folder" else (tmp_path / name).write_text(name)
    code = """
os.unlink("gone"); open("gone", "w").write("mine"); open("gone").read()
open("emptied", "w").write("mine"); open("emptied").read()
open("new", "w").write("mine"); os.rename("new", "replaced"); open("replaced").read()
os.rmdir("folder"); os.mkdir("folder"); open("folder/x", "w").close(); os.listdir("folder")
"""
    read = {path for kind, path in inputs(record(code, tmp_path), tmp_path) if kind in ("file", "list")}
    assert read == set()


LEARNS = {
    "utime": ("os.utime('flag')", ("look", "flag")),
    "chmod": ("os.chmod('flag', 0o600)", ("look", "flag")),
    "chown": ("os.chown('flag', -1, -1)", ("look", "flag")),
    "lchown": ("os.lchown('flag', -1, -1)", ("link", "flag")),
    "setxattr": ("os.setxattr('flag', 'user.x', b'')", ("look", "flag")),
    "link": ("os.link('data', 'flag')", ("link", "flag")),
    "append": ("open('flag', 'a').tell()", ("look", "flag")),
    "create": ("os.open('flag', os.O_WRONLY | os.O_CREAT)", ("look", "flag")),
}


@pytest.mark.parametrize("there", [True, False], ids=["there", "absent"])
@pytest.mark.parametrize("name", LEARNS)
def test_a_call_that_reports_whether_something_is_there_makes_it_an_input(
    name: str, there: bool, tmp_path: Path
) -> None:
    (tmp_path / "data").write_text("x")
    if there:
        (tmp_path / "flag").write_text("x")
    call, (kind, path) = LEARNS[name]
    found = inputs(record(TRY.format(call), tmp_path), tmp_path)
    assert (found[kind, path] == "ENOENT") is not there


SOCKET = "import _socket as socket\n"
UNKNOWABLE = {
    "network": (SOCKET + "socket.socket(socket.AF_INET, socket.SOCK_STREAM)", "it uses the network"),
    "netlink": (SOCKET + "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)", "it uses the network"),
    "abstract": (
        SOCKET + "socket.socket(socket.AF_UNIX).connect_ex(b'\\0somebody')",
        "it talks to another process",
    ),
    "pipe": ('os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)', "it reads {cwd}/pipe, which is not a regular file"),
    "append": ('open("log", "a").write("x"); open("log").read()', "it reads {cwd}/log, which it has changed itself"),
    "datagrams": (SOCKET + "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)", "it sends messages to other processes"),
    "server": (
        SOCKET + "socket.socket(socket.AF_UNIX).bind('{cwd}/s')",
        "it talks to another process through {cwd}/s",
    ),
    "moved folder": ('os.rename("folder", "other")', "it moves the folder {cwd}/folder"),
    "chroot": ('\ntry: os.chroot("/nowhere")\nexcept OSError: pass', "it changes its root folder"),
}


@pytest.mark.parametrize("name", UNKNOWABLE)
def test_what_cannot_be_known_makes_the_recording_incomplete(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "log").write_text("")
    os.mkfifo(tmp_path / "pipe")
    code, why = UNKNOWABLE[name]
    found = record(code.replace("{cwd}", str(tmp_path)), tmp_path)
    assert found == Recording(inputs=(), incomplete=why.format(cwd=tmp_path))


RAW_CALLS = {
    "shmget": ("0x1234, 4096, 0", "it shares memory or semaphores with other processes"),
    "semget": ("0x1234, 1, 0", "it shares memory or semaphores with other processes"),
    "io_uring_setup": ("1, 0", "it reads files in a way that cannot be followed (io_uring)"),
    "open_by_handle_at": ("-1, 0, 0", "it opens files by handle"),
    "unshare": ("0x10000000", "it makes namespaces of its own"),
    "setns": ("-1, 0", "it enters another namespace"),
}


@pytest.mark.parametrize("name", RAW_CALLS)
def test_unusual_calls_make_the_recording_incomplete(name: str, tmp_path: Path) -> None:
    from cachegrind_bench.hermetic.kernel import architecture

    table = architecture()
    assert table is not None
    arguments, why = RAW_CALLS[name]
    numbers = ", ".join(f"ctypes.c_long({number})" for number in arguments.split(", "))
    code = f"import ctypes; ctypes.CDLL(None).syscall(ctypes.c_long({table.calls[name]}), {numbers})"
    assert record(code, tmp_path).incomplete == why


def test_openat2_is_understood(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("x")
    code = """
import ctypes, struct
how = ctypes.create_string_buffer(struct.pack("=QQQ", os.O_RDONLY, 0, 0), 24)
ctypes.CDLL(None).syscall(ctypes.c_long(437), ctypes.c_long(-100), b"data", how, ctypes.c_long(24))
"""
    assert ("file", "data") in inputs(record(code, tmp_path), tmp_path)


def test_another_process_that_answers_is_reported(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        server.listen()
        found = record(SOCKET + 'socket.socket(socket.AF_UNIX).connect("s")', tmp_path)
    assert found.incomplete is not None
    assert found.incomplete.startswith("it talks to another process")


def test_a_socket_that_is_absent_is_an_input(tmp_path: Path) -> None:
    code = SOCKET + f"socket.socket(socket.AF_UNIX).connect_ex({str(tmp_path / 's')!r})"
    assert inputs(record(code, tmp_path), tmp_path) == {("look", "s"): "ENOENT"}


# What recording does to counts


@pytest.mark.slow
@pytest.mark.parametrize("tool", [Tool.CACHEGRIND, Tool.CALLGRIND])
def test_recording_changes_no_count(tool: Tool, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("import json, textwrap\n")
    code = (
        "import helper, os, random; os.listdir(); open('/dev/urandom','rb').read(9); print(random.random(), hash('x'))"
    )
    command = resolve([sys.executable, "-c", code], ENVIRON, tmp_path)
    plan = Plan(command=command, cwd=tmp_path, environ=ENVIRON)
    execution = execution_of(plan)
    with valgrind_setup(valgrind=None, geometry=Geometry(), environ=os.environ, passed={}).session(
        echo=lambda _chunk: None
    ) as ready:
        ready.runner.warm_up(execution)
        plain, recorded = (
            ready.runner.measure(execution._replace(cpu=ready.cpu, record_files=wanted), WHOLE, tool)
            for wanted in (False, True)
        )
    assert plain.outcome.recording is None
    assert recorded.outcome.recording is not None
    assert ("look", "helper.py") in inputs(recorded.outcome.recording, tmp_path)
    assert recorded.accounts.profile.counts().as_dict() == plain.accounts.profile.counts().as_dict()
    assert sorted(map(repr, recorded.accounts.profile.functions)) == sorted(map(repr, plain.accounts.profile.functions))
    assert len(EVENTS) == 9


# The cycle


@dataclass
class Suite:
    """Benchmarks by name, measured through the cache as a suite does it; `measured` has the names of the last round."""

    cwd: Path
    plans: dict[str, Plan]
    cache: Cache

    def round(self) -> tuple[dict[str, Benchmark], dict[str, str]]:
        """Return all benchmarks, and for those that were measured the reason."""
        found: dict[str, Benchmark] = {}
        why: dict[str, str] = {}
        with valgrind_setup(valgrind=None, geometry=Geometry(), environ=os.environ, passed={}).session(
            echo=lambda _chunk: None
        ) as ready:
            for name, plan in self.plans.items():
                key = key_of(plan, ready.environment, version="1")
                with surrounded(plan):
                    answer = self.cache.lookup(key)
                if isinstance(answer, Result):
                    found[name] = answer.benchmarks[0]
                else:
                    found[name], refused = self._measured(key, plan, ready)
                    why[name] = answer if refused is None else f"not kept: {refused}"
        return found, why

    def _measured(self, key: str, plan: Plan, ready: Session) -> tuple[Benchmark, str | None]:
        runner = RecordingRunner(runner=ready.runner)
        env, placed = ready.environment, replace(plan, cpu=ready.cpu)
        found = measure_whole(Executions(placed, runner, env, lambda _text: None))
        now = "2026-01-31T12:00:00Z"
        return found, self.cache.keep(
            key,
            runner.recording(),
            Result(tool_version="1", created_at=now, commit=None, env=env, benchmarks=(found,)),
        )


@pytest.fixture
def suite(tmp_path: Path) -> Callable[..., Suite]:
    def suite(commands: dict[str, Sequence[str]], **changes: Any) -> Suite:
        cwd = tmp_path / "project"
        cwd.mkdir(exist_ok=True)
        plans = {
            name: Plan(command=resolve(command, ENVIRON, cwd), cwd=cwd, environ=ENVIRON, id=name, **changes)
            for name, command in commands.items()
        }
        return Suite(cwd, plans, Cache.open(tmp_path / "store"))

    return suite


SCRIPT = """
import os
import helper
try:
    import optional
except ImportError:
    pass
print(helper.VALUE, len(open("data.txt").read()), len(os.listdir("folder")))
"""


def prepared(cwd: Path) -> None:
    (cwd / "folder").mkdir(parents=True)
    (cwd / "data.txt").write_text("1,2,3\n")
    (cwd / "helper.py").write_text("VALUE = 1\n")
    (cwd / "one.py").write_text(SCRIPT)
    (cwd / "two.py").write_text("print(len(open('data.txt').read()))\n")
    long_ago = time.time_ns() - 10**12
    for path in cwd.iterdir():
        os.utime(path, ns=(long_ago, long_ago))


@pytest.mark.slow
def test_exactly_the_benchmarks_whose_inputs_changed_are_measured_again(
    suite: Callable[..., Suite], tmp_path: Path
) -> None:
    prepared(tmp_path / "project")
    python = (sys.executable, "-I", "-S")
    # -I keeps the script's folder from the path of modules: it is named here.
    start = "import sys; sys.path.insert(0, '.'); import {}"
    ours = suite({name: (*python, "-c", start.format(name)) for name in ("one", "two")})
    cwd = ours.cwd
    none = "nothing is stored for it yet"
    first, why = ours.round()
    assert set(why) == {"one", "two"}
    # `one` may have listed the folder before `two` put its compiled file's folder there; not after this round.
    _, why = ours.round()
    second, why = ours.round()
    assert why == {}
    assert second["one"].counts is not None
    assert first["two"].status is second["two"].status
    steps: list[tuple[Callable[[], object], set[str]]] = [
        (lambda: (cwd / "helper.py").write_text("VALUE = 2\n"), {"one"}),
        (lambda: (cwd / "two.py").write_text("print(len(open('data.txt').read()) + 1)\n"), {"two"}),
        (lambda: (cwd / "data.txt").write_text("1,2,3,4\n"), {"one", "two"}),
        (lambda: (cwd / "folder" / "new").write_text("x"), {"one"}),
        (lambda: (cwd / "folder" / "new").write_text("y"), set()),
        (lambda: (cwd / "optional.py").write_text(""), {"one", "two"}),  # both list the folder of modules
        (lambda: (cwd / "optional.py").write_text("X = 1\n"), {"one"}),
        (lambda: os.utime(cwd / "data.txt"), set()),
        (lambda: (cwd / "helper.py").write_text("VALUE = 3\n"), {"one"}),  # as long as before
    ]
    for number, (step, expected) in enumerate(steps):
        step()
        _, why = ours.round()
        assert set(why) == expected, (number, why)
        assert none not in why.values()
        again, why = ours.round()
        assert why == {}, number
        assert set(again) == {"one", "two"}


@pytest.mark.slow
def test_a_result_used_again_is_what_a_measurement_gives(suite: Callable[..., Suite], tmp_path: Path) -> None:
    prepared(tmp_path / "project")
    ours = suite({"two": (sys.executable, "-I", "-S", "two.py")})
    measured, _ = ours.round()
    reused, why = ours.round()
    assert why == {}
    assert reused == measured
    for path in ours.cache.folder.iterdir():
        path.unlink()
    again, _ = ours.round()
    assert again["two"].counts == reused["two"].counts
    assert again["two"].profile == reused["two"].profile


def test_a_program_built_anew_is_measured_again(
    suite: Callable[..., Suite], compile_c: CompileC, tmp_path: Path
) -> None:
    (tmp_path / "project").mkdir()
    program = tmp_path / "project" / "program"
    source = "int main(void) {{ for (volatile int i = 0; i < {}; i++); return 0; }}"
    program.write_bytes(compile_c(source.format(1000)).read_bytes())
    program.chmod(0o755)
    ours = suite({"c": ("./program",)})
    first, _ = ours.round()
    assert ours.round() == (first, {})
    program.write_bytes(compile_c(source.format(2000)).read_bytes())
    second, why = ours.round()
    assert why == {"c": f"{program} changed"}
    assert first["c"].counts != second["c"].counts


def test_what_a_preparation_makes_is_compared_while_it_is_there(suite: Callable[..., Suite], tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    source = tmp_path / "project" / "source"
    source.write_text("x" * 1000)
    ours = suite({"gzip": ("gzip", "-f", "work")}, prepare="cp source work; rm -f work.gz", cleanup="rm -f work.gz")
    ours.round()
    _, why = ours.round()
    assert why == {}  # though `work` is another file than it was: it is read, so its bytes count
    source.write_text("y" * 2000)
    _, why = ours.round()
    assert why == {"gzip": f"{tmp_path}/project/work changed"}


@pytest.mark.slow
def test_a_benchmark_of_the_network_is_never_used_again(suite: Callable[..., Suite]) -> None:
    ours = suite({"net": (sys.executable, "-I", "-S", "-c", SOCKET + "socket.socket()")})
    for _ in range(2):
        _, why = ours.round()
        assert why == {"net": "not kept: it uses the network"}


@pytest.mark.slow
def test_to_answer_for_an_unchanged_benchmark_starts_no_process_and_reads_none_of_its_inputs(
    suite: Callable[..., Suite], tmp_path: Path
) -> None:
    prepared(tmp_path / "project")
    command = (sys.executable, "-c", "import json, argparse, decimal, subprocess; open('data.txt')")
    ours = suite({"one": command})
    found, _ = ours.round()
    with valgrind_setup(valgrind=None, geometry=Geometry(), environ=os.environ, passed={}).session(
        echo=lambda _chunk: None
    ) as ready:
        key = key_of(ours.plans["one"], ready.environment, version="1")
    opened: list[str] = []
    started: list[str] = []
    looking = True

    def note(event: str, arguments: tuple[Any, ...]) -> None:  # such a hook stays for as long as the process
        if looking and event == "open" and not isinstance(arguments[0], int):
            opened.append(os.fsdecode(arguments[0]))
        elif looking and event in {
            "subprocess.Popen",
            "os.posix_spawn",
            "os.fork",
            "os.forkpty",
            "os.exec",
            "os.system",
        }:
            started.append(event)

    sys.addaudithook(note)
    try:
        answer = ours.cache.lookup(key)
    finally:
        looking = False
    assert isinstance(answer, Result)
    assert found["one"].profile is not None
    assert started == []
    assert opened
    contents = {path for path in opened if os.path.isfile(path) and not path.startswith(str(ours.cache.folder))}
    assert contents == set()
