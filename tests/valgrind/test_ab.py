"""Two commits measured here and now, each in a worktree of its own: what changed is told, what did not is identical."""

from __future__ import annotations

import compileall
import json
import os
import signal
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest

from cachegrind_bench.hermetic.process_memory import descendants_of
from tests.unit.repositories import Repository, git_environment

pytestmark = pytest.mark.valgrind

SUITE = """\
[[benchmark]]
id = "changed"
setup = "cp source.sh built.sh"
command = "/bin/sh built.sh"

[[benchmark]]
id = "same"
command = "/bin/echo same"
"""


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    found = Repository(tmp_path / "repository", git_environment(tmp_path))
    (found.path / "bench").mkdir()
    (found.path / "bench" / "cg-bench.toml").write_text(SUITE)
    (found.path / "bench" / "source.sh").write_text("echo one\n")
    found.git("add", ".")
    found.commit("base")
    return found


def ab(repository: Repository, *words: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "cachegrind_bench", "ab", *words]
    done = subprocess.run(
        command, cwd=repository.path / "bench", env=repository.environ, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def states(text: str) -> dict[str, tuple[str, int]]:
    return {item["id"]: (item["state"], item["change_ppm"]["Ir"]) for item in json.loads(text)["benchmarks"]}


def test_what_is_not_committed_is_compared_with_a_commit_and_nothing_here_is_touched(repository: Repository) -> None:
    (repository.path / "bench" / "source.sh").write_text("for i in 1 2 3 4 5 6 7 8 9; do echo one; done\n")
    before = repository.git("status", "--porcelain=v2", "--branch"), sorted(repository.path.rglob("*"))
    code, out, err = ab(repository, "main", "--format", "json", "--keep", "kept")
    assert code == 1, err
    found = states(out)
    assert found["same"] == ("unchanged", 0)
    assert found["changed"][0] == "regression"
    kept = repository.path / "bench" / "kept"
    assert sorted(path.name for path in kept.iterdir()) == ["base.json", "candidate.json"]
    for path in kept.iterdir():
        path.unlink()
    kept.rmdir()
    after = repository.git("status", "--porcelain=v2", "--branch"), sorted(repository.path.rglob("*"))
    assert after[0] == before[0]
    assert [path for path in after[1] if ".git" not in path.parts] == [
        path for path in before[1] if ".git" not in path.parts
    ]
    assert repository.git("worktree", "list").count("\n") == 0


def test_what_a_commit_has_built_is_there_when_its_calls_are_recorded(repository: Repository, tmp_path: Path) -> None:
    suite = repository.path / "bench" / "cg-bench.toml"
    build = f"test source.sh -ot built.sh || {{ cp source.sh built.sh; git status --porcelain >> {tmp_path}/built; echo built >> {tmp_path}/built; }}"
    suite.write_text(SUITE.replace("cp source.sh built.sh", build))
    (repository.path / ".gitignore").write_text("built.sh\n")
    repository.git("add", ".")
    repository.commit("builds only what has changed")
    (repository.path / "bench" / "source.sh").write_text("for i in 1 2 3 4 5 6 7 8 9; do echo one; done\n")
    code, out, err = ab(repository, "main", "--format", "json")
    assert code == 1, err
    assert "again, with calls: changed" in err
    assert json.loads(out)["benchmarks"][0]["calls"]
    assert (tmp_path / "built").read_text() == "built\n" * 2
    assert not list(Path("/tmp").glob("cg-bench.*/built.*"))


def test_a_set_up_that_works_once_is_done_anew_to_record_calls(repository: Repository) -> None:
    suite = repository.path / "bench" / "cg-bench.toml"
    suite.write_text(SUITE.replace("cp source.sh built.sh", "mkdir once && cp source.sh built.sh"))
    repository.git("add", ".")
    repository.commit("builds once")
    (repository.path / "bench" / "source.sh").write_text("for i in 1 2 3 4 5 6 7 8 9; do echo one; done\n")
    code, out, err = ab(repository, "main", "--format", "json")
    assert code == 1, err
    assert json.loads(out)["benchmarks"][0]["calls"]
    assert "failed when its calls were recorded" not in out + err


def test_two_commits_and_one_command_compare_without_any_noise(repository: Repository) -> None:
    repository.commit("nothing changed")
    code, out, err = ab(
        repository, "HEAD~1", "HEAD", "--format", "json", "--threshold", "0.0001%", "--", "/bin/ls", "-A"
    )
    assert code == 0, err
    assert list(states(out).values()) == [("unchanged", 0)]


def test_a_commit_that_cannot_be_measured_is_reported_and_leaves_nothing(repository: Repository) -> None:
    (repository.path / "bench" / "cg-bench.toml").write_text("[[benchmark]]\nid = 1\n")
    repository.git("commit", "--quiet", "-a", "-m", "broken")
    (repository.path / "bench" / "cg-bench.toml").write_text(SUITE)
    code, out, err = ab(repository, "HEAD~1", "HEAD")
    assert (code, out) == (4, "")
    assert "could not be measured: cg-bench.toml:2" in err
    assert repository.git("worktree", "list").count("\n") == 0


def test_a_commit_without_the_suite_is_measured_by_that_of_the_checkout(repository: Repository) -> None:
    repository.git("rm", "bench/cg-bench.toml")
    repository.commit("not yet there")
    own = repository.path / "bench" / "pyproject.toml"
    own.write_text(
        '[tool.cg-bench]\nthreshold = "1%"\n'
        '[[tool.cg-bench.benchmark]]\nid = "said"\ncommand = ["/bin/echo", "\\"ü😀\\""]\n'
        'env = { "A.B" = "1" }\npython-profile = false\n'
    )
    code, out, err = ab(repository, "HEAD", "--format", "json")
    assert (code, states(out)) == (0, {"said": ("unchanged", 0)}), err
    assert (
        err.count("has no configuration: that of your checkout is used") == 2
    )  # nor are untracked files of the candidate
    own.unlink()
    code, _, err = ab(repository, "HEAD")
    assert code == 4
    assert "nor your checkout has a configuration of a suite\n  'cg-bench init' writes one; or give the command" in err
    code, _, err = ab(repository, "HEAD~1", "-k", "x", "--", "/bin/true")
    assert (code, "-k is for a suite" in err, "measuring" in err) == (2, True, False)


def test_a_commit_whose_suite_lacks_what_is_chosen_is_measured_by_that_of_the_checkout(repository: Repository) -> None:
    more = f'{SUITE}[[benchmark]]\nid = "new"\ncommand = "/bin/echo new"\n'
    (repository.path / "bench" / "cg-bench.toml").write_text(more)
    code, out, err = ab(repository, "main", "-k", "new", "--format", "json")
    assert (code, states(out)) == (0, {"new": ("unchanged", 0)}), err
    assert err.count("has none of these benchmarks in its configuration: that of your checkout is used") == 1


FINDER = """
import sys, types
from importlib.util import spec_from_file_location
def find(name, path=None, target=None):
    if name == "package":
        return spec_from_file_location(name, {file!r}, submodule_search_locations=[{folder!r}])
def install():
    sys.meta_path.append(types.SimpleNamespace(find_spec=find))
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["path by a link", "path, kept place", "finder", "compiled finder", "variable"])
def test_what_python_imports_from_the_checkout_is_that_of_each_commit(repository: Repository, way: str) -> None:
    checkout = repository.path
    folder = checkout / "src" / "package"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("def work(): return 1\n")
    (checkout / "bench" / "program.py").write_text("import other, package; package.work()\n")
    venv.create(checkout / ".venv")
    (checkout / ".gitignore").write_text(".venv\nothers\n")
    (installed,) = (checkout / ".venv").glob("lib/python*/site-packages")
    (checkout / "others").mkdir()  # git does not track it: there is one for all commits
    (checkout / "others" / "other.py").touch()
    (installed / "other.pth").write_text(f"{checkout}/others\n")
    if way == "variable":
        repository.environ["PYTHONPATH"] = f"/nowhere:{checkout}/./src"
    elif "finder" in way:
        text = FINDER.format(file=str(folder / "__init__.py"), folder=str(folder))
        (installed / "__editable___package_finder.py").write_text(text)
        (installed / "package.pth").write_text("import __editable___package_finder as it; it.install()\n")
        if "compiled" in way:
            compileall.compile_dir(installed, quiet=1)
    elif "link" in way:
        checkout.with_name("link").symlink_to(checkout)
        (installed / "package.pth").write_text(f"{checkout.with_name('link')}/src\n")
    else:
        (installed / "__editable__.package.pth").write_text(f"{checkout}/src\n")
    repository.git("add", "bench", ".gitignore")
    repository.commit("a program")
    repository.git("add", ".")
    repository.commit("a package")
    (folder / "__init__.py").write_text("def work(): return sum(range(100_000))\n")
    keep = ["--keep-place"] if "kept" in way else []
    words = [
        "main",
        "--format",
        "json",
        "--evidence",
        "never",
        *keep,
        "--",
        f"{checkout}/.venv/bin/python",
        "program.py",
    ]
    code, out, err = ab(repository, *words)
    assert code == 1, err
    (change,) = [ppm for _, ppm in states(out).values()]
    assert change > 20_000
    code, _, err = ab(repository, "main~1", *words[1:])
    assert code == 4, err  # that commit has no such package yet


def test_a_program_that_is_not_there_before_it_is_built_can_be_measured(repository: Repository) -> None:
    repository.commit("nothing changed")
    code, out, err = ab(
        *(repository, "HEAD~1", "HEAD", "--format", "json"),
        *(
            "--prepare",
            "echo 'echo built' > made.sh; chmod +x made.sh; sed -i '1i#!/bin/sh' made.sh",
            "--",
            "./made.sh",
        ),
    )
    assert code == 0, err
    assert list(states(out).values()) == [("unchanged", 0)]


def test_what_git_does_not_know_is_reported_before_anything_is_measured(repository: Repository) -> None:
    code, _, err = ab(repository, "nonesuch")
    assert code == 2
    assert "git knows no commit 'nonesuch'" in err
    assert "measuring" not in err


@pytest.mark.parametrize("linked", [False, True])
def test_a_hook_that_measures_takes_nothing_from_the_commit_that_is_made(
    repository: Repository, tmp_path: Path, *, linked: bool
) -> None:
    repository.commit("second")
    hook = repository.path / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nexec {sys.executable} -m cachegrind_bench ab HEAD~1 HEAD -- /bin/true >&2\n")
    hook.chmod(0o755)
    place = repository.path
    if linked:
        place = tmp_path / "linked"
        repository.git("worktree", "add", "--quiet", "-b", "topic", str(place))
    (place / "bench" / "source.sh").write_text("echo two\n")
    repository.git("-C", str(place), "commit", "--quiet", "-a", "-m", "with a hook", PYTHONPATH=os.getcwd())
    assert repository.git("-C", str(place), "show", "HEAD:bench/source.sh") == "echo two"
    assert repository.git("-C", str(place), "status", "--porcelain") == ""


def test_what_a_job_stores_is_not_what_ab_measures(repository: Repository, tmp_path: Path) -> None:
    repository.commit("nothing changed")
    repository.environ |= {"CG_BENCH_SAVE": "1", "CG_BENCH_STORE": f"file:{tmp_path}/stored", "CG_BENCH_SHARD": "2/2"}
    repository.environ["CG_BENCH_REPEAT"] = "2"  # an option of `ab`, too
    code, out, err = ab(repository, "HEAD~1", "HEAD", "--format", "json")
    assert code == 0, err
    assert len(states(out)) == 2
    assert err.count("4 runs of 2 benchmarks") == 2
    assert not (tmp_path / "stored").exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_measured_any_more_after_cg_bench_was_killed(
    repository: Repository, tmp_path: Path, number: signal.Signals
) -> None:
    begun = tmp_path / "begun"
    program = ["sh", "-c", f"echo $$ > {begun}; sleep 60; true"]
    command = [sys.executable, "-m", "cachegrind_bench", "ab", "HEAD", "HEAD", "--", *program]
    with subprocess.Popen(command, cwd=repository.path, env=repository.environ, stderr=subprocess.DEVNULL) as run:
        deadline = time.monotonic() + 20
        while not begun.exists() or not begun.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        started = descendants_of(run.pid)
        assert int(begun.read_text()) in started
        run.send_signal(number)
    assert run.returncode == -number
    while any(Path(f"/proc/{pid}").exists() for pid in started):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    if number != signal.SIGKILL:  # the next one removes what that leaves
        listed = subprocess.run(["git", "worktree", "list"], cwd=repository.path, capture_output=True, check=True)
        assert listed.stdout.count(b"\n") == 1
