"""What the pytest in the measured process gets of the one that was called: options, import path, markers.

All but what selects tests or shows results: counts must not depend on these, and an option is a string on the heap.
"""

from __future__ import annotations

import importlib.metadata
import io
import json
import os
import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from cachegrind_bench.pytest_plugin import IMPORT_PATH
from cachegrind_bench.pytest_plugin.exchange import is_plain
from cachegrind_bench.pytest_plugin.neutral import BLOCKED, WORDS, defaults, neutral

if TYPE_CHECKING:
    from collections.abc import Mapping


def root_orders(config: pytest.Config, warm_up: int, batches: tuple[int, ...]) -> dict[str, Any]:
    """Return the orders for all files of tests; `batches` are how many calls are counted in each try."""
    autoload = not os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD") and not getattr(
        config.known_args_namespace, "disable_plugin_autoload", False
    )
    return {
        "sys_path": list(IMPORT_PATH),
        "blocked": [*BLOCKED, *_blocked_by_user(config)],
        "autoload": autoload,
        "distributions": _with_plugins(config),
        "warm_up": warm_up,
        "batches": batches,
    }


def _with_plugins(config: pytest.Config) -> list[str]:
    """Return where the metadata of the distributions is that have plugins for pytest, in the order in which it finds them."""
    path = [*map(str, config.getini("pythonpath")), *IMPORT_PATH]
    return [
        str(found._path)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        for found in importlib.metadata.distributions(path=path)
        if isinstance(found, importlib.metadata.PathDistribution)
        if any(point.group == "pytest11" for point in found.entry_points)
    ]


def file_orders(config: pytest.Config, path: str) -> dict[str, Any]:
    """Return the orders for one file of tests."""
    handed = _handed(config)
    args = [f"--rootdir={config.rootpath}"]
    if config.inipath is not None:
        args += ["-c", str(config.inipath)]
    for name in config.option.plugins:
        if name.removeprefix("no:") not in BLOCKED:
            args += ["-p", name]
    for name in BLOCKED:
        args += ["-p", f"no:{name}"]
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
        "options": handed.plain,
        "pickled": handed.pickled,
        "in_tmp": in_tmp,  # arguments that name a place in the folder for temporary files, which is known there
        "args": args,
        "shown": json.dumps({name: getattr(config.option, name, None) for name in _SHOWN}).encode().ljust(_SHOWN_BYTES),
        "markers": list(config.getini("markers")),
        "settings": list(known),
    }


# Options that show failures, which are made into text inside: taken from constant bytes, once nothing is counted any more.
_SHOWN = ("fulltrace", "showlocals", "tbstyle")
_SHOWN_BYTES = 256
# What is not to be written into the project, nor by two processes at once.
_SETTINGS = {"required_plugins": "", "log_file": ""}


def left_behind(config: pytest.Config) -> list[str]:
    """Return the options, as they are written, that were given and cannot be pickled."""
    return [as_written(config, name) for name in _handed(config).left]


def as_written(config: pytest.Config, name: str) -> str:
    """Return how an option is written of which only the name of its value is known."""
    parser: Any = config._parser  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    names: Mapping[str, str] = getattr(parser, "_opt2dest", None) or getattr(config, "_opt2dest", {})
    return {dest: option for option, dest in sorted(names.items())}.get(name, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Handed:
    """Options by the names of their values: plain ones, pickled ones that are no defaults, and those that cannot be."""

    plain: dict[str, Any]
    pickled: dict[str, bytes]
    left: tuple[str, ...]


_HANDED = pytest.StashKey[_Handed]()


def _handed(config: pytest.Config) -> _Handed:
    """Return the options, pickled once: that is code of the project's own."""
    if _HANDED in config.stash:
        return config.stash[_HANDED]
    same, usual = neutral(config), defaults(config)
    given = {
        name: same.get(name, value)
        for name, value in sorted(vars(config.option).items())
        if not name.startswith("cg_bench") and name not in WORDS
    }
    plain = {name: value for name, value in given.items() if is_plain(value)}
    # What nobody gave, the pytest inside makes for itself; and it may be of a conftest.py that is not read there.
    others = {
        name: _pickled(value)
        for name, value in given.items()
        if name not in plain and name not in same and not (name in usual and _equal(value, usual[name]))
    }
    handed = _Handed(
        plain=plain | {"plugins": [], "cg_bench": False},
        pickled={name: data for name, data in others.items() if data is not None},
        left=tuple(name for name, data in others.items() if data is None),
    )
    config.stash[_HANDED] = handed
    return handed


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


def _blocked_by_user(config: pytest.Config) -> list[str]:
    return [
        name.removeprefix("no:")
        for name in config.option.plugins
        if name.startswith("no:") and name.removeprefix("no:") not in BLOCKED
    ]
