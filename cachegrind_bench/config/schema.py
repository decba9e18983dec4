"""Every key of a configuration: its type, meaning, default, and what is checked of its texts.

The one description from which files are read, and the JSON Schema and the reference in docs/configuration.md are made.
"""
# No `from __future__ import annotations`: the annotations are evaluated once, and are values.

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_type_hints

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from cachegrind_bench.config.command import milliseconds
from cachegrind_bench.config.suggestions import as_list, as_words, meant_limit, meant_percentage
from cachegrind_bench.errors import UsageError
from cachegrind_bench.hermetic.environment import LAYOUTS, Request
from cachegrind_bench.model import thresholds
from cachegrind_bench.model.metrics import CostModel
from cachegrind_bench.model.result import Size
from cachegrind_bench.model.sizes import class_of
from cachegrind_bench.model.text import without_password
from cachegrind_bench.store.urls import FORMS, is_url
from cachegrind_bench.valgrind.options import Cache

# What a value may be written as.
Text = Annotated[str, Meta(min_length=1)]
Texts = Text | tuple[Text, ...]
Metric = Literal["score", "Ir"]
Evidence = Literal["regressions", "always", "never"]
Duration = Text | Annotated[float, Meta(gt=0)]
Command = Text | Annotated[tuple[str, ...], Meta(min_length=1)]
Variables = tuple[Text, ...] | dict[str, str]
Sizes = Text | tuple[int, ...]
Parameters = dict[str, Any]  # whose values `parameters` reads
Combinations = tuple[dict[str, Any], ...]
_WORDS: Mapping[object, str] = {
    str: "a text",
    Text: "a text",
    Texts: "a text or a list of texts",
    Metric: "a text",
    Evidence: "a text",
    bool: "true or false",
    Duration: "seconds, or a text with a unit",
    Command: "a list of texts, or a text",
    Variables: "a list of texts, or a table",
    Parameters: "a table of lists",
    Sizes: "a list of whole numbers, or a range as a text",
    Combinations: "a list of tables",
    int: "a whole number",
}


def text(value: str, key: str) -> None:
    """Take any text that can be given to a program and is not empty. Like all checks: UsageError if it will not do."""
    if not value.strip():
        raise UsageError(f"{key} is empty")
    if "\0" in value:
        raise UsageError(f"{key} holds a NUL character, which no program can be given")


def _name(value: str, key: str) -> None:
    """Take what can be shown in one line of a table, and typed."""
    text(value, key)
    if not value.isprintable() or value != value.strip():
        raise UsageError(f"{key} {value!r} must be printable, without spaces at its ends")


def function(value: str, key: str) -> None:
    """Take the name of a function, which may have wildcards."""
    _name(value, key)
    if not value.strip("*?"):
        raise UsageError(f"{key} {value!r} does not name a function", hint="as in parse_*")


def _tag(value: str, key: str) -> None:
    _name(value, key)
    words = as_words(value)
    if len(words) > 1:
        raise UsageError(f"{key} {value!r} holds more than one word", hint=f"did you mean {as_list(words)}?")


def _threshold(value: str, key: str) -> str:
    """Take a percentage for all benchmarks, or with a pattern for some. Return the pattern."""
    pattern, equals, number = value.rpartition("=")
    if equals and not pattern:
        thresholds.percentages([value], None, key)  # which says so
    thresholds.percentage(number, key)
    return pattern or "*"


def _limit(value: str, key: str) -> str:
    """Take a bound for all benchmarks, or with a pattern for some. Return the pattern."""
    try:
        return thresholds.limit(value, key).pattern
    except UsageError as error:
        if re.search(r"\w\s*=", value):
            raise
        raise UsageError(f"{key} {value!r} is not a NAME=COUNT", hint="as in") from error


def _own_limit(value: str, key: str) -> None:
    """Take a bound for the benchmark in whose table it is."""
    if _limit(value, key) != "*":
        raise UsageError(
            f"{key} {value!r} names a benchmark, but is in the table of one",
            hint=f"did you mean {value.rpartition(':')[2]!r}?",
        )


def _store(value: str, key: str) -> None:
    """Take the URL of a store; whether there is one is seen when it is opened."""
    if not is_url(value):
        raise UsageError(f"{key} {without_password(value)!r} is not a store URL", hint=FORMS)


