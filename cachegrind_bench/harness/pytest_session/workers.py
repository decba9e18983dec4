"""Starts the processes of lanes, measured ones and native ones. Knows Valgrind's sessions; must not know pytest's items."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

from cachegrind_bench.errors import CgBenchError, CommandFailedError, PlaceError
from cachegrind_bench.hermetic import environment
from cachegrind_bench.hermetic.execution import Execution
from cachegrind_bench.hermetic.place import NOWHERE, Checkout, Translation, pairs_of, venv_of
from cachegrind_bench.hermetic.scratch import FIRST_SLOT
from cachegrind_bench.interruption import Cancel
from cachegrind_bench.log import Threads
from cachegrind_bench.measure.command import Command, resolve
from cachegrind_bench.measure.session import default_cpu
from cachegrind_bench.startup import import_finder
from cachegrind_bench.valgrind.options import Collect, Scope, Tool
from cachegrind_bench.valgrind.runner import ValgrindRunner

if TYPE_CHECKING:
    from concurrent.futures import Future

    from cachegrind_bench.hermetic.launch import Outcome
    from cachegrind_bench.measure.session import ValgrindSetup
    from cachegrind_bench.startup.exchange import Exchange, LookUps

CALLS = Collect(scope=Scope.CALLS)
# How Python is called for it to list no folder of its import path but the standard library's: -P, and not -m, as the working
# directory may hold modules of any name, and must not even be listed (CPython 3.13 imports what shows tracebacks before it
# begins with -c). And -S: `begin` does what is left out by it.
OPTIONS = ("-P", "-S")
# Where the plugin is imported from, whether or not it is installed where the tests are.
_PLUGIN = str(Path(__file__).resolve().parents[2])
_ROOT = os.path.dirname(_PLUGIN)
_FINDER = f"{_PLUGIN}/startup/import_finder.py"
# To be followed by other code. The last argument is PYTHONPATH, which Python itself must not see: it would import along it.
# What keeps it from listing is loaded by its path, through what is there when it has started.
CODE = f"""
import sys
from _frozen_importlib import module_from_spec
from _frozen_importlib_external import spec_from_file_location
spec = spec_from_file_location({import_finder.__name__!r}, {_FINDER!r})
sys.modules[spec.name] = import_finder = module_from_spec(spec)
spec.loader.exec_module(import_finder)
import_finder.import_without_listing()
from os.path import abspath
path = sys.argv.pop()
sys.path[:0] = [abspath(folder) for folder in path.split(":") if path]
root = {_ROOT!r}
sys.path.append(root)
from cachegrind_bench.startup.site_init import begin
sys.path.pop()
begin(path)
sys.path.append(root)
"""
# Where its import system is not known to us, it starts in its own way.
_PLAIN_OPTIONS, _PLAIN_CODE = ("-P",), f"import sys\nsys.argv.pop()\nsys.path.append({_ROOT!r})"
# Along the import path of the pytest that was called, from pytest itself on: it imports packages that may be the ones to measure.
_SERVE = """
from marshal import load
with open(sys.argv[1] + "/root", "rb") as file:
    orders = load(file)
