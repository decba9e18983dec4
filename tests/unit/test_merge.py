"""Several results as one: what must agree, what is kept, and that no profile is lost on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from msgspec.structs import replace

from cachegrind_bench.errors import NotComparableError
from cachegrind_bench.model.result import Commit, Environment, ObjectFile, Run
from cachegrind_bench.suite.merge import merged
from tests.property.strategies import results
from tests.unit import flaming
from tests.unit.samples import VECTOR, benchmark, failed_benchmark, profile_of, result, rich_benchmark

if TYPE_CHECKING:
    from cachegrind_bench.model.result import Result

COMMIT = Commit(sha="ab" * 20, parent=None, branch="main", dirty=False, committed_at="2026-01-30T12:00:00Z")
ENV = Environment(key="ba9876543210", fields={"valgrind": "3.24.0", "geometry": "g"}, info={"kernel": "6.1"})


def together(*found: Result) -> Result:
    return merged([(f"{name}.json", item) for name, item in zip("abcdef", found, strict=False)])


def refusal(*found: Result) -> str:
    with pytest.raises(NotComparableError) as caught:
        together(*found)
    return caught.value.message


def conflict(**changes: Any) -> str:
    """Return what is told of a benchmark that stands in two results, once with these changes."""
    return refusal(result(benchmark()), result(benchmark(**changes)))


# What comes together


def test_the_benchmarks_of_all_results_are_in_the_order_of_the_results() -> None:
    names = [("z", "b"), ("c",), (), ("a", "d")]
    found = [replace(result(), benchmarks=tuple(benchmark(id=name) for name in some)) for some in names]
    assert [item.id for item in together(*found).benchmarks] == ["z", "b", "c", "a", "d"]


def test_one_result_stays_as_it_is() -> None:
    value = result(rich_benchmark(), failed_benchmark())
    assert together(value) == value


def test_equal_benchmarks_are_one_whatever_time_they_took() -> None:
    whole = together(result(benchmark(wall_ms=7), benchmark(id="other")), result(benchmark(wall_ms=8)))
    assert whole == result(benchmark(wall_ms=7), benchmark(id="other"))


def test_failed_benchmarks_come_along() -> None:
    broken = failed_benchmark(id="broken")
    assert together(result(), result(broken)).benchmarks == (benchmark(), broken)


def test_the_date_is_the_earliest() -> None:
    dates = ("2026-01-31T12:00:02Z", "2026-01-31T12:00:01Z", "2026-01-31T12:00:03Z")
    assert together(*(result(created_at=date) for date in dates)).created_at == dates[1]


def test_of_what_explains_a_machine_only_that_is_kept_in_which_all_agree() -> None:
    infos: list[dict[str, str | int]] = [
        {"kernel": "6.1", "cpu_count": 4, "load": 3, "only": "here"},
        {"load": 4, "kernel": "6.1", "cpu_count": 4},
        {"kernel": "6.1", "cpu_count": "4", "load": 3},
    ]
    found = [result(env=replace(ENV, info=info)) for info in infos]
    assert together(*found).env == replace(ENV, info={"kernel": "6.1"})


def test_the_branch_is_that_of_the_first_result_that_knows_one() -> None:
    commits = [replace(COMMIT, branch=branch) for branch in (None, "main", "other")]
    assert together(*(result(commit=commit) for commit in commits)).commit == COMMIT
    assert together(result(commit=commits[0])).commit == commits[0]


def test_results_without_a_commit_go_together() -> None:
    assert together(result(commit=None), result(commit=None)).commit is None


# What does not


def test_fields_of_the_machine_that_differ_are_named_with_both_values() -> None:
    other = replace(ENV, key="0" * 12, fields={"valgrind": "3.19.0", "cpu.avx2": "no"})
    assert refusal(result(env=ENV), result(env=ENV), result(env=other)) == (
        "a.json and c.json were measured on machines whose results cannot be compared: "
        "cpu.avx2 missing → no, geometry g → missing, valgrind 3.24.0 → 3.19.0"
    )


def test_keys_that_differ_though_their_fields_do_not_are_reported() -> None:
    assert refusal(result(env=ENV), result(env=replace(ENV, key="0" * 12))) == (
        "a.json and b.json were measured on machines whose results cannot be compared: key ba9876543210 → 000000000000"
    )


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (replace(COMMIT, sha="cd" * 20), f"commit {'cd' * 20}"),
        (replace(COMMIT, dirty=True), f"commit {'ab' * 20}, dirty"),
        (None, "no known commit"),
    ],
)
def test_different_commits_are_refused(other: Commit | None, text: str) -> None:
    one = result(commit=COMMIT)
    assert refusal(one, result(commit=other)) == f"a.json is of commit {'ab' * 20}, and b.json of {text}"
    assert refusal(result(commit=other), one) == f"a.json is of {text}, and b.json of commit {'ab' * 20}"


def test_different_versions_are_refused() -> None:
    assert refusal(result(), result(tool_version="0.2.0")) == (
        "a.json was made by cg-bench 0.1.0, and b.json by cg-bench 0.2.0"
    )


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"tags": ("io",)}, "tags[0] is missing in a.json and io in b.json"),
        ({"exit_status": None}, "exit_status is 0 in a.json and missing in b.json"),
        ({"parameters": {"n": "1"}}, "parameters.n is missing in a.json and 1 in b.json"),
        ({"command": ("./sieve", "200")}, "command[1] is 100 in a.json and 200 in b.json"),
        ({"error": "x" * 300}, f"error is missing in a.json and {'x' * 200}… in b.json"),
        (
            {"runs": (Run(layout=0, counts=VECTOR), Run(layout=0, counts=VECTOR))},
            "runs[1] is missing in a.json and present in b.json",
        ),
        (
            {"runs": (Run(layout=0, counts=replace(VECTOR, Dr=256)),)},
            "runs[0].counts.Dr is 255 in a.json and 256 in b.json",
        ),
        (
            {"objects": (ObjectFile(path="/bin/sieve", build_id="f00"),)},
            "objects[0].build_id is c0ffee in a.json and f00 in b.json",
        ),
        ({"key": "0" * 12}, "key is 0123456789ab in a.json and 000000000000 in b.json"),
        (
            {"key": "0" * 12, "key_fields": {"libc": "abd", "tool": "cachegrind"}},
            "key_fields.libc is abc in a.json and abd in b.json",
        ),
        ({"profile": profile_of(other=VECTOR)}, "profile.functions[0].name is main in a.json and other in b.json"),
        ({"profile": None}, "profile is present in a.json and missing in b.json"),
    ],
)
def test_a_benchmark_that_differs_is_refused_with_its_first_difference(changes: dict[str, Any], told: str) -> None:
    assert conflict(**changes) == f"sieve: {told}"


def test_a_benchmark_that_failed_once_is_another() -> None:
    message = refusal(result(benchmark()), result(failed_benchmark()))
    assert message == "sieve: status is ok in a.json and failed in b.json"


def test_each_of_the_files_that_contradict_is_named() -> None:
    found = [benchmark(id="x"), benchmark(), benchmark(id="y"), benchmark(wall_ms=3), benchmark(exit_status=9)]
    assert refusal(*map(result, found)) == "sieve: exit_status is 0 in b.json and 9 in e.json"


# Profiles


@given(results())
def test_a_result_that_was_cut_in_two_becomes_whole_again(value: Result) -> None:
    assert (
        together(*(replace(value, benchmarks=part) for part in (value.benchmarks[:1], value.benchmarks[1:]))) == value
    )


def test_a_python_profile_comes_from_the_file_that_has_one() -> None:
    found = (result(benchmark()), result(benchmark(python=flaming.small())))
    for order in (found, found[::-1]):
        (merged_one,) = together(*order).benchmarks
        assert merged_one.python == flaming.small()


def test_profiles_that_differ_are_refused() -> None:
    with pytest.raises(
        NotComparableError, match=r"^sieve: profile\.functions\[0\]\.name is main in a\.json and other in c"
    ):
        together(result(), result(benchmark(id="other")), result(benchmark(profile=profile_of(other=VECTOR))))
