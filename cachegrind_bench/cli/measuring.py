"""What the commands that measure share: their options, the plan these make, and where the result goes."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from cachegrind_bench._version import __version__
from cachegrind_bench.cli import output
from cachegrind_bench.cli.options import execution_plan, geometry
from cachegrind_bench.errors import FileFormatError, UsageError
from cachegrind_bench.model.text import some

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cachegrind_bench.measure.plan import Plan
    from cachegrind_bench.model.result import Result
    from cachegrind_bench.store.baselines import Baselines

_SHOWN = 10  # ids in a message


def check_output(options: dict[str, Any]) -> None:
    """Find out before the work whether the result can be written; UsageError if not."""
    from cachegrind_bench.store.durable import check_replaceable, check_writable

    if options["output"] not in (None, "-"):
        check_replaceable(Path(options["output"]))
        check_writable(Path(options["output"]))


def measuring_plan(options: Mapping[str, Any], cwd: Path | None = None, passed: Sequence[str] | None = None) -> Plan:
    """Return what `command_argument` and `measuring_options` ask for; `cwd` and `passed` are those of `execution_plan`."""
    return replace(
        execution_plan(options, cwd, passed),
        id=printable(options["benchmark_id"]),
        repeat=options["repeat"],
        layouts=options["layouts"],
        warmup=options["warmup"],
        require_sealed=options["require_sealed"],
    )


def measured(plan: Plan, options: dict[str, Any], *, keep: Path | None = None) -> Result:
    """Measure with progress on stderr, and add what else a result tells."""
    from cachegrind_bench.measure.result import measured_result
    from cachegrind_bench.render.progress import progress

    with progress(sys.stderr, quiet=options["quiet"]) as display:
        return measured_result(
            plan,
            geometry=geometry(options),
            valgrind=options["valgrind"],
            keep=keep,
            echo=display.write,
            progress=display,
            now=datetime.now(UTC),
            version=__version__,
        )


def write_result(result: Result, options: dict[str, Any]) -> None:
    """Write the result file where `--output` says, if it does."""
    from cachegrind_bench.model.codec import encode
    from cachegrind_bench.store.durable import write_atomic

    if options["output"] == "-":
        output.write(encode(result))
    elif options["output"] is not None:
        write_atomic(Path(options["output"]), encode(result))


def refuse_to_drop(saved: Baselines, name: str, is_measured: Callable[[str], bool]) -> None:
    """Do not let some benchmarks take the place of others: UsageError if the baseline holds more than what is."""
    from cachegrind_bench.usecases.result_files import read_result

    if not saved.exists(name):
        return
    try:
        found = read_result(str(saved.path(name))).result
        others = [item.id for item in found.benchmarks if not is_measured(item.id)]
    except FileFormatError:
        return  # nothing in it can be used
    if others:
        raise UsageError(
            f"the baseline {name!r} holds other benchmarks, which would be lost: {some(others, _SHOWN)}",
            hint=f"save under another name, or begin anew: cg-bench baseline remove {name}",
        )


def printable(text: str | None) -> str | None:
    """Return text of the command line, which may hold any bytes, as it is stored."""
    return None if text is None else os.fsencode(text).decode("utf-8", "backslashreplace")