def _parsed(parse: Callable[[str], object]) -> Callable[[str, str], None]:
    """Return a check by a parser, whose errors get the name of the key."""

    def check(value: str, key: str) -> None:
        try:
            parse(value)
        except UsageError as error:
            raise UsageError(f"{key} {error.message}", hint=error.hint) from error

    return check


def _variable(value: str, key: str) -> None:
    try:
        Request.parse([value])
    except UsageError as error:
        raise UsageError(error.message.replace("--env", key, 1), hint=error.hint) from error
    own, equals, _ = value.partition("=")
    words = own.split()
    if words != [own]:
        words[-1:] = [f"{last}=…" if equals else last for last in words[-1:]]  # the value may be a secret
        raise UsageError(f"{key} {own!r}: the name of a variable has no blank", hint=f"did you mean {as_list(words)}?")


class Key(msgspec.Struct, frozen=True):
    """One key. `example` is a value as it is written in TOML; `also` are words that people try first.

    `meant` returns what a text that the check refuses may mean. `harness` is that whose benchmarks it is for; one of the same
    name says where these are. `name` and `type` are those of the field that it describes.
    """

    meaning: str
    example: str
    default: str = ""
    check: Callable[[str, str], object] = text
    also: tuple[str, ...] = ()
    meant: Callable[[str], str | None] = lambda _text: None
    harness: str = ""
    name: str = ""
    type: Any = None

    @property
    def option(self) -> str:
        """The name under which the command line knows it."""
        return self.name.lower().replace("-", "_")

    @property
    def required(self) -> bool:
        """Whether the table of a single benchmark must have it."""
        return self.name in ("id", "command")

    @property
    def bounds(self) -> Meta | None:
        """The smallest and largest number (`ge`, `le`), if it is one."""
        return next((item for item in getattr(self.type, "__metadata__", ()) if item.ge is not None), None)

    @property
    def takes_text(self) -> bool:
        """Whether one text is a value, or one of several."""
        return self.type in (str, Text, Texts)

    @property
    def wanted(self) -> str:
        """What its value must be, in words."""
        return _WORDS.get(int if self.bounds else self.type, "a list of tables, made by double brackets")


# Three lines for a key.
# fmt: off
_CACHE = Key(
    "First-level instruction cache: size, associativity, line size.", '"32768,8,64"', "32768,8,64", Cache.parse)
_THRESHOLD = Key(
    "A larger change of the score, or of Ir in the same direction, is a regression or improvement: `PERCENT` for all benchmarks, "
    "`PATTERN=PERCENT` for some.", '"0.5%"', "0.5%", _threshold, meant=meant_percentage)
_ENV = Key(
    "Variables to pass on (`NAME`) or set (`NAME=VALUE`, or a table of names and values).",
    '["DATABASE_URL", "MODE=fast"]', "none", _variable, ("environment", "variables"))
_TIMEOUT = Key("End what takes longer: an execution, even a warm-up, `prepare` or `cleanup`.", '"5min"', "none", _parsed(milliseconds))
_REPEAT = Key("Number of measured executions.", "3", "1", also=("runs", "iterations", "repetitions"))
_WARMUP = Key("Native executions to warm up, before the measured ones.", "1", "1")
_LAYOUTS = Key("Number of memory layouts to measure in, `repeat` times each.", "5", "1")
_FOR_ALL = "that for all"
_Repeat = Annotated[int, Meta(ge=1, le=1000)]
_Warmup = Annotated[int, Meta(ge=0, le=100)]
_Layouts = Annotated[int, Meta(ge=1, le=LAYOUTS)]


class Table(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, rename=lambda name: name.replace("_", "-")):
    """A table of a configuration. UNSET is what it does not say."""


