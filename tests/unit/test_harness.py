"""Entries of a configuration: what their harness lists, and what of it is measured together."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.config.load import load
from cachegrind_bench.errors import MeasurementError, UsageError
from cachegrind_bench.harness import catch2, criterion, google_benchmark, jmh, node, protocol, tinybench
from cachegrind_bench.harness.engine.iterations import reported
from cachegrind_bench.harness.engine.loop import Loop
from cachegrind_bench.harness.go_command import parse_command
from cachegrind_bench.harness.google_benchmark import _loop
from cachegrind_bench.harness.protocol import Harness
from cachegrind_bench.harness.pytest import Pytest
from cachegrind_bench.log import LOG
from cachegrind_bench.render import listings
from cachegrind_bench.usecases.selection import with_listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cachegrind_bench.config.benchmarks import BenchmarkSpec, Configuration, Entry


class Fake(Harness):
    def listed(self, entry: Entry, environ: Mapping[str, str]) -> Sequence[BenchmarkSpec]:
        assert environ["PATH"]
        LOG.info("one is left out")
        names = Path(entry.each.cwd, "names").read_text(encoding="utf-8").split()
        return [entry.spec(name, ("run", name), region="here", tags=(*entry.each.tags, "own")) for name in names]


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = ModuleType("fake")
    module.HARNESS = Fake()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, f"{protocol.__package__}.pytest", module)
    monkeypatch.chdir(tmp_path)


def listed(text: str) -> Configuration:
    path = Path.cwd() / "cg-bench.toml"
    path.write_text(text, encoding="utf-8")
    return with_listed(load(path), {"PATH": "/bin:/usr/bin"})


def test_an_entry_becomes_the_benchmarks_that_its_harness_lists_after_its_setup() -> None:
    found = listed('[[benchmark]]\nid = "x"\ncommand = "x"\n[[benchmark]]\npytest = "t"\nsetup = "echo a b > names"\n')
    assert [spec.id for spec in found.benchmarks] == ["x", "a", "b"]
    assert not found.entries
    assert found.benchmarks[1].setup is None  # it was run
    assert (found.benchmarks[1].region, found.benchmarks[1].tags) == ("here", ("own",))


def test_an_id_that_two_tables_have_is_refused_with_the_place_of_both() -> None:
    Path("names").write_text("a", encoding="utf-8")
    with pytest.raises(UsageError, match=r"cg-bench.toml:4: pytest lists a benchmark 'a', an id taken at .*toml:1"):
        listed('[[benchmark]]\nid = "a"\ncommand = "x"\n[[benchmark]]\npytest = "t"\n')
    assert len(listed('[[benchmark]]\npytest = "t"\n[[benchmark]]\nid = "2"\npytest = "t"').benchmarks) == 2


def test_a_setup_that_fails_ends_the_listing_with_its_last_words() -> None:
    with pytest.raises(MeasurementError, match="its setup failed with exit status 3") as error:
        listed('[[benchmark]]\npytest = "t"\nsetup = "echo no compiler; exit 3"\n')
    assert error.value.hint == "no compiler"


def test_while_a_build_is_waited_for_its_last_line_is_shown(said: list[str]) -> None:
    build = protocol._Watched("cargo bench")
    build.look(2)
    build.take(b"   Compiling memchr v2.7\n   Compiling ser")
    build.take(b"de v1\r\n\n")
    build.look(4)
    assert said == ["waiting for cargo bench, 2 s", "waiting for cargo bench, 4 s: Compiling serde v1"]


def test_a_table_whose_harness_lists_nothing_is_named(said: list[str]) -> None:
    Path("names").write_text("", encoding="utf-8")
    Path("cg-bench.toml").write_text('[[benchmark]]\npytest = "t"\n', encoding="utf-8")
    with_listed(load(Path.cwd() / "cg-bench.toml"), {"PATH": "/bin:/usr/bin"})
    assert "pytest lists no benchmarks" in said[-1]


def test_an_id_that_ends_a_command_is_not_repeated_in_a_list() -> None:
    Path("names").write_text("a::b", encoding="utf-8")
    specs = listed('[[benchmark]]\npytest = "t"\n[[benchmark]]\nid = "x"\ncommand = "x a::b"\n').benchmarks
    text = listings.benchmarks(specs, 2, "cg-bench.toml", "text")
    assert [line.split() for line in text.splitlines()[-2:]] == [["x", "x", "a::b"], ["a::b", "run", "…", "own"]]


def program(text: str, harness: str = "google-benchmark") -> str:
    """Write a program that is given as a harness's, and return its table."""
    path = Path("bench")
    nothing = 'case "$*" in *"--benchmark_filter=^cg-bench lists nothing"*) exit;; esac'
    path.write_text(f"#!/bin/sh\n{nothing}\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return f'[[benchmark]]\n{harness} = "./bench"\n'


@pytest.mark.parametrize("text", ["sleep 100", "yes name"])
def test_a_program_whose_list_never_ends_is_an_error(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "_LISTING_MS", 500)
    with pytest.raises(MeasurementError, match=r"toml:1: \./bench did not list its benchmarks in 0\.5 s"):
        listed(program(text))


def test_bytes_of_a_listed_name_that_are_no_text_are_escaped() -> None:
    found = listed(program("echo plain; printf '\\377\\n'")).benchmarks
    assert [spec.id for spec in found] == ["plain", r"\xff"]


def test_what_a_program_prints_besides_its_list_is_no_benchmark_and_a_name_keeps_its_spaces() -> None:
    program("")
    lists = 'case "$*" in *"lists nothing"*) ;; *) echo "BM a "; echo BM_b;; esac'
    Path("bench").write_text(f"#!/bin/sh\necho loading\n{lists}\necho bye\n", encoding="utf-8")
    found = listed('[[benchmark]]\ngoogle-benchmark = "./bench"\n').benchmarks
    assert [(spec.id, spec.command[-1]) for spec in found] == [
        ("BM a ", "--benchmark_filter=^BM a $"),
        ("BM_b", "--benchmark_filter=^BM_b$"),
    ]
    Path("bench").write_text("#!/bin/sh\necho BM_b\n", encoding="utf-8")
    with pytest.raises(MeasurementError, match="listed no benchmarks of Google Benchmark") as error:
        listed('[[benchmark]]\ngoogle-benchmark = "./bench"\n')
    assert error.value.hint == "its main has to pass on --benchmark_filter"


def aggregates(**mean: object) -> bytes:
    row = {"run_name": "x", "run_type": "aggregate", "aggregate_name": "mean", "iterations": 2, "time_unit": "us"}
    return json.dumps({"benchmarks": [row | mean]}).encode()


@pytest.mark.parametrize(
    ("report", "problem"),
    [
        (b"", "the program ran no benchmark called x"),
        (b'{"benchmarks": [', "the program's report on its benchmark cannot be read"),
        (aggregates(cpu_time=6e9), "does not report how many iterations"),  # fewer than were asked for
        (aggregates(cpu_time=0.7e9), "does not report how many iterations"),
        (aggregates(cpu_time=0), "does not report how many iterations"),
        (aggregates(run_name="y"), "does not report how many iterations"),
        (aggregates(error_occurred=True, error_message="no corpus"), "with the error: no corpus"),
        (aggregates(skipped=True, skip_message="no GPU"), "skips itself: no GPU"),
    ],
)
def test_a_report_of_google_benchmark_that_does_not_say_the_number_is_an_error(report: bytes, problem: str) -> None:
    with pytest.raises(MeasurementError, match=problem):
        google_benchmark._executed("x", report, 1, 1)


def test_aggregates_of_google_benchmark_say_how_many_iterations_there_were() -> None:
    assert google_benchmark._executed("x", aggregates(cpu_time=2e9 / 300), 100, 1) == 300
    assert google_benchmark._executed("x", aggregates(cpu_time=2e9), 10, 10) == 10  # each was paused
    run = {"run_name": "x", "run_type": "iteration", "iterations": 301, "counter": float("nan")}
    assert google_benchmark._executed("x", json.dumps({"benchmarks": [run]}).encode(), 100, 1) == 301


@pytest.mark.parametrize("report", ["true", "echo '<a><b' >"])
def test_what_is_no_report_of_catch2_is_an_error(report: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(catch2, "SCRATCH_BASE", tmp_path)
    seeks = 'while [ "$1" != --out ]; do shift; done'
    with pytest.raises(MeasurementError, match=r"\./bench ran no benchmarks of Catch2"):
        listed(program(f'{seeks}; {report} "$2"', "catch2"))


REPORT = """while [ "$1" != --out ]; do shift; done; cat > "$2" <<END
<Catch2TestRun>{}</Catch2TestRun>
END"""


@pytest.mark.parametrize(
    ("harness", "status", "problem"),
    [
        ("google-benchmark", 0, "listed no benchmarks of Google Benchmark"),
        ("catch2", 3, "could not run its benchmarks"),
    ],
)
def test_a_program_that_writes_nothing_is_an_error_that_says_how_it_ended(
    harness: str, status: int, problem: str
) -> None:
    with pytest.raises(MeasurementError, match=problem) as error:
        listed(program(f"exit {status}", harness))
    assert error.value.hint == f"it wrote nothing, and ended with exit status {status}"


def test_hidden_benchmarks_of_catch2_are_found_though_it_fails_without_a_test_case_to_run() -> None:
    case = "<TestCase name='sort'><BenchmarkResults name='long'/><OverallResult success='true'/></TestCase>"
    hidden = f"""case "$*" in *!benchmark*) {REPORT.format(case)}\nexit;; esac\n{REPORT.format("")}\nexit 2"""
    assert [spec.id for spec in listed(program(hidden, "catch2")).benchmarks] == ["sort/long"]


def test_a_test_case_of_catch2_that_fails_is_named() -> None:
    case = "<TestCase name='sort'><OverallResult success='false'/></TestCase>"
    with pytest.raises(MeasurementError, match="could not run its benchmarks") as error:
        listed(program(f"{REPORT.format(case)}\nexit 1", "catch2"))
    assert error.value.hint == "test case sort fails"


def test_options_of_catch2_are_kept_ignored_or_refused_by_name() -> None:
    case = "<TestCase name='sort'><BenchmarkResults name='long'/></TestCase>"
    bench = program(f'echo "$@" > asked; {REPORT.format(case)}', "catch2")
    words = "-r xml --benchmark-samples=5 -s --rng-seed 7 [fast] -c part"
    (spec,) = listed(bench.replace("./bench", f"./bench {words}")).benchmarks
    assert Path("asked").read_text(encoding="utf-8").startswith("[fast] --rng-seed 7 -c part --reporter xml --out ")
    assert spec.command[1:6] == ("sort", "--rng-seed", "7", "-c", "part")
    with pytest.raises(UsageError, match="the option --skip-benchmarks of Catch2"):
        listed(bench.replace("./bench", "./bench --skip-benchmarks"))


def built_by_cargo(harness: str, text: str) -> Configuration:
    """List an entry whose only bench target is this script."""
    bench = Path.cwd() / "parse-1"
    bench.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    bench.chmod(0o755)
    target = {"name": "parse", "kind": ["bench"]}
    built = {"executable": str(bench), "manifest_path": str(Path.cwd() / "Cargo.toml"), "target": target}
    on_path("cargo", f"""echo "$@" >> asked\necho '{json.dumps(built)}'""")
    return listed_with(f"[[benchmark]]\n{harness} = '. --features \"x y\"'\n")


@pytest.mark.parametrize(("harness", "mark"), [("criterion", "9criterion7bencher"), ("divan", "DIVAN_SAMPLE_SIZE")])
@pytest.mark.parametrize(
    ("symbols", "why", "cure"),
    [("\0.symtab\0", "LTO has inlined them", "lto=false"), ("", "it is stripped", "strip=false")],
)
def test_a_program_whose_clock_is_not_seen_is_refused_before_anything_runs(
    harness: str, mark: str, symbols: str, why: str, cure: str
) -> None:
    with pytest.raises(MeasurementError, match=f"in the bench target parse of .* clock is seen: {why}") as error:
        built_by_cargo(harness, f"touch ran\n# {mark}{symbols}")
    assert f"""{harness} = ". --features 'x y' --config profile.bench.{cure}\"""" in str(error.value.hint)
    assert not Path("ran").exists()


@pytest.mark.parametrize(
    "line",
    [
        *("{x", '{"target": null}'),
        '{"target": {"name": "a", "kind": ["bench"]}, "executable": "gone"}',
    ],
)
def test_what_cargo_does_not_write_is_passed_over(line: str) -> None:
    Path("lines").write_text(f"{line}\n", encoding="utf-8")
    on_path("cargo", "cat lines")
    with pytest.raises(MeasurementError, match=r"Cargo built no benchmarks of Criterion|cannot read gone$"):
        listed_with('[[benchmark]]\ncriterion = "."\n')


@pytest.mark.parametrize(
    ("command", "asked", "chosen"),
    [
        ("cargo bench --features x --bench y -- sort --save-baseline z", "--features x --bench y", "sort"),
        ("cargo +nightly --locked bench -p a --profile fast sort", "--locked -p a --profile fast", "sort"),
        ("cargo bench --no-run --message-format short -- --sample-size=10 --exact sort -n", "", "--exact sort"),
        ("cargo bench --manifest-path=./Cargo.toml --quiet", "--quiet", ""),
        ("cargo bench --manifest-path ./Cargo.toml -j 2 a -- b", "-j 2", "a b"),
    ],
)
def test_cargo_builds_as_the_command_says_and_its_filters_choose(command: str, asked: str, chosen: str) -> None:
    bench = Path("parse")
    bench.write_text('#!/bin/sh\n# 9criterion7bencher CLOCK\necho "$@" > listed\necho "a: bench"\n', encoding="utf-8")
    names = "\0_ZN3std4time7Instant3now17h0123456789abcdefE\0_ZN3std4time7Instant7elapsed17h0123456789abcdefE\0"
    bench.write_text(bench.read_text(encoding="utf-8").replace("CLOCK", names), encoding="utf-8")
    bench.chmod(0o755)
    target = {"name": "parse", "kind": ["bench"]}
    built = {"executable": str(bench.absolute()), "manifest_path": str(Path.cwd() / "Cargo.toml"), "target": target}
    on_path("cargo", f"""echo "$@" > asked\necho '{json.dumps(built)}'""")
    entry = protocol.entry_of("criterion", command.split(), Path.cwd())
    environ = {"PATH": f"{Path.cwd()}/bin:/bin:/usr/bin"}
    assert [spec.id for spec in protocol.harness_of("criterion").listed(entry, environ)] == ["parse/a"]
    toolchain = "+nightly " if "+nightly" in command else ""
    words = f"{toolchain}bench --no-run --manifest-path=./Cargo.toml --message-format=json {asked}"
    assert Path("asked").read_text(encoding="utf-8").split() == words.split()
    assert Path("listed").read_text(encoding="utf-8").split() == f"--bench --list {chosen}".split()


def test_an_option_of_a_framework_that_is_not_known_is_refused_by_name() -> None:
    entry = protocol.entry_of("divan", ["cargo", "bench", "--", "--ignored"], Path.cwd())
    with pytest.raises(UsageError, match="Divan's option --ignored is not known to cg-bench"):
        protocol.harness_of("divan").listed(entry, {"PATH": "/bin"})
    with pytest.raises(UsageError, match="--harness divan does not know the command cargo criterion"):
        protocol.entry_of("divan", ["cargo", "criterion"], Path.cwd())


def test_a_name_that_criterion_lists_cut_is_chosen_by_how_it_begins() -> None:
    harness = protocol.harness_of("criterion")
    assert isinstance(harness, criterion.Criterion)
    assert harness.words("a...")[1] == r"^a\.\.\.$"
    assert harness.words(f"{'a' * 100}...")[1] == f"^{'a' * 100}.+"
    assert harness.words(f"{'ä' * 49}a...")[1] == f"^{'ä' * 49}a.+"
    unfit = harness.unfit(["a", "a #2", "b #2", "c"])
    assert unfit == dict.fromkeys(["a", "a #2"], "its name, or the first 100 bytes of it, is listed twice")


ONE = "\0_ZN9criterion7bencher16Bencher$LT$M$GT$4iter17h0123456789abcdefE"
TWO = "\0_RINvMs_NtCsX_9criterion7bencherNtB_7Bencher12iter_batchedppE"
CLOSURE = "\0_ZN9criterion7bencher21AsyncBencher$LT$A$C$M$GT$4iter28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE"
READINGS = "\0_ZN3std4time7Instant3now17h0123456789abcdefE\0_ZN3std4time7Instant7elapsed17h0123456789abcdefE"
OLD = "_ZN88_$LT$criterion..measurement..WallTime$u20$as$u20$criterion..measurement..Measurement$GT$"
NEW = "_RNvXs_NtCsX_9criterion11measurementNtB_8WallTimeNtB_11Measurement"


@pytest.mark.parametrize("besides_s", [0, 0.3, 1])
def test_criterion_executes_two_iterations_more_than_are_counted_wherever_its_clock_moves(besides_s: float) -> None:
    for number, jump_s in criterion._JUMPS_S.items():
        taken_s = jump_s + besides_s
        assert int((criterion._SECONDS - taken_s) / (taken_s / 3)) == number + 2


@pytest.mark.parametrize(
    "names", [[f"{OLD}5start17h{'0' * 16}E", f"{OLD}3end17h{'0' * 16}E"], [f"{NEW}5start", f"{NEW}3end"]]
)
def test_the_functions_by_which_criterion_measures_are_preferred_to_its_clock(names: list[str]) -> None:
    program = f"{ONE}{TWO}{CLOSURE}{READINGS}"
    loop = criterion.HARNESS.loop(f"{program}\0".encode())
    assert loop is not None
    assert loop.sections is not None
    assert loop.sections.begin == ("after:_ZN3std4time7Instant3now17h0123456789abcdefE",)
    assert loop.sections.reset == (f"before:{TWO[1:]}", f"before:{ONE[1:]}")
    with_measurement = criterion.HARNESS.loop("\0".join([program, *names, ""]).encode())
    assert with_measurement is not None
    assert with_measurement.sections is not None
    assert (with_measurement.sections.begin, with_measurement.sections.end) == (
        (f"after:{names[0]}",),
        (f"before:{names[1]}",),
    )
    assert with_measurement.sections.other == loop.sections


def test_a_version_that_was_not_tested_is_noted(said: list[str]) -> None:
    entry = protocol.entry_of("go", ["go", "test"], Path.cwd())
    for version in ("1.26", "1.26.3", "1.260", "2"):
        protocol.check_version(entry, "Go", version, ("1.26",))
    assert [text.partition(" is not")[0] for text in said] == ["--harness go: Go 1.260", "--harness go: Go 2"]
    for folder, version in (("node_modules/vitest", "3.2.1"), ("a/node_modules/vitest", "4.1.9")):
        Path(folder).mkdir(parents=True)
        Path(folder, "package.json").write_text(json.dumps({"version": version}), encoding="utf-8")
        node.check_package(entry, "vitest", Path(folder).absolute().parents[1], ("4.1",))
    assert len(said) == 3
    assert "vitest 3.2.1 is not a version that was tested (4.1)" in said[-1]


def test_a_stripped_program_that_may_be_of_another_framework_is_left_out_with_advice(said: list[str]) -> None:
    with pytest.raises(MeasurementError, match="Cargo built no benchmarks of Criterion") as error:
        built_by_cargo("criterion", "true")
    assert "--features 'x y'" in said[0]  # the command that builds
    assert "is left out: it is stripped" in said[-1]
    assert "profile.bench.strip=false" in str(error.value.hint)


@pytest.mark.parametrize("number", ["0", "007"])
def test_what_cannot_be_a_number_of_iterations_is_not_taken_for_one(number: str) -> None:
    (found,) = listed(program(f"echo BM/iterations:{number}")).benchmarks
    assert found.loop is not None
    assert min(filter(None, found.loop.words)) == 1


def test_an_argument_of_zero_that_is_called_iterations_is_not_their_number() -> None:
    loops = [_loop(f"BM/iterations:{number}", fixed=True).words for number in ("0", "00", "30")]
    assert [min(filter(None, words)) for words in loops] == [1, 1, 30]


def on_path(name: str, text: str) -> None:
    """Have a program of this name before all others of a `PATH` that `listed_with` uses."""
    path = Path.cwd() / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def listed_with(text: str) -> Configuration:
    path = Path.cwd() / "cg-bench.toml"
    path.write_text(text, encoding="utf-8")
    return with_listed(load(path), {"PATH": f"{Path.cwd()}/bin:/bin:/usr/bin"})


def test_benchmarks_of_jmh_are_all_combinations_of_their_parameters() -> None:
    lines = ["Benchmarks: ", "a.B.plain", "a.B.sized", '  param "n" = {1, 20}', '  param "kind" = {x, y z}', ""]
    on_path("java", "\n".join(['echo "$@" >> asked', "cat <<'END'", *lines, "END"]))
    found = listed_with('[[benchmark]]\njmh = "-Dx=1 -jar b.jar B.x"\n').benchmarks
    assert [spec.id for spec in found] == [
        "a.B.plain",
        *(f"a.B.sized[n={n},kind={x}]" for n in (1, 20) for x in ("x", "y z")),
    ]
    assert Path("asked").read_text(encoding="utf-8") == "-Dx=1 -jar b.jar -lp B.x\n"
    assert found[2].command[-5:] == ("-p", "n=1", "-p", "kind=y z", r"^a\.B\.sized$")


# As JMH 1.37 writes it, with its own encoding of values: "int, long" and "x", "1,000" and "20", and "a, b" alone.
_BENCHMARK_LIST = """JMH S 3 b.P S 31 b.jmh_generated.P_comma_jmhTest S 5 comma S 10 Throughput E A 1 1 1 E E E E E E E E E E E E E M 2 4 kind 2 24 pBgbAQHAsAAIAwGAvBgbAcGA 8 4BA===== 1 n 2 16 xAALAADAwAAMAA== 8 yAAMAA== E E E
JMH S 3 b.P S 29 b.jmh_generated.P_one_jmhTest S 3 one S 10 Throughput E A 1 1 1 E E E E E E E E E E E E E M 2 3 all 1 16 hBALAAAIiBA===== 1 n 2 16 xAALAADAwAAMAA== 8 yAAMAA== E E E
"""


def test_values_of_jmh_with_a_comma_are_whole_or_left_out(said: list[str]) -> None:
    Path("classes/META-INF").mkdir(parents=True)
    Path("classes/META-INF/BenchmarkList").write_text(_BENCHMARK_LIST, encoding="utf-8")
    with zipfile.ZipFile("b.jar", "w") as jar:
        jar.writestr("META-INF/BenchmarkList", _BENCHMARK_LIST)
    lines = ["Benchmarks: ", "b.P.comma", '  param "kind" = {int, long, x}', '  param "n" = {1,000, 20}']
    lines += ["b.P.one", '  param "all" = {a, b}', '  param "n" = {1,000, 20}', ""]
    on_path("java", "\n".join(["cat <<'END'", *lines, "END"]))
    for words in ('"b.jar"', '["-cp", "classes:lib/*", "org.openjdk.jmh.Main"]', '"b.jar -p kind=int,x one"'):
        said.clear()
        found = listed_with(f"[[benchmark]]\njmh = {words}\n").benchmarks
        assert found[-1].id == "b.P.one[all=a, b,n=20]"
        assert found[-1].command[-3:] == ("-p", "n=20", r"^b\.P\.one$")  # of its only value, JMH knows by itself
        assert "b.P.one is left out where its parameter n is 1,000: JMH's option -p takes a comma" in said[-1]
        if words != '"b.jar -p kind=int,x one"':
            assert len(found) == 1
            assert "b.P.comma is left out where its parameter kind is int, long, x: " in said[0]


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("-f 1 -wi 5 Foo.*", "Foo.*"),
        ("-f1 -wi=5 -i3 -r 1s -p size=1,2 -e Bar -rf json -rff out.json Foo", "-p size=1,2 -e Bar Foo"),
        ("-t 1 -bm avgt -tu ns -foe true -prof gc", ""),
        ("-t 4", "-t 4 is left out: each benchmark has one thread"),
        ("-jvmArgs -Xmx1g", "here: cg-bench cannot follow JMH's option -jvmArgs"),
        ("-bs 100", "here: cg-bench cannot follow JMH's option -bs"),
        ("--help", "here: cg-bench cannot follow JMH's option --help"),
    ],
)
def test_options_of_jmh_choose_benchmarks_or_say_nothing_or_are_refused(words: str, kept: str, said: list[str]) -> None:
    try:
        found = " ".join(jmh._patterns(words.split(), "here"))
    except UsageError as error:
        found = error.message
    assert found == kept or said == [f"here: {kept}"]


