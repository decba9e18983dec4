"""Benchmarks in pytest: collected by the pytest of the project's Python, measured by processes of that Python.

Nothing has to be installed there but pytest: the plugin is imported from here, and needs nothing that pytest does not.
"""

from __future__ import annotations

import os
import re
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cachegrind_bench import process
from cachegrind_bench.errors import MeasurementError, UsageError
from cachegrind_bench.harness.protocol import Batch, Harness, ask, files_below, last_lines, text_of
from cachegrind_bench.harness.pytest_session.reports import read_report
from cachegrind_bench.harness.pytest_session.request import Collected, Item, SessionSettings
from cachegrind_bench.harness.pytest_session.results import Costs, Ended, middle, traceback_of
from cachegrind_bench.harness.pytest_session.session import Relay, run
from cachegrind_bench.hermetic.environment import Request, held_back
from cachegrind_bench.hermetic.scratch import FIRST_SLOT, scratch
from cachegrind_bench.log import LOG
from cachegrind_bench.measure.session import SCRATCH_BASE
from cachegrind_bench.model.result import PYTEST, Benchmark, Score, Status
from cachegrind_bench.startup.exchange import CHECKOUT
from cachegrind_bench.valgrind.failures import advice_on_variables
from cachegrind_bench.vcs.git import top_folder

if TYPE_CHECKING:
    from cachegrind_bench.config.benchmarks import BenchmarkSpec, Entry
    from cachegrind_bench.measure.session import ValgrindSetup
    from cachegrind_bench.startup.exchange import Report

_NO_TESTS = 5  # pytest's exit code
_FILE = re.compile(r"(test|bench).*\.py|.*_(test|bench)\.py")
_TEST = re.compile(rb"^\s*(?:async )?def \w+\([^)]*\bbenchmark\b", re.MULTILINE)
_ROOT = str(Path(__file__).resolve().parents[2])
_SETUP_HINT = (
    'let a set-up command install each commit, as in setup = "pip install --target lib ." with env = ["PYTHONPATH=lib"]'
)
# As the script `pytest` does, whose folder is not in the import path of what it measures: no folder is added. Only our package
# is found where we are: what else is installed there must not be.
# In a worktree, folders of the checkout in the import path, as of an editable install, become its own in their places: so counts are
# those of the checkout.
_START = f"""
import os, sys
sys.path.insert(0, {_ROOT!r})
import cachegrind_bench
from cachegrind_bench.hermetic.place import Checkout
del sys.path[0]
checkout = Checkout.of(os.environ)
if checkout is not None:
    sys.path[:] = [checkout.moved(path) or path for path in sys.path]
cachegrind_bench.__doc__ = "PYTEST_DONT_REWRITE"  # pytest would warn that it comes too late to do so
from importlib.metadata import entry_points
try:
    import pytest
except ModuleNotFoundError as error:
    if error.name != "pytest":
        raise
    sys.exit(f"{{sys.executable}} has no pytest: activate the environment that has it, or name its Python by python = ...")
installed = any(point.name == "cg_bench" for point in entry_points(group="pytest11"))
sys.argv[1:1] = ["-p", "cg_bench" if installed else "cachegrind_bench.pytest_plugin"]
sys.exit(pytest.main())
"""


