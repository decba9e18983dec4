"""The plugin's options, and what they ask for together with the environment and the project's configuration."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench.startup.exchange import WARM_UP

if TYPE_CHECKING:
    from cachegrind_bench.compare.verdict import Gates
    from cachegrind_bench.harness.pytest_session.request import SessionSettings
    from cachegrind_bench.valgrind.options import Geometry


def add_options(parser: pytest.Parser) -> None:
    """Add the group cg-bench."""
    add = parser.getgroup("cg-bench", "benchmarks in exact counts (cg-bench)").addoption
    add(
        "--cg-bench",
        action="store_true",
        help="Measure the benchmarks among these tests under Valgrind, and only those.",
    )
    add("--cg-bench-output", metavar="FILE", help="Write the result file here.")
    add("--cg-bench-compare", metavar="FILE", help="Compare with this result; a regression exits with status 1.")
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
        "--cg-bench-call-tree",
        action="store_true",
        help="Record which C function called which, so that comparisons say what is called more often (a larger file).",
    )
    add(
        "--cg-bench-timeout",
        metavar="SECONDS",
        help="End a benchmark that takes longer (under Valgrind; the native run before it, too): 90, 1.5min. [none]",
    )
    add(
        "--cg-bench-model",
        metavar="NAME",
        help="Weights of the score; 'ir' counts instructions only, in half the time. [l1+5ll+30ram]",
    )
    add(
        "--cg-bench-estimate",
        action="store_true",
        help="Estimate the time, too: a branch predictor is simulated, which takes a tenth longer.",
    )
    add("--cg-bench-valgrind", metavar="PATH", help="The Valgrind to use. [the one on PATH]")
    add(
        "--cg-bench-layouts",
        metavar="N",
        help="Measure each benchmark in N memory layouts, one after the other; comparisons go by their median. [1]",
    )
    # For `cg-bench run` with a suite that has benchmarks of pytest.
    add("--cg-bench-list", metavar="FILE", help=argparse.SUPPRESS)
    add("--cg-bench-warmup", metavar="N", type=int, default=WARM_UP, help=f"Calls before the counted ones. [{WARM_UP}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """The result file to compare with, and what the comparison is held to."""

    path: Path
    gates: Gates


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was asked for, checked: how to measure, with which Valgrind, where to write, and what to compare with."""

    settings: SessionSettings
    output: Path | None
    compare: Base | None
    geometry: Geometry
    valgrind: str | None


def settings(config: pytest.Config) -> Asked:
    """Return what options, environment and configuration ask for. UsageError on values that are not valid."""
    from cachegrind_bench.config.command import milliseconds
    from cachegrind_bench.config.load import load
    from cachegrind_bench.config.source import find
    from cachegrind_bench.errors import UsageError
    from cachegrind_bench.harness.pytest_session.request import SessionSettings
    from cachegrind_bench.hermetic.environment import LAYOUTS, Request
    from cachegrind_bench.model.metrics import DEFAULT_MODEL, CostModel
    from cachegrind_bench.valgrind.options import Geometry

    def chosen(name: str) -> Any:
        return config.getoption(f"cg_bench_{name}")

    def file(name: str) -> Path | None:
        text = chosen(name)
        if text == "":
            raise UsageError(f"--cg-bench-{name} is empty", hint=f"write --cg-bench-{name}=FILE")
        return None if text is None else Path(os.path.normpath(config.invocation_params.dir / text))

    path = find(config.rootpath)
    defaults: dict[str, Any] = {**(load(path, check_files=False).defaults if path else {}), **_by_environment()}
    if chosen("warmup") < 0:
        raise UsageError("--cg-bench-warmup must not be negative")
    jobs, cpus = chosen("jobs"), len(os.sched_getaffinity(0))
    if jobs != "auto" and not _is_number(jobs):
        raise UsageError(f"--cg-bench-jobs {jobs!r} is not a number", hint="write a number, or 'auto' for one per CPU")
    layouts = str(chosen("layouts") or defaults.get("layouts") or 1)
    if not (_is_number(layouts) and 1 <= int(layouts) <= LAYOUTS):
        raise UsageError(f"--cg-bench-layouts {layouts!r} is not a number from 1 to {LAYOUTS}")
    timeout = chosen("timeout") or defaults.get("timeout")
    base, gates = file("compare"), _gates(defaults)
    model = str(chosen("model") or defaults.get("model") or DEFAULT_MODEL.name)
    estimated = chosen("estimate") or _is_true("estimate", defaults.get("estimate", ""))
    typed = chosen("env") or os.environ.get("CG_BENCH_ENV", "").split()
    return Asked(
        settings=SessionSettings(
            environ=dict(os.environ),
            jobs=min(0 if jobs == "auto" else int(jobs), cpus) or cpus,
            request=Request.parse((*of_this_python(), *defaults.get("env", ()), *typed)),
            model=CostModel.parse(model),
            warm_up=chosen("warmup"),
            layouts=int(layouts),
            timeout_ms=None if timeout is None else milliseconds(str(timeout)),
            require_sealed=_is_true("CG_BENCH_REQUIRE_SEALED", os.environ.get("CG_BENCH_REQUIRE_SEALED", "")),
            python_profile=chosen("python_profile"),
            call_tree=chosen("call_tree") or gates.counts_allocations,
        ),
        output=file("output"),
        compare=None if base is None else Base(path=base, gates=gates),
        geometry=Geometry.chosen({**defaults, "estimate": estimated, "model": model}, ""),
        valgrind=chosen("valgrind") or defaults.get("valgrind"),
    )


