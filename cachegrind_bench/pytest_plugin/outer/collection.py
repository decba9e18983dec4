"""What a pytest that measures, or lists for one that does, makes of its tests: which are benchmarks, and what to know of them.

Imports the standard library and pytest only: it also runs where the project's Python has nothing of what cg-bench needs.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest

from cachegrind_bench.pytest_plugin.cpython.verified import why_unverified
from cachegrind_bench.pytest_plugin.fixture import uses_fixture
from cachegrind_bench.pytest_plugin.outer.serialize_options import (
    ONLY_BENCHMARKS,
    file_orders,
    import_orders,
    remember_blocked,
)
from cachegrind_bench.pytest_plugin.sizes import MARKER, scale_of
from cachegrind_bench.startup.exchange import CHECKOUT, storable, write_order

_MARKERS = ("benchmark", "codspeed_benchmark", MARKER)
# Those that say how pytest treats a test, not what it is.
_NO_TAGS = (
    "anyio asyncio benchmark cg_bench codspeed_benchmark filterwarnings parametrize skip skipif usefixtures xfail"
)
_LONGEST_VALUE = 200
NOTICE = pytest.StashKey[str]()


def keep_here(config: pytest.Config) -> None:
    """Do not let pytest-xdist distribute the tests, whatever its options say."""
    option = config.option
    if getattr(option, "numprocesses", None) or getattr(option, "tx", None) or getattr(option, "dist", "no") != "no":
        option.numprocesses, option.tx, option.dist = None, [], "no"
        config.stash[NOTICE] = "-n does not distribute benchmarks: --cg-bench-jobs N measures N at a time"


def prepare(config: pytest.Config) -> None:
    """Keep other plugins from what would change benchmarks or their order, or be measured here in vain."""
    plugin: Any = config.pluginmanager.getplugin("_cov")
    if plugin is not None:
        plugin._disabled = True  # noqa: SLF001 - what its own --no-cov sets
        with suppress(Exception):
            plugin.cov_controller.cov.stop()
    remember_blocked(config)
    given = vars(config.option)
    given.update({name: value for name, value in ONLY_BENCHMARKS.items() if name in given})
    for name in ("randomly", "pytest_randomly", "random_order"):
        if config.pluginmanager.hasplugin(name):
            config.pluginmanager.unregister(name=name)


def is_benchmark(item: pytest.Item) -> bool:
    """Return whether a test has the fixture or a marker."""
    return uses_fixture(item) or any(item.get_closest_marker(name) is not None for name in _MARKERS)


def keep_benchmarks(config: pytest.Config, items: list[pytest.Item]) -> int:
    """Leave only benchmarks among the items, and return how many others there were."""
    others = [item for item in items if not is_benchmark(item)]
    if others:
        items[:] = [item for item in items if is_benchmark(item)]
        config.hook.pytest_deselected(items=others)
    return len(others)


def collected(config: pytest.Config, items: Sequence[pytest.Item]) -> dict[str, Any]:
    """Return these benchmarks and what is to be known of them, as `harness.pytest_session.request.Collected` has it."""
    checkout = os.environ.get(CHECKOUT, "")
    return {
        "items": [_item(item) for item in items],
        "imports": import_orders(config),
        "files": {path: file_orders(config, path) for path in dict.fromkeys(str(item.path) for item in items)},
        "cwd": str(config.invocation_params.dir),
        "asserts": str(config.getoption("assertmode", "rewrite")),
        "python": this_python(),
        "elsewhere": _imported_below(checkout),
        "reachable": _listed_below(checkout),
        "copies": _copies_of(checkout) if checkout else [],
    }


def _imported_below(folder: str) -> list[str]:
    """Return the folders below this one that modules were imported from, relative to it; none of the environment's own."""
    found, prefix = set[str](), os.path.realpath(sys.prefix)
    for name, module in list(sys.modules.items()):
        file: object = getattr(module, "__file__", None)
        ours = name.partition(".")[0] == "cachegrind_bench"
        if folder and isinstance(file, str) and (file := os.path.realpath(file)).startswith(f"{folder}/") and not ours:
            root = os.path.dirname(file)
            for _ in range(name.count(".") + os.path.basename(file).startswith("__init__.")):
                root = os.path.dirname(root)
            if not file.startswith(f"{prefix}/"):
                found.add(os.path.relpath(root, folder))
    return sorted(found)


def _listed_below(folder: str) -> list[str]:
    """Return the folders of the import path that are this one or below it, relative to it; none of the environment's own."""
    paths = [os.path.realpath(path) for path in sys.path if folder]
    prefix = os.path.realpath(sys.prefix)
    return [
        os.path.relpath(path, folder)
        for path in dict.fromkeys(paths)
        if f"{path}/".startswith(f"{folder}/") and not f"{path}/".startswith(f"{prefix}/")
    ]


def _copies_of(folder: str) -> list[str]:
    """Return the distributions that were installed from this folder, or one below, as copies that modules were imported from."""
    from importlib.metadata import distributions
    from urllib.parse import unquote, urlsplit

    loaded = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    found: set[str] = set()
    for one in distributions():
        with suppress(ValueError, AttributeError, TypeError):  # whatever else is in its file
            origin: dict[str, Any] = json.loads(one.read_text("direct_url.json") or "{}")
            copied = not origin.get("dir_info", {"editable": True}).get("editable")
            path = os.path.realpath(unquote(urlsplit(str(origin.get("url"))).path))
            if (
                copied
                and f"{path}/".startswith(f"{folder}/")
                and any(str(f.locate()) in loaded for f in one.files or ())
            ):
                found.add(one.name)
    return sorted(found)


def this_python() -> dict[str, Any]:
    """Return what is to be known of this Python."""
    from cachegrind_bench.pytest_plugin.outer.options import of_this_python

    return {
        "executable": sys.executable,
        "implementation": sys.implementation.name,
        "version": platform.python_version(),
        "trampolines": str(sysconfig.get_config_var("PY_HAVE_PERF_TRAMPOLINE") or 0),
        "pytest": pytest.__version__,
        "variables": of_this_python(),
        "unverified": why_unverified(),
    }


class Lister:
    """The plugin while it lists: writes what was collected for cg-bench, which measures it."""

    def __init__(self, path: str) -> None:
        self._path = path

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep benchmarks only."""
        keep_benchmarks(config, items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Write the benchmarks, unless something could not be collected: pytest itself says so."""
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            return None
        write_order(self._path, collected(session.config, session.items))
        return True


def _item(item: pytest.Item) -> dict[str, Any]:
    params: Mapping[str, object] = getattr(getattr(item, "callspec", None), "params", {})
    parameters = {
        storable(name): storable(_shown(value))
        for name, value in sorted(params.items())
        if isinstance(value, str | int | float | bool | None)
    }
    tags = sorted({mark.name for mark in item.iter_markers()} - set(_NO_TAGS.split()))
    nodeid, file = item.nodeid, str(item.path)
    whole = {"nodeid": nodeid, "file": file, "parameters": parameters, "tags": tags, "whole": not uses_fixture(item)}
    scale = scale_of(item)
    return whole | {"scale": scale and scale | {"group": storable(scale["group"])}}


def _shown(value: object) -> str:
    try:
        return str(value)[:_LONGEST_VALUE]
    except ValueError:  # Python refuses thousands of digits
        return "a very large number"
