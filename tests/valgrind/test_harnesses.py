"""Benchmarks of other frameworks, as they are: one warm iteration is counted, and nothing of what prepares it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT
from tests.unit.repositories import Repository, git_environment
from tests.valgrind.conftest import COMMAND

if TYPE_CHECKING:
    from pathlib import Path

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


def test_a_slower_iteration_is_found_and_blamed(cg_bench: CgBench, compile_c: CompileC) -> None:
    flags = ("-O1", "-g")
    base = f"google-benchmark = '{compile_c(STATE, *flags)}'"
    finished, one = measured(cg_bench, base, "base.json", "--lines", "-k", "plain or paused")
    assert "many/threads:2 is left out: it uses threads" in finished.stderr
    assert "twice is left out: it is listed twice" in finished.stderr
    assert {name: item["iterations"] for name, item in one.items()} == {"plain/8": 1000, "paused": 10}
    ir = {name: item["counts"]["Ir"] for name, item in one.items()}
    assert 4_000_000 < ir["plain/8"] < 6_100_000
    assert 0 < ir["paused"] - ir["plain/8"] < 20_000  # of a thousand iterations, which are paused as often
    measured(cg_bench, base, "slower.json", "--lines", "-k", "plain or paused", "--env", "WORK=1010")
    told = cg_bench("diff", "--lines", *(str(cg_bench.folder / name) for name in ("base.json", "slower.json")))
    assert told.code == 1
    assert "regression  plain/8" in told.stdout
    assert "work" in told.stdout.split("regression  plain/8")[1]
    assert re.search(r"  work +\S*main\.c:\d+\n", told.stdout)


def test_a_program_that_does_not_do_what_it_is_asked_for_is_believed_in_what_it_did(
    cg_bench: CgBench, compile_c: CompileC
) -> None:
    entries = [f"google-benchmark = '{compile_c(STATE, '-O1', '-g', flag)}'" for flag in ("-DHEARS", "-DDEAF")]
    hears, deaf = (measured(cg_bench, entry, "one.json", "-k", "plain")[1]["plain/8"] for entry in entries)
    assert (deaf["iterations"], hears["iterations"]) == (1, 1000)
    assert deaf["counts"]["Ir"] == pytest.approx(hears["counts"]["Ir"], rel=0.01)


def test_iterations_that_nobody_asked_for_are_an_error(cg_bench: CgBench, compile_c: CompileC) -> None:
    program = compile_c(STATE, "-O1", "-g", "-DMEMORY_MANAGER")
    finished = cg_bench("run", "-k", "plain", "--harness", "google-benchmark", "--", str(program))
    assert finished.code == 4
    assert "more often than it was asked for" in finished.stderr + finished.stdout


def test_google_benchmark_is_counted_for_one_warm_iteration(cg_bench: CgBench, google_benchmark: Path) -> None:
    entry = f"google-benchmark = '{google_benchmark} --benchmark_format=csv --benchmark_color=true'"
    _, first = measured(cg_bench, entry, "1.json", "-k", "not unfit and not wrong")
    assert list(first) == ["BM_words", "BM_fixed/iterations:20", "BM_batch", "[three] {times} /repeats:3"]
    assert [item["iterations"] for item in first.values()] == [1, 20, 10, 10]
    one, *others = (item["counts"]["Ir"] for item in first.values())
    assert others == pytest.approx([one] * 3, rel=0.02)
    output = cg_bench.folder / "2.json"
    again = cg_bench("run", "-k", "words or unfit or wrong", "-o", str(output))
    assert again.code == 4
    second = {item["id"]: item for item in json.loads(output.read_bytes())["benchmarks"]}
    assert first["BM_words"]["counts"] == second["BM_words"]["counts"]
    assert {name: (item["status"], item.get("error")) for name, item in second.items()} == {
        "BM_words": ("ok", None),
        "BM_unfit": ("failed", 'the benchmark skips itself with the error: no "corpus"'),
        "BM_wrong": ("failed", "the benchmark skips itself with the error: wrong result"),
    }


@pytest.fixture
def built_by_cargo(cg_bench: CgBench, criterion: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a `cargo` that has built the programs of these tests."""
    cargo = cg_bench.folder / "bin" / "cargo"
    cargo.parent.mkdir()
    targets = [
        {
            "executable": str(path),
            "manifest_path": str(cg_bench.cwd / "Cargo.toml"),
            "target": {"kind": ["bench"], "name": path.name},
        }
        for path in (criterion, criterion.with_name("sums"))
    ]
    lines = "\n".join(map(json.dumps, targets))
    cargo.write_text(f"#!/bin/sh\ncat <<'END'\n{lines}\nEND\n", encoding="utf-8")
    cargo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{cargo.parent}:{os.environ['PATH']}")


