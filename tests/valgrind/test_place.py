"""A project that is moved: seen at a constant path, it costs the same, and reports name its real paths."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench.hermetic.place import ROOT
from tests.valgrind.measuring import measure

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import CompileC
    from tests.valgrind.conftest import CgBench, Finished

pytestmark = pytest.mark.valgrind

PLACES = ("a", "a-path/that-is-much/longer")
C = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int count, char **words) {
    char path[4096];
    unsigned long sum = 0;
    if (!realpath(words[0], path)) return 1;
    for (char *at = path; *at; at++) for (int turn = 0; turn < 100; turn++) sum = sum * 31 + *at;
    return printf("%s %lu\\n", path, sum) < 0;
}
"""
SCRIPT = "import os, words\nprint({os.getcwd(): hash(__file__)}, words.__file__)\nwords.count('a b a')\n"
BENCHMARKS = """
import os, words
def paths():
    return {hash(__file__), hash(words.__file__), hash(os.getcwd())}
def test_count(benchmark):
    assert benchmark(words.count, "a b a" * 20)["a"] > 1
def test_paths(benchmark):
    assert len(benchmark(paths)) == 3
"""
FAILS = """
import os
def test_fails(benchmark):
    benchmark(len, ())
    assert not os.getcwd()
"""
MODULE = "from collections import Counter\ndef count(text):\n    return Counter(text.split())\n"


@pytest.fixture
def checkouts(tmp_path: Path) -> list[Path]:
    made = [tmp_path / place / "checkout" for place in PLACES]
    for folder in made:
        (folder / "src" / "words").mkdir(parents=True)
        (folder / "src" / "words" / "__init__.py").write_text(MODULE)
        (folder / "main.py").write_text(SCRIPT)
    return made


def pinned(finished: Finished) -> Finished:
    place = finished.benchmark["seal"]["place"]
    if place["state"] != "pinned":
        pytest.skip(f"no mount namespace can be made here: {place['why']}")
    return finished


def measured(cg_bench: CgBench, checkouts: list[Path], *command: str, **how: Any) -> list[dict[str, int]]:
    found: list[dict[str, int]] = []
    for folder in checkouts:
        finished = pinned(cg_bench.run(*command, cwd=folder, **how))
        assert ROOT not in finished.stderr
        assert str(folder) in finished.stderr
        found.append(finished.counts)
    return found


def test_a_c_program_costs_the_same_in_another_checkout(
    cg_bench: CgBench, checkouts: list[Path], compile_c: CompileC
) -> None:
    program = compile_c(C)
    for folder in checkouts:
        (folder / "program").write_bytes(program.read_bytes())
        (folder / "program").chmod(0o755)
    one, other = measured(cg_bench, checkouts, "./program")
    assert one == other
    kept = [cg_bench.run("./program", cwd=folder, options=["--keep-place"]).counts for folder in checkouts]
    assert kept[0] != kept[1]


@pytest.mark.slow
def test_a_python_program_of_an_editable_install_costs_the_same_in_another_checkout(
    cg_bench: CgBench, checkouts: list[Path]
) -> None:
    for folder in checkouts:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
        (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
        (site / "__editable__.words-1.pth").write_text(f"{folder}/src\n")
    # Compiled where it really is, as by whoever has run it before.
    subprocess.run(["venv/bin/python", "main.py"], cwd=checkouts[0], check=True, env={}, stdout=subprocess.DEVNULL)
    assert str(checkouts[0]).encode() in next(checkouts[0].rglob("words/__pycache__/*.pyc")).read_bytes()
    one, other = measured(cg_bench, checkouts, "venv/bin/python", "main.py")
    assert one == other


@pytest.mark.slow
def test_a_virtual_environment_costs_the_same_inside_and_outside_of_the_project(
    cg_bench: CgBench, checkouts: list[Path], tmp_path: Path
) -> None:
    code = "import os, sys; print({sys.prefix: 1}, os.getcwd())"
    found: list[dict[str, int]] = []
    # A worktree of `ab` has none of its own.
    for venv, folder in zip((tmp_path / "v", checkouts[1] / ".venv"), checkouts, strict=True):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
        found += measured(cg_bench, [folder], str(venv / "bin" / "python"), "-c", code)
    assert found[0] == found[1]


def test_what_lies_beside_the_project_is_found_by_a_relative_path(cg_bench: CgBench, checkouts: list[Path]) -> None:
    (checkouts[0].parent / "beside").write_text("beside")
    finished = pinned(cg_bench.run("/bin/cat", "../beside", cwd=checkouts[0]))
    assert "beside" in finished.stderr


WRITES = """
mkdir -p ../cache ../../above && echo computed >> ../cache/x && ln -s $PWD/main.py ../link$$
rm ../link$$; if [ -f ../cache/x ] && [ -d ../../above ]; then for i in 1 2 3; do :; done; else echo missing; fi
"""


@pytest.mark.slow
def test_what_a_program_makes_next_to_the_project_is_there_afterwards_and_its_first_run_costs_what_others_do(
    cg_bench: CgBench, checkouts: list[Path]
) -> None:
    runs = [pinned(cg_bench.run("sh", "-c", WRITES, cwd=folder)) for folder in (checkouts[0], *checkouts)]
    assert runs[0].counts == runs[1].counts == runs[2].counts
    assert not any("missing" in run.stderr or "cannot" in run.stderr for run in runs)
    assert [(folder / "../cache/x").read_text().count("computed") for folder in checkouts] == [4, 2]
    assert sorted(path.name for path in checkouts[0].parent.iterdir()) == ["cache", "checkout"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("echo new > ../new; mv ../new ../old", "replaces or removes {}/old"),
        ("echo new > here; mv here ../moved", "moves or links a file to {}/moved"),
    ],
)
def test_a_program_that_changes_what_is_next_to_the_project_is_measured_where_it_is_and_the_report_says_why(
    cg_bench: CgBench, checkouts: list[Path], command: str, why: str
) -> None:
    folder = checkouts[0]
    (folder.parent / "old").write_text("old")
    (folder / "cg-bench.toml").write_text(f'[[benchmark]]\nid = "it"\ncommand = ["sh", "-c", "{command}"]\n')
    kept = cg_bench.run("sh", "-c", command, cwd=folder, options=["--keep-place"])
    (folder.parent / "moved").unlink(missing_ok=True)
    suite = cg_bench("run", "-o", "result.json", cwd=folder)
    assert (suite.code, why.format(folder.parent) in suite.stdout) == (0, True), suite
    (benchmark,) = json.loads((folder / "result.json").read_text())["benchmarks"]
    assert benchmark["counts"] == kept.counts
    assert (folder.parent / why.rpartition("/")[2]).read_text() == "new\n"


