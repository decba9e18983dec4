"""What cg-bench says while it works: all say it to `LOG`, and whoever is in front decides where it goes.

`info` is what was done or is waited for, `warning` a warning, and `debug` what --verbose shows: commands, files and decisions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import partial
from typing import NamedTuple, ParamSpec, TypeVar

from cachegrind_bench.model.text import plain

P = ParamSpec("P")
T = TypeVar("T")


class _Listener(NamedTuple):
    write: Callable[[str], object]
    level: int


_NOBODY = _Listener(len, logging.WARNING)  # does nothing with a text
# Of this context: commits that are measured at the same time have listeners of their own.
_LISTENER: ContextVar[_Listener] = ContextVar("listener", default=_NOBODY)


class Lines(logging.Handler):
    """Gives each record to the listener as one line, in which names hold nothing that a terminal would obey."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; a warning says that it is one."""
        warns = record.levelno >= logging.WARNING
        _LISTENER.get().write(f"{'warning: ' if warns else ''}{plain(record.getMessage())}")


LOG = logging.getLogger("cachegrind_bench")
LOG.propagate = False  # into the log of a test suite that is measured, or of a program that calls us
LOG.setLevel(logging.DEBUG)
LOG.addFilter(lambda record: record.levelno >= _LISTENER.get().level)
LOG.addHandler(Lines())


@contextmanager
def heard_by(write: Callable[[str], object], level: int | None = None) -> Generator[None]:
    """Give what is said during the block to `write`, and to nobody else, from this `level` on if it is not to stay."""
    token = _LISTENER.set(_Listener(write, _LISTENER.get().level if level is None else level))
    try:
        yield
    finally:
        _LISTENER.reset(token)


def say_from(level: int) -> None:
    """Set the lowest level that the present listener hears."""
    _LISTENER.set(_LISTENER.get()._replace(level=level))


class Threads(ThreadPoolExecutor):
    """Threads in which the caller's listener hears what is said."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Schedule a call in a copy of the caller's context."""
        return super().submit(partial(copy_context().run, fn, *args, **kwargs))
