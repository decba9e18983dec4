"""A plugin of pytest, loaded natively by `-p probe`: what each benchmark returns, and which functions it calls how often.

It stands alone: the environment that it runs in has nothing of this package but the folder on PYTHONPATH.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, FrameType

_SUSPENDED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_found: dict[str, dict[str, Any]] = {}


def canonical(value: Any) -> str:
    """Return what is the same for equal results: values of plain types in full, of others the type's name."""
    if isinstance(value, dict):
        return "{" + ", ".join(sorted(f"{canonical(key)}: {canonical(item)}" for key, item in value.items())) + "}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({', '.join(map(canonical, value))})"
    if isinstance(value, set | frozenset):
        return f"{type(value).__name__}({', '.join(sorted(map(canonical, value)))})"
    plain = value is None or isinstance(value, str | bytes | int | float)
    return repr(value) if plain else type(value).__qualname__


def _traced(call: Callable[[], Any]) -> tuple[Any, list[list[Any]]]:
    calls: Counter[CodeType] = Counter()

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call":
            calls[frame.f_code] += 1

    sys.setprofile(note)
    try:
        result = call()
    finally:
        sys.setprofile(None)
    rows = [
        [code.co_filename, code.co_qualname, count, bool(code.co_flags & _SUSPENDED)] for code, count in calls.items()
    ]
    return result, sorted(rows)


class Benchmark:
    """In the place of the fixture: one call to warm up, one that is noted."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Note what this call returns and calls."""
        return self.pedantic(function, args, kwargs)

    def pedantic(
        self,
        target: Callable[..., Any],
        args: Any = (),
        kwargs: Any = None,
        setup: Callable[[], Any] | None = None,
        **_others: Any,
    ) -> Any:
        """Do so with the arguments that `setup` returns, if it does."""
        result = None
        for last in (False, True):
            given = (setup() if setup else None) or (args, kwargs or {})
            if last:
                result, calls = _traced(lambda given=given: target(*given[0], **given[1]))  # type: ignore[misc]
                digest = hashlib.sha256(canonical(result).encode()).hexdigest()[:16]
                _found[self.name] = {"digest": digest, "calls": calls}
            else:
                target(*given[0], **given[1])
        return result


@pytest.fixture
def benchmark(request: pytest.FixtureRequest) -> Benchmark:
    """Stand in for the fixture of cg-bench."""
    return Benchmark(request.node.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """Note what a whole test calls that is marked as a benchmark."""
    if pyfuncitem.get_closest_marker("benchmark") is None or "benchmark" in pyfuncitem.fixturenames:
        return (yield)
    calls: Counter[CodeType] = Counter()
    sys.setprofile(lambda frame, event, _: calls.update([frame.f_code]) if event == "call" else None)
    try:
        done = yield
    finally:
        sys.setprofile(None)
    rows = [[c.co_filename, c.co_qualname, count, bool(c.co_flags & _SUSPENDED)] for c, count in calls.items()]
    _found[pyfuncitem.nodeid] = {"digest": "", "calls": sorted(rows)}
    return done


def pytest_sessionfinish() -> None:
    """Write what was found."""
    with open(os.environ["ROBUSTNESS_PROBE"], "w") as file:
        json.dump(_found, file)
