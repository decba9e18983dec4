"""`cg-bench backfill` measures a past: few commits, all steps, by today's benchmarks, and it goes on where it ended."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.valgrind.conftest import CgBench, Finished

# The work of the program at each commit: three steps. One commit does not compile.
WORK = [2000] * 13 + [2400] * 20 + [2200] + [4000] * 30
BROKEN = 40
CONFIGURATION = """
carry = ["bench"]
[[benchmark]]
id = "sum"
setup = "gcc -O1 -g -o sum bench/main.c sum.c"
command = "./sum"
"""
# Younger than all commits but the last.
MAIN = "int sum(void); int main(void) { return sum() == 0; }\n"
ENVIRON = {
    **dict.fromkeys(("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"), os.devnull),
    **{f"GIT_{role}_{what}": "x@y" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


@pytest.fixture
def backfill(cg_bench: CgBench, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> CgBench:
    """Return a cg-bench in a repository of as many commits as the test's parameter says."""
    folder = cg_bench.cwd
    monkeypatch.setenv("XDG_CACHE_HOME", str(cg_bench.folder / "cache"))

    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=folder, env={**os.environ, **ENVIRON}, check=True)

    git("init", "-q", "-b", "main")
    for number, work in enumerate(WORK[-request.param :]):
        source = f"/* {number} */ int sum(void) {{ volatile int s = 1; for (int i = 0; i < {work}; i++) s += i; return s; }}\n"
        broken = number == BROKEN - len(WORK) + request.param
        (folder / "sum.c").write_text("broken" if broken else source)
        git("add", "sum.c")
        git("commit", "-q", "-m", f"Commit {number}")
    (folder / "bench").mkdir()
    (folder / "bench" / "main.c").write_text(MAIN)
    (folder / "cg-bench.toml").write_text(CONFIGURATION)
    return cg_bench


