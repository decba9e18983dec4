"""A plugin of pytest that does the least to count calls that can be compared: what small_suites.py --bare measures.

Each test runs in a process of its own, which warms its call up and counts it twice in a copy of itself. There is no seal, no native
run, no fresh heap and no look at how types are numbered; nothing is read. BARE_LANES processes share the tests, after one start.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).resolve().parent.parent))
from cachegrind_bench.region.requests import DUMP_STATS_AT, START_INSTRUMENTATION, ZERO_STATS, Request, Requests

WARM_UPS, CALLS = 5, 2
REQUESTS = Requests()
START, ZERO, DUMP = Request(START_INSTRUMENTATION), Request(ZERO_STATS), Request(DUMP_STATS_AT, b"call")


def in_child(work: Callable[[], object]) -> int:
    """Do this in a forked process, which ends then; return its id."""
    pid = os.fork()
    if not pid:
        try:
            work()
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    return pid


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Run all tests, in as many lanes as wanted, each on a CPU of its own."""
    lanes = int(os.environ.get("BARE_LANES", "1"))
    edges = [len(session.items) * number // lanes for number in range(lanes + 1)]
    cpus = sorted(os.sched_getaffinity(0))

    def lane(number: int, start: int, end: int) -> None:
        os.sched_setaffinity(0, {cpus[number]})
        for item in session.items[start:end]:
            os.waitpid(in_child(partial(item.ihook.pytest_runtest_protocol, item=item, nextitem=None)), 0)

    started = [in_child(partial(lane, number, *edge)) for number, edge in enumerate(pairwise(edges))]
    for pid in started:
        os.waitpid(pid, 0)
    return True


@pytest.fixture
def benchmark() -> Callable[..., Any]:
    """Return what warms a call up and counts it."""

    def measure(function: Callable[..., Any], *arguments: Any) -> Any:
        result = None
        for _ in range(WARM_UPS):
            result = function(*arguments)

        def count() -> None:
            REQUESTS.send(START)
            for _ in range(CALLS):
                REQUESTS.send(ZERO)
                function(*arguments)
                REQUESTS.send(DUMP)

        os.waitpid(in_child(count), 0)
        return result

    return measure
