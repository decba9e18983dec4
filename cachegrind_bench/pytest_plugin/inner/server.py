"""The measured process: imports what all tests need, then forks for each file of tests, and there for each benchmark.

Runs inside Valgrind, uncounted for the most part. Before a fork nothing is done that depends on which files and
benchmarks were chosen, nor on what became of those before: so counts do not depend on it either.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import sys
import traceback
from contextlib import suppress
from typing import Any

import pytest
from _pytest.assertion import install_importhook
from _pytest.config import (
    _iter_rewritable_modules,  # pyright: ignore[reportPrivateUsage]
    get_config,
)

import cachegrind_bench
from cachegrind_bench.pytest_plugin.inner.forking import (
    at_work,
    flush,
    fork_for_each,
    how_it_ended,
    read_next_order,
    wait_for_orders,
)
from cachegrind_bench.pytest_plugin.inner.meter import Meter
from cachegrind_bench.region.requests import Requests
from cachegrind_bench.startup.exchange import NO_BENCHMARK, Ending, Exchange, RootOrders, read_current, write_report
from cachegrind_bench.startup.import_finder import replace_until_measured
from cachegrind_bench.startup.os_functions import Real


def main(orders: RootOrders) -> None:
    """Serve the folder argv[1], with its orders for all files; out files are in argv[2]."""
    exchange, out = Exchange(sys.argv[1]), sys.argv[2]
    _start_no_readline()
    _see_plugins_alone(orders["distributions"])
    _import_plugins(orders["blocked"], autoload=orders["autoload"])
    _write_no_times_nor_paths()
    requests = Requests()
    meter = Meter(requests, out, orders["warm_up"], orders["batches"], orders["layouts"])
    if not requests.running_on_valgrind():
        write_report(exchange.caches, _caches())
    flush()
    wait_for_orders(exchange)
    at_work(exchange)
    fork_for_each(
        lambda number: _file(exchange, number, meter),
        lambda number, pid, status: _bury(exchange, number, how_it_ended(pid, status, out)),
    )
    at_work(exchange)
    flush()
    Real.leave(0)  # what Python does at its end takes time, and nobody waits for it


def _caches() -> list[str]:
    """Return the folders in which Python looks for what the modules that are imported were compiled to."""
    specs = [getattr(module, "__spec__", None) for module in list(sys.modules.values())]
    cached = [getattr(spec, "cached", None) for spec in specs]
    return sorted({os.path.dirname(path) for path in cached if isinstance(path, str)})


def _file(exchange: Exchange, number: int, meter: Meter) -> None:
    from cachegrind_bench.pytest_plugin.inner.run import run_file

    orders = read_next_order(exchange.file(number))
    at_work(exchange, number)
    try:
        text = run_file(exchange, number, meter, orders)
    except BaseException as error:  # noqa: BLE001 - the process ends here, and this is how it is reported
        text = str(error) if isinstance(error, pytest.UsageError) else traceback.format_exc()
    if text is not None:
        write_report(exchange.trouble(number), {"text": text})


def _bury(exchange: Exchange, number: int, ending: Ending) -> None:
    """Report for a file whose process ended before it could, and at which benchmark; remove what it made."""
    from cachegrind_bench.pytest_plugin.inner.run import empty_folder

    now = read_current(exchange.current)
    write_report(exchange.trouble(number), {**ending, "at": now[2] if now and now[1] == number else NO_BENCHMARK})
    empty_folder(os.environ["TMPDIR"])


def _start_no_readline() -> None:
    """Keep readline from being imported: by pytest, for the sake of terminals, and since CPython 3.13 by pdb.

    When it starts, ncurses reads the time, and takes other memory where a second has begun meanwhile.
    """
    import _pytest.capture

    capture: Any = _pytest.capture
    if hasattr(capture, "_readline_workaround"):
        capture._readline_workaround = lambda: None  # noqa: SLF001
    modules: dict[str, Any] = sys.modules
    if "readline" not in modules:
        modules["readline"] = None  # cannot be imported
        with suppress(Exception):  # a project's own code.py in the place of the one below pdb: pytest will report it
            importlib.import_module("pdb")
        del modules["readline"]


def _write_no_times_nor_paths() -> None:
    """Let pytest's own timers read 0, as what they read is on the heap, and would move what comes after it.

    And write no rewritten modules where pytest (before 9.2) would believe the path in them: it is that of this process alone.
    """
    import _pytest.assertion.rewrite
    import _pytest.timing

    for name in ("time", "perf_counter"):
        setattr(_pytest.timing, name, lambda: 0.0)
    rewrite: Any = _pytest.assertion.rewrite
    if not hasattr(rewrite, "_fix_code_filename"):
        rewrite._write_pyc = _do_nothing  # noqa: SLF001


def _do_nothing(*_: object) -> bool:
    return False


# They look through all distributions for plugins.
_LOOK_FOR_PLUGINS = frozenset({"_pytest.config", "pluggy._manager", __name__})


def _see_plugins_alone(paths: list[str]) -> None:
    """Let pytest see only distributions with plugins, and plugins find their own without a look at others, which takes memory."""
    found = [importlib.metadata.Distribution.at(path) for path in paths]
    names = (_normal(os.path.basename(path).rpartition(".")[0].partition("-")[0]) for path in paths)
    named = dict(reversed(list(zip(names, found, strict=True))))  # of two, the first is found

    def made(whole: Any) -> Any:
        def distributions(**given: Any) -> Any:
            caller = sys._getframe(1).f_globals.get("__name__")  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            return whole(**given) if given or caller not in _LOOK_FOR_PLUGINS else iter(found)

        return distributions

    def made_from_name(whole: Any) -> Any:
        def from_name(cls: type[importlib.metadata.Distribution], name: str) -> Any:
            own = named.get(_normal(str(name))) if cls is importlib.metadata.Distribution else None
            return own or whole.__func__(cls, name)

        return classmethod(from_name)

    replace_until_measured(importlib.metadata, "distributions", made)
    replace_until_measured(importlib.metadata.Distribution, "from_name", made_from_name)


def _normal(name: str) -> str:
    """Return the name of a distribution as all of its spellings have it (PEP 503)."""
    return re.sub("[-_.]+", "-", name).lower()


def _import_plugins(blocked: list[str], *, autoload: bool) -> None:
    """Import pytest and its plugins once, rewritten as pytest itself will want them."""
    # Ours is here already, and pytest would warn that it comes too late to rewrite it.
    cachegrind_bench.__doc__ = f"{cachegrind_bench.__doc__}\nPYTEST_DONT_REWRITE"
    config = get_config()
    for name in ("inicfg", "_inicfg"):  # pytest before 9.1 looks into a configuration that was never read
        vars(config).setdefault(name, {})
    importlib.import_module("cachegrind_bench.pytest_plugin.inner.run")
    if not autoload:
        return
    hook: Any = install_importhook(config)
    # What was imported when Python started cannot be rewritten, and there is nobody to warn yet.
    hook._warn_already_imported = _do_nothing  # noqa: SLF001
    try:
        for found in importlib.metadata.distributions():
            names = [point for point in found.entry_points if point.group == "pytest11" and point.name not in blocked]
            if names:
                hook.mark_rewrite(*_iter_rewritable_modules(str(file) for file in found.files or []))
            for point in names:
                with suppress(Exception):  # it is reported again, and better, where the tests are collected
                    point.load()
    finally:
        sys.meta_path.remove(hook)
