"""Without --cg-bench, benchmarks are plain tests that call their function once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def test_the_fixture_calls_the_function_once_and_returns_its_result(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        calls = []

        def test_it(benchmark):
            assert benchmark(lambda a, b: calls.append(a) or a + b, 1, b=2) == 3
            assert calls == [1]
        """
    )
    suite.runpytest_subprocess().assert_outcomes(passed=1)


def test_pedantic_runs_setup_before_and_teardown_after(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        told = []

        def test_it(benchmark):
            def setup():
                told.append("setup")
                return (1,), {"b": 2}

            def work(a, b):
                told.append("work")
                return a + b

            assert benchmark.pedantic(work, setup=setup, teardown=lambda a, b: told.append((a, b)), rounds=5) == 3
            assert told == ["setup", "work", (1, 2)]
        """
    )
    suite.runpytest_subprocess().assert_outcomes(passed=1)


def test_arguments_come_from_one_place_only(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest

        def test_it(benchmark):
            with pytest.raises(TypeError, match="setup"):
                benchmark.pedantic(int, args=("1",), setup=lambda: (("2",), {}))
        """
    )
    suite.runpytest_subprocess().assert_outcomes(passed=1)


def test_a_test_has_one_benchmark(suite: pytest.Pytester) -> None:
    suite.makepyfile("def test_it(benchmark):\n    benchmark(int)\n    benchmark(int)\n")
    result = suite.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*Fixture can only be used once. Previously it was used in benchmark(...) mode.*"])


def test_a_coroutine_function_is_refused_with_advice(suite: pytest.Pytester) -> None:
    suite.makepyfile("async def work(): pass\n\ndef test_it(benchmark):\n    benchmark(work)\n")
    result = suite.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*mark the async test itself with @pytest.mark.benchmark*"])


def test_weaving_is_refused_with_advice(suite: pytest.Pytester) -> None:
    suite.makepyfile("def test_it(benchmark_weave): pass\n")
    result = suite.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*cg-bench does not weave*"])


def test_the_fixture_says_what_suites_ask_of_it(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest

        @pytest.mark.benchmark(group="sums")
        @pytest.mark.parametrize("n", [3])
        def test_it(benchmark, n):
            benchmark.extra_info["n"] = n
            assert (benchmark.name, benchmark.group, benchmark.param, benchmark.params) == (
                "test_it[3]", "sums", "3", {"n": 3}
            )
            assert benchmark.fullname.endswith("::test_it[3]")
            assert benchmark.enabled and not benchmark.disabled and benchmark.stats is None
            benchmark(sum, range(n))
        """
    )
    suite.runpytest_subprocess("--strict-markers").assert_outcomes(passed=1)


def test_hooks_for_pytest_benchmark_in_a_conftest_do_not_matter(suite: pytest.Pytester) -> None:
    suite.makeconftest("def pytest_benchmark_update_json(config, benchmarks, output_json): pass\n")
    suite.makepyfile("def test_it(benchmark): benchmark(int)\n")
    suite.runpytest_subprocess("-W", "error").assert_outcomes(passed=1)
