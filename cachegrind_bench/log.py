"""What cg-bench says while it works: all say it to `LOG`, and whoever is in front decides where it goes.

`info` is what was done or is waited for, `warning` a warning, and `debug` what --verbose shows: commands, files and decisions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager

from cachegrind_bench.model.text import plain

LOG = logging.getLogger("cachegrind_bench")
LOG.propagate = False  # into the log of a test suite that is measured, or of a program that calls us
LOG.addHandler(logging.NullHandler())


class Lines(logging.Handler):
    """Gives each record to `write` as one line, in which names hold nothing that a terminal would obey."""

    def __init__(self, write: Callable[[str], object]) -> None:
        super().__init__()
        self._write = write

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; a warning says that it is one."""
        warns = record.levelno >= logging.WARNING
        self._write(f"{'warning: ' if warns else ''}{plain(record.getMessage())}")


@contextmanager
def heard_by(write: Callable[[str], object], level: int | None = None) -> Generator[None]:
    """Give what is said during the block to `write`, and to nobody else, from this `level` on if it is not to stay."""
    before = LOG.handlers, LOG.level
    LOG.handlers = [Lines(write)]
    if level is not None:
        LOG.setLevel(level)
    try:
        yield
    finally:
        LOG.handlers, LOG.level = before
