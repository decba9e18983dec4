"""What docs/regions.md says of `--toggle`: every kind of call, and programs made with Google Benchmark, Criterion and Go."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT
from tests.valgrind.test_native_regions import built

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.valgrind.conftest import CgBench, Finished

DATA = ROOT / "tests" / "data" / "native"
BURN = 3000  # instructions of burn(1000) in toggles.c with -O2, and a few more
FEW = 40

GO_MODULE = "module example.com/words\n\ngo 1.21\n"
GO_CODE = """
package words

import "strings"

//go:noinline
func Count(text string) int {
	seen := []string{}
next:
	for _, word := range strings.Fields(text) {
		for _, old := range seen {
			if old == word {
				continue next
			}
		}
		seen = append(seen, word)
	}
	return len(seen)
}
"""
GO_TEST = """
package words

import (
	"strings"
	"testing"
)

var text = strings.Repeat("to be or not to be that is the question ", 20)

func BenchmarkCount(b *testing.B) {
	for i := 0; i < b.N; i++ {
		Count(text)
	}
}
"""


def toggled(cg_bench: CgBench, *command: str | Path, names: Sequence[str], options: Sequence[str] = ()) -> Finished:
    return cg_bench.run(*command, options=[*options, *(f"--toggle={name}" for name in names)])


def identical(finished: Finished) -> bool:
    """Whether all nine counts of all runs are the same, and there were several."""
    runs = [run["counts"] for run in finished.benchmark["runs"]]
    return len(runs) > 1 and all(run == runs[0] for run in runs)


# --- Every kind of call --------------------------------------------------------------------------------------------------


@pytest.fixture
def toggles(tmp_path: Path) -> Path:
    return built(tmp_path / "toggles", "gcc", "-O2", "-g", DATA / "toggles.c", "-pthread")


@pytest.mark.parametrize(
    ("name", "burns"),
    [
        ("leaf", 2),  # entered twice
        ("outer", 2),  # with all that it calls
        ("recursive", 10),
        ("ping", 10),  # recursive through another function
        ("tail", 1),  # ends in a jump to burn
        ("local", 1),  # static
        ("work", 1),  # in another thread
    ],
)
def test_a_function_counts_with_all_that_it_calls(cg_bench: CgBench, toggles: Path, name: str, burns: int) -> None:
    counted = toggled(cg_bench, toggles, names=[name]).counts["Ir"]
    assert burns * BURN <= counted <= burns * (BURN + FEW)


def test_a_function_that_is_left_by_longjmp_ends_there(cg_bench: CgBench, toggles: Path) -> None:
    assert (
        BURN <= toggled(cg_bench, toggles, names=["jumping"]).counts["Ir"] <= BURN + 2000
    )  # with the lookup of longjmp


def test_a_thread_that_a_function_starts_is_not_counted_with_it(cg_bench: CgBench, toggles: Path) -> None:
    both = toggled(cg_bench, toggles, names=["starting", "work"]).counts["Ir"]
    starting = toggled(cg_bench, toggles, names=["starting"]).counts["Ir"]
    # Which of the two waits for the other may differ, and what waiting costs.
    assert abs(both - starting - BURN) <= 500


def test_a_toggled_function_in_another_turns_counting_off(cg_bench: CgBench, toggles: Path) -> None:
    assert toggled(cg_bench, toggles, names=["outer", "leaf"]).counts["Ir"] <= FEW


def test_an_inlined_function_was_never_entered(cg_bench: CgBench, toggles: Path) -> None:
    finished = toggled(cg_bench, toggles, names=["inlined"])
    assert finished.code == 4
    assert "inlined" in finished.stderr


# --- Google Benchmark ----------------------------------------------------------------------------------------------------


def test_google_benchmark_with_a_number_of_iterations_is_exact(cg_bench: CgBench, google_benchmark: Path) -> None:
    command = (google_benchmark, "--benchmark_filter=BM_fixed")
    twenty = toggled(cg_bench, *command, names=["parse_words"], options=["--repeat", "3"])
    assert identical(twenty)
    # The whole benchmark also prepares the text.
    whole = toggled(cg_bench, *command, names=["BM_fixed(*"])
    assert twenty.counts["Ir"] < whole.counts["Ir"] < 1.05 * twenty.counts["Ir"]


def test_every_valgrind_counts_the_same_of_a_toggled_function(
    cg_bench: CgBench, google_benchmark: Path, valgrind_versions: Mapping[str, Path]
) -> None:
    command = (google_benchmark, "--benchmark_filter=BM_fixed")
    found = [
        toggled(cg_bench, *command, names=["_Z11parse_words*E"], options=["--valgrind", str(valgrind)]).counts["Ir"]
        for valgrind in valgrind_versions.values()
    ]
    assert len(set(found)) == 1


def test_google_benchmark_with_no_minimal_time_does_one_iteration(cg_bench: CgBench, google_benchmark: Path) -> None:
    command = (google_benchmark, "--benchmark_filter=^BM_words$", "--benchmark_min_time=0")
    one = toggled(cg_bench, *command, names=["_Z11parse_words*E"], options=["--repeat", "3"])
    assert identical(one)
    twenty = toggled(cg_bench, google_benchmark, "--benchmark_filter=BM_fixed", names=["_Z11parse_words*E"])
    assert 0.9 < 20 * one.counts["Ir"] / twenty.counts["Ir"] < 1.3  # the first one finds nothing prepared


# --- Criterion -----------------------------------------------------------------------------------------------------------


def test_criterion_in_test_mode_is_exact(cg_bench: CgBench, criterion: Path) -> None:
    command = (criterion, "--bench", "--test", "count")
    finished = toggled(cg_bench, *command, names=["words::count"], options=["--repeat", "3"])
    assert identical(finished)
    assert 10_000 < finished.counts["Ir"] < 1_000_000  # once


def test_criterion_runs_only_the_benchmarks_that_are_named(cg_bench: CgBench, criterion: Path) -> None:
    finished = toggled(cg_bench, criterion, "--bench", "--test", "sort", names=["_ZN5words5count17h*"])
    assert finished.code == 4
    assert "_ZN5words5count17h*" in finished.stderr


# --- Go ------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_go_benchmark_agrees_to_a_hundredth(cg_bench: CgBench, tmp_path: Path) -> None:
    go = shutil.which("go") or "/usr/local/go/bin/go"
    if not Path(go).exists():
        pytest.skip("no go on PATH")
    for name, text in (("go.mod", GO_MODULE), ("words.go", GO_CODE), ("words_test.go", GO_TEST)):
        (tmp_path / name).write_text(text)
    words = [go, "test", "-c", "-o", "words.test", "."]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)
    if done.returncode != 0:
        pytest.skip(f"go does not work here: {done.stderr.strip()[-300:]}")
    command = (tmp_path / "words.test", "-test.run=NONE", "-test.bench=^BenchmarkCount$", "-test.benchtime=1000x")
    options = ["--repeat", "3", "--env", "GOGC=off", "--pin-clock"]
    finished = toggled(cg_bench, *command, names=["example.com/words.Count"], options=options)
    counts = [run["counts"]["Ir"] for run in finished.benchmark["runs"]]
    assert max(counts) - min(counts) <= 0.01 * min(counts)
