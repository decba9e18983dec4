"""Commits measured by the workers of a Dask scheduler: each has a clone of the repository, made when it joins.

The only module that knows Dask: whoever reaches a scheduler without TLS executes code on its workers, and these on callers.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import distributed
import msgspec
from distributed import WorkerPlugin
from msgspec.structs import replace

from cachegrind_bench.errors import CgBenchError, MeasurementError, NotComparableError
from cachegrind_bench.log import LOG
from cachegrind_bench.model.text import some
from cachegrind_bench.usecases.commit_task import Answer, Machine, Order, describe, difference, measure
from cachegrind_bench.usecases.executors import Workforce
from cachegrind_bench.usecases.measurement import MeasureRequest
from cachegrind_bench.vcs.git import Git
from cachegrind_bench.waiting import Waiting

if TYPE_CHECKING:
    from cachegrind_bench.usecases.worktrees import Run

T = TypeVar("T")
# A client of Dask's, whose types say little.
Client: TypeAlias = Any


class _Client(distributed.Client):
    def __del__(self) -> None:
        """Do nothing: `connected` closes each, but one that could not begin, for which Dask would wait half a minute."""


_connect: Client = _Client
_CONNECT_S = 15
_ANSWER_S = 60
_SHOWN = 5
_AT_ONCE = 64
_GIT_S = 3600.0


@contextmanager
def connected(url: str, waiting: Waiting) -> Generator[Client]:
    """Reach the scheduler at this address. MeasurementError if that cannot be."""
    try:
        with waiting.watched(f"the scheduler {url}"):
            client = _within(2 * _CONNECT_S, partial(_connect, url, timeout=_CONNECT_S, set_as_default=False))
    except (OSError, ValueError, TypeError) as error:
        hint = "write it as in tcp://scheduler:8786, and start it with: dask scheduler"
        why = str(error) or f"it does not answer within {2 * _CONNECT_S} s"
        raise MeasurementError(f"the Dask scheduler {url} cannot be reached: {why}", hint=hint) from error
    try:
        yield client
    finally:
        with waiting.watched(f"the scheduler {url}"):
            client.close(timeout=_CONNECT_S)


def _within(seconds: float, call: Callable[[], T]) -> T:
    """Return what this call of Dask's returns. TimeoutError if that takes longer: many have no limit where a scheduler hangs."""
    future = Future[T]()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future.result(seconds)


def machines(client: Client, request: MeasureRequest, waiting: Waiting) -> dict[str, Machine | str]:
    """Return what each worker would measure under, or why it cannot measure, by its address."""
    asked = replace(request, environ={})
    found: dict[str, Any] = {}
    with _answering(), waiting.watched("the workers"):
        names: list[str] = list(_within(_ANSWER_S, client.nthreads))
        with ThreadPoolExecutor(_AT_ONCE) as threads:  # one that hangs is to be named
            for answer in threads.map(partial(_asked, client, asked), names):
                found |= answer
    silent = [name for name, value in found.items() if isinstance(value, TimeoutError)]
    if silent:
        what = f"the workers do not answer: {some(silent, _SHOWN)} did not within {_ANSWER_S} s"
        raise MeasurementError(what, hint="restart a worker that hangs")
    gone = {name: "it went away" for name, value in found.items() if isinstance(value, OSError)}
    return {
        name: value if isinstance(value, Machine) else str(value) for name, value in sorted({**found, **gone}.items())
    }


