"""The words of pytest's command line that name our files: they must do something, and must not move pytest's root."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMING_FILES = {"--cg-bench-output", "--cg-bench-compare"}


def check_words(config: pytest.Config, *, measuring: bool) -> None:
    """Refuse options that name files where nothing is measured, and keep the root where it is without these files."""
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
    values = {place + 1 for place, word in enumerate(words) if word in _NAMING_FILES}
    others = [word for place, word in enumerate(words) if place not in values]
    try:
        from _pytest.config.findpaths import determine_setup

        known: dict[str, Any] = {
            "inifile": None,
            "override_ini": None,
            "args": others,
            "rootdir_cmd_arg": None,
            "invocation_dir": Path(config.invocation_params.dir),
        }
        wanted = inspect.signature(determine_setup).parameters
        root, ini, *_ = determine_setup(**{name: known[name] for name in wanted})
        if ini is None and config._rootpath == config.rootpath:  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            config._rootpath = root  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            return
    except (ImportError, AttributeError, KeyError, TypeError):  # a later pytest, which keeps it elsewhere
        pass
    raise pytest.UsageError(
        f"write {option}=FILE: pytest takes a word of its own that is a file for one of the places to find its root by, "
        "and the ids of tests would change"
    )
