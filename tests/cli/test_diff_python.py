"""`cg-bench diff` of results with profiles of Python functions: the function's name and line come first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.model.codec import encode
from tests.unit.comparing import counts
from tests.unit.pythons import python_profile
from tests.unit.samples import benchmark, profile_of, result

if TYPE_CHECKING:
    from cachegrind_bench.model.result import Result
    from tests.cli.conftest import CommandLine


def side(ir: int, *, python: bool = True) -> Result:
    rows = python_profile({"main:1": (1, 1_000, {"parse_row:42": (3, ir - 1_000)})})
    value = counts(ir)
    return result(benchmark(counts=value, profile=profile_of(eval=value), python=rows if python else None))


@pytest.fixture(autouse=True)
def _saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.json").write_bytes(encode(side(1_000_000)))
    Path("b.json").write_bytes(encode(side(1_010_000)))
    Path("without.json").write_bytes(encode(side(1_010_000, python=False)))


def test_the_python_function_is_named_with_its_line(cg_bench: CommandLine) -> None:
    told = cg_bench("diff", "a.json", "b.json")
    assert told.code == 1
    assert "in Python: parse_row, src/pkg/rows.py:42, +1 % (+10,000 instructions of its own; 3 → 3 calls)" in told.out
    assert told.out.splitlines()[-1].endswith(
        "each call of parse_row (src/pkg/rows.py:42) costs 336,333 instead of 333,000 instructions"
    )


def test_the_annotation_stands_on_its_line(cg_bench: CommandLine) -> None:
    told = cg_bench("diff", "a.json", "b.json", "--format", "github")
    assert "file=src/pkg/rows.py,line=42::" in told.out


def test_scripts_read_the_same_from_json(cg_bench: CommandLine) -> None:
    (item,) = json.loads(cg_bench("diff", "a.json", "b.json", "--format", "json").out)["benchmarks"]
    assert item["python"]["blamed"]["function"] == "parse_row"
    assert item["blamed"]["function"] == "eval"


@pytest.mark.parametrize("names", [("a.json", "without.json"), ("without.json", "b.json")])
def test_one_profile_alone_changes_nothing(cg_bench: CommandLine, names: tuple[str, str]) -> None:
    assert "Python" not in cg_bench("diff", *names).out
