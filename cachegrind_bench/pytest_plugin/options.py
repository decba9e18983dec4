"""The plugin's options, and what they ask for together with the project's configuration."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from cachegrind_bench.config.benchmarks import Configuration
    from cachegrind_bench.hermetic.environment import Request
    from cachegrind_bench.model.score import CostModel
    from cachegrind_bench.valgrind.options import Geometry

# As in `harness`, which is not imported by every pytest.
WARM_UP = 10


def add_options(parser: pytest.Parser) -> None:
    """Add the group cg-bench."""
    add = parser.getgroup("cg-bench", "benchmarks in exact counts (cg-bench)").addoption
    add(
        "--cg-bench",
        action="store_true",
        help="Measure the benchmarks among these tests under Valgrind, and only those.",
    )
    add("--cg-bench-output", metavar="FILE", help="Write the result file here.")
    add("--cg-bench-compare", metavar="FILE", help="Compare with this result; a regression ends in exit status 1.")
    add(
        "--cg-bench-jobs",
        metavar="N",
        default="auto",
        help="Benchmarks measured at a time; 0 or auto: one per CPU. [auto]",
    )
    add(
        "--cg-bench-env",
        metavar="NAME[=VALUE]",
        action="append",
        default=[],
        help="Pass a variable on to the benchmarks, or set it. Repeatable.",
    )
    add(
        "--cg-bench-python-profile",
        action="store_true",
        help="Also profile Python functions, so that comparisons name them (CPython 3.12+, three times as long).",
    )
    add(
        "--cg-bench-timeout",
        metavar="SECONDS",
        help="End a benchmark that takes longer (under Valgrind; the native run before it, too): 90, 1.5min. [none]",
    )
    add("--cg-bench-model", metavar="NAME", help="Weights of the score; 'ir' is plain instructions. [l1+5ll+30ram]")
    add("--cg-bench-valgrind", metavar="PATH", help="The Valgrind to use. [the one on PATH]")
    add(
        "--cg-bench-layouts",
        metavar="N",
        help="Measure each benchmark in N memory layouts, in a process for each; comparisons go by their median. [1]",
    )
    add(
        "--cg-bench-warmup",
        metavar="N",
        type=int,
        default=WARM_UP,
        help=f"Calls before the counted ones. [{WARM_UP}]",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What was asked for, checked. `environ` is the environment of pytest itself."""

    environ: dict[str, str]
    output: Path | None
    compare: Path | None
    jobs: int
    request: Request
    model: CostModel
    geometry: Geometry
    valgrind: str | None
    warm_up: int
    layouts: int
    timeout_ms: int | None
    require_sealed: bool
    python_profile: bool
    defaults: dict[str, Any]


def settings(config: pytest.Config) -> Settings:
    """Return what options and configuration ask for. UsageError on what cannot be."""
    from cachegrind_bench.errors import UsageError
    from cachegrind_bench.hermetic.environment import Request
    from cachegrind_bench.model.score import CostModel
    from cachegrind_bench.valgrind.options import Cache, Geometry

    found = _configuration(config.rootpath)
    defaults: dict[str, Any] = {} if found is None else dict(found.defaults)
    defaults |= _by_environment()

    def chosen(name: str) -> Any:
        return config.getoption(name)

    caches = {name: Cache.parse(str(defaults[key]), name) for name, key in _CACHES if defaults.get(key) is not None}
    model = chosen("cg_bench_model") or defaults.get("model")
    here = config.invocation_params.dir
    output, compare = chosen("cg_bench_output"), chosen("cg_bench_compare")
    if chosen("cg_bench_warmup") < 0:
        raise UsageError("--cg-bench-warmup must not be negative")
    return Settings(
        environ=dict(os.environ),
        output=_file(here, output, "--cg-bench-output"),
        compare=_file(here, compare, "--cg-bench-compare"),
        jobs=_jobs(chosen("cg_bench_jobs")),
        request=Request.parse(
            (
                *_pythons_own(),
                *listed(defaults.get("env")),
                *(chosen("cg_bench_env") or os.environ.get("CG_BENCH_ENV", "").split()),
            )
        ),
        model=CostModel.parse(str(model)) if model else CostModel.parse("l1+5ll+30ram"),
        geometry=Geometry(**caches),
        valgrind=chosen("cg_bench_valgrind") or defaults.get("valgrind"),
        warm_up=chosen("cg_bench_warmup"),
        layouts=_layouts(chosen("cg_bench_layouts") or defaults.get("layouts") or 1),
        timeout_ms=_milliseconds(chosen("cg_bench_timeout") or defaults.get("timeout")),
        require_sealed=_truth("CG_BENCH_REQUIRE_SEALED"),
        python_profile=chosen("cg_bench_python_profile"),
        defaults=defaults,
    )


