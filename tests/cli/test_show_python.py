"""`cg-bench show --html` and `--export`: what Python functions cost, for other programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.model.codec import encode
from cachegrind_bench.render.exports import callgrind, speedscope
from tests.unit import flaming
from tests.unit.resulting import page_of
from tests.unit.samples import benchmark, result
from tests.unit.test_trend_page import Page, block

if TYPE_CHECKING:
    from tests.cli.conftest import CommandLine


@pytest.fixture(autouse=True)
def _saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    value = result(
        benchmark(id="a", python=flaming.small()), benchmark(id="b", python=flaming.small()), benchmark(id="plain")
    )
    Path("r.json").write_bytes(encode(value))


def test_a_page_is_written_along_with_the_report(cg_bench: CommandLine) -> None:
    report = cg_bench("show", "r.json", "--benchmark", "a")
    told = cg_bench("show", "r.json", "--benchmark", "a", "--html", "a.html")
    assert (told.code, told.out, told.err) == (0, report.out, "")
    assert Path("a.html").read_text() == page_of(flaming.small(), "a")
    told = cg_bench("show", "r.json", "--benchmark", "a", "--html", "-")
    assert told.out == Path("a.html").read_text()


def test_the_option_had_another_name(cg_bench: CommandLine) -> None:
    assert cg_bench("show", "r.json", "--flame", "a.html").code == 0
    assert "flame" in Path("a.html").read_text()


def test_a_page_has_all_benchmarks_that_are_chosen(cg_bench: CommandLine) -> None:
    page = Page(cg_bench("show", "r.json", "--html", "-").out)
    assert [attributes["class"] for attributes in page.all("section") if "class" in attributes] == [
        "flame",
        "flame",
        "",
    ]
    assert "3 benchmarks" in page.text
    assert "No flame graph: calls of this benchmark were not recorded" in page.text


def test_a_stored_run_has_a_page_with_graphs_if_its_profiles_were_kept(cg_bench: CommandLine) -> None:
    assert cg_bench("history", "add", "r.json", "--with-profile").code == 0
    told = cg_bench("history", "show", "--benchmark", "a", "--html", "-")
    assert (told.code, told.err) == (0, "")
    assert block(told.out) == block(page_of(flaming.small(), "a"))


def test_speedscope_takes_all_benchmarks_at_once(cg_bench: CommandLine) -> None:
    told = cg_bench("show", "r.json", "--export", "speedscope")
    assert told.code == 0
    assert [item["name"] for item in json.loads(told.out)["profiles"]] == ["a", "b"]
    told = cg_bench("show", "r.json", "--export", "speedscope", "--benchmark", "b", "-o", "b.json")
    assert (told.code, told.out) == (0, "")
    assert Path("b.json").read_bytes() == speedscope({"b": flaming.small()})


def test_callgrinds_format_holds_one_benchmark(cg_bench: CommandLine) -> None:
    told = cg_bench("show", "r.json", "--export", "callgrind", "--benchmark", "a", "--to", "callgrind.out.a")
    assert told.code == 0
    assert Path("callgrind.out.a").read_bytes() == callgrind("a", flaming.small())


def test_both_can_be_written_at_once(cg_bench: CommandLine) -> None:
    told = cg_bench("show", "r.json", "--benchmark", "a", "--html", "a.html", "--export", "callgrind")
    assert told.code == 0
    assert told.out.encode() == callgrind("a", flaming.small())
    assert Path("a.html").exists()


NO_PROFILE = """\
  for Python functions, measure with 'cg-bench run --python-profile'
  for a native program: valgrind --tool=callgrind ./sieve 100, then open its callgrind.out file in KCachegrind
"""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--export", "callgrind"], "Callgrind's format holds one benchmark, and 2 are meant\n  choose with"),
        (
            ["--benchmark", "plain", "--export", "callgrind"],
            f"benchmark 'plain' of r.json has no profile of Python functions\n{NO_PROFILE}",
        ),
        (["--benchmark", "plain", "--export", "speedscope"], "benchmark 'plain' of r.json has no profile"),
        (["--benchmark", "c", "--html", "x.html"], "r.json has no benchmark 'c'\n  it has: a, b, plain"),
        (["--html", "r.json"], "--html r.json would overwrite an input file"),
        (["--html", "missing/x.html"], "cannot write missing/x.html"),
        (["--to", "x.json"], "-o needs --export"),
        (["--html", "-", "--export", "speedscope"], "--html and -o name the same file"),
        (["--html", "x", "--export", "speedscope", "-o", "./x"], "--html and -o name the same file"),
    ],
)
def test_what_cannot_be_written_is_reported(cg_bench: CommandLine, arguments: list[str], message: str) -> None:
    told = cg_bench("show", "r.json", *arguments)
    assert (told.code, told.out) == (2, "")
    assert message in told.err
    assert not Path("x.html").exists()


def test_a_result_without_any_profile_names_the_option(cg_bench: CommandLine) -> None:
    Path("r.json").write_bytes(encode(result(benchmark(id="a"), benchmark(id="b"))))
    told = cg_bench("show", "r.json", "--export", "speedscope")
    assert told.code == 2
    assert "the benchmarks of r.json have no profile of Python functions" in told.err
    assert "--python-profile" in told.err


def test_an_unknown_format_is_bad_usage(cg_bench: CommandLine) -> None:
    assert cg_bench("show", "r.json", "--export", "pprof").code == 2