sys.path[:] = orders["sys_path"]
from cachegrind_bench.pytest_plugin.inner.server import main
main(orders)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the measured processes run, by which Python, and what they see; `look_ups` are those of benchmarks there, by the ids of their nodes."""

    cwd: Path
    environ: Mapping[str, str]
    request: environment.Request
    python: str
    keep: str = ""  # why they see the project where it is
    verified: bool = True  # whether we know how this Python imports
    look_ups: Mapping[str, LookUps] = field(default_factory=dict[str, Any])

    @property
    def executable(self) -> str:
        """The Python that runs there."""
        return self.command("", "").executable

    @property
    def paths(self) -> Translation:
        """The folders that they see at constant paths; TMPDIR names the one for temporary files."""
        home = self.variables.get("HOME")
        return NOWHERE if self.keep else Translation(pairs_of(str(self.cwd), self.executable, home, plugin=_PLUGIN))

    @property
    def variables(self) -> dict[str, str]:
        """The variables, not yet padded. VIRTUAL_ENV is that of the Python, whether or not it was activated."""
        venv = venv_of(self.python)
        own = {} if venv is None else {"VIRTUAL_ENV": venv}
        others = {name: value for name, value in self.environ.items() if name != "VIRTUAL_ENV"}
        return environment.compose({**others, **own}, self.request, {})

    def command(self, exchange: str, out: str) -> Command:
        """Return the command that serves this folder; PYTHONPATH is its last argument."""
        options, code = (OPTIONS, CODE) if self.verified else (_PLAIN_OPTIONS, _PLAIN_CODE)
        path = self.variables.get("PYTHONPATH", "")
        return resolve((self.python, *options, "-c", code + _SERVE, exchange, out, path), self.environ, self.cwd)


# What watches over a folder while a process serves it.
Watch: TypeAlias = "Callable[[Exchange], AbstractContextManager[object]]"


def _execution(
    place: Place,
    worker: Worker,
    runner: ValgrindRunner,
    *,
    cpu: int | None,
    perf: bool = False,
) -> Execution:
    command = place.command(worker.exchange.path, str(runner.scratch.out))
    argv = command.argv
    if perf:
        from cachegrind_bench.measure.python_profile import with_perf

        argv = with_perf(command)
    return Execution(
        argv=argv,
        executable=command.executable,
        variables={
            name: value for name, value in place.variables.items() if name != "PYTHONPATH" or not place.verified
        },
        cwd=str(place.cwd),
        cpu=cpu,
        timeout_ms=worker.limit_ms,
        held_back=tuple(environment.held_back(place.environ, place.request)),
        plugin=_PLUGIN,
        checkout=Checkout.of(place.environ),
        keep_place=place.keep,
        forks_alike=True,  # a benchmark draws the same bytes wherever it is in its file
    )


class Worker:
    """One measured process: the folder by which it gets orders and, once it has begun, its outcome and its out files.

    It may take `limit_ms`; None is for ever.
    """

    future: Future[Outcome]
    limit_ms: int | None = None

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.out: Path | None = None

    def why_not_moved(self) -> str:
        """Return why its process, which has ended, could not see the project at its constant path; empty if it could."""
        error = self.future.exception()
        if error is None:
            return self.future.result().unsealed.get("place", "")
        unseen = isinstance(error, CommandFailedError) and not error.elsewhere
        return "no mount namespace could be made" if unseen else ""

    def why_unfit(self) -> str:
        """Return what its process, which has ended, can only do where the project is."""
        error = self.future.exception()
        return error.message if isinstance(error, PlaceError) else ""

    def wrote_beside(self) -> bool:
        """Return whether its process, which has ended, has made something next to the project."""
        return self.future.exception() is None and self.future.result().wrote_beside


@dataclass(kw_only=True)
class Workers:
    """Serves folders, each by a measured process, in a thread of its own.

    When a process has ended, `read` gets its worker, its out files' folder, and its trampolines or None. Where they are `native`,
    they run without Valgrind, on the CPUs after those of as many measured ones, and nothing is read.
    """

    valgrind_setup: ValgrindSetup
    place: Place
    echo: Callable[[bytes], None]
    read: Callable[[Any, Path, Any], object]
    collect: Collect = CALLS
    watch: Watch = nullcontext
    native: bool = False
    _cancel: Cancel = field(init=False, default_factory=Cancel)
    _cpus: list[int] = field(init=False, default_factory=list[int])
    _choosing: Lock = field(init=False, default_factory=Lock)

    @contextmanager
    def serving(self, workers: Sequence[Worker]) -> Generator[None]:
        """Serve the folders of these meanwhile; wait for all at the end, or after an error end them.

        What ended one and is not an error that a user can meet is raised again, with its traceback.
        """
        executor = Threads(len(workers), thread_name_prefix="cg-bench")
        try:
            for slot, worker in enumerate(workers, len(workers)):
                if self.native:
                    worker.future = executor.submit(self._serve_natively, worker, default_cpu(slot))
                else:
                    worker.future = executor.submit(self._serve, worker)
            yield
        except BaseException:
            self._cancel.set()
            raise
        finally:
            executor.shutdown(wait=True)
            self._cancel.close()
        for worker in workers:
            if not isinstance(worker.future.exception(), CgBenchError | None):
                worker.future.result()

    def _serve_natively(self, worker: Worker, cpu: int) -> Outcome:
        """Serve a folder without Valgrind, as each command that is measured runs once before: it fills __pycache__."""
        with self._cancel.under(), self.valgrind_setup.session(echo=self.echo, first=FIRST_SLOT) as ready:
            execution = _execution(self.place, worker, ready.runner, cpu=cpu)
            with self.watch(worker.exchange):
                return ready.runner.warm_up(execution)

    def _serve(self, worker: Worker) -> Outcome:
        with self._cancel.under(), self.valgrind_setup.session(echo=self.echo) as ready:
            perf = self.collect.python_depth is not None
            execution = _execution(self.place, worker, ready.runner, cpu=self._cpu(ready.cpu), perf=perf)
            out = worker.out = ready.runner.scratch.out
            with ExitStack() as stack:
                maps = None
                if perf:
                    from cachegrind_bench.measure.perf_maps import PerfMaps

                    maps = stack.enter_context(PerfMaps(out))
                with self.watch(worker.exchange):
                    outcome, _log = ready.runner.execute(execution, self.collect, Tool.CALLGRIND)
                self.read(worker, out, None if maps is None else maps.read(outcome))
            return outcome

    def _cpu(self, wanted: int | None) -> int:
        """Return the CPU that other runs leave free, unless another lane has it: then one that no lane has."""
        allowed = sorted(os.sched_getaffinity(0), reverse=True)
        with self._choosing:
            chosen = min(allowed, key=lambda cpu: (self._cpus.count(cpu), cpu != wanted))
            self._cpus.append(chosen)
        return chosen
