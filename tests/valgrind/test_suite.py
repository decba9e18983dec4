"""A suite, measured for real: as many at once as there are CPUs, and exact to the count all the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.valgrind.conftest import COMMAND, environment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.conftest import CompileC
    from tests.valgrind.conftest import CgBench

PATIENCE_S = 60

SQUARES = "int main(void) { volatile long sum = 0; for (long i = 0; i < 50000; i++) sum += i * i; return 0; }"


def configure(cg_bench: CgBench, text: str) -> None:
    (cg_bench.cwd / "cg-bench.toml").write_text(text, encoding="utf-8")


def suite_of(*commands: str, ids: Sequence[str] = "abcdef") -> str:
    return "".join(
        f"[[benchmark]]\nid = {json.dumps(name)}\ncommand = {json.dumps(command)}\n\n"
        for name, command in zip(ids, commands, strict=False)
    )


def read(path: Path) -> list[dict[str, Any]]:
    """Return the benchmarks of a result with their names written out, without the time they took."""
    document = json.loads(path.read_bytes())
    strings = document["strings"]
    for item in document["benchmarks"]:
        del item["wall_ms"]
        if item["profile"] is not None:
            rows = item["profile"]["functions"]
            item["profile"]["functions"] = sorted([strings[row[0]], strings[row[1]], *row[2:]] for row in rows)
        if "calls" in item:
            names = [[strings[index] for index in row[:3]] for row in item["calls"]["functions"]]
            item["calls"] = sorted([names[row[0]], names[row[1]], *row[2:]] for row in item["calls"]["calls"])
    return list(document["benchmarks"])


def processes(marker: str) -> list[int]:
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if marker.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@pytest.mark.slow
def test_benchmarks_that_make_the_same_files_do_not_spoil_each_others_counts(cg_bench: CgBench, tmp_path: Path) -> None:
    configure(
        cg_bench,
        """
        [[benchmark]]
        id = "sort"
        prepare = "seq {n} > in.tmp"
        command = "sort in.tmp"
        parameters = { n = [100, 20000] }

        [[benchmark]]
        id = "pack"
        prepare = "rm -f out.bin; touch out.bin"
        cleanup = "rm out.bin"
        command = ["sh", "-c", "head -c {n} /dev/zero >> out.bin"]
        parameters = { n = [1, 2, 3] }
        """,
    )
    results = []
    for jobs in ("1", "2", "2"):
        path = tmp_path / "r.json"
        done = cg_bench("run", "-q", "-j", jobs, "-o", str(path))
        assert done.code == 0, done.stderr
        results.append([(item["id"], item["counts"]["Ir"]) for item in read(path) if item["id"].startswith("sort")])
    assert results[0] == results[1] == results[2]
    assert results[0][1][1] > 5 * results[0][0][1]


def test_what_programs_said_is_kept_with_what_is_used_again(cg_bench: CgBench, tmp_path: Path) -> None:
    configure(cg_bench, suite_of("/bin/echo hello"))
    path = tmp_path / "r.json"

    def run(*options: str) -> tuple[str | None, str]:
        done = cg_bench("run", "--cached", "-o", str(path), *options)
        assert done.code == 0, done.stderr
        return read(path)[0].get("output"), done.stderr

    assert run()[0] is None
    said, told = run("--capture-output")
    assert said == "hello\nhello\n"
    assert "measured, since what it wrote was not kept" in told
    assert run("--capture-output")[0] == said
    found, told = run()
    assert found is None
    assert "re-used" in told


@pytest.mark.slow
def test_jobs_side_by_side_count_what_they_count_one_by_one_and_alone(
    cg_bench: CgBench, compile_c: CompileC, tmp_path: Path
) -> None:
    program = compile_c(SQUARES)
    commands = ["true", str(program), "/usr/bin/env -i /bin/true", "sort cg-bench.toml"]
    configure(cg_bench, suite_of(*commands))
    # Whatever a suite leaves beside its configuration must be there before the first of them counts the folder.
    assert cg_bench("run", "-q").code == 0
    outcomes = {}
    for jobs in ("1", "2"):
        path = tmp_path / f"{jobs}.json"
        done = cg_bench("run", "-q", "-j", jobs, "-o", str(path))
        assert done.code == 0, done.stderr
        outcomes[jobs] = read(path)
    assert outcomes["1"] == outcomes["2"]
    assert [item["id"] for item in outcomes["1"]] == ["a", "b", "c", "d"]
    for item, command in zip(outcomes["1"], commands, strict=True):
        path = tmp_path / f"alone-{item['id']}.json"
        assert cg_bench("run", "-q", "--id", item["id"], "-o", str(path), "--", *command.split()).code == 0
        assert read(path) == [item]


def test_one_that_fails_stops_no_other_and_is_reported_with_what_it_said(cg_bench: CgBench, tmp_path: Path) -> None:
    configure(cg_bench, suite_of("true", "sh -c 'echo oh no; exit 3'", "./nonesuch", "true"))
    path = tmp_path / "result.json"
    done = cg_bench("run", "-o", str(path))
    assert done.code == 4
    assert [item["status"] for item in read(path)] == ["ok", "failed", "error", "ok"]
    assert "  | oh no" in done.stderr
    assert "4 benchmarks, 2 failed" in done.stdout
    assert "\x1b" not in done.stderr
    stopped = cg_bench("run", "-j", "1", "--fail-fast", "-o", str(path))
    assert stopped.code == 4
    assert [item["status"] for item in read(path)] == ["ok", "failed"]


def test_what_programs_say_is_kept_on_request(cg_bench: CgBench, tmp_path: Path) -> None:
    configure(cg_bench, suite_of("echo hello"))
    path = tmp_path / "result.json"
    assert cg_bench("run", "-q", "-o", str(path)).code == 0
    assert "output" not in read(path)[0]
    assert cg_bench("run", "-q", "--capture-output", "-o", str(path)).code == 0
    assert "hello" in read(path)[0]["output"]


def test_ctrl_c_ends_every_process_and_keeps_what_finished(cg_bench: CgBench, tmp_path: Path) -> None:
    marker = f"6{uuid.uuid4().int % 10**12}"  # seconds, and a word of its own
    configure(cg_bench, suite_of("true", f"sleep {marker}", f"sleep {marker}"))
    path = tmp_path / "result.json"
    run = cg_bench.start("run", "-o", str(path), "--warmup", "0")
    wait_for(lambda: len(processes(marker)) >= 2, "the benchmarks did not start")
    run.send_signal(signal.SIGINT)
    _out, err = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 130, err
    wait_for(lambda: not processes(marker), "processes are left")
    assert [item["id"] for item in read(path)] == ["a"]


def test_killed_in_the_middle_nothing_stays_and_the_next_run_works(cg_bench: CgBench, tmp_path: Path) -> None:
    marker = f"6{uuid.uuid4().int % 10**12}"
    configure(cg_bench, suite_of("true", f"sleep {marker}"))
    path = tmp_path / "result.json"
    path.write_bytes(b"{as it was}")
    run = cg_bench.start("run", "-o", str(path), "--warmup", "0")
    wait_for(lambda: processes(marker), "the benchmark did not start")
    run.kill()
    run.communicate(timeout=PATIENCE_S)
    wait_for(lambda: not processes(marker), "processes are left")
    assert path.read_bytes() == b"{as it was}"
    configure(cg_bench, suite_of("true"))
    assert cg_bench("run", "-q", "-o", str(path)).code == 0
    assert [item["status"] for item in read(path)] == ["ok"]


@pytest.mark.slow
@pytest.mark.parametrize("changed", ["script.py", "module.py", "data.txt"])
def test_only_what_read_something_that_changed_is_measured_again(
    cg_bench: CgBench, tmp_path: Path, changed: str
) -> None:
    folder = cg_bench.cwd
    (folder / "module.py").write_text("VALUE = 1\n")
    (folder / "data.txt").write_text("one\n")
    (folder / "script.py").write_text("import module\nprint(module.VALUE, open('data.txt').read())\n")
    configure(cg_bench, suite_of("/usr/bin/python3 script.py", "sort cg-bench.toml", ids=["script", "other"]))
    path = tmp_path / "result.json"

    def reused() -> dict[str, bool]:
        done = cg_bench("run", "--cached", "-o", str(path))
        assert done.code == 0, done.stderr
        lines = {
            name: line for name in ("script", "other") for line in done.stderr.splitlines() if f"] {name}  " in line
        }
        return {name: "re-used" in line for name, line in lines.items()}

    reused()
    reused()  # the first run left a compiled module, which the second one reads
    before = read(path)
    assert reused() == {"script": True, "other": True}
    assert read(path) == before
    text = (folder / changed).read_text()
    (folder / changed).write_text(
        text.replace("1", "2").replace("one", "two") + ("# more\n" if ".py" in changed else "more\n")
    )
    assert reused() == {"script": False, "other": True}


def test_in_a_chroot_too_what_read_something_that_changed_is_measured_again(cg_bench: CgBench, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    script = f'mount --rbind / {root} && exec chroot {root} sh -c \'cd {cg_bench.cwd} && exec "$@"\' sh "$@"'
    before = ("unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh")
    if subprocess.run([*before, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("needs a mount namespace of its own (unshare)")
    (cg_bench.cwd / "cg-bench.toml").write_text('[[benchmark]]\nid = "sort"\ncommand = ["sort", "read"]\n')
    found: list[int] = []
    for length in (1, 1, 2000):
        (cg_bench.cwd / "read").write_text("x\n" * length)
        done = cg_bench("run", "--cached", "-o", str(tmp_path / "found.json"), before=before)
        assert done.code == 0, done.stderr
        found.append(json.loads((tmp_path / "found.json").read_text())["benchmarks"][0]["counts"]["Ir"])
    assert found[0] == found[1] < found[2]


def test_ctrl_c_of_a_terminal_which_reaches_all_at_once_is_not_a_failure_of_a_benchmark(
    cg_bench: CgBench, tmp_path: Path
) -> None:
    marker = f"6{uuid.uuid4().int % 10**12}"
    configure(cg_bench, suite_of("true", f"sleep {marker}", f"sleep {marker}"))
    path = tmp_path / "result.json"
    words = [*COMMAND, "run", "-o", str(path)]
    run = subprocess.Popen(
        words,
        cwd=cg_bench.cwd,
        env=environment({}),
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert run.stderr is not None
    assert b"[1/3] a  score" in run.stderr.readline()
    wait_for(lambda: processes(marker), "the benchmarks did not start")
    os.killpg(run.pid, signal.SIGINT)
    _out, err = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 130, err
    wait_for(lambda: not processes(marker), "processes are left")
    assert [(item["id"], item["status"]) for item in read(path)] == [("a", "ok")]


def test_a_benchmark_that_removes_the_working_directory_loses_no_report(cg_bench: CgBench) -> None:
    configure(cg_bench, suite_of("/bin/true", "/bin/true") + f'prepare = "rm -rf {cg_bench.cwd}"\n')
    finished = cg_bench("run", "-j", "1")
    assert finished.code == 4
    assert "2 benchmarks, 1 failed" in finished.stdout
    assert "cannot be entered: No such file or directory" in finished.stdout
