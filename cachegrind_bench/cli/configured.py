"""What a project's configuration says instead of options: defaults for the commands that measure and compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cachegrind_bench.config.values import Configuration

# Those whose options the configuration may set. Others must not fail over a mistake in it.
_COMMANDS = frozenset({"run", "check", "verify", "diff"})
# These add to what benchmarks say; as defaults of options they would be lost as soon as one is typed.
_ADDED = frozenset({"env"})


def configured(words: Sequence[str]) -> Mapping[str, Mapping[str, object]]:
    """Return the defaults of the command that these words call, by the names of its options.

    UsageError if the configuration, found from the working directory upwards, is wrong.
    """
    command = next((word for word in words if not word.startswith("-")), "")
    if command not in _COMMANDS or {"-h", "--help"} & set(words[:2]):
        return {}
    found = _configuration()
    if found is None:
        return {}
    defaults = {name: value for name, value in found.defaults.items() if name not in _ADDED}
    if command == "diff":
        own: dict[str, list[str]] = {"threshold": [], "limit": []}
        for spec in found.benchmarks:
            own["threshold"] += [f"{spec.id}={spec.threshold}"] * (spec.threshold is not None)
            own["limit"] += [f"{spec.id}:{limit}" for limit in spec.limits]
        for name, values in own.items():
            defaults[name] = (*_listed(defaults.get(name)), *values)
    return {command: defaults}


def configured_variables() -> tuple[str, ...]:
    """Return the variables that the configuration passes on to every program."""
    found = _configuration()
    return () if found is None else _listed(found.defaults.get("env"))


def _configuration() -> Configuration | None:
    from cachegrind_bench.config.load import find, load

    try:
        path = find(Path.cwd())
    except FileNotFoundError:  # told by whoever needs a working directory
        return None
    # What is there, and what is not, matters to the suite only.
    return None if path is None else load(path, check_files=False)


def _listed(value: object) -> tuple[str, ...]:
    if isinstance(value, list | tuple):
        return tuple(map(str, cast("Sequence[object]", value)))
    return () if value is None else (str(value),)
