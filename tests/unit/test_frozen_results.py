"""One result of every released schema: it stays readable for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachegrind_bench.model.codec import decode, encode
from cachegrind_bench.model.metrics import CostModel
from cachegrind_bench.model.python_profile import PythonCost, PythonFunction

RESULTS = Path(__file__).resolve().parent.parent / "data" / "results"


@pytest.mark.parametrize("path", sorted(RESULTS.glob("v*/*.json")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_stored_result_is_read_and_still_means_the_same(path: Path) -> None:
    result = decode(path.read_bytes(), path.name)
    (benchmark,) = result.benchmarks
    assert benchmark.counts is not None
    assert benchmark.score is not None
    assert benchmark.profile is not None
    assert benchmark.profile.counts() == benchmark.counts
    assert CostModel.parse(benchmark.score.model).score(benchmark.counts) == benchmark.score.value
    assert benchmark.counts in [run.counts for run in benchmark.runs]


@pytest.mark.parametrize("name", ["sample.json", "python.json"])
def test_the_current_schema_is_written_as_it_was_then(name: str) -> None:
    data = (RESULTS / "v1" / name).read_bytes()
    assert encode(decode(data, name)) == data


def test_a_stored_profile_of_python_functions_still_means_the_same() -> None:
    (benchmark,) = decode((RESULTS / "v1" / "python.json").read_bytes(), "python.json").benchmarks
    assert benchmark.python is not None
    assert (benchmark.python.total, benchmark.python.native, benchmark.python.cut) == (90210, 67150, False)
    fib = PythonCost(function=PythonFunction("bench.py", "fib", 4), calls=177, ir=17240, inclusive=17240, entries=1)
    module = PythonCost(
        function=PythonFunction("bench.py", "<module>", 1), calls=1, ir=5200, inclusive=23060, entries=1
    )
    assert benchmark.python.costs()[:2] == (fib, module)
