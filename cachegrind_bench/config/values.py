"""A configuration as the rest of the program sees it: checked, expanded, with every path absolute."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class BenchmarkSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark of the suite, with one value for each of its parameters.

    None is what the file does not say. `env` holds `NAME` (passed on) and `NAME=VALUE`, `limits` hold `NAME=COUNT`;
    `place` is the file and line it comes from.
    """

    id: str
    command: tuple[str, ...]
    cwd: Path
    env: tuple[str, ...] = ()
    setup: str | None = None
    prepare: str | None = None
    cleanup: str | None = None
    stdin: Path | None = None
    parameters: Mapping[str, str]
    tags: tuple[str, ...] = ()
    repeat: int | None = None
    warmup: int | None = None
    layouts: int | None = None
    timeout_ms: int | None = None
    threshold: str | None = None
    limits: tuple[str, ...] = ()
    region: str | None = None
    toggles: tuple[str, ...] = ()
    python_profile: bool = False
    place: str


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """What a configuration file says. `defaults` are by the names of options, with values as a user would type them."""

    path: Path
    root: Path
    defaults: Mapping[str, object]
    benchmarks: tuple[BenchmarkSpec, ...]
