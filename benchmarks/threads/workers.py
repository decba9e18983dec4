"""Threads that share a queue, an executor, or tasks of asyncio, by the first argument."""

import asyncio
import queue
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def work(number: int) -> int:
    """Compute something for a while."""
    return sum(i * number % 7 for i in range(2000))


def threads() -> int:
    """Let four threads take numbers from a queue."""
    numbers: queue.Queue[int | None] = queue.Queue()
    results: queue.Queue[int] = queue.Queue()

    def take() -> None:
        while (number := numbers.get()) is not None:
            results.put(work(number))

    pool = [threading.Thread(target=take) for _ in range(4)]
    for thread in pool:
        thread.start()
    for number in [*range(200), *[None] * 4]:
        numbers.put(number)
    for thread in pool:
        thread.join()
    return sum(results.get() for _ in range(200))


def executor() -> int:
    """Map over a pool of four."""
    with ThreadPoolExecutor(4) as pool:
        return sum(pool.map(work, range(200)))


async def tasks() -> int:
    """Await sleeps of no time, a thread, and a short time-out."""

    async def task(number: int) -> int:
        await asyncio.sleep(0)
        value = work(number)
        await asyncio.sleep(0.001)
        return value

    found = await asyncio.gather(*(task(number) for number in range(100)))
    return sum(found) + await asyncio.to_thread(work, 3)


MODES: dict[str, Callable[[], int]] = {
    "threads": threads,
    "executor": executor,
    "asyncio": lambda: asyncio.run(tasks()),
}
print(MODES[sys.argv[1]]())
