"""`cg-bench list`: what a suite would run, chosen and shown, with nothing run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import CommandLine

SUITE = """\
[[benchmark]]
id = "sort"
command = ["sort", "a b.txt"]
tags = ["quick", "io"]

[[benchmark]]
id = "pack"
command = "xz -{level}"
parameters = { level = [1, 9] }
env = ["SECRET=hidden"]
timeout = "2s"
limit = "Ir=5"
"""


@pytest.fixture(autouse=True)
def _at_the_top_of_a_work_tree() -> None:
    Path(".git").mkdir()


def test_every_benchmark_is_shown_with_the_origin(cg_bench: CommandLine) -> None:
    Path("cg-bench.toml").write_text(SUITE)
    told = cg_bench("list")
    assert (told.code, told.err) == (0, "")
    assert told.out == (
        "3 benchmarks in cg-bench.toml\n"
        "\n"
        "  id             command         tags       parameters\n"
        "  sort           sort 'a b.txt'  quick, io\n"
        "  pack[level=1]  xz -1                      level=1\n"
        "  pack[level=9]  xz -9                      level=9\n"
    )


def test_columns_that_say_nothing_are_left_out(cg_bench: CommandLine) -> None:
    Path("pyproject.toml").write_text('[[tool.cg-bench.benchmark]]\nid = "a"\ncommand = "x"\n')
    assert cg_bench("list").out == "1 benchmark in pyproject.toml\n\n  id  command\n  a   x\n"


def test_a_configuration_above_is_named_as_seen_from_here(
    cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("cg-bench.toml").write_text("")
    Path("sub").mkdir()
    monkeypatch.chdir("sub")
    told = cg_bench("list")
    assert (told.code, told.out) == (2, "0 benchmarks in ../cg-bench.toml\n")


@pytest.mark.parametrize("text", ["", "repeat = 2\n", "benchmark = []\n"])
def test_without_benchmarks_the_way_to_one_is_reported(cg_bench: CommandLine, text: str) -> None:
    Path("cg-bench.toml").write_text(text)
    for arguments in ([], ["-k", "x"]):
        told = cg_bench("list", *arguments)
        assert (told.code, told.out) == (2, "0 benchmarks in cg-bench.toml\n")
        assert told.err == "cg-bench: cg-bench.toml has no benchmarks; 'cg-bench init' shows what one looks like\n"


@pytest.mark.parametrize("text", ["[tool.cg-bench]\n", "[tools.cg-bench]\n"])
def test_a_second_configuration_in_the_folder_is_told_to_be_ignored(cg_bench: CommandLine, text: str) -> None:
    Path("cg-bench.toml").write_text(SUITE)
    Path("pyproject.toml").write_text("[tool.other]\n")
    assert cg_bench("list").err == ""
    Path("pyproject.toml").write_text(text)
    told = cg_bench("list")
    assert (told.code, told.err) == (
        0,
        "cg-bench: cg-bench.toml is used, the cg-bench tables of pyproject.toml are ignored\n",
    )


def test_markdown_is_escaped(cg_bench: CommandLine) -> None:
    Path("cg-bench.toml").write_text('[[benchmark]]\nid = "a|b"\ncommand = "x <y>"\n'.replace("<y>", "'<y>'"))
    told = cg_bench("list", "--format", "markdown")
    assert told.out == "### 1 benchmark in cg-bench.toml\n\n| id | command |\n| --- | --- |\n| a\\|b | x '&lt;y>' |\n"


def test_scripts_get_everything_but_the_values_of_variables(cg_bench: CommandLine) -> None:
    Path("cg-bench.toml").write_text(SUITE)
    told = cg_bench("list", "--format", "json")
    document = json.loads(told.out)
    assert (document["schema"], document["configuration"]) == ("cg-bench.list/1", "cg-bench.toml")
    assert "hidden" not in told.out
    assert document["benchmarks"][1] == {
        "id": "pack[level=1]",
        "command": ["xz", "-1"],
        "cwd": str(Path.cwd()),
        "env": ["SECRET"],
        "setup": None,
        "prepare": None,
        "cleanup": None,
        "stdin": None,
        "parameters": {"level": "1"},
        "tags": [],
        "repeat": None,
        "warmup": None,
        "layouts": None,
        "timeout_ms": 2000,
        "threshold": None,
        "limits": ["Ir=5"],
        "place": "cg-bench.toml:6",
    }


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        (["-k", "pack and not level=9"], ["pack[level=1]"]),
        (["--tag", "io"], ["sort"]),
        (["--tag", "io", "--tag", "other"], ["sort"]),
        (["-k", "pack or sort", "--tag", "quick"], ["sort"]),
    ],
)
def test_benchmarks_can_be_chosen(cg_bench: CommandLine, arguments: list[str], ids: list[str]) -> None:
    Path("cg-bench.toml").write_text(SUITE)
    told = cg_bench("list", "--format", "json", *arguments)
    assert [item["id"] for item in json.loads(told.out)["benchmarks"]] == ids
    assert cg_bench("list", *arguments).out.startswith(f"{len(ids)} of 3 benchmarks in cg-bench.toml\n")


def test_every_benchmark_is_in_exactly_one_shard(cg_bench: CommandLine) -> None:
    Path("cg-bench.toml").write_text(SUITE)
    parts = [json.loads(cg_bench("list", "--format", "json", "--shard", f"{part}/2").out) for part in (1, 2)]
    ids = [item["id"] for part in parts for item in part["benchmarks"]]
    assert sorted(ids) == ["pack[level=1]", "pack[level=9]", "sort"]


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["-k", "none"], "there are: sort, pack[level=1], pack[level=9]"),
        (["-k", "quick"], "'quick' is a tag: --tag quick\n  there are: sort, pack[level=1], pack[level=9]"),
        (
            ["-k", "(SOR* and pack)"],
            "-k has no wildcards: -k SOR matches every id that contains it\n  there are: sort, pack[level=1], pack[level=9]",
        ),
        (
            ["-k", "*"],
            "-k has no wildcards: leave -k out to choose all\n  there are: sort, pack[level=1], pack[level=9]",
        ),
        (["--tag", "qiuck"], "no benchmark has the tag 'qiuck'; did you mean 'quick'?\n  the tags are: io, quick"),
        (["--tag", "xyz", "-k", "sort"], "no benchmark has the tag 'xyz'\n  the tags are: io, quick"),
        (["--tag", "io", "-k", "pack"], "there are: sort, pack[level=1], pack[level=9]"),
    ],
)
def test_a_choice_that_fits_nothing_is_reported(cg_bench: CommandLine, arguments: list[str], advice: str) -> None:
    Path("cg-bench.toml").write_text(SUITE)
    told = cg_bench("list", *arguments)
    assert (told.code, told.out) == (2, "")
    assert told.err == f"cg-bench: error: no benchmark was selected\n  {advice}\n"


def test_a_tag_is_told_to_be_none_where_there_are_no_tags(cg_bench: CommandLine) -> None:
    Path("cg-bench.toml").write_text('[[benchmark]]\nid = "a"\ncommand = "x"\n')
    assert cg_bench("list", "--tag", "a").err.endswith("no benchmark has the tag 'a'\n  there are no tags\n")


def test_without_a_configuration_the_way_to_one_is_reported(cg_bench: CommandLine) -> None:
    told = cg_bench("list")
    assert (told.code, told.out) == (2, "")
    assert told.err == (
        f"cg-bench: error: there is no configuration in {Path.cwd()} or above it: no cg-bench.toml, no [tool.cg-bench] in "
        "pyproject.toml\n  'cg-bench init' writes one to start from\n"
    )


def test_a_mistake_is_reported_in_two_lines_with_its_place(cg_bench: CommandLine) -> None:
    Path("cg-bench.toml").write_text(f'{SUITE}repeat = "3"\n')
    told = cg_bench("list")
    assert (told.code, told.out) == (2, "")
    assert told.err == (
        'cg-bench: error: cg-bench.toml:13: repeat must be a whole number, not the text "3"\n  as in repeat = 3\n'
    )


def test_hostile_text_reaches_no_terminal(cg_bench: CommandLine) -> None:
    Path("cg-bench.toml").write_text('[[benchmark]]\nid = "a"\ncommand = ["x", "\\u001b[31m"]\n')
    assert "\x1b" not in cg_bench("list").out


def test_the_next_run_removes_what_pytest_collects_into_where_one_was_killed(tmp_path: Path) -> None:
    code = f"""if True:
        import sys
        from pathlib import Path
        from cachegrind_bench.cli.main import main
        from cachegrind_bench.harness import pytest
        pytest.SCRATCH_BASE = Path({str(tmp_path)!r}) / "scratch"
        main(["list"])"""
    folder, named = tmp_path / "scratch", Path("named")
    folder.mkdir()
    Path("cg-bench.toml").write_text('[[benchmark]]\npytest = "tests"\npython = "./python"\n')
    Path("python").write_text(f'#!/bin/sh\necho "$@" > {named}\nexec sleep 60\n')
    Path("python").chmod(0o755)
    with subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(tmp_path)}) as tool:
        deadline = time.monotonic() + 60
        while not named.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        tool.kill()
    assert len(os.listdir(folder)) == 1
    assert not list(tmp_path.glob("cg-bench-*"))
    Path("python").write_text("#!/bin/sh\nexit 1\n")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 4
    assert os.listdir(folder) == []