@pytest.mark.slow
@pytest.mark.usefixtures("built_by_cargo")
def test_criterion_is_counted_for_one_warm_iteration(cg_bench: CgBench, criterion: Path) -> None:
    finished, one = measured(cg_bench, "criterion = '.'", "base.json")
    assert "the bench target sums of cwd is left out: it has no benchmarks of Criterion" in finished.stderr
    assert list(one) == ["words/count", "words/sort", "words/work", "words/grows", "words/timed"]
    assert {item["iterations"] for item in one.values()} == {100}
    # Neither what its set-up and the profiler do nor that they read the clock, too.
    assert abs(one["words/timed"]["counts"]["Ir"] / one["words/work"]["counts"]["Ir"] - 1) < 0.02
    toggled = cg_bench.run(
        criterion, "--bench", "--test", "^count$", options=["--toggle", "_ZN5words5count17h*", "--warmup", "0"]
    )
    # The program's functions do what they do in its only call. libc's depend on what was freed, and on where strings are.
    strings = json.loads((cg_bench.folder / "base.json").read_bytes())["strings"]
    rows = [(strings[row[1]], row[2]) for row in one["words/count"]["profile"]["functions"]]
    own = {name: ir for name, ir in rows if name.startswith(("_ZN", "_R")) and "criterion" not in name}
    assert own == {row[1]: 1000 * row[2] for row in toggled.rows if row[1].startswith(("_ZN", "_R"))}
    assert sum(own.values()) > one["words/count"]["counts"]["Ir"] / 2
    planted_rounds_are_found_and_blamed(cg_bench, "criterion = '.'", "words/work", "words/grows")


@pytest.mark.slow
@pytest.mark.usefixtures("built_by_cargo")
def test_a_benchmark_has_the_same_counts_alone_and_with_others(cg_bench: CgBench) -> None:
    _, together = measured(cg_bench, "criterion = '.'", "together.json", "-j", "1")
    assert {item["key_fields"]["measured"] for item in together.values()} == {"iterations/5 100"}
    for name, item in together.items():
        _, alone = measured(cg_bench, "criterion = '.'", "alone.json", "-k", name)
        assert all(alone[name][key] == item[key] for key in ("counts", "iterations", "key"))


@pytest.mark.slow
@pytest.mark.usefixtures("built_by_cargo")
def test_of_those_measured_together_the_one_that_fails_says_why(cg_bench: CgBench) -> None:
    text = "[[benchmark]]\ncriterion = '.'\nenv = ['WORK=many']\n"
    (cg_bench.cwd / "cg-bench.toml").write_text(text, encoding="utf-8")
    output = cg_bench.folder / "failed.json"
    assert cg_bench("run", "-j", "1", "-o", str(output)).code == 4
    found = {item["id"]: item for item in json.loads(output.read_bytes())["benchmarks"]}
    assert {name: item["status"] for name, item in found.items()} == {
        "words/count": "ok",
        "words/sort": "ok",
        "words/work": "failed",
        "words/grows": "failed",
        "words/timed": "failed",
    }
    assert "exit status 101" in found["words/work"]["error"]


@pytest.mark.slow
@pytest.mark.usefixtures("built_by_cargo")
def test_without_a_compiler_each_has_a_process_of_its_own(cg_bench: CgBench) -> None:
    compiler = cg_bench.folder / "bin" / "cc"
    compiler.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    compiler.chmod(0o755)
    _, found = measured(cg_bench, "criterion = '.'", "apart.json", "-k", "count or sort")
    assert {item["key_fields"]["measured"] for item in found.values()} == {"iterations/4 100"}


