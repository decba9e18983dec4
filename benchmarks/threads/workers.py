"""Threads that share a queue, an executor, or tasks of asyncio, by the first argument."""

import queue
import sys
import threading
from collections.abc import Callable

NUMBERS = 60


def work(number: int) -> int:
    """Compute something for a while."""
    return sum(i * number % 7 for i in range(1000))


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
    for number in [*range(NUMBERS), *[None] * 4]:
        numbers.put(number)
    for thread in pool:
        thread.join()
    return sum(results.get() for _ in range(NUMBERS))


def executor() -> int:
    """Map over a pool of four."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        return sum(pool.map(work, range(NUMBERS)))


def tasks() -> int:
    """Await sleeps of no time, a thread, and a short time-out."""
    import asyncio

    async def task(number: int) -> int:
        await asyncio.sleep(0)
        value = work(number)
        await asyncio.sleep(0.001)
        return value

    async def gather() -> int:
        found = await asyncio.gather(*(task(number) for number in range(NUMBERS)))
        return sum(found) + await asyncio.to_thread(work, 3)

    return asyncio.run(gather())


MODES: dict[str, Callable[[], int]] = {
    "threads": threads,
    "executor": executor,
    "asyncio": tasks,
}
print(MODES[sys.argv[1]]())