class Pytest(Harness):
    """Benchmarks are those of `pytest --cg-bench`, by the ids of their nodes."""

    together = True
    none_hint = ": they are tests with the fixture 'benchmark' or one of these markers: benchmark, cg_bench"

    def __init__(self) -> None:
        self._collected: dict[int, Collected] = {}  # by entries, as long as there are these

    def detect(self, root: Path) -> Sequence[str]:
        """Look for tests that use the fixture, and return the innermost folder that has them all."""
        tests = (path for path in files_below(root) if _FILE.fullmatch(os.path.basename(path)))
        found = [path for path in tests if "/site-packages/" not in path and _TEST.search(text_of(Path(path)))]
        return (os.path.relpath(os.path.commonpath(map(os.path.dirname, found)), root),) if found else ()

    def value(self, command: Sequence[str]) -> tuple[str, ...]:
        """Return what follows `pytest`, however it is started; all words where it is not among them."""
        names = [os.path.basename(word) for word in command]
        return tuple(command[names.index("pytest") + 1 :]) if "pytest" in names else tuple(command)

    def listed(self, entry: Entry, environ: Mapping[str, str]) -> Sequence[BenchmarkSpec]:
        """Let pytest collect, and return the benchmarks."""
        found = collected(entry, environ)
        self._collected[id(entry)] = found
        weakref.finalize(entry, self._collected.pop, id(entry), None)
        if found.python.unverified:
            LOG.info(f"{entry.each.place}: {found.python.unverified}")
        return [
            entry.spec(
                item.nodeid,
                (*PYTEST, item.id),
                parameters=item.parameters,
                tags=tuple(dict.fromkeys((*entry.each.tags, *item.tags))),
                scale=item.scale and replace(item.scale, group=entry.named(item.scale.group)),
            )
            for item in found.items
        ]

    def measure(
        self,
        batch: Batch,
        ready: ValgrindSetup,
        done: Callable[[Benchmark, bytes], object],
        skip: Callable[[str, str], object],
    ) -> Sequence[Benchmark]:
        """Measure these, in processes of the Python that collected them."""
        found = self._collected[id(batch.entry)]
        specs = {spec.name: spec for spec in batch.specs}
        found = replace(found, items=tuple(item for item in found.items if item.nodeid in specs))
        settings = SessionSettings(
            environ=batch.environ,
            request=Request.parse((*found.python.variables, *batch.env)),
            jobs=batch.jobs,
            model=batch.model,
            layouts=batch.layouts,
            timeout_ms=batch.timeout_ms,
            require_sealed=batch.require_sealed,
            call_tree=batch.call_tree,
        )
        followed = _Followed(batch, specs, done, skip)
        followed.held_back = held_back(settings.environ, settings.request)
        benchmarks, bench = run(found, settings, ready, followed)
        benchmarks = [replace(item, error=followed.errors.get(item.id, item.error)) for item in benchmarks]
        if batch.python_profile:
            from cachegrind_bench.harness.pytest_session.profiling import check, with_python_profiles

            try:
                check(found.python, "python-profile")
            except UsageError as error:
                if not batch.python_optional:
                    raise
                why = f"its Python functions were not profiled: {error.message}"
                benchmarks = [replace(item, warnings=(*item.warnings, why)) for item in benchmarks]
            else:
                benchmarks = with_python_profiles(bench, benchmarks, lambda _text: None)
        own = {item.id: specs[item.nodeid] for item in found.items}
        return [
            replace(item, id=own[item.id].id, tags=own[item.id].tags, scale=own[item.id].scale) for item in benchmarks
        ]


class _Followed(Relay):
    """Hands on what is known of each benchmark when it has ended; what was sealed is known when its process has."""

    def __init__(
        self,
        batch: Batch,
        specs: Mapping[str, BenchmarkSpec],
        done: Callable[[Benchmark, bytes], object],
        skip: Callable[[str, str], object],
    ) -> None:
        self._batch, self._specs, self._done, self._skip = batch, specs, done, skip
        self._failed = False
        self.held_back: Sequence[str] = ()
        self.errors: dict[str, str] = {}  # with advice, by the ids of items

    def report(self, item: Item, found: Report, costs: Costs) -> None:
        """Hand on why it was skipped, a failure with its traceback, or a score."""
        ended = Ended(item=item, report=found, costs=costs, outcome=None, failure=None)
        trouble, model = ended.trouble, self._batch.model
        spec = self._specs[item.nodeid]
        if ended.skipped is not None:
            self._skip(spec.id, ended.skipped)
            return
        if trouble is None and not costs:  # it is known later what went wrong
            return
        shown = traceback_of(found)
        if trouble is not None and (advice := advice_on_variables(self.held_back, f"{trouble}\n{shown}")):
            trouble = self.errors[item.id] = f"{trouble}\n{advice}"
        value = None if trouble else model.score(middle(costs, model).profile.counts())
        benchmark = Benchmark(
            id=spec.id,
            key="",
            key_fields={},
            command=spec.command,
            parameters=spec.parameters,
            tags=spec.tags,
            status=Status.FAILED if trouble else Status.OK,
            error=trouble,
            score=None if value is None else Score(model=model.name, value=value),
            wall_ms=found.get("wall_ms", 0),
        )
        self._failed = self._failed or trouble is not None
        self._done(benchmark, shown.encode("utf-8", "backslashreplace"))

    def stopped(self) -> bool:
        """Return whether one has failed, and that is to be the end."""
        return self._failed and self._batch.fail_fast


