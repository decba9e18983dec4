"""Tests that are benchmarks as a whole: in the place of the test's function stands one that measures it.

What is subtracted is the call of an empty function with the same parameters, so that an empty test costs nothing.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from cachegrind_bench.pytest_plugin.fixture import Work

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from cachegrind_bench.pytest_plugin.harness import Meter


def measure_whole_test(item: pytest.Item, meter: Meter) -> None:
    """Put the measurement in the place of the test's function; async ones are measured inside of their event loop."""
    original: Callable[..., Any] | None = getattr(item, "obj", None)
    if original is None:
        return
    if inspect.iscoroutinefunction(original):

        @functools.wraps(original)
        async def measured_async(**kwargs: Any) -> Any:
            __tracebackhide__ = True
            empty = _empty_like(original, tuple(kwargs))
            return await meter.measure_await(Work(call=original, arguments=lambda: ((), kwargs)), empty)

        item.obj = measured_async  # type: ignore[attr-defined]
    else:

        @functools.wraps(original)
        def measured(**kwargs: Any) -> Any:
            __tracebackhide__ = True
            empty = _empty_like(original, tuple(kwargs))
            return meter.measure(Work(call=original, arguments=lambda: ((), kwargs)), empty)

        item.obj = measured  # type: ignore[attr-defined]


def _empty_like(function: Callable[..., Any], names: tuple[str, ...]) -> Callable[..., Any]:
    """Return a function, or method, that takes what pytest gives this one, and does nothing."""
    owner = getattr(function, "__self__", None)
    method = owner is not None and hasattr(function, "__func__")
    word = "async def" if inspect.iscoroutinefunction(function) else "def"
    made: dict[str, Any] = {}
    parameters = ", ".join(("self", *names) if method else names)
    exec(f"{word} empty({parameters}):\n    pass\n", made)  # noqa: S102 - names of parameters only
    empty: Callable[..., Any] = made["empty"]
    return empty.__get__(owner) if method else empty
