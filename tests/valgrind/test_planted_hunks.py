"""Changes planted in commits of C, C++ and Rust: the hunk that did it is named, and one that was not executed never is."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.unit.repositories import Repository, git_environment

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.valgrind, pytest.mark.slow]

C = """\
#include <stdio.h>
#ifndef WORDS
#define WORDS 400
#endif
__attribute__((noinline)) static long mix(long seed) {
    for (int step = 0; step < 20; step++)
        seed = seed * 7 ^ step;
    return seed;
}

__attribute__((noinline)) static long digest(long words) {
    long sum = 0;
    for (long word = 0; word < words; word++)
        sum += mix(word);
    return sum;
}

__attribute__((noinline)) long never(long seed) {
    return seed * 3;
}

int main(int argc, char **argv) {
    if (argc > 5) return (int)never(argc);
    printf("%ld\\n", digest(WORDS));
    return 0;
}
"""
CXX = """\
#include <cstdio>
namespace words {
class Digest {
  public:
    long limit = 300;
    __attribute__((noinline)) long mix(long seed) const {
        for (int step = 0; step < 20; step++) seed = seed * 7 ^ step;
        return seed;
    }
    __attribute__((noinline)) long all() const {
        long sum = 0;
        for (long word = 0; word < limit; word++) sum += mix(word);
        return sum;
    }
};
}
int main() { std::printf("%ld\\n", words::Digest().all()); }
"""
RUST = """\
#[inline(never)]
fn mix(seed: u64) -> u64 {
    (0..20).fold(seed, |sum, step| std::hint::black_box(sum.rotate_left(7) ^ step))
}
#[inline(never)]
fn digest(words: u64) -> u64 {
    (0..words).map(|word| mix(word)).fold(0, |sum, word| sum ^ word)
}
fn main() {
    println!("{}", digest(std::hint::black_box(200)));
}
"""
COMPILERS = {"c": ("gcc", "-O1", "-g"), "cc": ("g++", "-O1", "-g"), "rs": ("rustc", "-O", "-g")}
SOURCES = {"c": C, "cc": CXX, "rs": RUST}


class Plant(NamedTuple):
    """What is written in the place of what, and the function and the sort of the cause; none where nothing is to be blamed."""

    old: str
    new: str
    function: str | None = None
    kind: str = ""
    flags: tuple[str, ...] = ()


PLANTS = {
    "c": [
        Plant("step < 20", "step < 45", "mix", "own"),
        Plant("seed * 7 ^ step", "seed / 7 ^ step", "mix", "own"),
        Plant("word < words;", "word < 3 * words;", "digest", "called"),
        Plant("sum += mix(word)", "sum += mix(word) + mix(sum)", "digest", "called"),
        # An argument costs in the function that gets it. A constant has no instructions, and code that is not executed costs nothing, whatever else moves.
        Plant("digest(WORDS)", "digest(WORDS + 900)"),
        Plant("WORDS 400", "WORDS 900"),
        Plant("seed * 3", "seed * 5 + 1", flags=("-DWORDS=900",)),
        Plant("#include <stdio.h>", "// A comment\n#include <stdio.h>", flags=("-DWORDS=900",)),
    ],
    "cc": [
        Plant("step < 20", "step < 45", "words::Digest::mix(long) const", "own"),
        Plant("word < limit;", "word < 3 * limit;", "words::Digest::all() const", "called"),
        Plant("limit = 300", "limit = 900"),
    ],
    "rs": [
        Plant("(0..20)", "(0..45)", "main::mix", "own"),
        Plant("(0..words)", "(0..3 * words)", "main::digest", "called"),
    ],
}


@pytest.mark.parametrize("language", PLANTS)
def test_the_hunk_that_did_it_is_named_and_no_other(language: str, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository", git_environment(tmp_path))
    source = repository.path / f"main.{language}"

    def measured(text: str, target: Path, *flags: str) -> Path:
        source.write_text(text, encoding="utf-8")
        repository.git("add", ".")
        repository.commit("change")
        program = tmp_path / "program"
        run(*COMPILERS[language], *flags, "-o", str(program), str(source))
        words = "run", "-q", "--call-tree", "--id", "x", "-o", str(target), "--", str(program)
        run(sys.executable, "-m", "cachegrind_bench", *words)
        return target

    def run(*words: str) -> None:
        environ = repository.environ if words[0] == sys.executable else None
        subprocess.run(words, cwd=repository.path, env=environ, check=True, capture_output=True)

    base = measured(SOURCES[language], tmp_path / "base.json")
    for plant in PLANTS[language]:
        text = SOURCES[language].replace(plant.old, plant.new)
        candidate, report = measured(text, tmp_path / "candidate.json", *plant.flags), tmp_path / "report.json"
        words = "diff", str(base), str(candidate), "--json", str(report), "--fail-on", "never"
        run(sys.executable, "-m", "cachegrind_bench", *words)
        (benchmark,) = json.loads(report.read_bytes())["benchmarks"]
        found, line = benchmark["hunks"], text[: text.index(plant.new)].count("\n") + 1
        assert found["total"] == benchmark["calls"]["total"]
        assert not found["idle"]
        hunk = {"file": source.name, "first": line, "last": line}
        if plant.function is None:
            assert (found["functions"], found["others"]) == ([], [hunk]), plant
            continue
        first, *more = found["functions"]
        assert (first["hunks"], more, found["others"]) == ([hunk], [], []), plant
        assert first["function"] == plant.function
        assert benchmark["cause"]["kind"] == plant.kind
        assert 0.9 < first["ir"] / found["total"] < 1.1
