"""Hostile files that are large, deep or long: refused at a bound that the error names, or cut where they are shown."""

from __future__ import annotations

import io
import json
import zlib
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.config.load import load
from cachegrind_bench.config.source import concerns_us
from cachegrind_bench.errors import CgBenchError, FileFormatError, MeasurementError, StoreError
from cachegrind_bench.model.codec import decode, encode
from cachegrind_bench.model.metrics import FunctionCost, Profile
from cachegrind_bench.model.text import LONGEST_CELL, in_line
from cachegrind_bench.render.markdown import table
from cachegrind_bench.render.table import Report, aligned, render, wrapped
from cachegrind_bench.store.sql.store import _unpack  # pyright: ignore[reportPrivateUsage]
from cachegrind_bench.valgrind import out_format
from cachegrind_bench.valgrind.out_file import read_cachegrind
from cachegrind_bench.valgrind.processes import in_order
from tests.unit.samples import result

if TYPE_CHECKING:
    from pathlib import Path

_BENCHMARK = '[[benchmark]]\nid = "a{}"\ncommand = ["x", "{{n}}"]\nparameters = {{ n = {} }}\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#" * 2_000_001, "cg-bench.toml: it is longer than 2000000 bytes"),
        ("a." * 101 + "b = 1", "cg-bench.toml:1: a key has more than 100 parts"),
        ("\n[" + '"a b" . ' * 101 + "b]", "cg-bench.toml:2: a key has more than 100 parts"),
        (_BENCHMARK.format("", [*range(10_001)]), "the parameter 'n' has 10001 values, more than 10000"),
        (
            "".join(_BENCHMARK.format(name, [*range(6_000)]) for name in "bc"),
            ":5: there are more than 10000 benchmarks",
        ),
        (
            _BENCHMARK.format("", [*range(1_002)]) + f"exclude = [{','.join(f'{{n={n}}}' for n in range(1_001))}]",
            "exclude has 1001 parts, more than 1000",
        ),
        (
            f"threshold = {['a*=1%'] * 2_001}\n" + _BENCHMARK.format("", [1]),
            ":1: more than 2000 patterns of thresholds and limits",
        ),
    ],
    ids=lambda value: value[-40:],
)
def test_a_configuration_beyond_its_bounds_is_refused_and_the_bound_is_named(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "cg-bench.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FileFormatError) as caught:
        load(path, check_files=False)
    assert said in caught.value.message


def test_a_pyproject_with_tables_for_us_and_a_deep_key_is_refused_not_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text("[tool.cg-bench]\n[x]\n" + "a." * 101 + "b = 1", encoding="utf-8")
    assert concerns_us(path)


def test_a_version_with_many_dots_in_a_text_is_not_a_deep_key(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(f'[tool.cg-bench]\nstore = "file:{"1." * 90}1"\n', encoding="utf-8")
    assert concerns_us(path)
    assert load(path).defaults["store"]


def test_an_error_quotes_at_most_some_lines_of_a_hostile_name() -> None:
    assert len(CgBenchError("x" * 1_000_000).message) < 2_100
    assert CgBenchError("x" * 2_000).message == "x" * 2_000


def test_a_name_of_a_million_characters_does_not_make_each_row_as_wide() -> None:
    rows = [("x" * 1_000_000, "1"), *[("a", "2")] * 6]
    assert sum(map(len, aligned(rows))) < 10_000
    assert len(table(("name", "count"), rows)) < 10_000


@pytest.mark.parametrize("name", ["env.fields", "env.info", "benchmarks[0].key_fields", "benchmarks[0].parameters"])
def test_a_result_with_more_fields_than_a_report_can_show_is_refused(name: str) -> None:
    document = json.loads(encode(result()))
    place = document["env"] if name.startswith("env") else document["benchmarks"][0]
    place[name.rpartition(".")[2]] = {str(number): "" for number in range(10_001)}
    with pytest.raises(FileFormatError) as caught:
        decode(json.dumps(document).encode(), "r.json")
    assert caught.value.message == f"r.json: {name}: expected an object of length <= 10000"


def test_the_lines_of_a_report_are_no_longer_than_one_can_read() -> None:
    long = "x" * 1_000_000
    text = render(Report(title=long, sections=(), warnings=(long,)))
    assert len(text) < 2_100
    assert len(render(Report(title=long, sections=(), warnings=(long,)), "markdown")) < 2_100
    assert len(in_line("\0" * 1_000_000)) == LONGEST_CELL


@pytest.mark.parametrize(("lines", "said"), [(False, "more than 2 functions"), (True, "more than 2 source lines")])
def test_an_out_file_of_more_rows_than_any_program_has_is_refused(
    monkeypatch: pytest.MonkeyPatch, lines: bool, said: str
) -> None:
    monkeypatch.setattr(out_format, "MOST_LINES" if lines else "MOST_FUNCTIONS", 2)
    names = b"fn=c\n3 1\n" if not lines else b"3 1\n"
    data = b"cmd: a\nevents: Ir\nfl=a\nfn=a\n1 1\nfn=b\n2 1\n%bsummary: 3\n" % names
    with pytest.raises(FileFormatError, match=said):
        read_cachegrind(io.BytesIO(data), "a.out", lines=lines)
    fewer = data.replace(names, b"").replace(b": 3", b": 2")
    assert read_cachegrind(io.BytesIO(fewer), "a.out", lines=lines).summary == (2,)


def test_an_out_file_without_one_of_the_nine_events_is_an_error_that_names_it() -> None:
    profile = Profile(events=("Ir", "Dr"), functions=(FunctionCost("a", "b", (1, 1)),))
    with pytest.raises(MeasurementError, match="no counts of I1mr"):
        in_order(profile)


@pytest.mark.parametrize("cell", [None, 1, 1.5, "text"])
def test_a_cell_of_another_type_is_a_damaged_record(cell: object) -> None:
    with pytest.raises(StoreError, match=r"is damaged in the database: .*bytes"):
        _unpack("runs/x.json", cell)
    assert _unpack("runs/x.json", zlib.compress(b"a")).data == b"a"


@pytest.mark.parametrize("width", range(10, 40))
def test_no_line_that_is_wrapped_begins_with_a_command_to_github(width: int) -> None:
    text = "some words ::error::bad and ::warning::worse of 5 % more words"
    lines = wrapped(text, width)
    assert not any(line.lstrip().startswith("::") for line in lines)
    assert " ".join(lines) == text