_CACHES = (("I1", "i1"), ("D1", "d1"), ("LL", "ll"))
# Options of `cg-bench run` and `diff` that mean the same here, by their names in the configuration; of some, several.
_VARIABLES = ("i1", "d1", "ll", "model", "valgrind", "layouts", "threshold_cache", "metric")
_LISTS = ("threshold", "threshold_ir", "max_drop", "limit")
# As click reads them.
_TRUE, _FALSE = {"1", "true", "t", "yes", "y", "on"}, {"", "0", "false", "f", "no", "n", "off"}


def _by_environment() -> dict[str, Any]:
    """Return what the environment says (CG_BENCH_...), as the configuration would."""
    said = {name: value for name in (*_VARIABLES, *_LISTS) if (value := os.environ.get(f"CG_BENCH_{name.upper()}"))}
    return {name: value.split() if name in _LISTS else value for name, value in said.items()}


def _truth(name: str) -> bool:
    from cachegrind_bench.errors import UsageError

    word = os.environ.get(name, "").strip().lower()
    if word not in _TRUE | _FALSE:
        raise UsageError(f"{name} is {word!r}, neither true nor false")
    return word in _TRUE


def _pythons_own() -> list[str]:
    """Return the variables that make the measured Python and pytest what this one is."""
    names = [name for name in ("PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD") if name in os.environ]
    return [*names, f"PYTHONOPTIMIZE={sys.flags.optimize}"] if sys.flags.optimize else names


def _configuration(root: Path) -> Configuration | None:
    from cachegrind_bench.config.load import load
    from cachegrind_bench.config.source import find

    path = find(root)
    return None if path is None else load(path, check_files=False)


def _file(here: Path, name: str | None, option: str) -> Path | None:
    from pathlib import Path

    from cachegrind_bench.errors import UsageError

    if name == "":
        raise UsageError(f"{option} is empty", hint=f"write {option}=FILE")
    return None if name is None else Path(os.path.normpath(here / name))


def _milliseconds(text: str | None) -> int | None:
    from cachegrind_bench.config.command import milliseconds

    return None if text is None else milliseconds(str(text))


def _jobs(text: str) -> int:
    from cachegrind_bench.errors import UsageError

    cpus = len(os.sched_getaffinity(0))
    if text in {"0", "auto"}:
        return cpus
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"--cg-bench-jobs {text!r} is not a number", hint="write a number, or 'auto' for one per CPU")
    return min(int(text), cpus)


def _layouts(text: object) -> int:
    from cachegrind_bench.errors import UsageError
    from cachegrind_bench.hermetic.environment import LAYOUTS

    word = str(text)
    if not (word.isascii() and word.isdigit() and 1 <= int(word) <= LAYOUTS):
        raise UsageError(f"--cg-bench-layouts {word!r} is not a number from 1 to {LAYOUTS}")
    return int(word)


def listed(value: Any) -> tuple[str, ...]:
    """Return a value of the configuration that may be one text, several, or None."""
    if isinstance(value, list | tuple):
        return tuple(str(item) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return () if value is None else (str(value),)
