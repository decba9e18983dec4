"""Changes planted in commits of C, C++, Rust, Python and CPython's C code: function, cause, caller and hunk are named.

No hunk is that was not executed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.pythons import any_python
from tests.unit.repositories import Repository, git_environment
from tests.valgrind.programs import PYTHON as PYTHON_OF_SYSTEM
from tests.valgrind.programs import json_sources

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.valgrind, pytest.mark.slow]

C = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifndef WORDS
#define WORDS 400
#endif
#define APART __attribute__((noinline)) static
extern long lookups(long times);

APART long mix(long seed) {
    for (int step = 0; step < 20; step++)
        seed = seed * 7 ^ step;
    return seed;
}

APART long digest(long words) {
    long sum = 0;
    for (long word = 0; word < words; word++)
        sum += mix(word);
    return sum;
}

static inline long square(long side) {
    return side * side + (side >> 3);
}

APART long squares(long last) {
    long sum = 0;
    for (long side = 0; side < last; side++)
        sum ^= square(side);
    return sum;
}

APART long tree(int depth) {
    if (depth < 2)
        return depth;
    return tree(depth - 1) + tree(depth - 2);
}

APART long forest(int trees) {
    long sum = 0;
    for (int each = 0; each < trees; each++)
        sum += tree(9);
    return sum;
}

APART long plus(long value) {
    return value + 3;
}

APART long apply(long (*step)(long), long times) {
    long value = 1;
    for (long turn = 0; turn < times; turn++)
        value = step(value);
    return value;
}

APART long copied(int times) {
    long sum = 0;
    for (int turn = 0; turn < times; turn++) {
        char *copy = malloc(40);
        memset(copy, turn, 40);
        sum += ((volatile char *)copy)[turn % 40];
        free(copy);
    }
    return sum;
}

APART int compare(const void *left, const void *right) {
    return (*(const int *)left > *(const int *)right) - (*(const int *)left < *(const int *)right);
}

APART int sorted(int numbers) {
    static int found[4000];
    for (int at = 0; at < numbers; at++)
        found[at] = at * 7919 % 1009;
    qsort(found, numbers, sizeof found[0], compare);
    return found[numbers / 2];
}

__attribute__((noinline)) long never(long seed) {
    seed += 2;
    return seed * 3;
}

int main(int argc, char **argv) {
    if (argc > 5)
        return (int)never(argc);
    printf("%ld\\n", digest(WORDS));
    printf("%ld\\n", squares(2000));
    printf("%ld\\n", forest(40));
    printf("%ld\\n", apply(plus, 900));
    printf("%ld\\n", copied(900));
    printf("%d\\n", sorted(300));
    printf("%ld\\n", lookups(200));
    return 0;
}
"""
LIBRARY = """\
long known[64];

__attribute__((noinline)) long lookup(long key) {
    for (int at = 0; at < 64; at++)
        if (known[at] == key)
            return at;
    return -1;
}

__attribute__((noinline)) long lookups(long times) {
    long sum = 0;
    for (long time = 0; time < times; time++)
        sum += lookup(time + 1);
    return sum;
}

__attribute__((noinline)) long unused(long value) {
    value *= 2;
    return value - 1;
}
"""
CXX = """\
#include <cstdio>
#include <map>
#include <string>
#include <vector>
#define APART __attribute__((noinline))
#ifndef LIMIT
#define LIMIT 3000
#endif
namespace words {
class Digest {
  public:
    long limit = LIMIT;
    APART long mix(long seed) const {
        for (int step = 0; step < 20; step++) seed = seed * 7 ^ step;
        return seed;
    }
    APART long all() const {
        long sum = 0;
        for (long word = 0; word < limit; word++) sum += mix(word);
        return sum;
    }
    APART long unused() const {
        long sum = limit;
        return sum * 2;
    }
};
struct Shape {
    virtual ~Shape() = default;
    virtual long area(long side) const = 0;
};
struct Square : Shape {
    APART long area(long side) const override {
        return side * side;
    }
};
struct Circle : Shape {
    APART long area(long side) const override {
        return side * side * 3;
    }
};
APART long areas(const Shape &shape, long last) {
    long sum = 0;
    for (long side = 0; side < last; side++) sum += shape.area(side);
    return sum;
}
template <typename T> APART T largest(const std::vector<T> &found) {
    T most = found[0];
    for (const T &one : found)
        if (one > most) most = one;
    return most;
}
inline long halved(long value) {
    return value / 2 + 1;
}
APART long collatz(long last) {
    long steps = 0;
    for (long first = 1; first < last; first++)
        for (long value = first; value > 1; steps++) value = value % 2 ? 3 * value + 1 : halved(value) - 1;
    return steps;
}
APART long collected(int numbers) {
    std::vector<long> found;
    found.reserve(numbers);
    for (int number = 0; number < numbers; number++) found.push_back(number * 7919 % 1009);
    return largest(found);
}
}
int main(int argc, char **argv) {
    words::Digest digest;
    if (argc > 5) return static_cast<int>(digest.unused());
    std::printf("%ld\\n", digest.all());
    std::printf("%ld\\n", words::areas(words::Square(), 20000));
    std::printf("%ld\\n", words::areas(words::Circle(), 9000));
    std::printf("%ld\\n", words::collatz(600));
    std::printf("%ld\\n", words::collected(9000));
}
"""
RUST = """\
use std::hint::black_box;
#[inline(never)]
fn mix(seed: u64) -> u64 {
    (0..20).fold(seed, |sum, step| black_box(sum.rotate_left(7) ^ step))
}
#[inline(never)]
fn digest(words: u64) -> u64 {
    (0..words).map(|word| mix(word)).fold(0, |sum, word| sum ^ word)
}
trait Shape {
    fn area(&self, side: u64) -> u64;
}
struct Square;
impl Shape for Square {
    #[inline(never)]
    fn area(&self, side: u64) -> u64 {
        black_box(side) * side
    }
}
#[inline(never)]
fn areas(shape: &dyn Shape, last: u64) -> u64 {
    (0..last).map(|side| shape.area(side)).sum()
}
#[inline(never)]
fn fib(number: u64) -> u64 {
    if number < 2 { black_box(number) } else { fib(number - 1) + fib(number - 2) }
}
#[inline(never)]
fn joined(words: &[&str], times: usize) -> usize {
    let mut length = 0;
    for _ in 0..times {
        let text = words.join(" ");
        length += black_box(text).len();
    }
    length
}
#[inline(never)]
fn unused(number: u64) -> u64 {
    let twice = black_box(number) * 2;
    twice + 1
}
fn main() {
    if std::env::args().count() > 5 {
        println!("{}", unused(3));
    }
    println!("{}", digest(black_box(200)));
    println!("{}", areas(black_box(&Square), 700));
    println!("{}", fib(if cfg!(apart) { 15 } else { 12 }));
    println!("{}", joined(&["one", "two", "three"], 30));
}
"""
PYTHON = """\
import sys


def mix(seed):
    for step in range(20):
        seed = seed * 7 % 1009 + step
    return seed


def digest(words):
    return sum(mix(word) for word in range(words))


class Shape:
    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side * self.side

    def unused(self):
        side = self.side
        return side * 3


def areas(last):
    total = 0
    for side in range(last):
        total += Shape(side).area()
    return total


def fib(number):
    return number if number < 2 else fib(number - 1) + fib(number - 2)


def numbers(last):
    for number in range(last):
        yield number * number


def collected(last):
    return sum(number for number in numbers(last) if number % 3)


def stored(rows):
    return len(str([{"row": row} for row in range(rows)]))


def never(value):
    value += 1
    return value * 2


if __name__ == "__main__":
    print(digest(60), areas(400), fib(14 + 2 * sys.flags.optimize), collected(900), stored(300))
"""

