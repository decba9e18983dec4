"""The marker with sizes: the tests that it makes, and what is refused in one sentence."""

from __future__ import annotations

import marshal

import pytest

LISTED = "--cg-bench-list=listed"


def written(suite: pytest.Pytester, marker: str, argument: str = "size", parameters: str = "") -> None:
    suite.makepyfile(
        test_it=f"import pytest\n{parameters}\n@pytest.mark.cg_bench({marker})\n"
        f"def test_sort(benchmark, {argument}): benchmark(sorted, range({argument.partition(',')[0]}))\n"
    )


def test_each_size_is_a_test_that_runs_without_cg_bench_too(suite: pytest.Pytester) -> None:
    written(suite, "sizes='1..8x2', growth='n log n', predict=10**6")
    names = [f"test_it.py::test_sort[size={size}]" for size in (1, 2, 4, 8)]
    suite.runpytest("--collect-only", "-q").stdout.fnmatch_lines([name.replace("[", "[[]") for name in names])
    suite.runpytest().assert_outcomes(passed=4)


def test_an_argument_of_the_marker_is_the_size_and_other_parameters_make_groups(suite: pytest.Pytester) -> None:
    parameters = "@pytest.mark.parametrize('kind', ['a', 'b'])\n@pytest.mark.parametrize('n', [1, 2])"
    written(suite, "size='n', growth='n log n', predict=10**6", "n, kind", parameters)
    assert suite.runpytest(LISTED).ret == 0
    listed = marshal.loads((suite.path / "listed").read_bytes())  # noqa: S302  # our own file
    assert sorted((item["scale"]["group"], item["scale"]["size"]) for item in listed["items"]) == [
        (f"test_it.py::test_sort[kind={kind}]", size) for kind in "ab" for size in (1, 2)
    ]
    assert {(item["scale"]["bound"], item["scale"]["predict"]) for item in listed["items"]} == {("n log n", 10**6)}


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ("sizes=[4, 3, 2, 1]", "sizes must ascend: 4, 3, 2, 1"),
        ("sizes=[1, 2, 3, 4.5]", "sizes must be whole numbers"),
        ("sizes='many'", "sizes 'many' are not sizes"),
        ("sizes='1..8x2', growth='n!'", "growth 'n!' is not a class of growth"),
        ("sizes='1..8x2', predict=0", "predict must be a whole number from 1 to"),
        ("sizs=[1, 2, 4, 8]", "takes sizes, size, growth and predict by name"),
    ],
)
def test_a_marker_that_is_wrong_is_refused_with_the_test(suite: pytest.Pytester, marker: str, said: str) -> None:
    written(suite, marker, parameters="" if "sizes=" in marker else "@pytest.mark.parametrize('size', [1])")
    refused(suite, said)


def test_sizes_without_the_argument_are_refused(suite: pytest.Pytester) -> None:
    written(suite, "sizes=[1, 2, 4, 8]", "n", "@pytest.mark.parametrize('n', [1])")
    refused(suite, "has sizes, but the test has no argument 'size'")


def test_a_bound_without_sizes_is_refused(suite: pytest.Pytester) -> None:
    written(suite, "growth='n'", "n", "@pytest.mark.parametrize('n', [1, 2, 4, 8])")
    refused(suite, "needs sizes, or the name of an argument whose values are sizes")


@pytest.mark.parametrize("values", ["['a', 'b', 'c', 'd']", "[0, 1, 2, 3]", "[1, 2, 3, True]", "[1, 2, 3, 10**16]"])
def test_an_argument_whose_values_are_not_sizes_is_refused(suite: pytest.Pytester, values: str) -> None:
    written(suite, "size='n'", "n", f"@pytest.mark.parametrize('n', {values})")
    refused(suite, "needs sizes, or the name of an argument whose values are sizes")


def test_an_argument_that_the_test_does_not_have_is_refused(suite: pytest.Pytester) -> None:
    written(suite, "size='m'", "n", "@pytest.mark.parametrize('n', [1, 2, 4, 8])")
    refused(suite, "needs sizes, or the name of an argument whose values are sizes")


def refused(suite: pytest.Pytester, said: str) -> None:
    """Check that pytest ends with this sentence, which names the test, and without a traceback."""
    done = suite.runpytest(LISTED)
    text = done.stdout.str() + done.stderr.str()
    assert done.ret in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERRUPTED)
    (line,) = [line for line in text.splitlines() if said in line]
    assert "test_it.py::test_sort" in line
    assert ".py:" not in text.replace("test_it.py:", "")
