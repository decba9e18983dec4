"""`cg-bench calibrate`, as far as it goes without measuring; and the times that `show` and `diff` tell by a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench.model.codec import encode
from cachegrind_bench.model.metrics import WEIGHTS, Branches
from cachegrind_bench.model.time_model import TimeModel, Weight
from cachegrind_bench.render.time_models import about, report
from cachegrind_bench.store.time_models import prepare, read, write
from tests.unit.samples import VECTOR, benchmark, result, times

if TYPE_CHECKING:
    from tests.cli.conftest import CommandLine

STORE = Path(".cg-bench")
GEOMETRY = "I1=32768,8,64 D1=32768,8,64 LL=8388608,16,64"
MODEL = TimeModel(
    name="laptop",
    created_at="2026-01-31T12:00:00Z",
    cpu="Fast CPU",
    compiler="cc 12",
    geometry=GEOMETRY,
    kernels=82,
    starts_ppm=13_000,
    weights={
        name: Weight(picoseconds=50 * weight, low=25 * weight, high=100 * weight) for name, weight in WEIGHTS.items()
    },
    half=(600, 1_800),
    most=(300, 8_000),
    warnings=("only 1 of the kernels misses",),
)


def model(**changes: str) -> Path:
    """Write the model, and return where it is."""
    path = prepare(STORE, "laptop")
    write(path, MODEL)
    for old, new in changes.items():
        path.write_text(path.read_text().replace(old, new))
    return path


def saved(name: str, factor: int, **changes: Any) -> None:
    branches = Branches(Bc=10 * factor, Bcm=factor, Bi=0, Bim=0)
    values: dict[str, Any] = {"counts": times(VECTOR, factor), "branches": branches, **changes}
    Path(name).write_bytes(encode(result(benchmark(**values))))


@pytest.mark.parametrize("name", ["../x", "", "-x", "a/b", "x" * 101])
def test_what_cannot_name_a_model_is_refused(cg_bench: CommandLine, name: str) -> None:
    told = cg_bench("calibrate", "--", name)
    assert told.code == 2
    assert "cannot name a model" in told.err
    assert not STORE.exists()


@pytest.mark.parametrize(
    ("compiler", "said"),
    [
        ("no-such-cc", "calibrate needs a C compiler, and there is no 'no-such-cc'"),
        ("'", 'calibrate needs a C compiler, and there is no "\'"'),
        ("/bin/false", "'/bin/false' is not a C compiler: exit status 1 with --version"),
    ],
)
def test_without_a_compiler_it_says_what_to_install(
    cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch, compiler: str, said: str
) -> None:
    monkeypatch.setenv("CC", compiler)
    told = cg_bench("calibrate", "x")
    assert told.code == 2
    assert told.err.splitlines()[0] == f"cg-bench: error: {said}"
    assert "apt install gcc" in told.err
    assert not (STORE / "models" / "x.json").exists()


@pytest.mark.usefixtures("replay")
@pytest.mark.parametrize("script", ["exit 0", '[ "$1" = --version ] || { echo "x.c:1: error: no way" >&2; exit 1; }'])
def test_what_does_not_compile_is_an_error_with_the_reason(
    cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    compiler = Path("cc").absolute()
    compiler.write_text(f"#!/bin/sh\n{script}\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    told = cg_bench("calibrate", "x")
    assert told.code == 4
    assert f"{compiler} cannot compile the kernels: {'no way' if 'no way' in script else 'exit status 0'}" in told.err
    assert "install Valgrind's headers" in told.err


def test_a_place_that_cannot_be_written_is_found_before_any_work(cg_bench: CommandLine) -> None:
    STORE.write_text("")
    told = cg_bench("calibrate", "x")
    assert told.code == 2
    assert "cannot make the folder" in told.err
    assert "compiling" not in told.err


def test_a_result_and_its_model_give_a_time(cg_bench: CommandLine) -> None:
    model()
    saved("r.json", 1_000_000)
    text = cg_bench("show", "r.json", "--time-model", "laptop").out
    assert "  time by model laptop\n    sieve  about 370 ms\n" in text  # 50 ps x (1353 + 80 + 630 + 5300) x a million
    assert "half of its kernels took 0.6 to 1.8 times what it says,\n           nine of ten 0.3 to 8 times\n" in text
    assert "time by model" not in cg_bench("show", "r.json").out


def test_several_benchmarks_have_their_times_in_one_section(cg_bench: CommandLine) -> None:
    model()
    branches = Branches(Bc=0, Bcm=0, Bi=0, Bim=0)
    Path("r.json").write_bytes(encode(result(benchmark(id="a", branches=branches), benchmark(id="b"))))
    text = cg_bench("show", "r.json", "--time-model", "laptop").out
    assert "time by model laptop\n    a  about 360 ns\n" in text
    assert "b  about" not in text


def test_a_comparison_has_both_times_of_what_changed(cg_bench: CommandLine) -> None:
    model()
    saved("a.json", 1_000_000)
    saved("b.json", 1_300_000)
    told = cg_bench("diff", "a.json", "b.json", "--time-model", "laptop")
    assert told.code == 1
    assert "sieve: about 370 ms → 480 ms by model laptop" in told.out
    assert "by model" not in cg_bench("diff", "a.json", "a.json", "--time-model", "laptop").out


@pytest.mark.parametrize("words", [["show", "r.json"], ["diff", "r.json", "r.json"]])
def test_a_result_without_branches_has_no_time(cg_bench: CommandLine, words: list[str]) -> None:
    model()
    saved("r.json", 1, branches=None)
    told = cg_bench(*words, "--time-model", "laptop")
    assert (told.code, told.out) == (2, "")
    assert "cg-bench run --estimate" in told.err


def test_a_model_of_other_caches_is_refused(cg_bench: CommandLine) -> None:
    write(prepare(STORE, "laptop"), MODEL)
    path = model(**{"LL=8388608": "LL=4194304"})
    assert "4194304" in path.read_text()
    found = result(benchmark(branches=Branches(Bc=0, Bcm=0, Bi=0, Bim=0)))
    fields = {**found.env.fields, "geometry": GEOMETRY}
    from msgspec.structs import replace

    Path("r.json").write_bytes(encode(replace(found, env=replace(found.env, fields=fields))))
    told = cg_bench("show", "r.json", "--time-model", "laptop")
    assert told.code == 3
    assert "was made for caches of" in told.err


@pytest.mark.parametrize(
    "words",
    [
        ["show", "r.json", "--format", "json"],
        ["show", "r.json", "--html", "page.html"],
        ["diff", "r.json", "r.json", "--format", "json"],
        ["verify", "--", "/bin/true"],
    ],
)
def test_where_there_are_no_times_a_model_is_refused(cg_bench: CommandLine, words: list[str]) -> None:
    saved("r.json", 1)
    told = cg_bench(words[0], "--time-model", "laptop", *words[1:])
    assert told.code == 2
    assert "--time-model is for " in told.err


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"time-model/1": "time-model/2"}, "schema"),
        ({'"picoseconds": 50,': '"picoseconds": 0,'}, "weights"),
        ({'"LL misses"': '"misses"'}, "weights: must have instructions, mispredicted branches, L1 misses, LL misses"),
        ({"600": '"x"'}, "half"),
    ],
)
def test_a_damaged_model_is_an_error_with_its_place(cg_bench: CommandLine, changes: dict[str, str], said: str) -> None:
    path = model(**changes)
    saved("r.json", 1)
    told = cg_bench("show", "r.json", "--time-model", "laptop")
    assert told.code == 2
    assert f"{path.absolute()}: {said}" in told.err
    assert "cg-bench calibrate NAME" in told.err


def test_a_model_that_was_cut_off_or_is_not_there_is_an_error(cg_bench: CommandLine) -> None:
    path = model()
    saved("r.json", 1)
    path.write_bytes(path.read_bytes()[:100])
    assert "not JSON" in cg_bench("show", "r.json", "--time-model", "laptop").err
    told = cg_bench("show", "r.json", "--time-model", "other")
    assert told.code == 2
    assert told.err == "cg-bench: error: there is no model 'other'\n  models: laptop\n"


def test_a_model_is_read_as_it_was_written() -> None:
    path = model()
    assert read(STORE, "laptop") == MODEL
    assert json.loads(path.read_text())["weights"]["instructions"] == {"picoseconds": 50, "low": 25, "high": 100}


def test_the_report_of_a_model_says_what_each_event_takes() -> None:
    found = report(MODEL)
    assert found.sections[0].rows[1] == ("mispredicted branches", "4.0 ns", "2.0 ns to 8.0 ns")
    assert ("starts", "differ by 1.3 % in the median of the kernels") in found.sections[1].rows
    assert found.warnings == MODEL.warnings


@pytest.mark.parametrize(
    ("picoseconds", "text"),
    [(7, "7 ps"), (999, "1.0 ns"), (1_240_000, "1.2 µs"), (99_600_000_000, "100 ms"), (123_456 * 10**12, "120000 s")],
)
def test_times_have_two_digits(picoseconds: int, text: str) -> None:
    assert about(picoseconds) == text
