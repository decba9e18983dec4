"""What the outer pytest passes to the inner one: options, import path, markers.

All but what selects, distributes or shows tests: counts must not depend on these, and an option is a string on the heap.
"""

from __future__ import annotations

import importlib.metadata
import io
import json
import os
import pickle
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from cachegrind_bench.pytest_plugin import IMPORT_PATH
from cachegrind_bench.startup.exchange import FileOrders, ImportOrders, is_plain

# Of this plugin, where it is installed, and where it is imported: how it came to be loaded changes nothing inside.
OWN_NAMES = ("cg_bench", "cachegrind_bench.pytest_plugin")
# Plugins that distribute, reorder, repeat, fork for, time or trace tests, or draw on the terminal; those that are often loaded by
# the name of their module (-p, PYTEST_PLUGINS, pytest_plugins) have that, too.
_BLOCKED = """
    terminal randomly random_order rerunfailures timeout pytest_cov benchmark codspeed speed sugar html
    instafail xdist.looponfail metadata json-report pytest-testmon pytest_randomly pytest_rerunfailures
    pytest_timeout pytest_forked pytest_cov.plugin pytest_benchmark.plugin pytest_codspeed.plugin
"""
BLOCKED = tuple(_BLOCKED.split())
# Plugins whose fixtures ours replace: a conftest.py asks whether they are there.
REPLACED = ("benchmark", "codspeed")
# Options of others that select tests or show results, with the values that they have inside.
_ABSENT = """
    addopts basetemp cacheshow cov_fail_under debug deselect durations durations_min ignore ignore_glob
    inifilename junitprefix log_cli_date_format log_cli_format log_cli_level log_file log_file_date_format
    log_file_format log_file_level log_file_mode max_warnings maxprocesses maxschedchunk maxworkerrestart
    numprocesses pastebin px rootdir strict testrunuid usepdb_cls xmlpath
"""
_OFF = """
    cacheclear collectonly continue_on_collection_errors cov_append distload failedfirst force_short_summary
    fulltrace help keepduplicates lf loadgroup looponfail newfirst no_header no_summary pyargs setuponly
    setupplan setupshow showlocals stepwise stepwise_reset stepwise_skip strict_config trace traceconfig usepdb
    xfail_tb
"""
# Those of pytest-benchmark by which suites skip benchmarks, or all else, with the values that are true where benchmarks are measured.
ONLY_BENCHMARKS = {"benchmark_only": True, "benchmark_skip": False, "benchmark_disable": False}
_NEUTRAL: dict[str, Any] = {
    **ONLY_BENCHMARKS,
    **dict.fromkeys(_ABSENT.split()),
    **dict.fromkeys(_OFF.split(), False),
    **dict.fromkeys(("maxfail", "verbose", "version"), 0),
    "capture": "fd",  # what prints is part of some benchmarks, and costs by where it goes
    "code_highlight": "yes",
    "color": "no",
    "cov_report": {},
    "cov_source": [],
    "dist": "no",
    "fold_skipped": True,
    "keyword": "",
    "last_failed_no_failures": "all",
    "markexpr": "",
    "plugins": [],
    "reportchars": "fE",
    "rsyncdir": [],
    "showcapture": "all",
    "tbstyle": "auto",
    "tx": [],
}
# Options that show failures, which are made into text inside: taken from constant bytes, once nothing is counted any more.
_SHOWN = ("fulltrace", "showlocals", "tbstyle")
_SHOWN_BYTES = 256
# What is not to be written into the project, nor by two processes at once.
_SETTINGS = {"required_plugins": "", "log_file": ""}
# What pytest keeps next to options; the latter is there with -q only.
_NO_OPTIONS = ("file_or_dir", "quiet")


def import_orders(config: pytest.Config) -> ImportOrders:
    """Return how the measured process is to import pytest and its plugins."""
    by_user = (name.removeprefix("no:") for name in config.option.plugins if name.startswith("no:"))
    return {
        "sys_path": _import_path(),
        "blocked": [*BLOCKED, *(name for name in by_user if name not in BLOCKED)],
        "autoload": not os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
        and not getattr(config.known_args_namespace, "disable_plugin_autoload", False),
        "distributions": _with_plugins(config),
    }


def _import_path() -> list[str]:
    """Return the import path without the folder of the script `pytest`, which has no modules: counts are not to depend on it."""
    script = os.path.realpath(sys.argv[0])
    is_script = os.path.basename(script) in {"pytest", "py.test"} and IMPORT_PATH[:1] == (os.path.dirname(script),)
    return list(IMPORT_PATH[is_script:])


def _with_plugins(config: pytest.Config) -> list[str]:
    """Return where the metadata of the distributions is that have plugins for pytest but this one, in the order in which it finds them."""
    path = [*map(str, config.getini("pythonpath")), *IMPORT_PATH]
    return [
        str(found._path)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        for found in importlib.metadata.distributions(path=path)
        if isinstance(found, importlib.metadata.PathDistribution)
        if any(point.group == "pytest11" and point.name != OWN_NAMES[0] for point in found.entry_points)
    ]


