"""Options go before the environment, which goes before the project's configuration; those that name files must do something."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.errors import UsageError
from cachegrind_bench.pytest_plugin.outer.options import settings

if TYPE_CHECKING:
    from cachegrind_bench.pytest_plugin.outer.options import Asked

_TOML = """
model = "ir"
I1 = "65536,8,64"
threshold = "3%"
env = ["CONFIGURED=1"]
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """Return a project with a configuration of its own."""
    pytester.makeini("[pytest]\n")
    (pytester.path / "cg-bench.toml").write_text(_TOML)
    return pytester


def _settings(project: pytest.Pytester, *options: str) -> Asked:
    return settings(project.parseconfig(*options))


def test_the_environment_beats_the_configuration(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    configured = _settings(project, "--cg-bench-compare=base.json")
    assert (configured.settings.model.name, configured.valgrind) == ("ir", None)
    for name, value in {
        "MODEL": "l1+5ll+35ram",
        "VALGRIND": "/said",
        "I1": "16384,4,64",
        "D1": "8192,2,64",
        "LL": "1048576,16,64",
        "THRESHOLD": "0.5% json*=2%",
        "ENV": "NAME=1 OTHER",
    }.items():
        monkeypatch.setenv(f"CG_BENCH_{name}", value)
    said = _settings(project, "--cg-bench-compare=base.json")
    assert (said.settings.model.name, said.valgrind) == ("l1+5ll+35ram", "/said")
    assert str(said.geometry) == "I1=16384,4,64 D1=8192,2,64 LL=1048576,16,64"
    assert said.settings.request.values == {"CONFIGURED": "1", "NAME": "1"}
    assert said.settings.request.passed == ("OTHER",)
    assert said.compare is not None
    assert configured.compare is not None
    assert said.compare.gates != configured.compare.gates
    assert _settings(project).compare is None


@pytest.mark.parametrize("variable", ["THRESHOLD_ALLOCATIONS=0%", "LIMIT=test_a:allocations=9"])
def test_calls_are_recorded_where_allocations_are_held(
    variable: str, project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not _settings(project).settings.call_tree
    name, _, value = variable.partition("=")
    monkeypatch.setenv(f"CG_BENCH_{name}", value)
    assert _settings(project).settings.call_tree


def test_a_wrong_threshold_is_found_before_anything_is_measured(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CG_BENCH_THRESHOLD", "much")
    with pytest.raises(UsageError, match="much"):
        _settings(project, "--cg-bench-compare=base.json")


def test_an_option_beats_the_environment(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CG_BENCH_MODEL", "l1+5ll+35ram")
    monkeypatch.setenv("CG_BENCH_VALGRIND", "/said")
    monkeypatch.setenv("CG_BENCH_ENV", "SAID=1")
    given = _settings(project, "--cg-bench-model=ir", "--cg-bench-valgrind=/given", "--cg-bench-env=GIVEN=1")
    assert (given.settings.model.name, given.valgrind) == ("ir", "/given")
    assert given.settings.request.values == {"CONFIGURED": "1", "GIVEN": "1"}


@pytest.mark.parametrize("word", ["1", "true", "Yes", "ON"])
def test_a_seal_is_required_in_any_of_the_usual_words(
    word: str, project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not _settings(project).settings.require_sealed
    monkeypatch.setenv("CG_BENCH_REQUIRE_SEALED", word)
    assert _settings(project).settings.require_sealed


def test_a_word_that_is_not_a_truth_value_is_refused(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CG_BENCH_REQUIRE_SEALED", "maybe")
    with pytest.raises(UsageError, match="CG_BENCH_REQUIRE_SEALED"):
        _settings(project)


def test_what_pytest_reads_of_the_environment_is_passed_on(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_PLUGINS", "")
    assert _settings(project).settings.request.passed == ("PYTEST_PLUGINS",)


def test_python_is_as_optimised_as_here(project: pytest.Pytester) -> None:
    code = (
        "import pytest\n"
        "from cachegrind_bench.pytest_plugin.outer.options import settings\n"
        "class Shown:\n"
        "    def pytest_configure(self, config): print(settings(config).settings.request.values)\n"
        "pytest.main(['--collect-only', '-p', 'no:cacheprovider'], plugins=[Shown()])\n"
    )
    done = subprocess.run(
        [sys.executable, "-OO", "-c", code],
        cwd=project.path,
        env={**os.environ, "PYTEST_PLUGINS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "'PYTHONOPTIMIZE': '2'" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("option", ["--cg-bench-output", "--cg-bench-compare"])
@pytest.mark.parametrize("form", ["{}=x.json", "{} x.json"])
def test_a_file_without_cg_bench_is_an_error_since_a_gate_would_never_shut(
    suite: pytest.Pytester, option: str, form: str
) -> None:
    suite.makepyfile("def test_it(benchmark): benchmark(int)")
    done = suite.runpytest(*form.format(option).split())
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines([f"*{option} does nothing without --cg-bench"])


def test_in_a_configuration_they_may_stand_for_the_runs_that_measure(suite: pytest.Pytester) -> None:
    suite.makeini("[pytest]\naddopts = --cg-bench-output=x.json -p no:benchmark -p no:codspeed\n")
    suite.makepyfile("def test_it(benchmark): benchmark(int)")
    suite.runpytest().assert_outcomes(passed=1)


def test_a_file_as_a_word_of_its_own_does_not_move_the_root(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = pytester.mkdir("project")
    project.joinpath("test_it.py").write_text("def test_it(): pass")
    pytester.makefile(".json", x="{}")
    monkeypatch.chdir(project)
    moved = pytester.runpytest("--collect-only", "-p", "no:cg_bench", "../x.json")
    moved.stdout.fnmatch_lines([f"rootdir: {pytester.path}"])
    kept = pytester.runpytest("--collect-only", "--cg-bench", "--cg-bench-output", "../x.json")
    kept.stdout.fnmatch_lines([f"rootdir: {project}"])


def test_an_empty_name_and_a_base_that_is_missing_say_what_to_write(suite: pytest.Pytester) -> None:
    suite.makepyfile("def test_it(benchmark): benchmark(int)")
    done = suite.runpytest("--cg-bench", "--cg-bench-output=")
    done.stderr.fnmatch_lines(["*--cg-bench-output is empty", "*write --cg-bench-output=FILE"])
    done = suite.runpytest("--cg-bench", "--cg-bench-compare=nope.json")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["*nope.json*", "*'pytest --cg-bench --cg-bench-output=FILE' writes such files*"])


def test_files_with_other_names_than_pytest_looks_for_have_to_be_named(suite: pytest.Pytester) -> None:
    suite.makepyfile(bench_it="def test_it(benchmark): benchmark(int)")
    done = suite.runpytest("--cg-bench")
    assert done.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    done.stdout.fnmatch_lines(["cg-bench: nothing was measured: pytest found no tests; files that are not called *"])
