"""`cg-bench show`: a result file as a report again, without measuring."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from cachegrind_bench.cli import output
from cachegrind_bench.cli.help import Command, options_group
from cachegrind_bench.cli.options import (
    format_option,
    named_time_model,
    pattern_option,
    project_root,
    refuse_typed,
    size_limit_option,
    time_model_option,
    typed,
    working_directory,
)
from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.text import matches, some
from cachegrind_bench.usecases.comparison_inputs import resolve
from cachegrind_bench.usecases.result_files import check_outputs, read_result

if TYPE_CHECKING:
    from cachegrind_bench.compare.growth import Growth
    from cachegrind_bench.model.codec import ResultFile
    from cachegrind_bench.model.python_profile import PythonProfile
    from cachegrind_bench.model.result import Benchmark, Result
    from cachegrind_bench.render.table import Report

_SPEEDSCOPE, _CALLGRIND = "speedscope", "callgrind"
_EPILOG = """\b
Examples:
  cg-bench show result.json
  cg-bench show result.json --top 30 --sort D1mr
  cg-bench show result.json --benchmark parse --html parse.html
  cg-bench show result.json --export speedscope -o parse.speedscope.json
"""


# For a result by any name.
options = options_group(
    click.option("--top", type=click.IntRange(0, 100_000), default=10, help="How many functions to list."),
    click.option("--sort", default="score", metavar="EVENT", help="Order functions by score, Ir, D1mr, ..."),
    pattern_option,
    format_option,
    click.option(
        *("--html", "--flame", "html"),
        metavar="FILE",
        help="Also write a page with flame graphs, functions and lines; '-' is stdout, instead of the report.",
    ),
    click.option(
        "--export",
        type=click.Choice([_SPEEDSCOPE, _CALLGRIND]),
        help="Write the costs of Python functions instead, for speedscope.app or KCachegrind.",
    ),
    time_model_option,
    click.option("-o", "--to", "output", default="-", metavar="FILE", help="Where --export writes."),
    size_limit_option,
)


@click.command("show", cls=Command, epilog=_EPILOG)
@options
@click.argument("file")
def command(*, file: str, max_size: int, **options: Any) -> None:
    """Show a result FILE ('-' is stdin) or saved baseline: score, hits, events, hottest functions, seal and origin.

    Several benchmarks are one table; --benchmark, --top or --sort shows each of them in detail.
    """
    files = checked_files(options)
    path = resolve(file, working_directory())
    check_outputs(files, [path])
    write_result(read_result(path, limit=max_size), file, options)


def checked_files(options: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the files to write, by their options. UsageError if anything is wrong with the options."""
    from cachegrind_bench.render.functions import sort_name

    sort_name(options["sort"])
    if options["form"] == "json" or options["html"] is not None:
        refuse_typed(("time_model",), "is for tables: JSON and pages have exact counts only", "leave one out")
    if options["output"] != "-" and options["export"] is None:
        raise UsageError("-o needs --export", hint="add --export speedscope")
    return {"--html": options["html"], "-o": options["output"] if options["export"] else None}


def write_result(source: ResultFile, name: str, options: Mapping[str, Any]) -> None:
    """Write an opened result, which the user knows by this name: the files that are asked for, else a report."""
    result = source.result
    benchmarks = chosen(result, name, options["pattern"])
    if options["html"] is not None:
        with output.watched("the page"):
            page = _page(source, name, benchmarks, options).encode()
        output.write_file(options["html"], page)
    if options["export"] is None:
        if options["html"] != "-":
            with output.watched("the report"):
                report = _report(source, benchmarks, options)
            output.write(report)
        return
    profiles = _profiles(source, name, benchmarks)
    if options["export"] == _SPEEDSCOPE:
        from cachegrind_bench.render.exports import speedscope

        output.write_file(options["output"], speedscope(profiles))
    else:
        from cachegrind_bench.render.exports import callgrind

        output.write_file(options["output"], callgrind(*_only(profiles, "Callgrind's format holds one benchmark")))


def _report(source: ResultFile, benchmarks: Sequence[Benchmark], options: Mapping[str, Any]) -> str:
    from cachegrind_bench.render.report import overview, shown

    wanted = replace(source.result, benchmarks=tuple(benchmarks))
    model = named_time_model(options["time_model"])
    if len(benchmarks) > 1 and not any(map(typed, ("pattern", "top", "sort"))):
        growth = _growth(source, benchmarks)
        return output.report_text(
            wanted, options["form"], [overview(wanted, model)], growth=growth, root=project_root()
        )

    def details(benchmark: Benchmark) -> Report:
        evidence = source.with_evidence(benchmark)
        return shown(wanted, evidence, top=options["top"], sort=options["sort"], root=root, model=model)

    root = project_root()
    return output.report_text(wanted, options["form"], map(details, benchmarks))


def _page(source: ResultFile, name: str, benchmarks: Sequence[Benchmark], options: Mapping[str, Any]) -> str:
    from cachegrind_bench.render.result_page import page

    return page(
        replace(source.result, benchmarks=tuple(benchmarks)),
        name,
        source.with_evidence,
        top=options["top"] if typed("top") else None,
        sort=options["sort"],
        growth=_growth(source, benchmarks),
        root=project_root(),
    )


def _growth(source: ResultFile, benchmarks: Sequence[Benchmark]) -> Collection[Growth]:
    from cachegrind_bench.usecases.comparison import growths_in

    return growths_in(source, {item.id for item in benchmarks}.__contains__).values()


def chosen(result: Result, name: str, pattern: str | None) -> list[Benchmark]:
    """Return the benchmarks of a result whose ids fit the pattern, or all. UsageError if there are none."""
    found = [item for item in result.benchmarks if pattern is None or matches(item.id, pattern)]
    if not found:
        known = some([item.id for item in result.benchmarks], 10) or "none at all"
        raise UsageError(
            f"{name} has no benchmark {pattern!r}" if pattern else f"{name} has no benchmarks", hint=f"it has: {known}"
        )
    return found


def _profiles(source: ResultFile, name: str, chosen: Sequence[Benchmark]) -> dict[str, PythonProfile]:
    read = ((benchmark.id, source.python(benchmark.id)) for benchmark in chosen)
    found = {identity: profile for identity, profile in read if profile is not None}
    if not found:
        which = f"benchmark {chosen[0].id!r} of {name} has" if len(chosen) == 1 else f"the benchmarks of {name} have"
        command = shlex.join(chosen[0].command) if len(chosen) == 1 else "COMMAND"
        advice = "for Python functions, measure with 'cg-bench run --python-profile'"
        advice += f"\nfor a native program: valgrind --tool=callgrind {command}, then open its callgrind.out file in KCachegrind"
        raise UsageError(f"{which} no profile of Python functions", hint=advice)
    return found


def _only(profiles: Mapping[str, PythonProfile], why: str) -> tuple[str, PythonProfile]:
    if len(profiles) > 1:
        known = ", ".join(list(profiles)[:10])
        raise UsageError(f"{why}, and {len(profiles)} are meant", hint=f"choose with --benchmark: {known}")
    return next(iter(profiles.items()))