@pytest.mark.slow
@pytest.mark.usefixtures("built_by_cargo")
def test_divan_is_counted_for_one_warm_iteration(cg_bench: CgBench) -> None:
    finished, one = measured(cg_bench, "divan = '.'", "base.json")
    assert "the bench target words of cwd is left out: it has no benchmarks of Divan" in finished.stderr
    assert {name: item["iterations"] for name, item in one.items()} == {
        "sums/grows": 1000,
        "sums/inputs::sorted": 1000,
        "sums/panics": 1000,
        "sums/rounds::10": 1000,
        "sums/rounds::100000": 10,
        "sums/work": 1000,
    }
    ir = {name: item["counts"]["Ir"] for name, item in one.items()}
    assert ir["sums/inputs::sorted"] < ir["sums/work"] / 10  # neither making the inputs nor dropping the outputs
    more = ir["sums/rounds::100000"] - ir["sums/rounds::10"]
    assert more / (99_990 * 1000) == pytest.approx(6, rel=1e-3)  # for each round
    planted_rounds_are_found_and_blamed(cg_bench, "divan = '.'", "sums/work", "sums/grows")
    (cg_bench.cwd / "cg-bench.toml").write_text("[[benchmark]]\ndivan = '.'\nenv = ['SETUP=1']\n", encoding="utf-8")
    failed = cg_bench("run", "-k", "panics")
    assert failed.code == 4
    assert "no corpus" in failed.stderr


@pytest.mark.slow
def test_catch2_is_counted_for_one_warm_iteration(cg_bench: CgBench, tmp_path: Path) -> None:
    program = tmp_path / "tests"
    subprocess.run(["g++", "-O1", "-g", STATE.with_name("chronometer.cpp"), "-o", program], check=True)
    entry, case = f"catch2 = '{program} --benchmark-samples 5 --order=rand'", "sums, all of [them]"
    finished, one = measured(cg_bench, entry, "base.json", "-k", "not thrown")
    assert "twice is left out: it is listed twice" in finished.stderr
    assert "test case skips skips itself: no network" in finished.stderr
    assert list(one) == [f"{case}/small", f"{case}/work", f"{case}/grows", "alone/work & rest"]
    assert {item["iterations"] for item in one.values()} == {10}
    small, large, _, half = (item["counts"]["Ir"] for item in one.values())
    assert (large - small) / 900 == (large - half) / 500  # so many more rounds
    planted_rounds_are_found_and_blamed(cg_bench, entry, f"{case}/work", f"{case}/grows")
    thrown = cg_bench("run", "-k", "thrown")
    assert thrown.code == 4
    assert "thrown in test case throws fails: no corpus" in thrown.stderr


def planted_rounds_are_found_and_blamed(
    cg_bench: CgBench, entry: str, *identities: str, blamed: str = "work", rounds: tuple[int, int] = (1000, 1100)
) -> None:
    """Compare with base.json what the same program does with more rounds in each iteration, and much more before and in the first."""
    variables = [f"WORK={rounds[1]}", "SETUP=200000"]
    names = " or ".join(re.split(r"[/.]", identity)[-1] for identity in identities)
    _, found = measured(cg_bench, f"{entry}\nenv = {variables}", "planted.json", "-k", names)
    base = {item["id"]: item for item in json.loads((cg_bench.folder / "base.json").read_bytes())["benchmarks"]}
    for identity in identities:
        before, after = base[identity], found[identity]
        assert (before["iterations"], before["key"]) == (after["iterations"], after["key"])
        of_a_round = (after["counts"]["Ir"] - before["counts"]["Ir"]) / 1000 / (rounds[1] - rounds[0])
        assert 1 < round(of_a_round) < 20  # a few instructions each
        assert of_a_round == pytest.approx(round(of_a_round), rel=0.01), identity
    told = cg_bench("diff", str(cg_bench.folder / "base.json"), str(cg_bench.folder / "planted.json"))
    assert told.code == 1
    for identity in identities:
        assert re.search(rf"regression  {re.escape(identity)} .*\b{blamed}\b", told.stdout)