def _asked(client: Client, request: MeasureRequest, name: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = client.run(
            _described, request, workers=[name], on_error="return", callback_timeout=_ANSWER_S
        )
    except TimeoutError as error:
        return {name: error}
    return found


@contextmanager
def _answering(seconds: float = _ANSWER_S) -> Generator[None]:
    try:
        yield
    except OSError as error:  # a time-out may have no text
        why = str(error) or f"not all did within {seconds:g} s"
        raise MeasurementError(f"the workers do not answer: {why}", hint="restart a worker that hangs") from error


def _described(request: MeasureRequest) -> Machine | str:
    try:
        return describe(replace(request, environ=_own(), cwd=Path("/")))
    except CgBenchError as error:
        return error.message


@contextmanager
def workforce(
    client: Client, request: MeasureRequest, source: Source, key: str | None, run: Run
) -> Generator[Workforce]:
    """Measure on those workers whose results may be compared: with the history of this `key`, or else with most others.

    The others are named. NotComparableError if there are none.
    """
    found = machines(client, request, Waiting())
    usable = {name: item for name, item in found.items() if isinstance(item, Machine)}
    if not usable:
        why = next((str(item) for item in found.values()), "the scheduler has no workers")
        raise NotComparableError("no worker can measure", hint=why)
    votes = Counter(item.key for item in usable.values())
    chosen = max(
        votes,
        key=lambda name: (
            any(item.key == name and item.environment.key == key for item in usable.values()),
            votes[name],
            name,
        ),
    )
    first = next(item for item in usable.values() if item.key == chosen)
    for name, item in found.items():
        if not isinstance(item, Machine) or item.key != chosen:
            LOG.warning(f"{name} is not used: {item if isinstance(item, str) else difference(first, item)}")
    own = [name for name in usable if usable[name].key == chosen]
    plugin = _Joining(source, replace(request, environ={}))
    with _answering(_GIT_S), Waiting().watched("the workers, each of which makes a clone"):
        _within(_GIT_S, partial(client.register_plugin, plugin))
        threads: dict[str, int] = _within(_ANSWER_S, client.nthreads)
    executor = client.get_executor(pure=False, resources={_resource(chosen): 1})
    waiting = _Waiting(client)
    try:
        yield Workforce(
            executor=executor,
            task=partial(_measured, run),
            width=sum(threads.get(name, 1) for name in own),
            machine=first,
            repository=Path(source.digest),
            remote=True,
            check=waiting.check,
        )
    finally:
        if client.status == "running":
            for tidy in partial(executor.shutdown, wait=False), partial(client.unregister_worker_plugin, plugin.name):
                # A scheduler that has just gone keeps nothing.
                with suppress(OSError), Waiting().watched("the scheduler"):
                    _within(_CONNECT_S, tidy)


class _Waiting:
    """Looks whether there is still somebody to wait for."""

    def __init__(self, client: Client) -> None:
        self._client, self._waiting, self._since = client, Waiting(), time.monotonic()

    def check(self) -> None:
        """Say so where no worker is left, as others may come. MeasurementError without a scheduler."""
        threads: dict[str, int] | None = None
        with suppress(OSError), self._waiting.apart().watched("the scheduler"):
            threads = _within(_ANSWER_S, self._client.nthreads) if self._client.status == "running" else None
        if threads is None:
            hint = "what was measured is stored: call again to go on"
            raise MeasurementError("the Dask scheduler went away", hint=hint)
        now = time.monotonic()
        if threads:
            self._since = now
        self._waiting.look("a worker", now - self._since)


def _resource(key: str) -> str:
    """Return what Dask calls the ability to measure under this key."""
    return f"cg-bench {key}"


def _own() -> dict[str, str]:
    """Return the variables of this worker."""
    return dict(os.environ)  # noqa: TID251 - a worker's own, which nobody could hand down


def _measured(run: Run, order: Order) -> Answer:
    """Measure a commit on a worker, from its own clone."""
    return measure(replace(order, repository=_clone(order.repository.name)), _own(), run)


def _clone(digest: str) -> Path:
    """Return where a worker keeps its clone. Each host has its own, also where home folders are shared."""
    return Path.home() / ".cache" / "cg-bench" / f"{digest}.{socket.gethostname()}.git"


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A repository under a name of its own: a bundle of it, or where it is cloned from."""

    digest: str
    place: str | bytes

    @classmethod
    def at(cls, url: str) -> Source:
        """Return the repository at this address."""
        return cls(digest=hashlib.sha256(url.encode()).hexdigest()[:16], place=url)

    @classmethod
    def of(cls, repository: Git) -> Source:
        """Return a repository with its branches and tags as one file."""
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            path = Path(folder) / "bundle"
            words = "bundle", "create", "--quiet", str(path), "HEAD", "--branches", "--tags", "--remotes"
            repository.text(*words, timeout=_GIT_S)
            data = path.read_bytes()
        return cls(digest=hashlib.sha256(data).hexdigest()[:16], place=data)


class _Joining(WorkerPlugin):
    """Gives each worker, now and later, a clone, and a resource by which it gets only what it measures as the others do."""

    def __init__(self, source: Source, request: MeasureRequest) -> None:
        self.name = f"cg-bench-{source.digest}-{os.urandom(4).hex()}"  # several commands may need one repository
        self._source, self._request = source, request

    async def setup(self, worker: Any) -> None:
        """Join in, unless this worker cannot measure."""
        found = await asyncio.to_thread(_described, self._request)
        if isinstance(found, Machine):
            await asyncio.to_thread(self._clone)
            await worker.set_resources(**{_resource(found.key): worker.state.nthreads})

    def _clone(self) -> None:
        """Make the clone, or fetch what is new where it came from."""
        place, target = self._source.place, _clone(self._source.digest)
        target.parent.mkdir(parents=True, exist_ok=True)
        with Path(f"{target}.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.exists():
                with tempfile.TemporaryDirectory(dir=target.parent, ignore_cleanup_errors=True) as folder:
                    bundle, made = Path(folder) / "bundle", Path(folder) / "made"
                    if isinstance(place, bytes):
                        bundle.write_bytes(place)
                        place = str(bundle)
                    Git(Path(folder), _own()).text("init", "--quiet", "--bare", str(made))
                    # What only branches of remotes hold has to stay.
                    Git(made, _own()).text("config", "gc.auto", "0")
                    _fetch(made, place)
                    made.rename(target)
            elif isinstance(place, str):
                _fetch(target, place)


def _fetch(clone: Path, place: str) -> None:
    heads = [f"+refs/{kind}/*:refs/all/{kind}/*" for kind in ("heads", "remotes")]
    words = "fetch", "--quiet", "--end-of-options", place, "+HEAD:refs/all/HEAD", "+refs/tags/*:refs/tags/*", *heads
    Git(clone, _own()).text(*words, timeout=_GIT_S)
