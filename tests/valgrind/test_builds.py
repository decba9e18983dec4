"""A program that is built otherwise: that is said first, and no function and no line of the source is blamed."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.unit.repositories import Repository, git_environment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.valgrind.conftest import CgBench

SOURCE = """
#include <stdio.h>
int main(void) {
    unsigned sum = 1;
    for (unsigned step = 0; step < 100000; step++) sum = sum * 31 + (step ^ sum);
    printf("%u\\\\n", sum);
}
"""
MAKEFILE = "prog: main.c Makefile\n\tgcc -g {} -o $@ main.c\n"


@pytest.mark.slow
def test_a_makefile_is_blamed_and_not_the_author(cg_bench: CgBench, tmp_path: Path) -> None:
    project = Repository(tmp_path / "project", git_environment(tmp_path))
    (project.path / "main.c").write_text(SOURCE)
    files = []
    for level in ("-O1", "-O0"):
        (project.path / "Makefile").write_text(MAKEFILE.format(level))
        project.git("add", "main.c", "Makefile")
        project.git("commit", "-qm", level)
        subprocess.run(["make", "-s"], cwd=project.path, check=True)
        files.append(str(tmp_path / f"result{level}.json"))
        found = cg_bench("run", "-q", "--id", "prog", "-o", files[-1], "--", "./prog", cwd=project.path)
        assert found.code == 0, found.stderr
    found = cg_bench("diff", *files, "--json", str(tmp_path / "diff.json"), cwd=project.path)
    (benchmark,) = json.loads((tmp_path / "diff.json").read_bytes())["benchmarks"]
    assert benchmark["build_files"] == ["Makefile"]
    assert (benchmark["blamed"], benchmark["cause"], len(benchmark["builds"])) == (None, None, 1)
    lines = [line for line in found.stdout.splitlines() if line.startswith("notice: ")]
    assert lines[0].startswith("notice: prog is built otherwise: GNU C")
    assert lines[0].endswith(" -O1 → -O0")
    assert lines[1] == "notice: Makefile changed, and no source file did"
    assert found.stdout.splitlines()[-1].startswith("regression: prog is built otherwise: GNU C")
    assert "most of it in" not in found.stdout
    assert ",file=" not in cg_bench("diff", *files, "--format", "github", cwd=project.path).stdout