def steps(finished: Finished) -> list[str]:
    """Return the subjects of the commits that are reported as steps."""
    assert finished.code == 0, finished.stderr
    return re.findall(r" (Commit \d+)$", finished.stdout, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("backfill", [64], indirect=True)
def test_three_steps_of_64_commits_are_found_by_few_measurements_and_an_end_loses_nothing(backfill: CgBench) -> None:
    begun = backfill("backfill", "main", "--fresh", "--budget", "5", env=ENVIRON)
    assert begun.stdout.startswith("64 commits: 5 measured now, ")
    assert "call again to go on" in begun.stdout
    done = backfill("backfill", "main", "--fresh", env=ENVIRON)
    match = re.match(r"64 commits: (\d+) measured now, 5 known before, ", done.stdout)
    assert match, done.stdout + done.stderr
    assert int(match[1]) + 5 <= 30
    assert steps(done) == ["Commit 13", "Commit 33", "Commit 34"]
    again = backfill("backfill", "main", env=ENVIRON)
    assert again.stdout.startswith(f"64 commits: 0 measured now, {int(match[1]) + 5} known before")
    assert steps(again) == steps(done)
    trend = backfill("trend", env=ENVIRON)
    assert "Commit 34" in trend.stdout


@pytest.mark.parametrize("backfill", [3], indirect=True)
def test_what_was_measured_and_cannot_be_stored_is_kept_in_a_file(backfill: CgBench) -> None:
    where = ("--store", f"sqlite:///{backfill.cwd}/history.db")
    assert backfill("backfill", "main", "--fresh", "--budget", "1", *where, env=ENVIRON).code == 0
    with closing(sqlite3.connect(backfill.cwd / "history.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        done = backfill("backfill", "main", "--fresh", "--store-timeout", "1", *where, env=ENVIRON)
    assert done.code == 2
    match = re.search(r"it is kept in \S+; try again with: cg-bench (.*)", done.stderr)
    assert match, done.stderr
    assert backfill(*match[1].split(), env=ENVIRON).code == 0
    again = backfill("backfill", "main", "--fresh", *where, env=ENVIRON)
    assert "2 known before" in again.stdout
    assert os.listdir(backfill.cwd / ".cg-bench" / "unstored") == [os.path.basename(match[1])]


@pytest.mark.parametrize("backfill", [3], indirect=True)
def test_kill_9_while_a_store_is_waited_for_leaves_what_was_measured(backfill: CgBench) -> None:
    where = ("--store", f"sqlite:///{backfill.cwd}/history.db")
    assert backfill("backfill", "main", "--fresh", "--budget", "1", *where, env=ENVIRON).code == 0
    with closing(sqlite3.connect(backfill.cwd / "history.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        running = backfill.start("backfill", "main", "--fresh", *where)
        said = running.stderr
        assert said is not None
        while b"waiting for the lock" not in (line := said.readline()):
            assert line, "it ended"
        running.kill()
        running.communicate()
    (file,) = (backfill.cwd / ".cg-bench" / "unstored").iterdir()
    assert backfill("history", "add", str(file), *where, env=ENVIRON).stdout.startswith("added 1 run")


@pytest.mark.parametrize("backfill", [3], indirect=True)
def test_todays_benchmarks_measure_commits_that_are_older(backfill: CgBench) -> None:
    own = backfill("backfill", "main", "--fresh", "--own-suite", env=ENVIRON)
    assert own.code == 4
    assert "none of these commits could be measured" in own.stderr
    assert "bench/main.c" in own.stderr, "which no commit has"
    done = backfill("backfill", "main", "--fresh", env=ENVIRON)
    assert done.stdout.startswith("3 commits: 2 measured now, 1 between commits that cost the same"), done.stderr
    everything = backfill("backfill", "HEAD~2..main", "--every-commit", env=ENVIRON)
    assert everything.stdout.startswith("3 commits: 0 measured now, 2 known before, 1 failed before, which --retry")
    everything = backfill("backfill", "HEAD~2..main", "--every-commit", "--retry", "--fresh", env=ENVIRON)
    assert everything.stdout.startswith("3 commits: 1 measured now, 2 known before")


def counts(backfill: CgBench, store: str) -> dict[str, Any]:
    """Return the counts of all commits in a store."""
    exported = backfill("history", "export", "--store", store, "--format", "jsonl", env=ENVIRON)
    assert exported.code == 0, exported.stderr
    runs = [json.loads(line) for line in exported.stdout.splitlines()]
    return {run["commit"]["sha"]: {item["id"]: item["counts"] for item in run["benchmarks"]} for run in runs}


@pytest.mark.parametrize("backfill", [4], indirect=True)
def test_commits_measured_at_the_same_time_have_the_counts_of_one_after_the_other(backfill: CgBench) -> None:
    # Its own path is in the program, and counted.
    main = "int sum(void); int main(void) { int n = 0; for (const char *c = __FILE__; *c; c++) n += *c == 47; return sum() == n; }"
    (backfill.cwd / "bench" / "main.c").write_text(main)
    (backfill.cwd / "cg-bench.toml").write_text(CONFIGURATION.replace("bench/main.c", "$PWD/bench/main.c"))
    for jobs in "1", "2":
        done = backfill(
            "backfill", "main", "--every-commit", "--fresh", "-j", jobs, "--store", f"file:{jobs}", env=ENVIRON
        )
        assert done.stdout.startswith("4 commits: 4 measured now"), done.stderr
    assert counts(backfill, "file:1") == counts(backfill, "file:2")


PYTHON = """
[[benchmark]]
id = "python"
setup = "gcc -O1 -g -o sum bench/main.c sum.c && python3 -m compileall -q --invalidation-mode unchecked-hash tools"
command = "python3 -I -S -c 'import sys; sys.path.insert(0, \\"tools\\"); import sums'"
"""


@pytest.mark.slow
@pytest.mark.parametrize("backfill", [4], indirect=True)
def test_what_read_the_same_at_another_commit_is_taken_over_and_marked(backfill: CgBench) -> None:
    # The program is the same at all commits but the last, though its source is not; the modules of Python are those of the first two.
    (backfill.cwd / "tools").mkdir()
    (backfill.cwd / "tools" / "sums.py").write_text("print(sum(range(1000)))")
    (backfill.cwd / "sum.c").write_text((backfill.cwd / "sum.c").read_text().replace("4000", "5000"))
    (backfill.cwd / "cg-bench.toml").write_text(CONFIGURATION.replace('"bench"', '"bench", "tools"') + PYTHON)
    subprocess.run(
        ["git", "commit", "-q", "-a", "-m", "More"], cwd=backfill.cwd, env={**os.environ, **ENVIRON}, check=True
    )
    words = "backfill", "main", "--every-commit", "-j", "1"
    wanted = "5 commits: 2 measured now, 3 taken over from others that read the same"

    def stored(attempt: int) -> tuple[str, ...]:
        environ = {**ENVIRON, "XDG_CACHE_HOME": str(backfill.cwd.parent / f"cache-{attempt}")}
        store = "--store", f"file:{attempt}"
        return store if backfill(*words, *store, env=environ).stdout.startswith(wanted) else ()

    # Other tests at the same time may have the place where the first commit was.
    store = next(filter(None, map(stored, range(3))), ())
    assert store, "what read the same was measured again"
    fresh = backfill(*words, "--fresh", "--store", "file:fresh", env=ENVIRON)
    assert fresh.stdout.startswith("5 commits: 5 measured now"), fresh.stderr
    assert counts(backfill, store[1]) == counts(backfill, "file:fresh")
    runs = map(json.loads, backfill("history", "export", "--format", "jsonl", *store, env=ENVIRON).stdout.splitlines())
    taken = {run["commit"]["sha"]: [item.get("taken_over", False) for item in run["benchmarks"]] for run in runs}
    assert sorted(taken.values()) == [[False, False], [False, True], [True, True], [True, True], [True, True]]
    assert backfill("trend", "-q", "--html", "trend.html", *store, env=ENVIRON).code == 0
    assert 'class="bar taken"' in (backfill.cwd / "trend.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("backfill", [1], indirect=True)
def test_what_is_built_by_dates_outside_of_the_checkout_is_built_of_the_commit(backfill: CgBench) -> None:
    """As by Cargo with CARGO_TARGET_DIR, and make with a folder of its own."""
    program = backfill.folder / "built"
    build = f"[ sum.c -ot {program} ] || gcc -O1 -g -o {program} bench/main.c sum.c"
    text = CONFIGURATION.replace("gcc -O1 -g -o sum bench/main.c sum.c", build).replace('"./sum"', f'"{program}"')
    (backfill.cwd / "cg-bench.toml").write_text(text)
    source = (backfill.cwd / "sum.c").read_text()
    for work in (1000, 9000, 1000):
        (backfill.cwd / "sum.c").write_text(source.replace("4000", f"{work}"))
        environ = {**os.environ, **ENVIRON}
        subprocess.run(["git", "commit", "-qam", f"{work}"], cwd=backfill.cwd, env=environ, check=True)
    store = "file:built"
    finished = backfill("backfill", "main", "--every-commit", "-j", "1", "--store", store, env=ENVIRON)
    assert finished.code == 0, finished.stderr
    found = sorted(item["sum"]["Ir"] for item in counts(backfill, store).values())
    assert len(found) == 4
    assert found[1] - found[0] < 1000 < found[2] - found[1]
    assert found[3] - found[2] > 10_000


@pytest.mark.slow
@pytest.mark.parametrize("backfill", [4], indirect=True)
def test_ctrl_c_leaves_what_was_measured_and_no_worktree(backfill: CgBench) -> None:
    words = "backfill", "main", "--every-commit", "--fresh", "-j", "1"
    running = backfill.start(*words)
    runs, end = backfill.cwd / ".cg-bench" / "runs", time.monotonic() + 100
    while not list(runs.rglob("*.json")) and time.monotonic() < end:
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    stderr = running.communicate()[1].decode()
    assert running.returncode == 130, stderr
    stored = len(list(runs.rglob("*.json")))
    assert 1 <= stored < 4
    worktrees = subprocess.run(
        ["git", "worktree", "list"], cwd=backfill.cwd, capture_output=True, text=True, check=True
    )
    assert worktrees.stdout.count("\n") == 1
    done = backfill(*words, env=ENVIRON)
    assert done.stdout.startswith(f"4 commits: {4 - stored} measured now, {stored} known before"), done.stderr
    assert len(list(runs.rglob("*.json"))) == 4


@pytest.mark.parametrize("backfill", [2], indirect=True)
def test_what_is_carried_replaces_links_and_never_follows_them(backfill: CgBench) -> None:
    outside = backfill.folder / "outside"
    outside.mkdir()
    (outside / "main.c").write_text("mine")
    (backfill.cwd / "bench").rename(backfill.cwd / "kept")
    (backfill.cwd / "bench").symlink_to(outside)
    for words in (("add", "bench"), ("commit", "-q", "-m", "A link")):
        subprocess.run(["git", *words], cwd=backfill.cwd, env={**os.environ, **ENVIRON}, check=True)
    (backfill.cwd / "bench").unlink()
    (backfill.cwd / "kept").rename(backfill.cwd / "bench")
    done = backfill("backfill", "main", "--every-commit", "--fresh", "-j", "1", env=ENVIRON)
    assert done.stdout.startswith("3 commits: 3 measured now"), done.stderr
    assert (outside / "main.c").read_text() == "mine"


@pytest.mark.parametrize("backfill", [1], indirect=True)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere",), "git knows no commit 'nowhere'"),
        (("main..main", "--tags", "v*"), "there are no commits in 'main..main' with a tag like 'v*'"),
        (("main", "--carry", "absent"), "there is nothing to carry at 'absent'"),
        (("main", "--carry", "."), "everything would be carried at '.'"),
        (("main", "-k", "absent"), "no benchmark was selected"),
        (("main", "--carry", "bench", "--own-suite"), "--carry and --own-suite exclude each other"),
        (("main", "--budget", "soon"), "'soon' is not a time"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_measured(
    backfill: CgBench, words: tuple[str, ...], said: str
) -> None:
    finished = backfill("backfill", *words, env=ENVIRON)
    assert finished.code == 2
    assert said in finished.stderr
    assert not (backfill.cwd / ".cg-bench").exists()