# Options of `cg-bench run` and `diff` that mean the same here, by their names in the configuration; of some, several.
_VARIABLES = ("i1", "d1", "ll", "estimate", "model", "valgrind", "layouts", "threshold_cache", "metric")
_LISTS = ("threshold", "threshold_ir", "threshold_allocations", "max_drop", "limit")
# As click reads them.
_TRUE, _FALSE = {"1", "true", "t", "yes", "y", "on"}, {"", "0", "false", "f", "no", "n", "off"}


def _by_environment() -> dict[str, Any]:
    """Return what the environment says (CG_BENCH_...), as the configuration would."""
    said = {name: value for name in (*_VARIABLES, *_LISTS) if (value := os.environ.get(f"CG_BENCH_{name.upper()}"))}
    return {name: value.split() if name in _LISTS else value for name, value in said.items()}


def of_this_python() -> list[str]:
    """Return the variables that make the measured Python and pytest what this one is."""
    names = [name for name in ("PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD") if name in os.environ]
    return [*names, f"PYTHONOPTIMIZE={sys.flags.optimize}"] if sys.flags.optimize else names


def _is_true(name: str, said: Any) -> bool:
    from cachegrind_bench.errors import UsageError

    text = str(said).strip().lower()
    if text not in _TRUE | _FALSE:
        raise UsageError(f"{name} is {text!r}, neither true nor false")
    return text in _TRUE


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _gates(defaults: Mapping[str, Any]) -> Gates:
    """Return what the configuration holds comparisons to. UsageError on anything that is not a threshold or limit."""
    from cachegrind_bench.usecases.comparison import GateOptions

    return GateOptions(
        **{name: defaults[name] for name in (*_LISTS, "threshold_cache", "metric") if name in defaults}
    ).gates()


_NAMING_FILES = ("--cg-bench-output", "--cg-bench-compare")


def check_files(config: pytest.Config, *, measuring: bool) -> None:
    """Refuse options that name files where nothing is measured, and do not let these files move pytest's root."""
    words = [str(word) for word in config.invocation_params.args]
    for word in words:
        option = word.partition("=")[0]
        if option in _NAMING_FILES and not measuring:  # in a job, a gate that never shuts
            raise pytest.UsageError(f"{option} does nothing without --cg-bench")
    separate = next((word for word in words if word in _NAMING_FILES), None)
    if separate is not None and config.inipath is None and config.getoption("rootdir") is None:
        _keep_root(config, words, separate)


def _keep_root(config: pytest.Config, words: Sequence[str], option: str) -> None:
    """Give pytest the root that it finds without our files.

    Without an ini file, it looks for its root from each word that is a file, the value of an option as well. So the ids of
    tests would change as soon as there is a result.
    """
    import inspect

    values = {place + 1 for place, word in enumerate(words) if word in _NAMING_FILES}
    known: dict[str, Any] = {
        "inifile": None,
        "override_ini": None,
        "args": [word for place, word in enumerate(words) if place not in values],
        "rootdir_cmd_arg": None,
        "invocation_dir": Path(config.invocation_params.dir),
    }
    try:
        from _pytest.config.findpaths import determine_setup

        root, ini, *_ = determine_setup(**{name: known[name] for name in inspect.signature(determine_setup).parameters})
        if ini is None and config._rootpath == config.rootpath:  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            config._rootpath = root  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            return
    except (ImportError, AttributeError, KeyError, TypeError):  # a later pytest, which keeps it elsewhere
        pass
    raise pytest.UsageError(
        f"write {option}=FILE: pytest takes a word of its own that is a file for one of the places to find its root by, "
        "and the ids of tests would change"
    )