# With CPython's own `_json.c`, built anew, in the place of the interpreter's.
JSON = """\
import _json


class Usual:
    strict = True
    object_hook = object_pairs_hook = parse_constant = None
    parse_float, parse_int = float, int


assert _json.__file__.endswith("/_json.so")
documents = [{"name": f"entry {i}", "text": "words " * 40, "tags": ["\\n" * 90, "blue"], "sizes": [i] * 20} for i in range(200)]
write = _json.make_encoder({}, None, _json.encode_basestring_ascii, None, ": ", ", ", False, False, True)
text = "".join(write(documents, 0))
assert _json.make_scanner(Usual)(text, 0) == (documents, len(text))
"""


class Plant(NamedTuple):
    """What is written in the place of what; the sentence, without places; and the function with the hunk, empty where none is named.

    A function `on_the_way` is not to blame itself: it passes an argument on.
    """

    old: str
    new: str
    says: str = ""
    function: str = ""
    on_the_way: bool = False


PLANTS: dict[str, list[Plant]] = {
    "c": [
        Plant("step < 20", "step < 45", "each call of mix costs 318 instead of 143 instructions", "mix"),
        Plant("seed * 7 ^ step", "seed / 7 ^ step", "each call of mix costs", "mix"),
        Plant("step < 20", "step < 12", "each call of mix costs", "mix"),
        Plant("word < words;", "word < 3 * words;", "mix is called 1,200 instead of 400 times, from digest", "digest"),
        Plant("mix(word)", "mix(word) + mix(sum)", "mix is called 800 instead of 400 times, from digest", "digest"),
        Plant("side * side +", "side * side % 7 +", "squares itself costs", "squares"),  # inlined
        Plant(
            "tree(depth - 2)",
            "tree(depth - 2) + tree(depth - 3)",
            "tree is called 11,560 instead of 4,360 times, from itself",
            "tree",
        ),
        Plant(
            "each < trees",
            "each < 3 * trees",
            "tree is called 13,080 instead of 4,360 times, 80 more from forest",
            "forest",
        ),
        Plant(
            "tree(9)",
            "tree(11)",
            "tree is called 11,480 instead of 4,360 times, from itself",
            "forest",
            on_the_way=True,
        ),
        Plant("value + 3", "value / 3 % 5 + value % 11", "each call of plus costs", "plus"),  # called by a pointer
        Plant("step(value)", "step(step(value))", "plus is called 1,800 instead of 900 times, from apply", "apply"),
        Plant(
            "turn, 40);",
            "turn, 40); memset(copy, turn, 39);",
            "is called 1,800 instead of 900 times, from copied",
            "copied",
        ),
        Plant("malloc(40)", "realloc(malloc(40), 4000)", "900 more allocations (", "copied"),
        Plant(
            "    qsort",
            "    for (int turn = 0; turn < 2; turn++) qsort",
            "qsort is called 2 instead of 1 time, from sorted",
            "sorted",
        ),
        Plant(
            "(*(const int *)left >", "(*(const int *)left % 2000 >", "each call of compare costs", "compare"
        ),  # called by libc
        Plant(
            "if (known[at] == key)", "if (known[at] % 9 == key)", "each call of lookup costs", "lookup"
        ),  # of the library
        Plant("time < times", "time < 2 * times", "lookup is called 400 instead of 200 times, from lookups", "lookups"),
        Plant(
            "digest(WORDS)",
            "digest(WORDS + 900)",
            "mix is called 1,300 instead of 400 times, from digest",
            "main",
            on_the_way=True,
        ),
        Plant("WORDS 400", "WORDS 900", "mix is called 900 instead of 400 times, from digest"),
    ],
    "cc": [
        Plant(
            "step < 20",
            "step < 45",
            "each call of words::Digest::mix(long) const costs",
            "words::Digest::mix(long) const",
        ),
        Plant(
            "word < limit",
            "word < 3 * limit",
            "words::Digest::mix(long) const is called 9,000 instead of 3,000 times, from words::Digest::all() const",
            "words::Digest::all() const",
        ),
        Plant(
            "side * side;",
            "side * side % 7 * side % 5;",
            "each call of words::Square::area(long) const costs",
            "words::Square::area(long) const",
        ),
        Plant(
            "side * side * 3",
            "side * side % 1001 % 77",
            "each call of words::Circle::area(long) const costs",
            "words::Circle::area(long) const",
        ),
        Plant(
            "sum += shape.area(side)",
            "sum += shape.area(side) + shape.area(sum)",
            "words::areas(words::Shape const&, long)",
            "words::areas(words::Shape const&, long)",
        ),
        Plant(
            "if (one > most)",
            "if (one % 1000 > most)",
            "words::largest<long>",
            "long words::largest<long>(std::vector<long, std::allocator<long> > const&)",
        ),
        Plant(
            "2 + 1;", "2 + 1 + (value % 1000003 == 7);", "words::collatz(long) itself costs", "words::collatz(long)"
        ),  # inlined
        Plant(
            "reserve(numbers)",
            "reserve(1)",
            "is called 14 instead of 0 times, from words::collected(int)",
            "words::collected(int)",
        ),
        Plant(
            "push_back(number",
            "insert(found.begin(), number",
            "is called 8,998 instead of 0 times, from words::collected(int)",
            "words::collected(int)",
        ),
        Plant("collatz(600)", "collatz(900)", "words::collatz(long) itself costs", "main", on_the_way=True),
        Plant(
            "limit = LIMIT",
            "limit = 3 * LIMIT",
            "words::Digest::mix(long) const is called 9,000 instead of 3,000 times",
        ),
    ],
    "rs": [
        Plant("(0..20)", "(0..45)", "each call of main::mix costs", "main::mix"),
        Plant(
            "(0..words)",
            "(0..3 * words)",
            "main::mix is called 600 instead of 200 times, from main::digest",
            "main::digest",
        ),
        Plant(
            "black_box(side) * side",
            "black_box(side) * side / black_box(7)",
            "each call of <main::Square as main::Shape>::area costs",
            "<main::Square as main::Shape>::area",
        ),
        Plant("(0..last)", "(0..2 * last)", "main::areas itself costs", "main::areas"),
        Plant(
            "fib(number - 2) }",
            "fib(number - 2) + fib(number.saturating_sub(4)) }",
            "main::fib is called 785 instead of 233 times, from itself",
            "main::fib",
        ),
        Plant('join(" ")', 'join(" ") + &words.join("-")', "from main::joined", "main::joined"),
        Plant(
            "{ 12 }",
            "{ 15 }",
            "main::fib is called 987 instead of 233 times, from itself",
            "main::main",
            on_the_way=True,
        ),
    ],
    "py": [
        Plant(
            "range(words)",
            "range(3 * words)",
            "digest.<locals>.<genexpr> is called 182 instead of 62 times, from digest",
            "digest",
        ),
        Plant("self.side * self.side", "sum([self.side] * 9)", "each call of Shape.area costs", "Shape.area"),
        Plant("Shape(side).area()", "Shape(side).area() + Shape(side).area()", "areas itself costs", "areas"),
        Plant("fib(number - 2)", "fib(number - 2) + fib(number - 4)", "fib is called", "fib"),
        Plant("yield number * number", "yield number ** 5 // 7 ** 3", "each call of numbers costs", "numbers"),
        Plant('{"row": row}', '{"row": row, "twice": [row, row]}', "", "stored"),
        Plant("fib(14", "fib(16", "fib is called", "<module>", on_the_way=True),
    ],
    "cpython": [
        Plant(
            "output_size, 127);",
            "output_size, 127); for (volatile Py_ssize_t turn = 0; turn < input_chars; turn++);",
            "each call of ascii_escape_unicode costs",
            "ascii_escape_unicode",
        ),
        Plant(
            "chars = ascii_escape_unichar(c, output, chars);",
            "ascii_escape_unichar(c, output, chars); chars = ascii_escape_unichar(c, output, chars);",
            "ascii_escape_unichar is called 36,000 instead of 18,000 times, from ascii_escape_unicode",
            "ascii_escape_unicode",
        ),
        Plant(
            "d = PyUnicode_READ(kind, buf, next);",
            "d = PyUnicode_READ(kind, buf, next); for (volatile int turn = 0; turn < 2; turn++);",
            "each call of scanstring_unicode costs",
            "scanstring_unicode",
        ),
        Plant(
            "rval = PyLong_FromString(buf, NULL, 10);",
            "{ Py_XDECREF(PyLong_FromString(buf, NULL, 10)); rval = PyLong_FromString(buf, NULL, 10); }",
            "PyLong_FromString is called 8,000 instead of 4,000 times, from _match_number_unicode",
            "_match_number_unicode",
        ),
        Plant(
            "encoded = encoder_encode_string(s, obj);",
            "encoded = (Py_XDECREF(encoder_encode_string(s, obj)), encoder_encode_string(s, obj));",
            "encoder_encode_string is called 2,400 instead of 1,600 times, from encoder_listencode_obj",
            "encoder_listencode_obj",
        ),
    ],
}
# What is not executed, comments and layout: none of it is named, though a build that costs more comes with it.
INNOCENT: dict[str, list[tuple[str, str]]] = {
    "c": [
        ("seed * 3", "seed * 5 + 1"),
        ("seed += 2", "seed -= 2"),
        ("value *= 2", "value *= 9"),
        ("value - 1", "value / 7 % 3"),
        ("#include <stdio.h>", "// Words are mixed.\n#include <stdio.h>"),
        ("sum += mix(word);", "sum += mix(word); /* each */"),
        ("    return sum;", "\n    return sum;  // of all"),
    ],
    "cc": [
        ("return sum * 2", "return sum * 5 - 1"),
        ("long sum = limit;", "long sum = limit % 7;"),
        ("sum += mix(word);", "sum  +=  mix(word); // each"),
        ("struct Shape {", "// What has an area.\nstruct Shape\n{"),
    ],
    "rs": [
        ("twice + 1", "twice + 7"),
        ("black_box(number) * 2", "black_box(number) * 5"),
        ("fn digest", "// All of them.\nfn digest"),
        ("let mut length = 0;", "let mut length = 0; // in bytes"),
        ("trait Shape {", "/// What has an area.\ntrait Shape {"),
    ],
    "py": [
        ("value * 2", "value * 9"),
        ("side * 3", "side / 3"),
        ("value += 1", "value -= 1"),
        ("total = 0", "total = 0  # of all"),
    ],
    "cpython": [
        ('"json.decoder"', '"json" ".decoder"'),
        ("rval = PyLong_FromString(buf", "rval = PyLong_FromString( buf /* of ASCII */"),
        ("/* Read a JSON number", "/* Read the JSON number"),
    ],
}
SOURCES: dict[str, dict[str, str]] = {
    "c": {"main.c": C, "parts.c": LIBRARY},
    "cc": {"main.cc": CXX},
    "rs": {"main.rs": RUST},
    "py": {"words.py": PYTHON},
}
COMPILERS: dict[str, list[tuple[str, ...]]] = {
    "c": [
        ("gcc", "-O1", "-g", "-fno-builtin", "-shared", "-fPIC", "-o", "libparts.so", "parts.c"),
        ("gcc", "-O1", "-g", "-fno-builtin", "-o", "program", "main.c", "./libparts.so"),
    ],
    "cc": [("g++", "-O1", "-g", "-o", "program", "main.cc")],
    "rs": [("rustc", "-O", "-g", "-o", "program", "main.rs")],
}
APART = {
    "c": ("-DWORDS=900",),
    "cc": ("-DLIMIT=9000",),
    "rs": ("--cfg", "apart"),
    "py": ("-O",),
    "cpython": ("-O0",),
}
_PLACE = re.compile(r" \([^()]*:[0-9]+\)| \(\S*\.so[^)]*\)")