@pytest.mark.parametrize(
    ("harness", "command", "problem"),
    [
        ("jmh", "mvn exec:java", "mvn starts Java itself"),
        ("jmh", "./gradlew jmh", "./gradlew starts Java itself"),
        *(
            (name, f"/opt/x/{program} a", f"the {program} that is on PATH, not /opt/x/{program}")
            for name, program in (("jmh", "java"), ("go", "go"), ("tinybench", "node"))
        ),
    ],
)
def test_another_program_than_that_of_the_harness_is_refused(harness: str, command: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        protocol.entry_of(harness, command.split(), Path.cwd())


@pytest.mark.parametrize(
    ("words", "program", "patterns"),
    [
        ("b.jar x", "-jar b.jar", "x"),
        ("-Xmx1g b.jar", "-Xmx1g -jar b.jar", ""),
        ("-Dx=1 -jar b.jar x y.jar", "-Dx=1 -jar b.jar", "x y.jar"),
        ("-jar odd", "-jar odd", ""),
        ("-cp a.jar org.openjdk.jmh.Main x", "-cp a.jar org.openjdk.jmh.Main", "x"),
        ("--class-path a.jar:b.jar -ea own.Main b.jar", "--class-path a.jar:b.jar -ea own.Main", "b.jar"),
        ("-p mods --add-opens a/b=c -m mod/Main -f", "-p mods --add-opens a/b=c -m mod/Main", "-f"),
    ],
)
def test_what_starts_jmh_ends_with_a_jar_or_a_class(words: str, program: str, patterns: str) -> None:
    assert jmh._parted(words.split(), "here") == (tuple(program.split()), tuple(patterns.split()))


@pytest.mark.parametrize(
    ("harness", "command", "problem"),
    [
        ("jmh", "java", "--harness jmh: java names neither a jar nor a class"),
        ("jmh", "java -cp a.jar", "java -cp a.jar names neither"),
        ("jmh", "java -Xmx1g -jar", "java -Xmx1g -jar names neither"),
        ("tinybench", "node", "--harness tinybench: node does not name a script"),
        ("tinybench", "node --no-warnings", "node --no-warnings does not name a script"),
    ],
)
def test_a_command_that_names_no_program_is_refused_with_an_example(harness: str, command: str, problem: str) -> None:
    entry = protocol.entry_of(harness, command.split(), Path.cwd())
    with pytest.raises(UsageError, match=problem) as error:
        protocol.harness_of(harness).listed(entry, {"PATH": "/bin:/usr/bin"})
    assert command.split(maxsplit=1)[0] in str(error.value.hint)


@pytest.mark.parametrize(
    ("command", "value"),
    [
        ("npx vitest", "."),
        ("npx vitest@4 bench --run parse", ". parse"),
        ("node_modules/.bin/vitest bench --config x.ts", ". --config x.ts"),
        ("pnpm exec vitest bench", "."),
        ("node --yes node_modules/vitest/vitest.mjs bench", "."),
        ("npm run bench -- parse", ". --config y.ts parse"),
        ("yarn bench", ". --config y.ts"),
        ("npx vitest bench src/bench bench", ". src/bench bench"),
        ("npm run odd", "the script 'odd' of package.json is for a shell: A=1 vitest bench && true"),
        ("cross-env A=1 vitest bench", "cross-env A=1 vitest bench is not 'vitest bench'"),
        ("npx vitest run", "npx vitest run is not 'vitest bench'"),
        ("npm test", "npm test is not 'vitest bench'"),
    ],
)
def test_words_that_start_vitest_choose_no_files(command: str, value: str) -> None:
    scripts = {"bench": "vitest bench --config y.ts", "odd": "A=1 vitest bench && true"}
    Path("package.json").write_text(json.dumps({"scripts": scripts}), encoding="utf-8")
    try:
        found = " ".join(protocol.entry_of("vitest", command.split(), Path.cwd()).keys["vitest"])
    except UsageError as error:
        found = error.message.removeprefix("--harness vitest: ")
    assert found == value


def test_a_script_of_tinybench_is_what_follows_options_of_node_and_their_values() -> None:
    Path("package.json").write_text('{"scripts": {"bench": "node --import tsx bench/a.ts"}}', encoding="utf-8")
    for command in ("npm run bench", "node --import tsx bench/a.ts"):
        words = protocol.entry_of("tinybench", command.split(), Path.cwd()).keys["tinybench"]
        assert words == ("--import", "tsx", "bench/a.ts")
        assert tinybench._script(words) == "bench/a.ts"
    assert tinybench._script(["-r", "x", "--no-warnings", "b.mjs", "c"]) == "b.mjs"
    with pytest.raises(UsageError, match="npx starts Node itself"):
        protocol.entry_of("tinybench", ["npx", "tsx", "b.ts"], Path.cwd())


@pytest.mark.parametrize(
    ("top", "below", "found"),
    [
        ('[dev-dependencies]\ncriterion = "0.5"\n', "", (".",)),
        ("[package]\n", "", ["benches"]),
        ('[workspace]\nmembers = ["benches"]\n', "", (".",)),
        ("[package]\n[workspace]\n", "[workspace]\n", ["benches"]),
        ('[workspace]\nexclude = [\n  "a", "./benches/",\n]\n', "", ["benches"]),
    ],
)
def test_benchmarks_of_a_rust_package_apart_are_found_where_cargo_builds_them(
    tmp_path: Path, top: str, below: str, found: Sequence[str]
) -> None:
    (tmp_path / "benches").mkdir()
    (tmp_path / "Cargo.toml").write_text(top)
    (tmp_path / "benches" / "Cargo.toml").write_text(f'[dependencies]\ncriterion = "0.5"\n{below}')
    assert protocol.harness_of("criterion").detect(tmp_path) == found


def test_tests_that_use_the_fixture_are_found_with_the_folder_that_has_them_all() -> None:
    pytest_ = Pytest()
    for path, text in {
        "tests/test_plain.py": "def test_a(tmp_path): pass",
        "venv/lib/site-packages/x/test_x.py": "def test_a(benchmark): pass",
        "src/helpers.py": "def benchmark_of(benchmark): pass",
    }.items():
        Path(path).parent.mkdir(parents=True)
        Path(path).write_text(text, encoding="utf-8")
    assert pytest_.detect(Path.cwd()) == ()
    Path("tests/bench/deep").mkdir(parents=True)
    Path("tests/bench/test_a.py").write_text("class A:\n    def test_a(self,\n    benchmark): pass", encoding="utf-8")
    assert pytest_.detect(Path.cwd()) == ("tests/bench",)
    Path("tests/bench/deep/b_test.py").write_text("async def test_b(x, benchmark): pass", encoding="utf-8")
    assert pytest_.detect(Path.cwd()) == ("tests/bench",)


def test_files_of_vitest_are_not_looked_for_in_installed_packages() -> None:
    Path("package.json").write_text('{"devDependencies": {"vitest": "4"}}', encoding="utf-8")
    for folder in ("node_modules/x", "packages/y/node_modules/z", ".git"):
        Path(folder).mkdir(parents=True)
        Path(folder, "a.bench.ts").touch()
    assert protocol.harness_of("vitest").detect(Path.cwd()) == ()
    Path("packages/y/a.bench.ts").touch()
    assert protocol.harness_of("vitest").detect(Path.cwd()) == (".",)


def test_what_vitest_builds_is_ignored_by_git() -> None:
    on_path("node", "true")
    with pytest.raises(MeasurementError, match="found no benchmarks"):
        listed_with('[[benchmark]]\nvitest = "."\n')
    assert Path(".cg-bench/.gitignore").read_bytes() == b"*\n"


# Builds each package that is listed as a copy of the file `program`.
_GO = r"""echo "$@" >> asked
case $1 in
list) cat packages;;
test) for word; do case $word in -o=*) out=${word#-o=};; esac; done
    case $* in *broken) echo cannot find module >&2; exit 1;; esac
    mkdir -p "$(dirname "$out")" && cp program "$out" && chmod +x "$out";;
esac"""


def go_packages(program: str, *packages: str) -> None:
    """Have a `go` with these packages, given as `module package`; each of them is built as this script."""
    on_path("go", _GO)
    Path("program").write_text(f"#!/bin/sh\n{program}\n", encoding="utf-8")
    lines = [f"{path}\t{Path.cwd()}\t{module}\ta_test.go/\t\0\n" for module, path in map(str.split, packages)]
    Path("packages").write_text("".join(lines), encoding="utf-8")


def told_by_go(*events: str) -> str:
    """Return a script that writes what a program of Go does for these events with -test.v=test2json."""
    text = "".join(event if event.startswith(" ") else f"\\026{event}\\n" for event in events)
    return f"printf '{text}'"


def ran(name: str, result: str = "1\\t 3 ns/op") -> tuple[str, str, str]:
    return f"=== RUN   {name}\\n{name}", f" {name}   \\t  {result}\\n", "=== NAME  "


def test_what_go_builds_is_ignored_by_git() -> None:
    go_packages("exit 1", "m m/broken")
    with pytest.raises(MeasurementError, match="there are no benchmarks in m/broken"):
        listed_with('[[benchmark]]\ngo = "m/broken"\n')
    with pytest.raises(MeasurementError, match="there are no benchmarks that -bench and -skip choose in m/broken"):
        listed_with('[[benchmark]]\ngo = "-bench=Sort m/broken"\n')
    assert Path(".cg-bench/.gitignore").read_bytes() == b"*\n"


def test_packages_and_tables_of_go_have_programs_of_their_own() -> None:
    go_packages(told_by_go(*ran("BenchmarkX"), "PASS"), "m m/a/b", "m m/a_b")
    found = listed_with(
        '[[benchmark]]\ngo = "./..."\n[[benchmark]]\nid = "x"\ngo = "./..."\nenv = ["A=1"]\n'
        '[[benchmark]]\nid = "y"\ngo = ["-tags=fast", "./..."]\n'
    )
    names = ("a/b", "a_b", "x/a/b", "x/a_b", "y/a/b", "y/a_b")
    assert [spec.id for spec in found.benchmarks] == [f"{each}/BenchmarkX" for each in names]
    assert len({spec.command[0] for spec in found.benchmarks}) == 6


def test_benchmarks_of_go_are_those_that_run_whatever_they_print_or_report(said: list[str]) -> None:
    events = [
        *ran("BenchmarkZero", "1"),
        *("=== RUN   BenchmarkSub\\nBenchmarkSub", *ran("BenchmarkSub/n=1"), *ran("BenchmarkSub/a/b")),
        *ran("BenchmarkSub/a"),
        "=== RUN   BenchmarkDots\\nBenchmarkDots",
        " ...BenchmarkGhost 1 2 ns/op\\nBenchmarkDots    \\t  1\\t 5 ns/op\\n",
        *(
            "=== RUN   BenchmarkSkip\\nBenchmarkSkip",
            "     a_test.go:3: no\\n        corpus\\n",
            "--- SKIP: BenchmarkSkip",
        ),
        *("=== RUN   BenchmarkFails\\nBenchmarkFails", "     wrong\\n", "--- FAIL: BenchmarkFails", "FAIL"),
    ]
    go_packages(f"echo BenchmarkGhost 1 2 ns/op\n{told_by_go(*events)}\nexit 1", "m m")
    found = listed_with('[[benchmark]]\ngo = "."\n').benchmarks
    assert [spec.id for spec in found] == [
        f"Benchmark{name}" for name in ("Zero", "Sub/n=1", "Sub/a/b", "Dots", "Fails")
    ]
    (loop,) = (spec.loop for spec in found if spec.id == "BenchmarkDots")
    assert loop is not None
    said_by_it = (
        b"BenchmarkDots 7 7 ns/op\n..BenchmarkDots    \t     100\t 3 ns/op\nBenchmarkGhost \t 1\t 2 ns/op\nPASS\n"
    )
    assert (reported(loop, said_by_it), reported(loop, b"BenchmarkGhost  \t 1\t 2 ns/op\n")) == (100, None)
    assert "BenchmarkSkip is left out: it skips itself: a_test.go:3: no corpus" in said[-1]
    assert "BenchmarkSub/a is left out: the names of others begin with its name" in said[-2]


def test_after_a_panic_of_one_benchmark_of_go_the_others_are_asked_for() -> None:
    first, rest = told_by_go("=== RUN   BenchmarkPanics\\nBenchmarkPanics"), told_by_go(*ran("BenchmarkLast"), "PASS")
    go_packages(
        f"""case "$*" in
        *'-test.skip=^BenchmarkPanics$ '*) {rest};;
        *'-test.skip= '*) {first}; exit 2;;
        esac""",
        "m m",
    )
    found = listed_with('[[benchmark]]\ngo = "."\n').benchmarks
    assert [spec.id for spec in found] == ["BenchmarkPanics", "BenchmarkLast"]


def test_a_package_of_go_that_is_not_built_fails_and_stops_no_other() -> None:
    go_packages(told_by_go(*ran("BenchmarkX"), "PASS"), "m m/a", "m m/broken")
    source = (
        "package a\nfunc BenchmarkA(b *testing.B) {}\nfunc Benchmarked(b *testing.B) {}\nfunc BenchmarkB(x int) {}\n"
    )
    Path("a_test.go").write_text(source, encoding="utf-8")
    found = listed_with('[[benchmark]]\ngo = ["-bench=^BenchmarkA$", "./..."]\n').benchmarks
    assert {spec.id: spec.problem for spec in found} == {
        "a/BenchmarkX": "",
        "broken/BenchmarkA": "m/broken could not be built\ncannot find module",
    }
    go_packages("exit 1", "m m/broken")
    with pytest.raises(MeasurementError, match="m/broken could not be built"):
        listed_with('[[benchmark]]\ngo = "./..."\n')


def test_two_modules_of_a_workspace_may_have_a_benchmark_of_one_name() -> None:
    go_packages(told_by_go(*ran("BenchmarkX"), "PASS"), "example.com/a example.com/a", "b b", "b b/c")
    found = listed_with('[[benchmark]]\ngo = ["./a", "./b/..."]\n').benchmarks
    assert [spec.id for spec in found] == ["example.com/a/BenchmarkX", "b/BenchmarkX", "c/BenchmarkX"]


def test_a_package_of_go_that_is_not_there_is_named_and_a_folder_with_its_path() -> None:
    go_packages("", "m m")
    Path("packages").write_text("g\t\t\t\tpackage g is not in std\0\n", encoding="utf-8")
    with pytest.raises(MeasurementError, match="package g is not in std") as error:
        listed_with('[[benchmark]]\ngo = "g"\n')
    assert error.value.hint == "packages are as in: go test ./..."
    Path("g").mkdir()
    with pytest.raises(MeasurementError, match="package g is not in std") as error:
        listed_with('[[benchmark]]\ngo = "g"\n')
    assert error.value.hint == "the folder is ./g"


@pytest.mark.parametrize(
    ("words", "build", "packages", "others"),
    [
        ("-tags=fast ./...", "-tags=fast", "./...", ("", ".", "", "", "1")),
        ("-race -gcflags -N ./a --mod mod ./b", "-race=true -gcflags=-N -mod=mod", "./a ./b", ("", ".", "", "", "1")),
        ("-run ^$ -bench . -count 3 -benchmem -v ./...", "", "./...", ("", ".", "", "", "1")),
        ("-C sub -bench=Sort/n=1 -test.short -cpu 1,4", "", ".", ("sub", "Sort/n=1", "", "-test.short", "1,4")),
        ("./a -skip Slow -cover=false -args -corpus x", "-cover=false", "./a", ("", ".", "Slow", "-corpus x", "1")),
    ],
)
def test_words_for_go_test_choose_what_is_built_and_which_benchmarks(
    words: str, build: str, packages: str, others: tuple[str, ...]
) -> None:
    command = protocol.harness_of("go").value(["go", "test", *words.split()])
    found = parse_command(command, "here")
    assert (found.build, found.packages) == (tuple(build.split()), tuple(packages.split()))
    assert (found.folder, found.bench, found.skip, " ".join(found.program), found.cpu) == others


@pytest.mark.parametrize("word", ["-coverprofile=c.out", "-c", "-exec", "--cpuprofile", "-frobnicate", "-"])
def test_an_option_of_go_that_cannot_be_followed_is_refused_by_its_name(word: str) -> None:
    with pytest.raises(UsageError, match=f"here: .* the option {word} "):
        parse_command([word, "./..."], "here")
    with pytest.raises(UsageError, match="go build is not 'go test'"):
        protocol.harness_of("go").value(["go", "build"])


def test_words_for_go_test_reach_go_and_the_program_that_it_builds() -> None:
    program = 'case "$*" in *test2json*) echo "$@" > listed;; esac\n' + told_by_go(*ran("BenchmarkX"), "PASS")
    go_packages(program, "m m")
    Path("sub").mkdir()
    command = 'go = ["-C", "sub", "-tags=fast", "-bench=X", "-short", ".", "-args", "-size=3"]'
    on_path("go", f"cd {Path.cwd()}\n{_GO}")
    (found,) = listed_with(f"[[benchmark]]\n{command}\n").benchmarks
    asked = Path("asked").read_text(encoding="utf-8").splitlines()
    assert [line.split(" ")[0] for line in asked] == ["env", "list", "test"]
    assert "list -e -tags=fast -f " in asked[1]
    assert asked[2].startswith("test -c -tags=fast -o=")
    assert "-test.short -size=3 -test.bench=X -test.skip= " in Path("listed").read_text(encoding="utf-8")
    assert found.command[1:] == ("-test.run=^$", "-test.cpu=1", "-test.bench=^BenchmarkX$", "-test.short", "-size=3")


@pytest.mark.parametrize("other", ["2", "1"])
def test_a_program_that_another_table_builds_with_other_contents_is_an_error(other: str) -> None:
    Path("list").write_text("echo BM_a", encoding="utf-8")
    table = '[[benchmark]]\nid = "{0}"\ngoogle-benchmark = "./bench"\nsetup = "sh build {1}"\n'
    code = '#!/bin/sh\\n# benchmark::\\n[ "${2#--benchmark_f}" != "$2" ] || echo BM_a'
    Path("build").write_text(f"printf '{code} %s\\n' $1 > new && chmod +x new && mv new bench", encoding="utf-8")
    text = table.format("one", 1) + table.format("two", other)
    if other == "1":
        assert len(listed_with(text).benchmarks) == 2
    else:
        with pytest.raises(MeasurementError, match=r"toml:1: another table built .*/bench anew, with other contents"):
            listed_with(text)


def test_a_program_that_is_not_built_is_an_error_that_says_what_builds_it() -> None:
    with pytest.raises(MeasurementError, match="there is no program build/bench") as error:
        listed_with('[[benchmark]]\ngoogle-benchmark = "build/bench"\n')
    assert "'setup'" in str(error.value.hint)


def test_a_benchmark_of_jmh_with_two_modes_is_listed_once() -> None:
    lines = [
        "Benchmarks: ",
        "a.B.two",
        "a.B.two",
        "a.B.sized",
        '  param "n" = {1, 20}',
        "a.B.sized",
        '  param "n" = {1, 20}',
    ]
    assert jmh._benchmarks("\n".join(lines)) == [("a.B.two", {}), ("a.B.sized", {"n": "1, 20"})]


@pytest.mark.parametrize(
    ("known", "flags"),
    [
        ("--invocation-count-for-turbofan --interrupt-budget", ["--interrupt-budget=13000"]),
        (
            "--invocation-count-for-maglev --force-emit-interrupt-budget-checks --invocation-count-for-turbofan",
            ["--invocation-count-for-turbofan=300"],
        ),
        ("--invocation-count-for-maglev-osr", []),
    ],
)
def test_node_is_given_only_flags_that_it_has(known: str, flags: list[str]) -> None:
    listed_flags = "".join(f"  {flag} (what it does)\n        type: int\n" for flag in known.split())
    on_path("node", f"""[ $1 = --v8-options ] && printf '{listed_flags}' || echo 'cg-bench: "a"'""")
    (found,) = listed_with('[[benchmark]]\ntinybench = "bench.mjs"\n').benchmarks
    assert [*found.command[: found.command.index("--import")]] == ["node", "--single-threaded", "--predictable", *flags]


def test_a_name_of_javascript_that_cannot_be_an_argument_is_left_out(said: list[str]) -> None:
    names = ["a\u2028b", "half \ud800", "null \0"]
    lines = [*(f"cg-bench: {json.dumps(name)}" for name in names), 'x cg-bench: "d"', 'cg-bench: "one\x85line"']
    Path("list").write_text("\n".join(lines), encoding="utf-8")
    on_path("node", f"[ $1 = --v8-options ] || cat {Path.cwd() / 'list'}")
    Path("cg-bench.toml").write_text('[[benchmark]]\ntinybench = "bench.mjs"\n', encoding="utf-8")
    environ = {"PATH": f"{Path.cwd()}/bin:/bin:/usr/bin"}
    found = with_listed(load(Path("cg-bench.toml").absolute()), environ).benchmarks
    assert [spec.id for spec in found] == ["a\u2028b", "one\x85line"]
    assert [text.split("toml:1: ")[1].split(" is left out")[0] for text in said] == [r"half \ud800", r"null \x00"]


@pytest.mark.parametrize(
    ("harness", "program", "value", "problem"),
    [
        ("jmh", "java", "b.jar", r"b\.jar has no benchmarks of JMH"),
        ("tinybench", "node", "bench.mjs", r"bench\.mjs ran no benchmarks of tinybench"),
        ("vitest", "node", ".", "Vitest found no benchmarks in"),
    ],
)
def test_a_framework_that_lists_nothing_is_an_error_with_advice(
    harness: str, program: str, value: str, problem: str
) -> None:
    on_path(program, "true")
    with pytest.raises(MeasurementError, match=problem) as error:
        listed_with(f'[[benchmark]]\n{harness} = "{value}"\n')
    assert error.value.hint


def test_an_unknown_name_of_javascript_is_any_text() -> None:
    names = ["a / b", "sort (1)", "twice", "twice"]
    on_path("node", "cat <<'END'\n" + "\n".join(f"cg-bench: {json.dumps(name)}" for name in names) + "\nEND")
    found = listed_with('[[benchmark]]\ntinybench = "bench.mjs x"\n').benchmarks
    assert [spec.id for spec in found] == ["a / b", "sort (1)"]
    assert found[0].command[-3:] == ("bench.mjs", "x", "--cg-bench-task=a / b")


def test_what_lists_benchmarks_has_the_variables_of_its_table() -> None:
    on_path("node", """echo "cg-bench: \\"sort $SIZE\\"" """)
    found = listed_with('[[benchmark]]\ntinybench = "bench.mjs"\nenv = ["SIZE=7", "HOME"]\n').benchmarks
    assert [spec.id for spec in found] == ["sort 7"]


def test_what_builds_benchmarks_has_the_variables_of_its_table() -> None:
    text = '[[benchmark]]\npytest = "t"\nsetup = "echo $KIND > names"\nenv = ["KIND=fast"]\n'
    assert [spec.id for spec in listed(text).benchmarks] == ["fast"]


@pytest.mark.parametrize(
    ("said", "number"),
    [
        ("x 7 8\nx 9\n", 9),
        ("x 0\n", None),
    ],
)
def test_a_number_of_iterations_is_believed_if_it_can_be_one(said: str, number: int | None) -> None:
    loop = Loop(words={1: ()}, native=(), reported=r"^x (\d+)\b")
    assert reported(loop, said.encode()) == number
