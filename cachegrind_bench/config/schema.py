"""Every key of a configuration: its kind, meaning, default and check.

The one table that validation, the JSON Schema and the reference in docs/configuration.md are made of.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cachegrind_bench.config import checks
from cachegrind_bench.hermetic import layouts

if TYPE_CHECKING:
    from collections.abc import Callable


class Kind(StrEnum):
    """What a value may be written as; the text is how the documentation calls it."""

    TEXT = "text"
    TEXTS = "text, or list of texts"
    COUNT = "whole number"
    SWITCH = "true or false"
    DURATION = "seconds, or text with a unit"
    COMMAND = "list of texts, or text"
    ENV = "list of texts, or table"
    PARAMETERS = "table of lists"
    EXCLUDE = "list of tables"
    BENCHMARKS = "list of tables, made by double brackets"


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """One key. `example` is a value as it is written in TOML; `also` are words that people try first."""

    name: str
    kind: Kind
    meaning: str
    example: str
    default: str = ""
    check: Callable[[str, str], object] = checks.text
    smallest: int = 1
    largest: int = 1
    choices: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    required: bool = False

    @property
    def option(self) -> str:
        """The name under which the command line knows it."""
        return self.name.lower().replace("-", "_")


_REPEAT = Key(
    name="repeat",
    kind=Kind.COUNT,
    meaning="Measured executions.",
    default="1",
    example="3",
    largest=1000,
    also=("runs", "iterations", "repetitions"),
)
_WARMUP = Key(
    name="warmup",
    kind=Kind.COUNT,
    meaning="Native executions before.",
    default="1",
    example="1",
    smallest=0,
    largest=100,
)
_LAYOUTS = Key(
    name="layouts",
    kind=Kind.COUNT,
    meaning="Memory layouts to measure under, each `repeat` times.",
    default="1",
    example="5",
    largest=layouts.COUNT,
)
_TIMEOUT = Key(
    name="timeout",
    kind=Kind.DURATION,
    meaning="End an execution that takes longer (each one, warm-up too).",
    default="none",
    example='"5min"',
    check=checks.duration,
)
_ENV = Key(
    name="env",
    kind=Kind.ENV,
    meaning="Variables to pass on (`NAME`) or set (`NAME=VALUE`, or a table of names and values).",
    example='["DATABASE_URL", "MODE=fast"]',
    check=checks.variable,
    also=("environment", "variables"),
)

_CACHE = Key(
    name="I1",
    kind=Kind.TEXT,
    meaning="First-level instruction cache: size, associativity, line size.",
    default="32768,8,64",
    example='"32768,8,64"',
    check=checks.cache,
)
_THRESHOLD = Key(
    name="threshold",
    kind=Kind.TEXTS,
    meaning="A larger change of the score, or of Ir in the same direction, is a regression or improvement: `PERCENT` for all benchmarks, "
    "`PATTERN=PERCENT` for some.",
    default="0.5%",
    example='"0.5%"',
    check=checks.threshold,
)

_SHELL = Key(
    name="setup",
    kind=Kind.TEXT,
    meaning="Shell command run once before, natively and unsealed: a build, or making data.",
    example='"make -s"',
    also=("build", "before", "init"),
)

BENCHMARK_TABLE = "benchmark"

DEFAULTS: tuple[Key, ...] = (
    _CACHE,
    replace(_CACHE, name="D1", meaning="First-level data cache.", also=("L1",)),
    replace(_CACHE, name="LL", meaning="Last-level cache.", default="8388608,16,64", example='"8388608,16,64"'),
    Key(
        name="model",
        kind=Kind.TEXT,
        meaning="Weights of the score; `ir` is plain instructions.",
        default="l1+5ll+30ram",
        example='"l1+5ll+30ram"',
        check=checks.model,
    ),
    _THRESHOLD,
    replace(_THRESHOLD, name="threshold-ir", meaning="Use this threshold for growth of Ir instead.", default="none"),
    Key(
        name="threshold-cache",
        kind=Kind.TEXT,
        meaning="A score change above this counts even if Ir did not change.",
        default="2%",
        example='"2%"',
        check=checks.percentage,
    ),
    replace(_THRESHOLD, name="max-drop", meaning="A larger fall of Ir is suspicious.", default="50%", example='"50%"'),
    Key(
        name="limit",
        kind=Kind.TEXTS,
        meaning="Absolute bounds of score, an event, or L1, LL, RAM (hits): `NAME=COUNT` for all benchmarks, "
        "`PATTERN:NAME=COUNT` for some.",
        default="none",
        example='["startup:Ir=150_000_000"]',
        check=checks.limit,
        also=("limits", "maximum"),
    ),
    Key(
        name="metric",
        kind=Kind.TEXT,
        meaning="The number that decides, `score` or `Ir`.",
        default="score",
        example='"score"',
        choices=("score", "Ir"),
    ),
    replace(_ENV, default="none"),
    _TIMEOUT,
    _REPEAT,
    _WARMUP,
    _LAYOUTS,
    Key(
        name="jobs",
        kind=Kind.COUNT,
        meaning="Benchmarks measured at a time; the results do not depend on it.",
        default="all CPUs",
        example="4",
        largest=4096,
        also=("threads", "workers", "parallel"),
    ),
    Key(
        name="store",
        kind=Kind.TEXT,
        meaning="Where the history is kept: `file:DIR`, `git:BRANCH[@REMOTE]`, `sqlite:///PATH` or `postgresql://…`.",
        default="file:.cg-bench",
        example='"git:cg-bench-data@origin"',
        check=checks.store,
        also=("history", "database", "db", "storage"),
    ),
    Key(
        name=BENCHMARK_TABLE,
        kind=Kind.BENCHMARKS,
        meaning="The benchmarks: one `[[benchmark]]` table for each.",
        default="none",
        example="",
        also=("bench", "suite", "benches"),
    ),
)

BENCHMARK: tuple[Key, ...] = (
    Key(
        name="id",
        kind=Kind.TEXT,
        meaning="Its name; with parameters, their values follow it: `parse[n=1000]`.",
        example='"parse"',
        check=checks.name,
        also=("name", "title", "key"),
        required=True,
    ),
    Key(
        name="command",
        kind=Kind.COMMAND,
        meaning="What is measured, as a list of arguments or as text that is split as a shell does; no shell runs it.",
        example='["python3", "bench.py", "{n}"]',
        also=("cmd", "run", "exec", "script", "program", "args"),
        required=True,
    ),
    Key(
        name="cwd",
        kind=Kind.TEXT,
        meaning="The folder everything of this benchmark runs in, relative to that of the configuration.",
        default="that of the configuration",
        example='"benchmarks"',
        also=("dir", "directory", "workdir", "working-directory", "path", "chdir"),
    ),
    replace(_ENV, meaning=f"{_ENV.meaning} Added to those for all benchmarks."),
    _SHELL,
    replace(
        _SHELL,
        name="prepare",
        meaning="Shell command before every execution, not measured.",
        example='"rm -rf out"',
        also=("before-each",),
    ),
    replace(
        _SHELL,
        name="cleanup",
        meaning="Shell command after every execution, not measured.",
        example='"rm -rf out"',
        also=("teardown", "after", "after-each"),
    ),
    Key(
        name="stdin",
        kind=Kind.TEXT,
        meaning="File that is the program's standard input, relative to `cwd`.",
        default="empty",
        example='"data/input.txt"',
        also=("input",),
    ),
    Key(
        name="region",
        kind=Kind.TEXT,
        meaning="Count only this region, which the program marks.",
        default="the whole program",
        example='"parse"',
        check=checks.name,
        also=("regions", "mark"),
    ),
    Key(
        name="toggle",
        kind=Kind.TEXTS,
        meaning="Count only what happens inside of these functions (`*` and `?` are wildcards).",
        default="the whole program",
        example='["parse_rows"]',
        check=checks.function,
        also=("toggles", "function", "functions", "toggle-collect"),
    ),
    Key(
        name="python-profile",
        kind=Kind.SWITCH,
        meaning="Also report what each Python function cost, from further executions (CPython 3.12+).",
        default="false",
        example="true",
        also=("profile", "python"),
    ),
    Key(
        name="parameters",
        kind=Kind.PARAMETERS,
        meaning="Values by name: one benchmark is made of each combination, `{name}` standing for the value in "
        "`command`, `cwd`, `env`, `setup`, `prepare`, `cleanup` and `stdin`.",
        example='{ n = [1000, 10000], codec = ["a", "b"] }',
        also=("params", "parametrize", "matrix", "parameter", "args-matrix"),
    ),
    Key(
        name="exclude",
        kind=Kind.EXCLUDE,
        meaning="Combinations to leave out, each as some of the parameters with a value.",
        example='[{ n = 10000, codec = "b" }]',
        also=("matrix-exclude", "excludes"),
    ),
    Key(
        name="tags",
        kind=Kind.TEXTS,
        meaning="Words to select benchmarks by.",
        example='["quick", "io"]',
        check=checks.tag,
        also=("tag", "labels", "groups", "marks"),
    ),
    *(replace(key, default="that for all") for key in (_REPEAT, _WARMUP, _LAYOUTS, _TIMEOUT)),
    replace(
        _THRESHOLD,
        kind=Kind.TEXT,
        meaning="A larger change of this benchmark's score is a regression or improvement.",
        default="that for all",
        example='"2%"',
        check=checks.percentage,
    ),
    Key(
        name="limit",
        kind=Kind.TEXTS,
        meaning="Absolute bounds of this benchmark: `NAME=COUNT` with score, an event, or L1, LL, RAM (hits).",
        default="those for all",
        example='"Ir=150_000_000"',
        check=checks.own_limit,
        also=("limits", "maximum"),
    ),
)
