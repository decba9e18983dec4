"""Files outside of the project whose size or content differs between machines, and moves no count."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import without

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import CompileC
    from tests.valgrind.conftest import CgBench

SIZES = (0, 50, 200, 400, 800)
CACHE = "/etc/ld.so.cache"
C = """
#include <math.h>
#include <stdio.h>
int main(int argc, char **argv) {
    double sum = 0;
    for (int i = 1; i < 1000; i++) sum += pow(i, argc * 0.3);
    printf("%f\\n", sum);
    return 0;
}
"""
RUST = """
use std::collections::HashMap;
fn main() {
    let mut found = HashMap::new();
    for i in 0..1000u64 { *found.entry(i * 7919 % 97).or_insert(0) += i; }
    println!("{:?}", found.values().max());
}
"""
Lists = dict[int, tuple[str, ...]]


@pytest.fixture(scope="session")
def seeing() -> Callable[[str, Path], tuple[str, ...]]:
    """Return what gives the words that have cg-bench see one file in the place of another."""
    namespace = ["unshare", "--mount", *(() if os.geteuid() == 0 else ("--map-root-user",))]
    if shutil.which("unshare") is None or subprocess.run([*namespace, "true"], check=False).returncode:
        without("needs a mount namespace of its own: root, or user namespaces (unshare)")

    def seeing(path: str, other: Path) -> tuple[str, ...]:
        return (*namespace, "sh", "-c", f'mount --bind "$0" {path} && exec "$@"', str(other))

    return seeing


@pytest.fixture(scope="session")
def library_lists(
    tmp_path_factory: pytest.TempPathFactory, compile_c: CompileC, seeing: Callable[[str, Path], tuple[str, ...]]
) -> Lists:
    """Return, by the number of libraries more than this machine has, words that have cg-bench see a list with these."""
    ldconfig = shutil.which("ldconfig", path=f"{os.environ['PATH']}:/sbin:/usr/sbin")
    if ldconfig is None or not os.path.exists(CACHE):
        pytest.skip("needs the GNU loader's list of libraries and ldconfig")
    parent = tmp_path_factory.mktemp("lists")
    library = compile_c("int nothing;", "-shared", "-nostdlib")
    found: Lists = {}
    for size in SIZES:
        folder = parent / str(size)
        folder.mkdir()
        for number in range(size):
            shutil.copyfile(library, folder / f"lib{number * 7919 % 997}c.so.{number}")
        configuration, made = parent / f"{size}.conf", parent / f"{size}.cache"
        configuration.write_text(f"{folder}\ninclude /etc/ld.so.conf\n")
        subprocess.run([ldconfig, "-X", "-f", configuration, "-C", made], check=True, stderr=subprocess.DEVNULL)
        found[size] = seeing(CACHE, made)
    assert len({os.path.getsize(parent / f"{size}.cache") // 4096 for size in SIZES}) == len(SIZES)
    return found


@pytest.fixture(params=["c", "rust", "python"])
def command(request: pytest.FixtureRequest, tmp_path: Path) -> list[str | Path]:
    if request.param == "python":
        script = tmp_path / "script" / "script.py"  # no results are written beside it
        script.parent.mkdir()
        script.write_text("import json, math\nprint(json.dumps([math.sqrt(n) for n in range(100)]))\n")
        return [sys.executable, "-I", "-S", script]
    if request.param == "rust":
        return [request.getfixturevalue("compile_rust")(RUST)]
    return [request.getfixturevalue("compile_c")(C, "-lm")]


@pytest.mark.slow
def test_installed_libraries_move_no_count(cg_bench: CgBench, library_lists: Lists, command: list[str | Path]) -> None:
    runs = [cg_bench.run(*command, before=list(before)) for before in library_lists.values()]
    assert runs[0].benchmark["seal"]["files"]["state"] == "pinned"
    assert [run.counts for run in runs] == [runs[0].counts] * len(SIZES)


USERS = "".join(f"user{number}:x:{5000 + number}:{5000 + number}::/:/bin/sh\n" for number in range(40))


@pytest.mark.parametrize(
    "case",
    [("/etc/passwd", USERS, ["id", "-un"]), ("/proc/filesystems", "nodev\tfuse\n\txfs\n", ["sed", "-n", "1p"])],
    ids=["users", "kinds of file systems"],
)
def test_more_in_a_file_of_the_system_moves_no_count(
    cg_bench: CgBench, tmp_path: Path, seeing: Callable[[str, Path], tuple[str, ...]], case: tuple[str, str, list[str]]
) -> None:
    path, more, words = case
    longer = tmp_path / "longer"
    with open(path, encoding="utf-8") as file:
        longer.write_text(more + file.read())
    runs = [cg_bench.run(*words), cg_bench.run(*words, before=seeing(path, longer))]
    assert runs[0].counts == runs[1].counts


def test_a_user_that_the_program_adds_is_found(
    cg_bench: CgBench, tmp_path: Path, seeing: Callable[[str, Path], tuple[str, ...]]
) -> None:
    users = tmp_path / "users"
    shutil.copyfile("/etc/passwd", users)
    script = "id -un >&2; echo someone:x:4567:4567::/:/bin/sh >>/etc/passwd; id -un 4567 >&2"
    finished = cg_bench("run", "--", "sh", "-c", script, before=seeing("/etc/passwd", users))
    assert "someone" in finished.stderr


@pytest.mark.slow
def test_results_of_ours_beside_a_script_move_no_count(cg_bench: CgBench) -> None:
    script = cg_bench.folder / "script.py"
    script.write_text("import json, os\nprint(sorted(os.listdir(os.path.dirname(__file__))))\n")
    first = cg_bench.run(sys.executable, "-S", script)
    second = cg_bench.run(sys.executable, "-S", script)
    assert "result1.json" in os.listdir(cg_bench.folder)
    assert "['cwd', 'script.py']" in second.stderr
    assert second.counts == first.counts


def test_directories_are_listed_in_the_order_of_names_whatever_the_file_system(cg_bench: CgBench) -> None:
    names = [f"name{number * 37 % 61}" for number in range(61)]
    folder = cg_bench.folder / "listed"
    runs = []
    for order in (names, names[::-1]):
        folder.mkdir()
        for name in order:
            (folder / name).touch()
        runs.append(cg_bench.run("ls", "-U", folder))
        shutil.rmtree(folder)
    assert runs[0].counts == runs[1].counts
    listed = [line for line in runs[0].stderr.splitlines() if line.startswith("name")]
    assert listed == sorted(names) * 2


TREE = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
static int gone;
static int drop(const char *path, const struct stat *s, int kind, struct FTW *at) { gone++; return remove(path); }
static int count(DIR *folder) { int n = 0; while (readdir(folder)) n++; return n; }
int main(void) {
    char base[] = "/tmp/cg-bench-tree.XXXXXX", path[200];
    if (!mkdtemp(base)) return 1;
    for (int i = 0; i < 600; i++) {
        snprintf(path, sizeof path, "%s/%d", base, i);
        close(open(path, O_CREAT | O_WRONLY, 0600));
    }
    DIR *folder = opendir(base);
    struct dirent *entry = 0;
    for (int i = 0; i < 400; i++) entry = readdir(folder);
    long place = telldir(folder);
    printf("<<< %s", entry->d_name);
    entry = readdir(folder);
    printf(" %s", entry->d_name);
    printf(" rest %d", count(folder));
    seekdir(folder, place);
    printf(" again %s", readdir(folder)->d_name);
    rewinddir(folder);
    printf(" all %d", count(folder));
    rewinddir(folder);
    char buffer[1024];
    lseek(dirfd(folder), 0, SEEK_SET);
    getdents64(dirfd(folder), buffer, sizeof buffer);  /* the child goes on where its parent was */
    fflush(stdout);
    if (!fork()) { int n = 0, got; char *at;
        while ((got = getdents64(dirfd(folder), buffer, sizeof buffer)) > 0)
            for (at = buffer; at < buffer + got; at += ((struct dirent64 *)at)->d_reclen) n++;
        printf(" child %d", n); fflush(stdout); _exit(0); }
    wait(0);
    printf(" left %d", (int)getdents64(dirfd(folder), buffer, sizeof buffer));
    printf(" small %d", (int)getdents64(open(base, O_RDONLY), buffer, 8));
    nftw(base, drop, 9, FTW_DEPTH | FTW_PHYS);
    printf(" removed %d >>>\n", gone);
    return 0;
}
"""


def test_seeking_sharing_and_removing_work_in_listings_as_ever(cg_bench: CgBench, compile_c: CompileC) -> None:
    finished = cg_bench.run(compile_c(TREE))
    names = [".", "..", *sorted(map(str, range(600)))]
    before = f"{names[399]} {names[400]} rest {602 - 401} again {names[400]} all 602 child "
    assert finished.said.startswith(before)
    child, _, rest = finished.said.removeprefix(before).partition(" ")
    assert 500 < int(child) < 602
    assert rest == "left 0 small -1 removed 601"
