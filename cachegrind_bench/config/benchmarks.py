"""From the tables of benchmarks to one value for each combination of parameters, with ids that are all different."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from cachegrind_bench.config.command import milliseconds
from cachegrind_bench.config.parameters import check_id, check_use, combinations, defined, filled
from cachegrind_bench.config.schema import BENCHMARK, BENCHMARK_TABLE, HARNESSES
from cachegrind_bench.config.suggestions import as_list, quoted
from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.result import Scale
from cachegrind_bench.model.sizes import SIZE, class_of, sizes_of

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.config.source import Source
    from cachegrind_bench.config.toml_lines import Steps

_LISTS = ("command", "env")
_TEXTS = ("cwd", "setup", "prepare", "cleanup", "stdin")  # with _LISTS, where `{name}` stands for a value
_UNCHANGED = ("tags", "repeat", "warmup", "layouts", "threshold", "region")
# What belongs to one command. Thresholds and limits of what a harness lists are above all tables, with a pattern.
_OF_COMMANDS = (
    *("command", "prepare", "cleanup", "stdin", "region", "toggle"),
    *("parameters", "exclude", "threshold", "limit", "sizes", "growth", "predict"),
)


class BenchmarkSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark of the suite, with one value for each of its parameters.

    None is what the file does not say. `env` holds `NAME` (passed on) and `NAME=VALUE`, `limits` hold `NAME=COUNT`;
    `place` is the file and line it comes from. One that a harness has listed knows its `entry`, its `name` there,
    and how its `loop` is counted, or the `problem` for which it cannot be measured.
    """

    id: str
    command: tuple[str, ...]
    cwd: Path
    env: tuple[str, ...] = ()
    setup: str | None = None
    prepare: str | None = None
    cleanup: str | None = None
    stdin: Path | None = None
    parameters: Mapping[str, str]
    tags: tuple[str, ...] = ()
    scale: Scale | None = None
    repeat: int | None = None
    warmup: int | None = None
    layouts: int | None = None
    timeout_ms: int | None = None
    threshold: str | None = None
    limits: tuple[str, ...] = ()
    region: str | None = None
    toggles: tuple[str, ...] = ()
    call_tree: bool = False
    python_profile: bool = False
    place: str
    entry: Entry | None = None
    name: str = ""
    loop: Any = None  # a `Loop` of `harness`, which is above
    problem: str = ""


class Entry(msgspec.Struct, frozen=True, kw_only=True, weakref=True):
    """A table that stands for all benchmarks that a harness lists.

    `keys` are those of this harness with their values, its own name among them; `each` is what its benchmarks have in common.
    """

    harness: str
    keys: Mapping[str, Any]
    each: BenchmarkSpec

    def named(self, name: str) -> str:
        """Return what is called so by the harness as the configuration calls it."""
        return f"{self.each.id}/{name}" if self.each.id else name

    def spec(self, name: str, command: tuple[str, ...], **others: Any) -> BenchmarkSpec:
        """Return the benchmark that the harness calls by this name; `others` are fields of a BenchmarkSpec."""
        return replace(self.each, id=self.named(name), command=command, entry=self, name=name, setup=None, **others)


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """What a configuration file says. `defaults` are by the names of options, with values as a user would type them.

    `benchmarks` are those that it names; what the `entries` stand for is known when their harnesses have been asked.
    """

    path: Path
    root: Path
    defaults: Mapping[str, object]
    benchmarks: tuple[BenchmarkSpec, ...]
    entries: tuple[Entry, ...] = ()


def specs(
    source: Source, tables: Iterable[Mapping[str, Any]], *, check_files: bool = True
) -> tuple[tuple[BenchmarkSpec, ...], tuple[Entry, ...]]:
    """Return all benchmarks and entries of these tables of checked values. FileFormatError with the line of the first mistake."""
    found: dict[str, BenchmarkSpec] = {}
    entries: list[Entry] = []
    for number, table in enumerate(tables):
        at = source.below(BENCHMARK_TABLE, number)
        if not table.keys().isdisjoint(HARNESSES):
            entries.append(_entry(at, table))
            if check_files:
                _check_files(at, entries[-1].each, table)
            continue
        for spec in _expanded(at, table):
            if spec.id in found:
                at.fail(f"the id {spec.id!r} is taken by the benchmark at {found[spec.id].place}", "id")
            if check_files:
                if isinstance(source.table()[BENCHMARK_TABLE][number]["command"], list):
                    _check_program(at, spec)
                _check_files(at, spec, table)
            found[spec.id] = spec
    return tuple(found.values()), tuple(entries)


def _entry(at: Source, given: Mapping[str, Any]) -> Entry:
    harness, *others = (name for name in given if name in HARNESSES)
    if others:
        at.fail(f"{harness} and {others[0]} are two harnesses: give each a table of its own", others[0])
    for name in given:
        if name in _OF_COMMANDS:
            hint = f'above all tables, as in {name} = "PATTERN…"' if name in ("threshold", "limit") else None
            at.fail(f"{name!r} is for a benchmark with a command, not for those of {harness}", name, hint=hint)
        if BENCHMARK[name].harness not in ("", harness):
            at.fail(f"{name!r} is for {BENCHMARK[name].harness}, not for {harness}", name)
    keys = {name: value for name, value in given.items() if BENCHMARK[name].harness == harness}
    return Entry(harness=harness, keys=keys, each=_spec(at, {"id": "", "command": (), **given}, {}))


