"""Twenty functions of real suites, unmodified: the same counts in every run, order, selection and number of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.suites import TWENTY, VERSIONS, Suites, suite_python

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# Two functions of each suite, and another company for each of them.
EIGHT = tuple(TWENTY[number] for number in (0, 5, 7, 10, 11, 15, 16, 19))
# On each version another choice in reverse: eight in two processes, or two, each alone in its own.
CHOICES: dict[str, tuple[str, ...]] = dict(
    zip(VERSIONS, (EIGHT[::-1], (TWENTY[11], TWENTY[4]), (TWENTY[19], TWENTY[0])), strict=True)
)


def moved(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return what differs between two results, each count with its name: a failure in CI has to say all of it."""
    assert one.keys() == other.keys()
    return [
        f"{name}: {part} {key} {value} and {other[name][part][key]}"
        for name, benchmark in one.items()
        for part in ("seal", "counts")
        for key, value in benchmark[part].items()
        if value != other[name][part][key]
    ]


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_counts_are_the_same_in_any_order_together_and_alone(version: str, tmp_path: Path) -> None:
    suites = Suites.copy(suite_python(version), tmp_path)
    first = suites.measure()
    assert set(first) == set(TWENTY)
    assert min(benchmark["counts"]["Ir"] for benchmark in first.values()) > 10_000
    assert {benchmark["key_fields"]["measured"] for benchmark in first.values()} == {"pytest/13"}
    choice = CHOICES[version]
    reversed_by_two = suites.measure("--cg-bench-jobs=2", names=choice)
    assert moved({name: first[name] for name in choice}, reversed_by_two) == []
    assert [reversed_by_two[name]["key"] for name in choice] == [first[name]["key"] for name in choice]


@pytest.mark.slow
def test_every_valgrind_counts_the_same_instructions(valgrind_versions: Mapping[str, Path], tmp_path: Path) -> None:
    suites = Suites.copy(suite_python("3.11"), tmp_path)
    found = {
        version: suites.measure(f"--cg-bench-valgrind={path}", names=EIGHT)
        for version, path in valgrind_versions.items()
    }
    assert moved(found["installed"], found["3.24"]) == []
    for name in EIGHT:
        # 3.16 shows programs another processor, for which libc chooses other functions.
        old, new = (found[version][name]["counts"]["Ir"] for version in ("3.16", "installed"))
        assert old == pytest.approx(new, rel=5e-3)


@pytest.mark.slow
def test_without_the_flag_they_run_as_plain_tests(tmp_path: Path) -> None:
    suites = Suites.copy(suite_python("3.11"), tmp_path)
    done = suites.pytest("-p", "no:benchmark", "-p", "no:codspeed", "-q", names=TWENTY[7:16])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "9 passed" in done.stdout