class Benchmark(Table):
    """One benchmark, or one for each combination of its parameters; or all that a harness lists."""

    id: Annotated[Text | UnsetType, Key(
        "Its name; with parameters, their values follow it: `parse[n=1000]`. In the table of a harness optional: "
        "`ID/` goes before the names that it lists.", '"parse"', check=_name, also=("name", "title", "key"))] = UNSET
    command: Annotated[Command | UnsetType, Key(
        "What is measured, as a list of arguments or as text that is split as a shell does; no shell runs it.",
        '["python3", "bench.py", "{n}"]', also=("cmd", "run", "exec", "script", "program", "args"))] = UNSET
    pytest: Annotated[Command | UnsetType, Key(
        "Instead of `command`: the folders and files whose benchmarks [pytest](pytest.md) lists and measures, and options of pytest.",
        '"tests/benchmarks"', also=("py.test",), harness="pytest")] = UNSET
    python: Annotated[Text | UnsetType, Key(
        "The Python that has pytest and the project, found on PATH or relative to `cwd`.", '".venv/bin/python"',
        "that of `VIRTUAL_ENV`, else `.venv/bin/python`, else that of cg-bench if it has pytest, else `python3`",
        also=("interpreter",), harness="pytest")] = UNSET
    criterion: Annotated[Command | UnsetType, Key(
        "Instead of `command`: the folder of a Cargo package or workspace with benchmarks of [Criterion](harnesses.md), and "
        "options of `cargo bench`.", '"."', also=("cargo",), harness="criterion")] = UNSET
    divan: Annotated[Command | UnsetType, Key(
        "Instead of `command`: the folder of a Cargo package or workspace with benchmarks of [Divan](harnesses.md), and "
        "options of `cargo bench`.", '"."', harness="divan")] = UNSET
    go: Annotated[Command | UnsetType, Key(
        "Instead of `command`: the packages whose benchmarks [go test](harnesses.md) runs.", '"./..."',
        also=("gotest", "go-test"), harness="go")] = UNSET
    google_benchmark: Annotated[Command | UnsetType, Key(
        "Instead of `command`: a program with benchmarks of [Google Benchmark](harnesses.md), and its arguments.",
        '"build/bench"', also=("googlebenchmark", "gbench"), harness="google-benchmark")] = UNSET
    catch2: Annotated[Command | UnsetType, Key(
        "Instead of `command`: a program with benchmarks of [Catch2](harnesses.md), and which of its test cases have them.",
        '"build/tests [!benchmark]"', also=("catch",), harness="catch2")] = UNSET
    tinybench: Annotated[Command | UnsetType, Key(
        "Instead of `command`: a script with benchmarks of [tinybench](harnesses.md), its arguments, and options of Node before it.",
        '"bench/index.mjs"', harness="tinybench")] = UNSET
    jmh: Annotated[Command | UnsetType, Key(
        "Instead of `command`: a jar with benchmarks of [JMH](harnesses.md), with options of Java before it and patterns after it.",
        '"target/benchmarks.jar"', harness="jmh")] = UNSET
    vitest: Annotated[Command | UnsetType, Key(
        "Instead of `command`: the folder of a package with benchmarks of [Vitest](harnesses.md), and options of `vitest bench`.",
        '"."', harness="vitest")] = UNSET
    cwd: Annotated[Text | UnsetType, Key(
        "The folder everything of this benchmark runs in, relative to that of the configuration.", '"benchmarks"',
        "that of the configuration",
        also=("dir", "directory", "workdir", "working-directory", "path", "chdir"))] = UNSET
    env: Annotated[Variables | UnsetType, replace(
        _ENV, meaning=f"{_ENV.meaning} Added to those for all benchmarks.", default="")] = UNSET
    setup: Annotated[Text | UnsetType, Key(
        "Shell command run once before, natively and unsealed: a build, or making data.", '"make -s"',
        also=("build", "before", "init"))] = UNSET
    prepare: Annotated[Text | UnsetType, Key(
        "Shell command before every execution, not measured.", '"rm -rf out"', also=("before-each",))] = UNSET
    cleanup: Annotated[Text | UnsetType, Key(
        "Shell command after every execution, not measured.", '"rm -rf out"',
        also=("teardown", "after", "after-each"))] = UNSET
    stdin: Annotated[Text | UnsetType, Key(
        "File that is the program's standard input, relative to `cwd`.", '"data/input.txt"', "empty",
        also=("input",))] = UNSET
    region: Annotated[Text | UnsetType, Key(
        "Count only this region, which the program marks.", '"parse"', "the whole program", _name,
        ("regions", "mark"))] = UNSET
    toggle: Annotated[Texts | UnsetType, Key(
        "Count only what happens inside these functions (`*` and `?` are wildcards).", '["parse_rows"]',
        "the whole program", function, ("toggles", "function", "functions", "toggle-collect"))] = UNSET
    call_tree: Annotated[bool | UnsetType, Key(
        "Also record which function called which (under Cachegrind, in one more execution).", "true", "false",
        also=("calls", "call-graph"))] = UNSET
    python_profile: Annotated[bool | UnsetType, Key(
        "Also report what each Python function cost, from further executions (CPython 3.12+).", "true", "false",
        also=("profile",))] = UNSET
    parameters: Annotated[Parameters | UnsetType, Key(
        "Values by name: one benchmark is made of each combination, `{name}` standing for the value in "
        "`command`, `cwd`, `env`, `setup`, `prepare`, `cleanup` and `stdin`.",
        '{ n = [1000, 10000], codec = ["a", "b"] }',
        also=("params", "parametrize", "matrix", "parameter", "args-matrix"))] = UNSET
    exclude: Annotated[Combinations | UnsetType, Key(
        "Combinations to leave out, each as some of the parameters with a value.", '[{ n = 10000, codec = "b" }]',
        also=("matrix-exclude", "excludes"))] = UNSET
    sizes: Annotated[Sizes | UnsetType, Key(
        "[Sizes of the input](growth.md), four at least: one benchmark is made of each, `{size}` standing for it as for a "
        "parameter, and reports say how the cost grows with it. A list, or a range as in `1000..64000x2` or `10..50+10`.",
        "[1000, 2000, 4000, 8000]", also=("scale", "ns"))] = UNSET
    growth: Annotated[Text | UnsetType, Key(
        "The cost must not grow faster with the `sizes` than this, or it is a regression: `1`, `log n`, `n`, `n log n`, "
        "`n^1.5`, `n²`, `n² log n`, `n³` or `2^n`.", '"n log n"', "as in the base", class_of, ("complexity", "bound"))] = UNSET
    predict: Annotated[Size | UnsetType, Key(
        "The size that costs are predicted for.", "1_000_000", also=("extrapolate",))] = UNSET
    tags: Annotated[Texts | UnsetType, Key(
        "Words to select benchmarks by.", '["quick", "io"]', check=_tag,
        also=("tag", "labels", "groups", "marks"))] = UNSET
    repeat: Annotated[_Repeat | UnsetType, replace(_REPEAT, default=_FOR_ALL)] = UNSET
    warmup: Annotated[_Warmup | UnsetType, replace(_WARMUP, default=_FOR_ALL)] = UNSET
    layouts: Annotated[_Layouts | UnsetType, replace(_LAYOUTS, default=_FOR_ALL)] = UNSET
    timeout: Annotated[Duration | UnsetType, replace(_TIMEOUT, default=_FOR_ALL)] = UNSET
    threshold: Annotated[Text | UnsetType, Key(
        "A larger change of this benchmark's score is a regression or improvement.", '"2%"', _FOR_ALL,
        thresholds.percentage, meant=meant_percentage)] = UNSET
    limit: Annotated[Texts | UnsetType, Key(
        "Upper limits for this benchmark: `NAME=COUNT` with score, an event, L1, LL or RAM (hits), or allocations.",
        '"Ir=150_000_000"', "those for all", _own_limit, ("limits", "maximum"), meant_limit)] = UNSET


