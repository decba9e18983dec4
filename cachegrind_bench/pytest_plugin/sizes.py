"""The marker `cg_bench` with the sizes of an input: what it makes of a test, and what is to be known of each of its benchmarks.

Imports the standard library and pytest only, as `outer.collection` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.sizes import LARGEST_SIZE, SIZE, class_of, sizes_of

MARKER = "cg_bench"
_SIZES, _GROWTH, _PREDICT = "sizes", "growth", "predict"
_KEYS = (_SIZES, SIZE, _GROWTH, _PREDICT)
_USE = "as in @pytest.mark.cg_bench(sizes=[1000, 2000, 4000, 8000], growth='n log n')"


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Make a test of each size that a marker has, unless they are those of an argument with parameters of its own.

    CollectError, which pytest shows as one sentence, for sizes that are wrong.
    """
    marker = metafunc.definition.get_closest_marker(MARKER)
    where = f"{metafunc.definition.nodeid}: cg_bench"
    if marker is not None and (marker.args or marker.kwargs.keys() - set(_KEYS)):
        raise pytest.Collector.CollectError(f"{where} takes sizes, size, growth and predict by name: {_USE}")
    if marker is None or _SIZES not in marker.kwargs:
        return
    if SIZE not in metafunc.fixturenames:
        raise pytest.Collector.CollectError(f"{where} has sizes, but the test has no argument {SIZE!r}")
    try:
        found = sizes_of(marker.kwargs[_SIZES], f"{where} {_SIZES}")
    except UsageError as error:
        raise pytest.Collector.CollectError(f"{error.message}: {error.hint}") from None
    metafunc.parametrize(SIZE, found, ids=[f"{SIZE}={size}" for size in found])


def scale_of(item: pytest.Item) -> dict[str, Any] | None:
    """Return which size this is and the group that it is in, as `model.result.Scale` has it; None without a marker of sizes.

    pytest.UsageError for a marker that is wrong.
    """
    marker = item.get_closest_marker(MARKER)
    if marker is None or not marker.kwargs:
        return None
    where = f"{item.nodeid}: cg_bench"
    params: Mapping[str, object] = getattr(getattr(item, "callspec", None), "params", {})
    name: Any = marker.kwargs.get(SIZE, SIZE)
    size, predict = params.get(name), marker.kwargs.get(_PREDICT)
    if not _is_size(size):
        raise pytest.UsageError(f"{where} needs sizes, or the name of an argument whose values are sizes: {_USE}")
    if predict is not None and not _is_size(predict):
        raise pytest.UsageError(f"{where} {_PREDICT} must be a whole number from 1 to {LARGEST_SIZE:,}")
    try:
        bound = class_of(str(marker.kwargs[_GROWTH]), f"{where} {_GROWTH}") if _GROWTH in marker.kwargs else None
    except UsageError as error:
        raise pytest.UsageError(f"{error.message}: {error.hint}") from None
    others = ",".join(f"{other}={value}" for other, value in sorted(params.items()) if other != name)
    base = item.nodeid.partition("[")[0]
    return {"group": f"{base}[{others}]" if others else base, "size": size, "bound": bound, "predict": predict}


def _is_size(value: object) -> bool:
    return type(value) is int and 1 <= value <= LARGEST_SIZE