def file_orders(config: pytest.Config, path: str) -> FileOrders:
    """Return the orders for one file of tests."""
    options = _passed_on(config)
    args = [f"--rootdir={config.rootpath}"]
    if config.inipath is not None:
        args += ["-c", str(config.inipath)]
    for name in config.option.plugins:
        if name.removeprefix("no:") not in BLOCKED and name not in OWN_NAMES:
            args += ["-p", name]
    for name in BLOCKED:
        args += ["-p", f"no:{name}"]
    args += ["-p", OWN_NAMES[1]]
    known = config._parser._inidict  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    for name, value in _SETTINGS.items():
        if name in known:
            args += ["-o", f"{name}={value}"]
    in_tmp = [("--basetemp=", "/pytest")]
    if "cache_dir" in known:
        in_tmp.append(("--override-ini=cache_dir=", "/cache"))
    args.append(path)
    return {
        "file": path,
        "options": options.plain,
        "pickled": options.pickled,
        "in_tmp": in_tmp,
        "args": args,
        "shown": json.dumps({name: getattr(config.option, name, None) for name in _SHOWN}).encode().ljust(_SHOWN_BYTES),
        "markers": list(config.getini("markers")),
        "settings": list(known),
        "spellings": _spellings(config),
        "stand_ins": [name for name in REPLACED if config.pluginmanager.hasplugin(name)],
    }


def left_behind(config: pytest.Config) -> list[str]:
    """Return the options, as they are written, that were given and cannot be pickled."""
    return [as_written(config, name) for name in _passed_on(config).left]


def as_written(config: pytest.Config, name: str) -> str:
    """Return how an option is written if only the name of its value is known."""
    return {dest: option for option, dest in sorted(_spellings(config).items())}.get(name, name)


def _spellings(config: pytest.Config) -> dict[str, str]:
    """Return the names of values by how their options are written."""
    parser: Any = config._parser  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    found: Mapping[str, str] = getattr(parser, "_opt2dest", None) or getattr(config, "_opt2dest", {})
    return dict(sorted(found.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """Options by the names of their values: plain ones, pickled ones that are not defaults, and those that cannot be."""

    plain: dict[str, Any]
    pickled: dict[str, bytes]
    left: tuple[str, ...]


_PASSED_ON = pytest.StashKey[_Options]()
_OF_BLOCKED = pytest.StashKey[dict[str, Any]]()


def _passed_on(config: pytest.Config) -> _Options:
    """Return the options, pickled once: that is code of the project's own."""
    if _PASSED_ON in config.stash:
        return config.stash[_PASSED_ON]
    if _OF_BLOCKED not in config.stash:
        remember_blocked(config)
    same = config.stash[_OF_BLOCKED] | _NEUTRAL
    usual = _defaults(config._parser)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    given = {
        name: same.get(name, value)
        for name, value in sorted(vars(config.option).items())
        if not name.startswith("cg_bench") and name not in _NO_OPTIONS
    }
    plain = {name: value for name, value in given.items() if is_plain(value)}
    # What nobody gave, the pytest inside makes for itself; and it may be of a conftest.py that is not read there.
    others = {
        name: _pickled(value)
        for name, value in given.items()
        if name not in plain and name not in same and not (name in usual and _equal(value, usual[name]))
    }
    options = config.stash[_PASSED_ON] = _Options(
        plain=plain | {"plugins": [], "cg_bench": False},
        pickled={name: data for name, data in others.items() if data is not None},
        left=tuple(name for name, data in others.items() if data is None),
    )
    return options


def remember_blocked(config: pytest.Config) -> None:
    """Note the defaults of blocked plugins' options, before one of these is unregistered: it may have set some by chance."""
    make: Any = type(config._parser)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    parser = make(_ispytest=True)
    known: dict[str, Any] = {"parser": parser, "pluginmanager": config.pluginmanager}
    for hook in config.hook.pytest_addoption.get_hookimpls():
        if hook.plugin_name in BLOCKED:
            with suppress(Exception):  # code of others
                hook.function(*(known[name] for name in hook.argnames))
    config.stash[_OF_BLOCKED] = _defaults(parser)


def _defaults(parser: Any) -> dict[str, Any]:
    """Return the values of options that nobody gives."""
    with suppress(Exception):  # where an option is required, or its type cannot read its own default
        found: Any = parser.parse_known_args([]).__dict__
        return {name: value for name, value in found.items() if name not in _NO_OPTIONS}
    return {}


def _equal(one: Any, other: Any) -> bool:
    try:
        return one is other or (type(one) is type(other) and bool(one == other))
    except Exception:  # noqa: BLE001 - code of the project's own
        return False


def _pickled(value: Any) -> bytes | None:
    """Return what may be unpickled on the other side; None for what cannot be pickled."""
    file = io.BytesIO()
    try:
        _Pickler(file).dump(value)
    except Exception:  # noqa: BLE001 - code of the project's own
        return None
    return file.getvalue()


def _in_order(pickler: Any, value: Any) -> None:
    pickler.save_reduce(type(value), (sorted(value, key=repr),), obj=value)


_Plain: Any = pickle._Pickler  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


class _Pickler(_Plain):  # type: ignore[misc]
    """Writes sets in an order that does not depend on the hash seed of the pytest that was called."""

    dispatch: ClassVar[dict[Any, Any]] = {**_Plain.dispatch, set: _in_order, frozenset: _in_order}
