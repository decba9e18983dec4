"""What a pytest has collected, and how it is to be measured."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from cachegrind_bench.hermetic.environment import Request
from cachegrind_bench.model.metrics import CostModel
from cachegrind_bench.model.result import Scale
from cachegrind_bench.startup.exchange import WARM_UP, FileOrders, ImportOrders, storable


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark: a test of this `file`. `whole`: the test itself is measured, as it does not use the fixture."""

    nodeid: str
    file: str
    parameters: dict[str, str]
    tags: tuple[str, ...]
    whole: bool
    scale: Scale | None = None

    @property
    def id(self) -> str:
        """Its name in results."""
        return storable(self.nodeid)


class Python(msgspec.Struct, frozen=True, kw_only=True):
    """The Python that has pytest and the project, which may be another than ours; `pytest` is the version of that.

    `unverified` says why its internals are left alone, if they are (`pytest_plugin.cpython.verified`).
    `variables` make a further one what it is, as `NAME` or `NAME=VALUE`; `trampolines` is "1" if it has those of perf.
    """

    executable: str
    implementation: str
    version: str
    trampolines: str
    pytest: str
    variables: tuple[str, ...]
    unverified: str = ""


class Collected(msgspec.Struct, frozen=True, kw_only=True):
    """The benchmarks that a pytest found, called in `cwd`. `imports` and `files` are orders: for all files of tests, and for each.

    `asserts` is its --assert. `elsewhere` are folders that modules came from, below the checkout whose commit is measured in a
    worktree, and relative to it, and `reachable` those that modules may still come from; `copies` are distributions that were installed from there, and do not follow it.
    """

    items: tuple[Item, ...]
    imports: ImportOrders
    files: dict[str, FileOrders]
    cwd: str
    asserts: str
    python: Python
    elsewhere: tuple[str, ...] = ()
    reachable: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()


class SessionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How to measure. `environ` is the environment of pytest itself; times in milliseconds."""

    environ: Mapping[str, str]
    request: Request
    jobs: int
    model: CostModel
    warm_up: int = WARM_UP
    layouts: int = 1
    timeout_ms: int | None = None
    require_sealed: bool = False
    python_profile: bool = False
    call_tree: bool = False