class Defaults(Table):
    """What holds for all benchmarks, and the benchmarks."""

    I1: Annotated[Text | UnsetType, _CACHE] = UNSET
    D1: Annotated[Text | UnsetType, replace(_CACHE, meaning="First-level data cache.", also=("L1",))] = UNSET
    LL: Annotated[Text | UnsetType, replace(
        _CACHE, meaning="Last-level cache.", default="8388608,16,64", example='"8388608,16,64"')] = UNSET
    estimate: Annotated[bool | UnsetType, Key(
        "Estimate the time, too: a branch predictor is simulated, which takes a tenth longer.",
        "true", "false")] = UNSET
    model: Annotated[Text | UnsetType, Key(
        "Weights of the score; `ir` counts instructions only, in half the time.", '"l1+5ll+30ram"', "l1+5ll+30ram",
        _parsed(CostModel.parse))] = UNSET
    threshold: Annotated[Texts | UnsetType, _THRESHOLD] = UNSET
    threshold_ir: Annotated[Texts | UnsetType, replace(
        _THRESHOLD, meaning="Use this threshold for growth of Ir instead.", default="none")] = UNSET
    threshold_allocations: Annotated[Texts | UnsetType, replace(
        _THRESHOLD, meaning="More allocations of memory than this are a regression. Calls of these benchmarks are recorded.",
        default="none", example='"0%"', also=("allocations",))] = UNSET
    threshold_cache: Annotated[Text | UnsetType, Key(
        "A score change above this counts even if Ir did not change.", '"2%"', "2%", thresholds.percentage,
        meant=meant_percentage)] = UNSET
    max_drop: Annotated[Texts | UnsetType, replace(
        _THRESHOLD, meaning="A larger drop of Ir is suspicious.", default="50%", example='"50%"')] = UNSET
    limit: Annotated[Texts | UnsetType, Key(
        "Upper limits for the score, an event, L1, LL or RAM (hits), or allocations: `NAME=COUNT` for all benchmarks, "
        "`PATTERN:NAME=COUNT` for some.", '["startup:Ir=150_000_000"]', "none", _limit, ("limits", "maximum"),
        meant_limit)] = UNSET
    metric: Annotated[Metric | UnsetType, Key("The number that decides whether a benchmark regressed, `score` or `Ir`.", '"score"', "score")] = UNSET
    evidence: Annotated[Evidence | UnsetType, Key(
        "Of which benchmarks `check`, `ab` and `bisect` record calls and Python functions on both sides, to explain them: "
        "`regressions`, `always` or `never`.", '"never"', "regressions", also=("explain",))] = UNSET
    env: Annotated[Variables | UnsetType, _ENV] = UNSET
    timeout: Annotated[Duration | UnsetType, _TIMEOUT] = UNSET
    repeat: Annotated[_Repeat | UnsetType, _REPEAT] = UNSET
    warmup: Annotated[_Warmup | UnsetType, _WARMUP] = UNSET
    layouts: Annotated[_Layouts | UnsetType, _LAYOUTS] = UNSET
    jobs: Annotated[Annotated[int, Meta(ge=1, le=4096)] | UnsetType, Key(
        "Benchmarks measured at a time; the results do not depend on it.", "4", "all CPUs",
        also=("threads", "parallel"))] = UNSET
    store: Annotated[Text | UnsetType, Key(
        "Where the history is kept: `file:DIR`, `git:BRANCH[@REMOTE]`, `sqlite:///PATH` or `postgresql://…`.",
        '"git:cg-bench-data@origin"', "file:.cg-bench", _store, ("history", "database", "db", "storage"))] = UNSET
    store_timeout: Annotated[Duration | UnsetType, Key(
        "Give up on a store that is locked or does not answer for this long.", '"30s"', "1 to 5 minutes",
        _parsed(milliseconds))] = UNSET
    workers: Annotated[Text | UnsetType, Key(
        "The Dask scheduler on whose workers `cg-bench backfill` measures.", '"tcp://scheduler:8786"', "none: this machine")] = UNSET
    carry: Annotated[Texts | UnsetType, Key(
        "Files and folders of the checkout that `cg-bench backfill` lays over each commit, relative to the working directory.",
        '["benchmarks"]', "none")] = UNSET
    benchmark: Annotated[tuple[Benchmark, ...] | UnsetType, Key(
        "The benchmarks: one `[[benchmark]]` table for each.", "", "none", also=("bench", "suite", "benches"))] = UNSET


# fmt: on

BENCHMARK_TABLE = "benchmark"


def _keys(table: type[Table]) -> Mapping[str, Key]:
    """Return the keys of a table by their names, from the annotations of its fields."""
    found: dict[str, Key] = {}
    for field, annotation in get_type_hints(table, include_extras=True).items():
        value = get_args(annotation)[0]
        kinds = [kind for kind in get_args(value) if kind is not UnsetType]
        name = field.replace("_", "-")
        found[name] = replace(annotation.__metadata__[-1], name=name, type=Union[*kinds] if kinds else value)
    return found


DEFAULTS, BENCHMARK = _keys(Defaults), _keys(Benchmark)
# The keys whose tables are benchmarks that somebody else lists.
HARNESSES = tuple(key.name for key in BENCHMARK.values() if key.harness == key.name)
