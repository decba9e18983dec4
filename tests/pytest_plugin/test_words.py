"""Options that name files are refused where they would do nothing, or something else than is meant."""

from __future__ import annotations

import pytest


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