def collected(entry: Entry, environ: Mapping[str, str]) -> Collected:
    """Return what the pytest of this entry collects. MeasurementError if it cannot.

    In a worktree, what is or may be imported from the checkout, as of an editable install, is imported from the worktree.
    """
    cwd, own = entry.each.cwd, [item for item in entry.each.env if "=" in item]
    environ = {**environ, **dict(item.split("=", 1) for item in own)}
    found = _collected(entry, environ)
    if found.copies:
        raise MeasurementError(
            f"{entry.each.place}: {', '.join(found.copies)} is installed as a copy of your checkout, which would be measured in "
            "place of each commit",
            hint=f"install it with 'pip install -e', or {_SETUP_HINT}",
        )
    top, names = top_folder(cwd), dict.fromkeys([*found.elsewhere, *found.reachable])
    if not names or top is None:
        return found
    path = os.pathsep.join([*(os.path.normpath(top / name) for name in names), environ.get("PYTHONPATH", "")])
    found = _collected(
        entry,
        {**environ, "PYTHONPATH": path.rstrip(os.pathsep)},
        f"in the worktree of this commit: where it lacks a file that git does not track, {_SETUP_HINT}",
    )
    if found.elsewhere:
        raise MeasurementError(
            f"{entry.each.place}: pytest imports from {', '.join(found.elsewhere)} of your checkout, not of this commit",
            hint=_SETUP_HINT,
        )
    python = replace(found.python, variables=(*found.python.variables, f"PYTHONPATH={path.rstrip(os.pathsep)}"))
    return replace(found, python=python)


def _collected(entry: Entry, environ: Mapping[str, str], advice: str = "") -> Collected:
    with scratch(SCRATCH_BASE, first=FIRST_SLOT) as folder:  # whose rest, if we are killed, the next run removes
        target = str(folder.path / "collected")
        words = ["--collect-only", "-q", f"--cg-bench-list={target}", *entry.keys["pytest"]]
        argv = [python_of(entry, environ), "-P", "-c", _START, *words]
        done = ask(entry, argv, environ)
        if done.status not in (0, _NO_TESTS) or not os.path.exists(target):
            raise MeasurementError(
                f"{entry.each.place}: pytest could not collect the benchmarks, and ended with {done.end}",
                hint=f"{last_lines(done)}\n{advice}".rstrip(),
            )
        return msgspec.convert(read_report(target), Collected)


def python_of(entry: Entry, environ: Mapping[str, str]) -> str:
    """Return the Python that has pytest and the project. MeasurementError if no such Python is found.

    What is not in a worktree, as git does not track it, is looked for in the checkout.
    """
    cwd, named = entry.each.cwd, entry.keys.get("python")
    folders, top = [cwd], top_folder(cwd)
    if top is not None and CHECKOUT in environ:
        folders.append(Path(environ[CHECKOUT]) / os.path.relpath(cwd, top))
    environment = environ.get("VIRTUAL_ENV")
    if named is None:
        tried = [f"{environment}/bin/python"] if environment else [f"{folder}/.venv/bin/python" for folder in folders]
    else:
        tried = [os.path.join(folder, named) for folder in folders] if os.sep in named else []
    found = next((path for path in tried if os.access(path, os.X_OK)), None)
    if found is None and named is None and find_spec("pytest") is not None:
        return sys.executable
    if found is None and os.sep not in (named or ""):
        found = process.which(named or "python3", environ.get("PATH", os.defpath))
    if found is None:
        raise MeasurementError(
            f"{entry.each.place}: there is no Python {named or 'python3'}", hint="python = names one"
        )
    return found


HARNESS = Pytest()