HISTORIES = {
    "google-benchmark": (f"google-benchmark = './bench'\nsetup = 'cc -O1 -g -DWORK=%s {STATE} -o bench'\n", "plain/8"),
    "criterion": ("criterion = '.'\nsetup = 'test 1 -le %s'\nenv = ['WORK=%s']\n", "words/work"),
}


@pytest.mark.slow
@pytest.mark.usefixtures("built_by_cargo")
@pytest.mark.parametrize("harness", HISTORIES)
def test_the_commit_is_found_that_made_a_benchmark_slower(cg_bench: CgBench, tmp_path: Path, harness: str) -> None:
    entry, name = HISTORIES[harness]
    repository = Repository(tmp_path / "repository", git_environment(tmp_path))
    repository.environ["PATH"] = os.environ["PATH"]
    shas: list[str] = []
    for work in ("1000", "1000", "1000", "(", "1000", "1010", "1010"):  # one cannot be built
        text = f"[[benchmark]]\n{entry.replace('%s', work)}"
        (repository.path / "cg-bench.toml").write_text(text, encoding="utf-8")
        (repository.path / "work.h").write_text(f"#define WORK {work}\n", encoding="utf-8")
        repository.git("add", "cg-bench.toml", "work.h")
        shas.append(repository.commit(f"WORK={work}"))
    store, base = f"file:{tmp_path / 'store'}", str(tmp_path / "base.json")
    for sha in (shas[0], shas[1], shas[-1]):
        repository.git("checkout", "--quiet", sha)
        words = ("--save", "--store", store, *(("-o", base) if sha == shas[0] else ()))
        saved = cg_bench("run", "-q", "-k", "plain or work", *words, cwd=repository.path)
        assert saved.code == 0, saved.stderr

    repository.git("bisect", "start", shas[-1], shas[0])
    said = repository.git("bisect", "run", *COMMAND, "check", "--base", base, "-k", name)
    assert f"{shas[5]} is the first bad commit" in said
    assert re.search(rf"^✗ regression +{name} .*\bwork$", said, re.MULTILINE)
    assert f"# skip: [{shas[3]}]" in repository.git("bisect", "log")

    repository.git("bisect", "reset")
    found = cg_bench("trend", "--store", store, "--benchmark", name, cwd=repository.path)
    (finding,) = re.findall("cg-bench bisect ([0-9a-f]+)", found.stdout)
    told = cg_bench("bisect", finding, "--store", store, cwd=repository.path)
    assert told.code == 0, told.stderr
    assert f"regression of {name}, " in told.stdout
    assert f"it is\n  {shas[5][:12]}" in told.stdout
    assert re.search(rf"^regression: {name} .*\bwork\b", told.stdout, re.MULTILINE)


@pytest.fixture
def node_packages(cg_bench: CgBench) -> None:
    """Have a package with benchmarks in the working directory, and what it depends on."""
    folder = ROOT / ".tools" / "node"
    if shutil.which("node") is None or not (folder / "stamp").exists():
        pytest.skip("no Node, tinybench and Vitest (make test-slow installs them)")
    shutil.copytree(ROOT / "tests" / "data" / "node", cg_bench.cwd, dirs_exist_ok=True)
    (cg_bench.cwd / "node_modules").symlink_to(folder / "node_modules")


@pytest.mark.slow
@pytest.mark.usefixtures("node_packages")
def test_tinybench_is_counted_for_one_warm_iteration(cg_bench: CgBench) -> None:
    _, one = measured(cg_bench, "tinybench = 'tiny.mjs'", "base.json")
    assert {name: item["iterations"] for name, item in one.items()} == {"sums/work": 100, "sums/prepared": 1}
    assert one["sums/work"]["key_fields"]["measured"] == "iterations/6 100"
    work, prepared = (item["counts"]["Ir"] / 1000 for item in one.values())
    assert prepared < 250 * work  # for 200 times the rounds; what precedes each iteration is twice as much
    planted_rounds_are_found_and_blamed(cg_bench, "tinybench = 'tiny.mjs'", "sums/work")


@pytest.mark.slow
@pytest.mark.usefixtures("node_packages")
def test_vitest_is_counted_for_one_warm_iteration(cg_bench: CgBench) -> None:
    _, one = measured(cg_bench, "vitest = '.'\nenv = ['WORK=200000']", "base.json")
    assert {name: item["iterations"] for name, item in one.items()} == {"sums/sums/work": 1}
    planted_rounds_are_found_and_blamed(cg_bench, "vitest = '.'", "sums/sums/work", rounds=(200_000, 400_000))


