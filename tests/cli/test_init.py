"""`cg-bench init`: for every kind of project a configuration that works, and nothing that was there is harmed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.config.load import load
from cachegrind_bench.config.source import find
from cachegrind_bench.config.starter import project

if TYPE_CHECKING:
    from cachegrind_bench.config.benchmarks import BenchmarkSpec
    from tests.cli.conftest import CommandLine

PYPROJECT = '[build-system]\nrequires = []\n\n[tool.other]\nx = 1  # a "comment"'
CARGO = '[package]\nname = "thing"\nversion = "0.1.0"\nedition = "2021"\n'

PROJECTS: dict[str, dict[str, str]] = {
    "python": {"pyproject.toml": PYPROJECT},
    "python of old": {"setup.py": ""},
    "python scripts": {"pyproject.toml": "[tool.ruff]\n", "main.py": ""},
    "rust": {"Cargo.toml": CARGO, "src/lib.rs": ""},
    "c with make": {"Makefile": "all:\n", "main.c": ""},
    "c with make and src": {"GNUmakefile": "all:\n", "src/main.cpp": "", "build": "a file"},
    "c with cmake": {"CMakeLists.txt": "", "tool.py": ""},
    "c with meson": {"meson.build": "", "pyproject.toml": "[tool.ruff]\n"},
    "make alone": {"Makefile": "all:\n"},
    "rust workspace": {"Cargo.toml": '[workspace]\nmembers = ["a"]\n'},
    "rust without examples": {"Cargo.toml": CARGO + "autoexamples = false\n"},
    "broken rust": {"Cargo.toml": "[package"},
    "nothing": {},
}
WRITTEN = {
    "python": ["benchmarks/bench_example.py", "pyproject.toml"],
    "python of old": ["benchmarks/bench_example.py", "cg-bench.toml"],
    "python scripts": ["benchmarks/bench_example.py", "pyproject.toml"],
    "rust": ["cg-bench.toml", "examples/cg_bench_example.rs"],
    "c with make": ["benchmarks/bench_example.c", "cg-bench.toml"],
    "c with make and src": ["benchmarks/bench_example.c", "cg-bench.toml"],
    "c with cmake": ["benchmarks/bench_example.c", "cg-bench.toml"],
    "c with meson": ["benchmarks/bench_example.c", "cg-bench.toml"],
}


@pytest.fixture(autouse=True)
def _at_the_top_of_a_work_tree() -> None:
    Path(".git").mkdir()


def make(files: dict[str, str]) -> None:
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)


def everything() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()}


def only() -> BenchmarkSpec:
    path = find(Path.cwd())
    assert path is not None
    (spec,) = load(path).benchmarks
    return spec


@pytest.mark.parametrize("kind", PROJECTS)
def test_every_kind_of_project_gets_what_fits_it(cg_bench: CommandLine, kind: str) -> None:
    make(PROJECTS[kind])
    before = everything()
    told = cg_bench("init")
    assert (told.code, told.err) == (0, "")
    after = everything()
    changed = [name for name in after if after[name] != before.get(name)]
    assert changed == WRITTEN.get(kind, ["cg-bench.toml"])
    assert all(after[name].startswith(before[name]) for name in before)
    assert all(f" {name}\n" in told.out for name in changed)
    assert only().id == "example"
    assert cg_bench("list").code == 0


@pytest.mark.parametrize(
    "kind",
    [
        "python",
        pytest.param("rust", marks=pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")),
        pytest.param("c with make", marks=pytest.mark.skipif(shutil.which("cc") is None, reason="needs cc")),
        "nothing",
    ],
)
def test_the_benchmark_works_as_it_is(cg_bench: CommandLine, kind: str) -> None:
    make(PROJECTS[kind])
    cg_bench("init")
    spec = only()
    if spec.setup:
        subprocess.run(["sh", "-c", spec.setup], check=True, capture_output=True, cwd=spec.cwd)
    done = subprocess.run(spec.command, check=True, capture_output=True, cwd=spec.cwd, timeout=60)
    assert re.fullmatch(rb"[\w ,]+\n", done.stdout)
    assert done.stderr == b""


@pytest.mark.parametrize("kind", ["python", "rust", "c with make", "nothing"])
def test_every_commented_line_is_right_without_its_comment_sign(cg_bench: CommandLine, kind: str) -> None:
    make(PROJECTS[kind] | {"data.txt": "", "benchmarks/data.txt": ""})
    cg_bench("init")
    path = find(Path.cwd())
    assert path is not None
    text = path.read_text()
    lines = re.findall(r"^# \w+ = .*$", text, re.MULTILINE)
    assert len(lines) >= 10
    for line in lines:
        use = text.replace('command = ["', 'command = ["{n}", "') if "parameters" in line else text
        path.write_text(use.replace(line, line.removeprefix("# ")))
        assert load(path).benchmarks
        assert tomllib.loads(path.read_text()) != tomllib.loads(text)


def test_the_rest_of_a_pyproject_means_what_it_meant(cg_bench: CommandLine) -> None:
    make({"pyproject.toml": PYPROJECT})
    cg_bench("init")
    text = Path("pyproject.toml").read_text()
    assert text.startswith(f"{PYPROJECT}\n\n# What `cg-bench run` measures")
    data = tomllib.loads(text)
    del data["tool"]["cg-bench"]
    assert data == tomllib.loads(PYPROJECT)


def test_windows_line_ends_stay(cg_bench: CommandLine) -> None:
    Path("pyproject.toml").write_bytes(b'[project]\r\nname = "x"\r\n')
    cg_bench("init")
    data = Path("pyproject.toml").read_bytes()
    assert data.count(b"\n") == data.count(b"\r\n") > 10


@pytest.mark.parametrize("text", ['tool = { x = 1 }\n[project]\nname = "x"', '[project]\nname = "x"\n[[tool]]\n'])
def test_a_pyproject_that_cannot_take_more_is_left_alone(cg_bench: CommandLine, text: str) -> None:
    make({"pyproject.toml": text})
    assert cg_bench("init").code == 0
    assert Path("pyproject.toml").read_text() == text
    assert only().place == "cg-bench.toml:7"


def test_a_pyproject_with_a_byte_order_mark_is_extended(cg_bench: CommandLine) -> None:
    Path("pyproject.toml").write_bytes(b'\xef\xbb\xbf[project]\nname = "x"\n')
    assert cg_bench("init").code == 0
    assert only().place == "pyproject.toml:11"
    assert Path("pyproject.toml").read_bytes().startswith(b"\xef\xbb\xbf[project]\n")


def test_the_benchmarks_that_a_project_has_are_named(cg_bench: CommandLine) -> None:
    make({"Cargo.toml": f'{CARGO}[dev-dependencies]\ncriterion = "0.5"\n'})
    assert cg_bench("init").out == (
        "wrote cg-bench.toml\n"
        "this project has benchmarks already: criterion\n"
        "'cg-bench list' shows them, 'cg-bench run' measures them\n"
    )


@pytest.mark.parametrize(
    ("programs", "ids"),
    [
        (("io/bench_read", "bench_parse"), ["bench_parse", "bench_read"]),
        (("a/bench", "b/bench"), ["build/a/bench", "build/b/bench"]),
    ],
)
def test_all_programs_of_the_first_build_folder_have_a_table(
    cg_bench: CommandLine, programs: tuple[str, ...], ids: list[str]
) -> None:
    for path in [f"{folder}/{name}" for folder in ("build", "build-debug") for name in programs]:
        make({path: "_ZN9benchmark5State16StartKeepRunningEv"})
        Path(path).chmod(0o755)
    assert cg_bench("init").code == 0
    assert [table["id"] for table in tomllib.loads(Path("cg-bench.toml").read_text())["benchmark"]] == ids


@pytest.mark.parametrize(("kind", "written"), [("Release", "Release"), ("", "RelWithDebInfo")])
def test_a_program_in_a_build_of_cmake_is_found_and_has_a_setup(cg_bench: CommandLine, kind: str, written: str) -> None:
    cache = f"CMAKE_BUILD_TYPE:STRING={kind}\nCMAKE_CXX_FLAGS:STRING=\nCMAKE_HOME_DIRECTORY:INTERNAL={Path.cwd()}\n"
    program = "cmake-build/tests/parserBench"
    make(
        {"CMakeLists.txt": "", "cmake-build/CMakeCache.txt": cache, program: "_ZN9benchmark5State16StartKeepRunningEv"}
    )
    Path(program).chmod(0o755)
    assert "benchmarks already: google-benchmark" in cg_bench("init").out
    assert (
        Path("cg-bench.toml")
        .read_text()
        .endswith(
            f'google-benchmark = "{program}"\n'
            f'setup = "cmake -S . -B cmake-build -DCMAKE_BUILD_TYPE={written} && cmake --build cmake-build"\n'
        )
    )


@pytest.mark.parametrize("kind", ["unreadable", "NUL"])
def test_a_build_of_cmake_whose_cache_cannot_be_used_has_no_setup(cg_bench: CommandLine, kind: str) -> None:
    cache, program = Path("build/CMakeCache.txt"), "build/bench"
    make({"CMakeLists.txt": "", program: "_ZN9benchmark5State16StartKeepRunningEv"})
    Path(program).chmod(0o755)
    if kind == "NUL":
        cache.write_bytes(b"CMAKE_HOME_DIRECTORY:INTERNAL=/a\0b\n")
    else:
        cache.symlink_to("/proc/self/mem")
    assert cg_bench("init").code == 0
    assert Path("cg-bench.toml").read_text().endswith(f'google-benchmark = "{program}"\n')


def test_files_that_are_there_are_never_replaced(cg_bench: CommandLine) -> None:
    make({"pyproject.toml": PYPROJECT, "benchmarks/bench_example.py": "mine", "benchmarks/bench_example_2.py": ""})
    cg_bench("init")
    assert Path("benchmarks/bench_example.py").read_text() == "mine"
    assert only().command == ("python3", "benchmarks/bench_example_3.py")


@pytest.mark.parametrize("files", [{"cg-bench.toml": ""}, {"pyproject.toml": "[tool.cg-bench]\n"}])
def test_where_there_is_a_configuration_nothing_is_done(cg_bench: CommandLine, files: dict[str, str]) -> None:
    make(files)
    before = everything()
    told = cg_bench("init")
    assert (told.code, told.out) == (2, "")
    (name,) = files
    assert told.err == (
        f"cg-bench: error: there is a configuration already: {name}\n  'cg-bench list' shows what 'cg-bench run' would measure\n"
    )
    assert everything() == before


def test_a_pyproject_that_is_not_toml_is_reported_and_left_alone(cg_bench: CommandLine) -> None:
    make({"pyproject.toml": "[project\n"})
    told = cg_bench("init")
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith("cg-bench: error: pyproject.toml:1: not valid TOML: ")
    assert everything() == {"pyproject.toml": b"[project\n"}


def test_a_dry_run_shows_everything_and_writes_nothing(cg_bench: CommandLine) -> None:
    make({"pyproject.toml": PYPROJECT})
    before = everything()
    told = cg_bench("init", "--dry-run")
    assert (told.code, told.err) == (0, "")
    assert everything() == before
    assert not Path("benchmarks").exists()
    assert told.out.startswith("==> benchmarks/bench_example.py\n")
    assert "\n==> pyproject.toml\n# What `cg-bench run` measures" in told.out
    assert PYPROJECT not in told.out


def test_the_project_is_found_from_a_folder_inside_it(cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    make({"pyproject.toml": PYPROJECT, "src/pkg/a.py": ""})
    monkeypatch.chdir("src/pkg")
    told = cg_bench("init")
    assert "wrote ../../benchmarks/bench_example.py\nextended ../../pyproject.toml\n" in told.out


def test_without_any_sign_of_a_project_the_working_directory_is_it(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    assert project(tmp_path / "sub") == tmp_path / "sub"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_reported(cg_bench: CommandLine) -> None:
    Path().chmod(0o555)
    try:
        assert cg_bench("init").code == 2
    finally:
        Path().chmod(0o755)


def test_a_file_in_the_way_of_a_folder_is_reported_before_anything_is_written(cg_bench: CommandLine) -> None:
    make({"pyproject.toml": PYPROJECT, "benchmarks": "a file"})
    before = everything()
    told = cg_bench("init")
    assert (told.code, told.out) == (2, "")
    assert "cannot make the folder" in told.err
    assert everything() == before


def test_programs_with_odd_names_are_written_as_they_are_read(cg_bench: CommandLine) -> None:
    code = b"\x7fELF _ZN9benchmark5State16StartKeepRunningEv"
    for name in (b"build/my bench", b"build/it's a bench", b"build/\xffbench", b"build/\x1b]0;bench"):
        os.makedirs(b"build", exist_ok=True)
        Path(os.fsdecode(name)).write_bytes(code)
        Path(os.fsdecode(name)).chmod(0o755)
    assert cg_bench("init").code == 0
    entries = load(Path.cwd() / "cg-bench.toml").entries
    assert [entry.keys["google-benchmark"] for entry in entries] == [("build/it's a bench",), ("build/my bench",)]
