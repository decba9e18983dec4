"""What Python functions cost, as files for other programs: `show --flame` and `show --export`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cachegrind_bench.cli import output
from cachegrind_bench.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cachegrind_bench.model.codec import ResultFile
    from cachegrind_bench.model.python_profile import PythonProfile
    from cachegrind_bench.model.result import Benchmark

Function = TypeVar("Function", bound="Callable[..., Any]")

_SPEEDSCOPE, _CALLGRIND = "speedscope", "callgrind"


def python_file_options(function: Function) -> Function:
    """Take what to write of Python functions, and where."""
    for option in reversed(
        (
            click.option(
                "--flame",
                metavar="FILE",
                help="Write a flame graph of the Python functions instead, one HTML file (- is stdout).",
            ),
            click.option(
                "--export",
                type=click.Choice([_SPEEDSCOPE, _CALLGRIND]),
                help="Write the costs of Python functions instead, for speedscope.app or KCachegrind.",
            ),
            click.option(
                "-o", "--to", "output", default="-", show_default=True, metavar="FILE", help="Where --export writes."
            ),
        )
    ):
        function = option(function)
    return function


def wants_files(options: Mapping[str, Any], source: str) -> bool:
    """Tell whether any file is wanted. UsageError if one could not be written, or would overwrite the `source`."""
    from cachegrind_bench.store.durable import check_writable

    if options["output"] != "-" and options["export"] is None:
        raise UsageError("-o says where --export writes, which is missing", hint="add --export speedscope")
    names = [name for name in (options["flame"], options["export"] and options["output"]) if name is not None]
    for name in names:
        if name == "-":
            continue
        check_writable(Path(name))
        if source != "-" and os.path.realpath(name) == os.path.realpath(source):
            raise UsageError(f"{name} would overwrite the result", hint="name another file")
    if len({name if name == "-" else os.path.realpath(name) for name in names}) < len(names):
        raise UsageError("--flame and --export write to the same file", hint="--output names another")
    return bool(names)


def write_files(source: ResultFile, name: str, chosen: Sequence[Benchmark], options: Mapping[str, Any]) -> None:
    """Write what is wanted of these benchmarks of a result. UsageError if they have no Python profile, or too many have."""
    profiles = _profiles(source, name, chosen)
    if options["flame"] is not None:
        from cachegrind_bench.render.flame import page

        identity, profile = _only(profiles, "a flame graph shows one benchmark")
        _write(options["flame"], page(source.result, identity, profile).encode())
    if options["export"] == _SPEEDSCOPE:
        from cachegrind_bench.render.exports import speedscope

        _write(options["output"], speedscope(profiles))
    elif options["export"] == _CALLGRIND:
        from cachegrind_bench.render.exports import callgrind

        _write(options["output"], callgrind(*_only(profiles, "Callgrind's format holds one benchmark")))


def _profiles(source: ResultFile, name: str, chosen: Sequence[Benchmark]) -> dict[str, PythonProfile]:
    found: dict[str, PythonProfile] = {}
    for benchmark in chosen:
        profile = source.python(benchmark.id)
        if profile is not None:
            found[benchmark.id] = profile
    if not found:
        which = f"benchmark {chosen[0].id!r} of {name} has" if len(chosen) == 1 else f"the benchmarks of {name} have"
        raise UsageError(f"{which} no profile of Python functions", hint="measure with 'cg-bench run --python-profile'")
    return found


def _only(profiles: Mapping[str, PythonProfile], why: str) -> tuple[str, PythonProfile]:
    if len(profiles) > 1:
        known = ", ".join(list(profiles)[:10])
        raise UsageError(f"{why}, and {len(profiles)} are meant", hint=f"choose with --benchmark: {known}")
    return next(iter(profiles.items()))


def _write(name: str, content: bytes) -> None:
    from cachegrind_bench.store.durable import write_atomic

    if name == "-":
        output.write(content)
    else:
        write_atomic(Path(name), content)