ODD_VITEST = """import { bench, describe } from "vitest";
describe.each([{ n: 1, of: { name: "x" } }])("obj $n $of.name $no %#", () => bench("b", () => {}));
describe.each([[1, "a"], [2, "b"]])("arr %i %s %#", () => bench("b", () => {}));
describe.each`
  a    | b
  ${1} | ${2}
  ${3} | ${4}
`("sum $a + $b", ({ a, b }) => bench(`${a + b}`, () => {}));
describe.for([[1, 2]])("for %i", ([a, b]) => bench(`${a + b}`, () => {}));
describe.skip("group", () => bench("in", () => {}));
bench.todo("later");
bench("throws", () => { throw new Error("wrong result"); });
"""


@pytest.mark.slow
@pytest.mark.usefixtures("node_packages")
def test_all_benchmarks_of_vitest_are_listed_as_it_names_them_and_what_throws_fails(cg_bench: CgBench) -> None:
    (cg_bench.cwd / "odd.bench.ts").write_text(ODD_VITEST, encoding="utf-8")
    (cg_bench.cwd / "only.bench.ts").write_text(
        'import { bench } from "vitest"; bench("a", () => {}); bench.only("b", () => {});', encoding="utf-8"
    )
    output = cg_bench.folder / "odd.json"
    words = ("--harness", "vitest", "--", "npx", "vitest", "bench", "odd", "only")
    finished = cg_bench("run", "-o", str(output), "-k", "throws", *words)
    assert finished.code == 4
    (thrown,) = json.loads(output.read_bytes())["benchmarks"]
    assert thrown["status"] == "failed"
    assert "wrong result" in thrown["error"]
    for name, why in (("odd/group/in", "skip"), ("odd/later", "todo"), ("only/a", "only")):
        assert re.search(rf"{name} is left out: .* marked with {why}\n", finished.stderr)
    (cg_bench.cwd / "cg-bench.toml").write_text('[[benchmark]]\nvitest = ". odd only"\n', encoding="utf-8")
    listed = json.loads(cg_bench("list", "--format", "json").stdout)["benchmarks"]
    assert [item["id"].removeprefix("odd/") for item in listed] == [
        *("obj 1 'x' undefined 0/b", "arr 1 a 0/b", "arr 2 b 1/b", "sum 1 + 2/3", "sum 3 + 4/7", "for 1/3", "throws"),
        "only/b",
    ]


@pytest.mark.slow
def test_jmh_is_counted_by_the_difference_of_two_batches(cg_bench: CgBench) -> None:
    folder = ROOT / ".tools" / "jmh"
    if shutil.which("java") is None or not (folder / "stamp").exists():
        pytest.skip("no Java and JMH (make test-slow builds benchmarks with them)")
    words = ("java", "-cp", f"{folder}/classes:{folder}/lib/*", "org.openjdk.jmh.Main")
    assert "has no benchmarks of JMH" in cg_bench("run", "--harness", "jmh", "--", *words, "Other").stderr
    entry = f"jmh = {list(words[1:])}"
    # Each start of Java takes half a minute. Of iterations as long as these, ten are enough, which takes two.
    _, one = measured(cg_bench, f"{entry}\nenv = ['WORK=400000']", "base.json", "-k", "work")
    (work,) = one.values()
    assert work["key_fields"]["measured"] == "iterations/4 10"
    assert work["counts"]["Ir"] / 1000 == pytest.approx(7 * 400_000, rel=0.01)  # seven instructions for each round
    name = "bench.Sums.work"
    planted_rounds_are_found_and_blamed(cg_bench, entry, name, blamed=name, rounds=(400_000, 800_000))