class Project:
    """A repository in one language, measured by commits, and compared with its first one."""

    def __init__(self, language: str, folder: Path) -> None:
        self.language, self._folder = language, folder
        self._sources, self._compilers, self._command = _built(language)
        self._repository = Repository(folder / "repository", git_environment(folder))
        self._base = self._measured("base.json", (), ())

    def compared(self, *edits: tuple[str, str], more: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return what `diff` says of a build with these edits, and `more` options."""
        candidate, report = self._measured("candidate.json", edits, more), self._folder / "report.json"
        self._cg_bench("diff", str(self._base), str(candidate), "--json", str(report), "--fail-on", "never")
        (benchmark,) = json.loads(report.read_bytes())["benchmarks"]
        if self.language != "py":
            assert benchmark["hunks"]["total"] == benchmark["calls"]["total"]
        return dict(benchmark)

    def _measured(self, name: str, edits: tuple[tuple[str, str], ...], more: tuple[str, ...]) -> Path:
        for file, text in self._sources.items():
            for edit in edits:
                text = text.replace(*edit)  # noqa: PLW2901
            (self._repository.path / file).write_text(text, encoding="utf-8")
        self._repository.git("add", *self._sources)
        self._repository.commit("change")
        for compiler in self._compilers:
            subprocess.run([*compiler, *more], cwd=self._repository.path, check=True, capture_output=True)
        recorded = ["--python-profile"] if self.language == "py" else ["--call-tree", "--lines"]
        program, *words = self._command
        command = program, *(more if self.language == "py" else ()), *words
        self._cg_bench("run", "-q", *recorded, "--id", "x", "-o", str(self._folder / name), "--", *command)
        return self._folder / name

    def line(self, old: str) -> dict[str, Any]:
        """Return where this is in the base."""
        ((file, text),) = ((file, text) for file, text in self._sources.items() if old in text)
        line = text[: text.index(old)].count("\n") + 1
        return {"file": file, "first": line, "last": line}

    def _cg_bench(self, *words: str) -> None:
        command = [sys.executable, "-m", "cachegrind_bench", *words]
        subprocess.run(
            command, cwd=self._repository.path, env=self._repository.environ, check=True, capture_output=True
        )


def _built(language: str) -> tuple[dict[str, str], list[tuple[str, ...]], tuple[str, ...]]:
    """Return the sources of a project, how they are compiled, and what is measured."""
    if language == "py":
        return SOURCES[language], [], (str(any_python()), "-S", "-B", "words.py")
    if language != "cpython":
        return SOURCES[language], COMPILERS[language], ("./program",)
    original, flags = json_sources()
    sources = {"words.py": JSON, "_json.c": original.read_text("utf-8")}
    # Called once, functions are inlined, which other plants are about.
    compiler = "gcc", "-O1", "-fno-inline-functions-called-once", *flags, "-o", "_json.so", "_json.c"
    return sources, [compiler], (PYTHON_OF_SYSTEM, "-S", "-B", "words.py")


@pytest.mark.parametrize("language", PLANTS)
def test_each_planted_change_is_explained_and_innocent_ones_are_not_blamed(language: str, tmp_path: Path) -> None:
    project = Project(language, tmp_path)
    for plant in PLANTS[language]:
        benchmark = project.compared((plant.old, plant.new))
        assert plant.says in _PLACE.sub("", benchmark["cause"]["text"]), plant
        found = benchmark["hunks"]
        named = [found["through"]] if plant.on_the_way else found["functions"]
        assert [row["function"] for row in named] == ([plant.function] if plant.function else []), plant
        assert all(row["hunks"] == [project.line(plant.old)] for row in named), plant
        # What is new in a function may cost elsewhere, as `realloc`: then all that is called from it is named, too.
        through = found["through"]
        assert through is None if not plant.function else through is not None or not plant.on_the_way, plant
        assert through is None or (through["function"], through["hunks"]) == (plant.function, [project.line(plant.old)])
        assert (found["functions"] != []) == (plant.function != "" and not plant.on_the_way), plant
        assert found["others"] == ([] if plant.function else [project.line(plant.old)]), plant
        assert not found["idle"], plant
    benchmark = project.compared(*INNOCENT[language], more=APART[language])
    found = benchmark["hunks"]
    assert benchmark["cause"] is not None
    assert (found["functions"], found["through"], found["idle"]) == ([], None, True)
    assert found["others"]
