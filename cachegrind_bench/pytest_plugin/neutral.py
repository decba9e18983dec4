"""What is the same in every measured process, whatever pytest was called with: how tests are chosen, distributed and shown.

Counts must not depend on it, and an option is a string on the heap.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

# As what a report says which options could not be unpickled, and why.
LEFT_BEHIND = "cg_bench_left_behind"
# Plugins that distribute, reorder, repeat, time or trace tests, or draw on the terminal; those that are often loaded by
# the name of their module (-p, PYTEST_PLUGINS, pytest_plugins) have that, too.
BLOCKED = (
    "terminal",
    "randomly",
    "random_order",
    "rerunfailures",
    "timeout",
    "pytest_cov",
    "benchmark",
    "codspeed",
    "speed",
    "sugar",
    "html",
    "instafail",
    "xdist.looponfail",
    "metadata",
    "json-report",
    "pytest-testmon",
    "pytest_randomly",
    "pytest_rerunfailures",
    "pytest_timeout",
    "pytest_cov.plugin",
    "pytest_benchmark.plugin",
    "pytest_codspeed.plugin",
)
# Options of others that select tests or show results, with what they are inside.
_NEUTRAL: dict[str, Any] = {
    "addopts": None,
    "basetemp": None,
    "cacheclear": False,
    "cacheshow": None,
    "capture": "fd",  # what prints is part of some benchmarks, and costs by where it goes
    "code_highlight": "yes",
    "collectonly": False,
    "color": "no",
    "continue_on_collection_errors": False,
    "cov_append": False,
    "cov_fail_under": None,
    "cov_report": {},
    "cov_source": [],
    "debug": None,
    "deselect": None,
    "dist": "no",
    "distload": False,
    "durations": None,
    "durations_min": None,
    "failedfirst": False,
    "fold_skipped": True,
    "force_short_summary": False,
    "fulltrace": False,
    "help": False,
    "ignore": None,
    "ignore_glob": None,
    "inifilename": None,
    "junitprefix": None,
    "keepduplicates": False,
    "keyword": "",
    "last_failed_no_failures": "all",
    "lf": False,
    "loadgroup": False,
    "log_cli_date_format": None,
    "log_cli_format": None,
    "log_cli_level": None,
    "log_file": None,
    "log_file_date_format": None,
    "log_file_format": None,
    "log_file_level": None,
    "log_file_mode": None,
    "looponfail": False,
    "markexpr": "",
    "max_warnings": None,
    "maxfail": 0,
    "maxprocesses": None,
    "maxschedchunk": None,
    "maxworkerrestart": None,
    "newfirst": False,
    "no_header": False,
    "no_summary": False,
    "numprocesses": None,
    "pastebin": None,
    "plugins": [],
    "px": None,
    "pyargs": False,
    "reportchars": "fE",
    "rootdir": None,
    "rsyncdir": [],
    "setuponly": False,
    "setupplan": False,
    "setupshow": False,
    "showcapture": "all",
    "showlocals": False,
    "stepwise": False,
    "stepwise_reset": False,
    "stepwise_skip": False,
    "strict": None,
    "strict_config": False,
    "tbstyle": "auto",
    "testrunuid": None,
    "trace": False,
    "traceconfig": False,
    "tx": [],
    "usepdb": False,
    "usepdb_cls": None,
    "verbose": 0,
    "version": 0,
    "xfail_tb": False,
    "xmlpath": None,
}


_OF_BLOCKED = pytest.StashKey[dict[str, Any]]()


def remember_blocked(config: pytest.Config) -> None:
    """Note the options of blocked plugins, before one of these is unregistered: it may have set some by chance."""
    config.stash[_OF_BLOCKED] = _options_of_blocked(config)


def neutral(config: pytest.Config) -> dict[str, Any]:
    """Return such options with their values: the defaults of those that blocked plugins have, and of some others."""
    if _OF_BLOCKED not in config.stash:
        remember_blocked(config)
    of_blocked = config.stash[_OF_BLOCKED]
    return {**of_blocked, **_NEUTRAL}


def defaults(config: pytest.Config) -> dict[str, Any]:
    """Return what options are that nobody gives."""
    parser: Any = config._parser  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return _unasked(parser)


def _options_of_blocked(config: pytest.Config) -> dict[str, Any]:
    make: Any = type(config._parser)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    parser = make(_ispytest=True)
    known: dict[str, Any] = {"parser": parser, "pluginmanager": config.pluginmanager}
    for hook in config.hook.pytest_addoption.get_hookimpls():
        if hook.plugin_name in BLOCKED:
            with suppress(Exception):  # code of others
                hook.function(*(known[name] for name in hook.argnames))
    return _unasked(parser)


def _unasked(parser: Any) -> dict[str, Any]:
    with suppress(Exception):  # where an option is required, or its type cannot read its own default
        found: Any = parser.parse_known_args([]).__dict__
        return {name: value for name, value in found.items() if name not in WORDS}
    return {}


# What pytest keeps beside options.
WORDS = ("file_or_dir", "quiet")  # which is there with -q only
