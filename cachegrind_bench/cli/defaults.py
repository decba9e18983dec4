"""What a project's configuration says instead of options: defaults for the commands that measure and compare.

Read once, when the command line is; commands ask the context of click for it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click
import msgspec

from cachegrind_bench.errors import CgBenchError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cachegrind_bench.config.benchmarks import BenchmarkSpec, Configuration

# Those whose options the configuration may set. Others must not fail over a mistake in it.
_COMMANDS = frozenset({"run", "ab", "check", "verify", "diff", "history", "trend", "bisect", "ci"})
# What `ci compare` takes of it.
_JUDGING = frozenset({"threshold", "threshold_ir", "threshold_cache", "max_drop", "limit", "metric"})
# These add to what benchmarks say; as defaults of options they would be lost as soon as one is typed.
_ADDED = frozenset({"env"})


class Configured(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration as far as the command that was called may know it."""

    command: str
    found: Configuration | None
    error: CgBenchError | None = None  # for `ci`, whose errors are told by itself

    def defaults(self) -> Mapping[str, Mapping[str, object]]:
        """Return the defaults of the command, by the names of its options."""
        if self.found is None:
            return {}
        found = {name: value for name, value in self.found.defaults.items() if name not in _ADDED}
        if self.command == "ci":  # whose steps measure and report by commands of their own, but for one
            return {"ci": {"compare": {name: value for name, value in found.items() if name in _JUDGING}}}
        return {self.command: found}


def read_configured(words: Sequence[str]) -> Configured:
    """Return what the configuration, found from the working directory upwards, says to the command that is called.

    UsageError if it is wrong.
    """
    command = next((word for word in words if not word.startswith("-")), "")
    if command == "ci" and os.environ.get("GITHUB_EVENT_NAME") == "workflow_run":
        # It may write, and what lies around may be what a pull request's job left there.
        return Configured(command=command, found=None)
    known = command in _COMMANDS and not {"-h", "--help"} & set(words[:2])
    try:
        return Configured(command=command, found=_configuration() if known else None)
    except CgBenchError as error:
        if command != "ci":
            raise
        return Configured(command=command, found=None, error=error)


def configured_texts(name: str) -> tuple[str, ...]:
    """Return what the configuration has for an option that can be repeated."""
    found = _current()
    value = None if found is None else found.defaults.get(name)
    if isinstance(value, list | tuple):
        return tuple(map(str, cast("Sequence[object]", value)))
    return () if value is None else (str(value),)


def configured_benchmarks() -> tuple[BenchmarkSpec, ...]:
    """Return the benchmarks of the configuration, which may have thresholds and limits of their own."""
    found = _current()
    return () if found is None else found.benchmarks


def configured_store() -> tuple[str, Path] | None:
    """Return the URL of the store that the configuration names, and the folder where its path begins; None if it does not."""
    found = _current()
    url = None if found is None else found.defaults.get("store")
    return None if found is None or url is None else (str(url), found.root)


def _current() -> Configuration | None:
    configured = click.get_current_context().find_object(Configured)
    return None if configured is None else configured.found


def _configuration() -> Configuration | None:
    from cachegrind_bench.config.source import find

    try:
        path = find(Path.cwd())
    except FileNotFoundError:  # told by whoever needs a working directory
        return None
    if path is None:
        return None
    from cachegrind_bench.config.load import load

    return load(path, check_files=False)  # which files there are matters to the suite only