def _expanded(at: Source, given: Mapping[str, Any]) -> list[BenchmarkSpec]:
    for key in BENCHMARK.values():
        if key.required and key.name not in given:
            who = f"the benchmark {given['id']!r}" if "id" in given else "this benchmark"
            at.fail(f"{who} has no {key.name}", hint=f"as in {key.name} = {key.example}")
        if key.harness and key.name in given:
            at.fail(f"{key.name!r} is for benchmarks of {key.harness}, not for those with a command", key.name)
    if "exclude" in given and "parameters" not in given:
        at.fail("exclude leaves out combinations of parameters, but there are no parameters", "exclude")
    if "region" in given and "toggle" in given:
        at.fail("a benchmark counts a region or functions, not both", "toggle")
    if "toggle" in given and given.get("python-profile"):
        at.fail("where only some functions are counted, there is no Python profile", "python-profile")
    parameters = defined(given.get("parameters", {}), at.below("parameters")) | _sizes(at, given)
    check_id(parameters, given["id"], at)
    words: dict[Steps, str] = {("command", place): word for place, word in enumerate(given["command"])}
    variables: dict[Steps, str] = {("env", place): item for place, item in enumerate(given.get("env", ()))}
    texts: dict[Steps, str] = {(name,): given[name] for name in _TEXTS if name in given}
    check_use(parameters, {**words, **variables, **texts}, words, at)
    wanted = combinations(parameters, given.get("exclude", ()), at)
    return [_spec(at, given, chosen) for chosen in wanted]


def _sizes(at: Source, given: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the sizes of the input as one more parameter, if there are any."""
    if "sizes" not in given:
        stray = next((name for name in ("growth", "predict") if name in given), None)
        if stray is not None:
            at.fail(f"{stray} is for a benchmark with sizes, which this one does not have", stray)
        return {}
    if SIZE in given.get("parameters", {}):
        at.fail(f"sizes are the values of the parameter {SIZE!r}, which is defined a second time", "parameters", SIZE)
    try:
        return {SIZE: tuple(map(str, sizes_of(given["sizes"], "sizes")))}
    except UsageError as error:
        at.fail(error.message, "sizes", hint=error.hint)


def _scale(given: Mapping[str, Any], chosen: Mapping[str, str]) -> Scale | None:
    """Return which size this is, and the group that it is in: what has the same values of all other parameters."""
    if "sizes" not in given:
        return None
    group = _named(given["id"], {name: value for name, value in chosen.items() if name != SIZE})
    bound = class_of(given["growth"], "growth") if "growth" in given else None
    return Scale(group=group, size=int(chosen[SIZE]), bound=bound, predict=given.get("predict"))


def _named(identity: str, chosen: Mapping[str, str]) -> str:
    values = ",".join(f"{name}={value}" for name, value in chosen.items())
    return f"{identity}[{values}]" if chosen else identity


def _spec(at: Source, given: Mapping[str, Any], chosen: Mapping[str, str]) -> BenchmarkSpec:
    texts: dict[str, Any] = {name: filled(given[name], chosen) for name in _TEXTS if name in given}
    lists: dict[str, Any] = {name: tuple(filled(item, chosen) for item in given.get(name, ())) for name in _LISTS}
    # Not resolved: a program must see the path that the user would type, links included.
    cwd = at.path.parent / texts.pop("cwd", "")
    stdin = texts.pop("stdin", None)
    return BenchmarkSpec(
        id=_named(given["id"], chosen),
        cwd=cwd,
        stdin=None if stdin is None else cwd / stdin,
        parameters=chosen,
        scale=_scale(given, chosen),
        timeout_ms=milliseconds(given["timeout"]) if "timeout" in given else None,
        limits=given.get("limit", ()),
        toggles=given.get("toggle", ()),
        call_tree=given.get("call-tree", False),
        python_profile=given.get("python-profile", False),
        place=at.place(),
        **lists,
        **texts,
        **{name: given[name] for name in _UNCHANGED if name in given},
    )


def _check_program(at: Source, spec: BenchmarkSpec) -> None:
    """Refuse a whole command line as the one item of a list, unless that is a program, or may be one later."""
    line, made = spec.command[0], spec.setup or spec.prepare
    words = line.split()
    if len(spec.command) > 1 or len(words) < 2 or (made and "/" in words[0]) or os.path.exists(spec.cwd / line):
        return
    at.fail(
        f"the command is one argument with a blank, and there is no program {line!r}",
        "command",
        hint=f"write it as a text, command = {quoted(line)}, or as several items, command = {as_list(words)}",
    )


def _check_files(at: Source, spec: BenchmarkSpec, table: Mapping[str, Any]) -> None:
    """Refuse folders and inputs that are not there, unless a command of this benchmark may make the input."""
    folder = at.path.parent
    start = f"is relative to the folder of the configuration, {folder}"
    if not os.path.isdir(spec.cwd):
        problem = "is not a folder" if os.path.exists(spec.cwd) else "does not exist"
        at.fail(f"cwd {os.path.relpath(spec.cwd, folder)!r} {problem}", "cwd", hint=f"cwd {start}")
    if spec.stdin is None or spec.setup or spec.prepare:
        return
    if os.path.exists(spec.stdin) and not os.path.isdir(spec.stdin):
        return
    problem = "is a folder" if os.path.isdir(spec.stdin) else "does not exist"
    hint = "stdin is relative to cwd" if "cwd" in table else f"stdin {start}"
    at.fail(f"stdin {os.path.relpath(spec.stdin, folder)!r} {problem}", "stdin", hint=hint)