@pytest.mark.slow
def test_a_program_that_cannot_bear_another_path_is_measured_where_it_is(
    cg_bench: CgBench, checkouts: list[Path]
) -> None:
    pinned(cg_bench.run("/bin/true", cwd=checkouts[0]))
    code = "import os, sys; sys.exit('mnt' in os.getcwd())"
    finished = cg_bench.run(sys.executable, "-S", "-c", code, cwd=checkouts[0])
    assert finished.benchmark["seal"]["place"] == {"state": "kept", "why": "the command fails at another path"}


@pytest.mark.slow
def test_benchmarks_of_pytest_cost_the_same_in_another_checkout(checkouts: list[Path]) -> None:
    for folder in checkouts:
        (folder / "tests").mkdir()
        (folder / "tests" / "test_words.py").write_text(BENCHMARKS)
        (folder / "pyproject.toml").write_text("[tool.pytest.ini_options]\npythonpath = ['src']\n")
    found = [measure(folder) for folder in checkouts]
    assert [done.status for done in found] == [0, 0], found[0].said
    one, other = (done.found for done in found)
    place = one["test_count"]["seal"]["place"]
    if place["state"] != "pinned":
        pytest.skip(f"no mount namespace can be made here: {place['why']}")
    assert {name: item["counts"] for name, item in one.items()} == {
        name: item["counts"] for name, item in other.items()
    }
    # What fails is told with its real path, and the others are where they were.
    (checkouts[0] / "tests" / "test_fails.py").write_text(FAILS)
    failed = measure(checkouts[0])
    assert failed.status == 1
    assert str(checkouts[0]) in failed.said
    assert ROOT not in failed.said
    assert failed.found["test_count"]["counts"] == one["test_count"]["counts"]


@pytest.mark.slow
def test_benchmarks_that_cannot_bear_another_path_are_measured_where_they_are(checkouts: list[Path]) -> None:
    folder = checkouts[0]
    (folder.parent / "old").touch()
    (folder / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    for code in (
        "assert 'mnt' not in benchmark(os.getcwd)",
        "benchmark(os.utime, '../old'); os.unlink('../old'); open('../old', 'w')",
    ):
        (folder / "test_here.py").write_text(f"import os\ndef test_here(benchmark): {code}\n")
        done = measure(folder)
        assert done.status == 0, done.said
        place = done.found["test_here"]["seal"]["place"]
        assert place["state"] != "pinned"


@pytest.mark.slow
def test_benchmarks_fail_for_their_own_reasons_where_no_namespace_can_be_made(checkouts: list[Path]) -> None:
    # With the folder there already, in a namespace of this test's own.
    script = f'mount -t tmpfs none /mnt && mkdir {ROOT} && exec "$@"'
    before = ("unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh")
    if subprocess.run([*before, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("needs a mount namespace of its own (unshare)")
    folder = checkouts[0]
    (folder / "pyproject.toml").write_text("[tool.pytest.ini_options]\npythonpath = ['src']\n")
    (folder / "test_words.py").write_text("import words\ndef test_it(benchmark): benchmark(words.count, 3)\n")
    failed = measure(folder, before=before)
    assert "AttributeError: 'int' object has no attribute 'split'" in failed.said
    (folder / "test_words.py").write_text("import words\ndef test_it(benchmark): benchmark(words.count, 'a')\n")
    done = measure(folder, before=before)
    assert done.status == 0, done.said
    assert done.found["test_it"]["seal"]["place"]["state"] != "pinned"
