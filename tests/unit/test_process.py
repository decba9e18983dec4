"""Running other programs, with real and very small ones."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from cachegrind_bench import interruption, process
from cachegrind_bench.errors import MeasurementError

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"}


def sh(script: str, **options: object) -> process.Completed:
    return process.run(["/bin/sh", "-c", script], **{"env": ENV, **options})  # type: ignore[arg-type]


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def open_descriptors() -> list[str]:
    return sorted(path.name for path in Path("/proc/self/fd").iterdir())


def wait_until_gone(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not is_alive(pid)


def test_exit_code_and_both_outputs_are_kept_apart() -> None:
    done = sh("echo out; echo err >&2; exit 7")
    assert (done.status, done.signal, done.stdout, done.stderr, done.timed_out) == (7, None, b"out\n", b"err\n", False)


def test_a_program_ended_by_a_signal_has_no_exit_code() -> None:
    done = sh("kill -SEGV $$")
    assert (done.status, done.signal) == (None, signal.SIGSEGV)


def test_a_short_program_is_not_held_up() -> None:
    fastest = min(sh(":").wall_ms for _ in range(5))
    assert fastest < 40


def test_the_environment_is_exactly_the_one_given() -> None:
    done = process.run(["/usr/bin/env"], env={"ONLY": "this"})
    assert done.stdout == b"ONLY=this\n"


def test_arguments_may_be_text_bytes_or_paths(tmp_path: Path) -> None:
    done = process.run(["printf", b"%s|%s", tmp_path, b"\xff"], env=ENV)
    assert done.stdout == os.fsencode(tmp_path) + b"|\xff"


def test_input_is_empty_unless_given() -> None:
    assert process.run(["cat"], env=ENV, timeout=5).stdout == b""


def test_input_may_be_bytes_larger_than_a_pipe() -> None:
    data = b"x" * 300_000
    assert process.run(["cat"], env=ENV, stdin=data, timeout=20).stdout == data


def test_a_program_that_does_not_read_its_input_blocks_nobody() -> None:
    assert process.run(["true"], env=ENV, stdin=b"x" * 1_000_000, timeout=20).status == 0


def test_input_that_cannot_be_handed_on_whole_is_an_error_and_never_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import resource, signal\nfrom cachegrind_bench import process\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nresource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try:\n    print(process.run(['wc', '-c'], env={'PATH': '/usr/bin:/bin'}, stdin=b'x' * 10000).stdout)\n"
        "except Exception as error:\n    print(type(error).__name__, error)"
    )
    done = process.run([sys.executable, "-c", code], env={**ENV, "PYTHONPATH": os.getcwd()}, timeout=20)
    assert done.stdout.decode() == "MeasurementError 10000 bytes cannot be passed on: File too large\n"

    def none(*_: object) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(os, "memfd_create", none)
    with pytest.raises(MeasurementError, match="1 bytes cannot be passed on: Function not implemented"):
        process.run(["cat"], env=ENV, stdin=b"x")


def test_input_may_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"from a file")
    assert process.run(["cat"], env=ENV, stdin_path=tmp_path / "in").stdout == b"from a file"


def test_an_input_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="no-such-input"):
        process.run(["cat"], env=ENV, stdin_path=tmp_path / "no-such-input")


def test_a_command_line_goes_through_the_shell_when_asked() -> None:
    done = process.run(["echo a | tr a b; echo $1", "name", "one"], env=ENV, shell=True)  # noqa: S604 - the subject
    assert done.stdout == b"b\none\n"


def test_the_program_runs_in_the_directory_given(tmp_path: Path) -> None:
    assert process.run(["pwd"], env=ENV, cwd=tmp_path).stdout == os.fsencode(tmp_path.resolve()) + b"\n"


def test_the_echo_gets_both_outputs_as_they_come() -> None:
    seen: list[tuple[float, bytes]] = []
    sh("echo one; sleep 0.4; echo two >&2", echo=lambda chunk: seen.append((time.monotonic(), chunk)))
    assert [chunk for _, chunk in seen] == [b"one\n", b"two\n"]
    assert seen[1][0] - seen[0][0] > 0.2


def test_an_echo_that_fails_ends_the_program(tmp_path: Path) -> None:
    def broken(_chunk: bytes) -> None:
        raise BrokenPipeError

    pid_file = tmp_path / "pid"
    with pytest.raises(BrokenPipeError):
        sh(f"echo $$ > {pid_file}; echo x; exec sleep 60", echo=broken)
    assert wait_until_gone(int(pid_file.read_text()))


def test_only_the_tail_of_a_flood_is_kept_and_all_of_it_echoed() -> None:
    echoed = 0

    def count(chunk: bytes) -> None:
        nonlocal echoed
        echoed += len(chunk)

    done = sh("head -c 5000000 /dev/zero; printf end", keep_output_limit=1000, echo=count)
    assert done.stdout == b"\0" * 997 + b"end"
    assert echoed == 5_000_003


def test_nothing_is_kept_with_a_limit_of_zero() -> None:
    assert sh("echo something", keep_output_limit=0).stdout == b""


def test_a_program_over_its_time_dies_with_its_children(tmp_path: Path) -> None:
    done = sh(f"echo before; sleep 60 & echo $! > {tmp_path}/pid; wait", timeout=0.3)
    assert (done.status, done.signal, done.timed_out, done.stdout) == (None, signal.SIGKILL, True, b"before\n")
    assert wait_until_gone(int((tmp_path / "pid").read_text()))


def test_a_program_that_ignores_signals_dies_all_the_same() -> None:
    done = sh("trap '' TERM INT HUP; while :; do sleep 0.05; done", timeout=0.3)
    assert done.timed_out


def test_a_program_that_closes_its_output_is_waited_for() -> None:
    done = sh("exec >&- 2>&-; sleep 0.3; exit 3", timeout=10)
    assert (done.status, done.timed_out) == (3, False)
    assert done.wall_ms >= 300


def test_a_program_that_closes_its_output_is_timed_out() -> None:
    assert sh("exec >&- 2>&-; sleep 60", timeout=0.2).timed_out


def test_a_grandchild_that_keeps_the_pipe_open_holds_nobody_up_and_dies(tmp_path: Path) -> None:
    done = sh(f"sleep 60 & echo $! > {tmp_path}/pid; echo done", timeout=30)
    assert (done.status, done.stdout, done.timed_out) == (0, b"done\n", False)
    assert done.wall_ms < 5_000
    assert wait_until_gone(int((tmp_path / "pid").read_text()))


def test_a_daemon_that_keeps_the_pipe_open_holds_nobody_up(tmp_path: Path) -> None:
    script = f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 60' & sleep 0.3; echo done"
    done = sh(script, timeout=30)
    with suppress(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert (done.status, done.stdout, done.timed_out) == (0, b"done\n", False)
    assert done.wall_ms < 5_000


def test_output_that_comes_a_moment_after_the_end_is_not_lost() -> None:
    assert sh("(sleep 0.2; echo late) & echo early").stdout == b"early\nlate\n"


@pytest.mark.parametrize("how", ["['%s'], shell=True", "['bash', '-c', '%s'], guarded=True, stdin=b'1'"])
def test_what_is_guarded_does_not_outlive_us_even_if_we_are_killed(tmp_path: Path, how: str) -> None:
    code = (
        "import os, sys; from cachegrind_bench import process;"
        f"process.run({how % 'sleep 60 & echo $! > inner; echo $$ > outer; wait'}, env=dict(os.environ))"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path) as tool:
        files = [tmp_path / name for name in ("inner", "outer")]
        deadline = time.monotonic() + 30
        while not all(path.exists() and path.read_text().strip() for path in files):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        tool.kill()
    assert all(wait_until_gone(int(path.read_text())) for path in files)


def test_a_guarded_program_has_its_input_and_its_exit_code() -> None:
    for data in (b"some\n", b""):
        done = process.run(["sh", "-c", "cat; exit 3"], stdin=data, guarded=True, env=ENV)
        assert (done.status, done.stdout) == (3, data)
    assert process.run(["cat"], guarded=True, env=ENV).stdout == b""


def test_a_guarded_program_has_its_input_where_few_descriptors_are_open() -> None:
    code = (
        "from cachegrind_bench import process; print(process.run(['cat'], stdin=b'in', guarded=True, env=None).stdout)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "b'in'\n"


def test_a_guarded_program_may_wait_for_all_its_children() -> None:
    code = "import os\ntry:\n    while True: os.wait()\nexcept ChildProcessError: print('none left')"
    done = process.run([sys.executable, "-S", "-c", code], guarded=True, env=ENV, timeout=60)
    assert done.stdout == b"none left\n"


def test_whoever_waits_is_told_for_how_long() -> None:
    seen: list[float] = []
    process.run(["sleep", "0.3"], waiting=seen.append, env=ENV)
    assert seen == sorted(seen)
    assert seen[0] < 0.2 <= seen[-1]


def test_a_shell_command_has_no_input_and_its_words_are_its_own() -> None:
    done = process.run(['cat; echo "$0 $1"; exit 3', "a b", "c"], shell=True, env=ENV)  # noqa: S604 - the subject
    assert (done.status, done.stdout) == (3, b"a b c\n")


def interrupted(pid_file: Path, script: str, **options: object) -> None:
    """Run a script, and be interrupted as soon as it has written its process id into this file."""
    before = signal.signal(signal.SIGINT, lambda *_: interruption.interrupt())

    def interrupt() -> None:
        while not pid_file.exists() or not pid_file.read_text().strip():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            sh(script, timeout=30, **options)
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("_again", range(5))  # in different moments of the program's start
def test_an_interrupt_ends_the_program_and_passes_on(tmp_path: Path, _again: int) -> None:
    pid_file = tmp_path / "pid"
    interrupted(pid_file, f"echo $$ > {pid_file}; exec sleep 60")
    assert wait_until_gone(int(pid_file.read_text()))


@pytest.mark.parametrize("ending", ["exit", "sleep 60"])
def test_what_tidies_up_may_do_so_for_a_moment(tmp_path: Path, ending: str) -> None:
    pid_file, tidy = tmp_path / "pid", tmp_path / "tidy"
    script = f"trap 'echo > {tidy}; {ending}' TERM; echo $$ > {pid_file}; while :; do sleep 0.01; done"
    interrupted(pid_file, script, guarded=True, tidies=True)
    assert tidy.exists()
    assert wait_until_gone(int(pid_file.read_text()))


def test_no_zombie_and_no_descriptor_is_left_behind() -> None:
    before = open_descriptors()
    for _ in range(3):
        sh("echo x", stdin=b"y")
        sh("sleep 60", timeout=0.05)
        with pytest.raises(process.ProgramNotFound):
            process.run(["/no/such/program"], env=ENV, stdin=b"y")
    assert open_descriptors() == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@pytest.mark.parametrize("name", ["no-such-program-here", "/etc/passwd/x"])
def test_a_missing_program_is_named(name: str) -> None:
    with pytest.raises(process.ProgramNotFound, match=f"not found: '{name[:20]}"):
        process.run([name], env=ENV)


@pytest.mark.parametrize("argv", [[], [""], [b""]])
def test_an_empty_command_is_refused(argv: list[str | bytes]) -> None:
    with pytest.raises(process.ProgramNotFound, match="no command"):
        process.run(argv, env=ENV)


def test_a_file_without_permission_is_not_executable(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    with pytest.raises(process.NotExecutable, match="ermission") as caught:
        process.run([tmp_path / "plain"], env=ENV)
    assert "chmod" in str(caught.value.hint)


def test_a_directory_is_not_executable(tmp_path: Path) -> None:
    with pytest.raises(process.NotExecutable):
        process.run([tmp_path], env=ENV)


def test_a_text_file_is_not_executable_and_the_hint_says_why(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("echo x\n")
    (tmp_path / "text").chmod(0o755)
    with pytest.raises(process.NotExecutable) as caught:
        process.run([tmp_path / "text"], env=ENV)
    assert "#!" in str(caught.value.hint)


def test_a_script_with_a_missing_interpreter_is_not_called_missing_itself(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("#!/no/such/interpreter\n")
    (tmp_path / "script").chmod(0o755)
    with pytest.raises(process.NotExecutable, match="interpreter"):
        process.run(["./script"], env=ENV, cwd=tmp_path)


def test_a_missing_working_directory_is_not_taken_for_a_missing_program(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="working directory"):
        process.run(["true"], env=ENV, cwd=tmp_path / "gone")


def test_an_argument_with_a_nul_byte_is_refused_in_words() -> None:
    with pytest.raises(MeasurementError, match="null byte"):
        process.run(["echo", "a\0b"], env=ENV)


def test_arguments_beyond_the_kernels_limit_are_refused_in_words() -> None:
    with pytest.raises(MeasurementError, match="rgument list too long"):
        process.run(["echo", "x" * 3_000_000], env=ENV)


def test_which_looks_only_where_it_is_reported(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    (tmp_path / "plain").write_text("")
    assert process.which("tool", str(tmp_path)) == str(tmp_path / "tool")
    assert process.which("plain", str(tmp_path)) is None
    assert process.which("sh", str(tmp_path)) is None
    assert process.which("sh", "") is None
    assert process.which("/bin/sh", "") == "/bin/sh"


def test_a_child_reads_what_we_write_until_we_close_its_input() -> None:
    with process.start(["cat"], env=ENV) as child:
        os.write(child.stdin, b"hello")
        assert os.read(child.stdout, 100) == b"hello"
        assert not child.has_ended()
        assert child.wait(0.01) is None
        child.close_stdin()
        assert child.wait(5) == 0
        assert child.has_ended()
        assert (os.read(child.stdout, 100), os.read(child.stderr, 100)) == (b"", b"")


def test_a_child_leads_its_own_session() -> None:
    with process.start(["cat"], env=ENV) as child:
        assert os.getsid(child.pid) == os.getpgid(child.pid) == child.pid


def test_a_child_inherits_the_descriptors_named_and_no_others() -> None:
    read_end, write_end = os.pipe()
    other, _end = unnamed = os.pipe()
    for descriptor in unnamed:
        os.set_inheritable(descriptor, True)
    script = f"echo x > /proc/self/fd/{write_end}; test ! -e /proc/self/fd/{other}"
    with process.start(["/bin/sh", "-c", script], env=ENV, pass_fds=(write_end,)) as child:
        assert child.wait(5) == 0
    assert os.read(read_end, 10) == b"x\n"
    for descriptor in (read_end, write_end, *unnamed):
        os.close(descriptor)


def test_leaving_the_block_lets_a_supervisor_tidy_up_first(tmp_path: Path) -> None:
    with process.start(["/bin/sh", "-c", f"cat >/dev/null; sleep 0.2; echo tidy > {tmp_path}/out"], env=ENV):
        pass
    assert (tmp_path / "out").read_text() == "tidy\n"


def test_a_child_without_input_pipe_is_killed_with_its_group_on_leaving_the_block() -> None:
    with process.start(["/bin/sh", "-c", "sleep 60 & echo $!; wait"], env=ENV, stdin_pipe=False) as child:
        assert child.stdin == -1
        grandchild = int(os.read(child.stdout, 100))
    assert child.wait() == -signal.SIGKILL
    assert wait_until_gone(grandchild)


def test_a_child_that_ignores_the_end_of_its_input_is_killed() -> None:
    with process.start(["sleep", "60"], env=ENV, farewell_s=0.1) as child:
        pass
    assert child.wait() == -signal.SIGKILL


def test_killing_twice_is_harmless() -> None:
    with process.start(["sleep", "60"], env=ENV) as child:
        assert child.kill() == child.kill() == -signal.SIGKILL


def test_many_threads_may_run_programs_at_once() -> None:
    results: list[bytes] = []
    code = "import sys; sys.stdout.write(sys.stdin.read()[::-1])"

    def work(number: int) -> None:
        argv = [sys.executable, "-S", "-c", code]
        results.append(process.run(argv, env=ENV, stdin=str(number).encode(), timeout=60).stdout)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(10, 20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == sorted(str(number)[::-1].encode() for number in range(10, 20))


def test_a_command_is_shown_without_passwords() -> None:
    words = ["git", "fetch", "https://me:s3cret@host/x.git", "a b"]
    assert process.shown_command(words) == "git fetch https://…@host/x.git 'a b'"