def test_options_for_java_follow_the_name_of_a_script_in_its_place(
    cg_bench: CgBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = cg_bench.cwd / "bin" / "java"
    java.parent.mkdir()
    java.write_text(
        f"""#!/bin/sh
case "$*" in *" -lp") echo Benchmarks:; echo work; exit;; esac
echo "$@" >> {cg_bench.folder}/words
for word; do left=$word; done
while [ "$left" -gt 0 ]; do left=$((left - 1)); done
"""
    )
    java.chmod(0o755)
    monkeypatch.setenv("PATH", f"{java.parent}:{os.environ['PATH']}")
    _, one = measured(cg_bench, "jmh = 'some.jar'", "base.json")
    assert list(one) == ["work"]
    warm, *rest = (cg_bench.folder / "words").read_text().splitlines()
    assert warm.startswith("-Xcomp -Xbatch ")
    assert {line.split()[0] for line in rest} == {"-XX:+UnlockDiagnosticVMOptions"}


@pytest.fixture
def go_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("go") is None:
        monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/usr/local/go/bin")
    if shutil.which("go") is None:
        pytest.skip("no go on PATH")


ODD_GO = {
    "go.mod": "module example.com/odd\n\ngo 1.21\n",
    "rounds.go": "//go:build !fast\n\npackage odd\n\nconst rounds = 1000\n",
    "fast.go": "//go:build fast\n\npackage odd\n\nconst rounds = 100\n",
    "odd_test.go": """package odd

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func init() { fmt.Println("BenchmarkGhost 1 2 ns/op") }

//go:noinline
func work() int {
	total := 0
	for i := 0; i < rounds; i++ {
		total += i ^ total
	}
	return total
}

func BenchmarkZero(b *testing.B) {
	for i := 0; i < b.N; i++ {
		work()
	}
	b.ReportMetric(0, "ns/op")
}

func BenchmarkDots(b *testing.B) {
	for i := 0; i < b.N; i++ {
		fmt.Print(".")
	}
}

func BenchmarkSkips(b *testing.B) { b.Skip("no corpus.txt") }

func BenchmarkLate(b *testing.B) {
	if !strings.Contains(strings.Join(os.Args, " "), "test2json") {
		b.Skip("no network")
	}
}

func BenchmarkWrong(b *testing.B) {
	for i := 0; i < b.N; i++ {
		work()
	}
	b.Error("wrong result")
}
""",
    "broken/broken_test.go": 'package broken\n\nimport "testing"\n\nfunc BenchmarkB(b *testing.B) { missing() }\n',
    "panics/panics_test.go": 'package p\n\nimport "testing"\n\nfunc BenchmarkPanics(b *testing.B) { panic("no database") }\n',
}


@pytest.mark.slow
@pytest.mark.usefixtures("go_on_path")
def test_all_benchmarks_of_go_are_measured_or_named_with_the_tags_of_the_build(cg_bench: CgBench) -> None:
    for name, text in ODD_GO.items():
        path = cg_bench.cwd / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    output = cg_bench.folder / "odd.json"
    words = ("go", "test", "-tags=fast", "-run", "^$", "-bench", ".", "-count", "3", "./...")
    finished = cg_bench("run", "-o", str(output), "--harness", "go", "--", *words)
    assert finished.code == 4
    assert re.search(r"BenchmarkSkips is left out: it skips itself: odd_test.go:\d+: no corpus.txt", finished.stderr)
    found = {item["id"]: item for item in json.loads(output.read_bytes())["benchmarks"]}
    assert [found[f"Benchmark{name}"]["error"] for name in ("Zero", "Dots")] == [None, None]
    assert {name: item["status"] for name, item in found.items()} == {
        "BenchmarkZero": "ok",
        "BenchmarkDots": "ok",
        "BenchmarkLate": "error",
        "BenchmarkWrong": "failed",
        "broken/BenchmarkB": "error",
        "panics/BenchmarkPanics": "failed",
    }
    assert re.search(r"no network\n *\| --- SKIP: BenchmarkLate", finished.stderr)
    said = {name: item["error"] for name, item in found.items() if item["error"]}
    assert "a benchmark that skips itself" in said["BenchmarkLate"]
    assert "wrong result" in said["BenchmarkWrong"]
    assert "undefined: missing" in said["broken/BenchmarkB"]
    assert "panic" in said["panics/BenchmarkPanics"]
    assert (
        100_000 < found["BenchmarkZero"]["counts"]["Ir"] / 5 < 150_000
    )  # a hundred rounds, a thousand times, not a thousand
