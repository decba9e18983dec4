"""Benchmarks of other frameworks, as they are: one warm iteration is counted, and nothing of what prepares it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.conftest import ROOT

if TYPE_CHECKING:
    from tests.conftest import CompileC
    from tests.valgrind.conftest import CgBench, Finished

STATE = ROOT / "tests" / "data" / "native" / "state.c"


def measured(cg_bench: CgBench, entry: str, name: str, *options: str) -> tuple[Finished, dict[str, Any]]:
    """Measure what this entry stands for; also return the benchmarks by their ids."""
    (cg_bench.cwd / "cg-bench.toml").write_text(f"[[benchmark]]\n{entry}\n", encoding="utf-8")
    output = cg_bench.folder / name
    finished = cg_bench("run", "-o", str(output), *options)
    assert finished.code == 0, finished.stderr
    return finished, {item["id"]: item for item in json.loads(output.read_bytes())["benchmarks"]}


def test_a_slower_iteration_is_found_and_blamed_and_a_slower_preparation_is_not(
    cg_bench: CgBench, compile_c: CompileC
) -> None:
    flags = ("-O1", "-g")
    base = f"google-benchmark = '{compile_c(STATE, *flags)}'"
    finished, one = measured(cg_bench, base, "base.json")
    assert "many/threads:2 is left out: it uses threads" in finished.stderr
    assert "twice is left out: it is listed twice" in finished.stderr
    assert {name: item["iterations"] for name, item in one.items()} == {"plain/8": 1000, "paused": 10}
    ir = {name: item["counts"]["Ir"] for name, item in one.items()}
    assert 4_000_000 < ir["plain/8"] < 6_100_000
    assert 0 < ir["paused"] - ir["plain/8"] < 20_000  # of a thousand iterations, which are paused as often
    prepared = f"google-benchmark = '{compile_c(STATE, *flags, '-DSETUP=20000')}'"
    assert measured(cg_bench, prepared, "prepared.json")[1]["plain/8"]["counts"] == one["plain/8"]["counts"]
    slower = f"google-benchmark = '{compile_c(STATE, *flags, '-DWORK=1010')}'"
    measured(cg_bench, slower, "slower.json")
    told = cg_bench("diff", *(str(cg_bench.folder / name) for name in ("base.json", "slower.json")))
    assert told.code == 1
    assert "regression  plain/8" in told.stdout
    assert "work" in told.stdout.split("regression  plain/8")[1]
