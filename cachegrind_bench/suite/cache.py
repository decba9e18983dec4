"""Stored results that may be used again: those whose runs read only files that have not changed since.

A folder of one file per key, `.cg-bench/cache`: a checksum, the inputs, and the result. Whatever cannot be read or kept costs a
measurement, never an error.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.errors import FileFormatError, StoreError, UsageError
from cachegrind_bench.hermetic import files
from cachegrind_bench.hermetic.place import Checkout
from cachegrind_bench.hermetic.trace_notes import LIST, Input, Recording, is_unchanged, merged
from cachegrind_bench.model.codec import decode, encode
from cachegrind_bench.model.result import Benchmark, Environment, Result, Status
from cachegrind_bench.model.text import printable
from cachegrind_bench.store.baselines import make_store
from cachegrind_bench.store.durable import make_folder, read_file, write_atomic

if TYPE_CHECKING:
    from cachegrind_bench.hermetic.execution import Execution
    from cachegrind_bench.hermetic.launch import Outcome
    from cachegrind_bench.measure.plan import Plan
    from cachegrind_bench.valgrind.options import Collect, Tool
    from cachegrind_bench.valgrind.runner import Measurement, Runner

SCHEMA = "cg-bench.cache/3"


class DamagedError(Exception):
    """The file is not what was written."""


def pack(inputs: Sequence[Input], result: Result) -> bytes:
    """Return the bytes of the file for the only benchmark of this result."""
    # Paths may have bytes that are not text, which only json writes and reads again.
    head = {"schema": SCHEMA, "inputs": [[item.kind, item.path, item.value, *item.stamp] for item in inputs]}
    body = json.dumps(head, separators=(",", ":")).encode() + b"\n" + encode(result)
    return hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def unpack(data: bytes) -> tuple[tuple[Input, ...], bytes]:
    """Return the inputs and the encoded result that `pack` was given. DamagedError if some bytes are lost, or of another version."""
    checksum, _, body = data.partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() != checksum:
        raise DamagedError("its checksum is wrong")
    head, _, result = body.partition(b"\n")
    document = json.loads(head)
    if document["schema"] != SCHEMA:
        raise DamagedError("it is of another version")
    return tuple(Input(kind, path, value, tuple(stamp)) for kind, path, value, *stamp in document["inputs"]), result


_MOST_BYTES = 10**9
_MOST = 1000  # files; the least recently used go first
_SUFFIX = ".cache"
_ADDRESS = re.compile(r" at 0x[0-9a-f]+(?=>)")  # of a function: another one in each process
_DIGITS = 16  # of the checksum that a file begins with


class Cache(msgspec.Struct, frozen=True, kw_only=True):
    """The stored results of one checkout, or of many commits, with `several` results for one key. Threads and processes may share it."""

    folder: Path
    several: bool = False

    @classmethod
    def open(cls, store: Path, shared: str | None = None) -> Cache:
        """Return the cache of this store (`Baselines.store`), or the one that many commits share. UsageError if its folder cannot be made.

        To be called before anything is measured: a folder that appears between two runs changes what they list.
        """
        if shared is not None:
            make_folder(Path(shared))
            return cls(folder=Path(shared), several=True)
        folder = store / "cache"
        make_store(store, folder)
        return cls(folder=folder)

    def lookup(self, key: str) -> Result | str:
        """Return the result of the stored benchmark if everything that its run has read is as it was; else why not.

        The reason completes "measured, since ...". What the plan's --prepare makes must be there: call this between it and --cleanup.
        """
        why = "nothing is stored for it yet"
        for path in sorted(self.folder.glob(f"{key}.*{_SUFFIX}")) if self.several else [self._path(key)]:
            found = self._looked_up(path)
            if not isinstance(found, str):
                return found
            why = found
        return why

    def _looked_up(self, path: Path) -> Result | str:
        try:
            inputs, encoded = unpack(read_file(path, _MOST_BYTES))
            changed = next((item for item in inputs if not is_unchanged(item)), None)
            if changed is not None:
                return _change(changed)
            result = decode(encoded, "stored result")
        except FileNotFoundError:
            return "nothing is stored for it yet"
        except StoreError as error:
            return f"its stored result is of no use: {error.message}"
        except (DamagedError, FileFormatError) as error:
            return f"its stored result is damaged: {path}: {error}"
        with suppress(OSError):
            os.utime(path)  # it is in use
        return result

    def keep(self, key: str, recording: Recording, result: Result) -> str | None:
        """Store the result of a benchmark just measured, in place of an older one; return why not, where it could not be used again.

        What is stored under the key then goes, unless it is the disk that refuses.
        """
        why = _unfit(recording, result.benchmarks[0])
        if why is not None:
            with suppress(OSError):
                self._path(key).unlink()
            return why
        try:
            data = pack(recording.inputs, result)
            write_atomic(self._path(f"{key}.{data[:_DIGITS].decode()}" if self.several else key), data)
        except UsageError as error:
            return error.message
        with suppress(OSError):
            paths = [entry.path for entry in os.scandir(self.folder) if entry.name.endswith(_SUFFIX)]
            for path in sorted(paths, key=os.path.getmtime)[:-_MOST]:
                os.unlink(path)
        return None

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{_SUFFIX}"


def _unfit(recording: Recording, benchmark: Benchmark) -> str | None:
    """Return why a result cannot be used for another run, None if it can."""
    if benchmark.status is not Status.OK:
        return "it did not succeed"
    if recording.incomplete is not None:
        return recording.incomplete
    by_layout: dict[int, object] = {}
    for run in benchmark.runs:
        if by_layout.setdefault(run.layout, run.counts) != run.counts:
            return "its counts vary from run to run"
    return None


def _change(item: Input) -> str:
    path = printable(item.path)
    if item.kind == LIST and files.stamp_of(item.path):
        return f"the names in {path} changed"
    there, was_there = os.path.lexists(item.path), not item.value.startswith("E")
    if there and not was_there:
        return f"{path} has appeared"
    return f"{path} changed" if there else f"{path} is gone"


# Fields of a plan that change no result, or (the first three) are in the key in another form. A new field is in the key
# unless it is named here: that can cost a run too many, never one too few.
_NOT_AS_SUCH = frozenset(("environ", "request", "id", "cpu", "timeout_ms"))


def key_of(
    plan: Plan,
    env: Environment,
    *,
    version: str,
    valgrind: Sequence[str] = (),
    setup: str | None = None,
    loop: object = None,
) -> str:
    """Return the name of all results that this plan may give here while no file changes: 32 hex digits.

    Who we are and which kernel this is decide what the seal can do and which files can be read. Values of variables
    may be secrets: only the hash is ever stored. `valgrind` says where the one that is used lies, and what it counts apart.
    """
    host = os.uname()
    document = {
        "version": version,
        "environment": env.key,
        "valgrind": list(valgrind),
        "host": [host.nodename, host.release, str(os.geteuid())],
        "id": plan.benchmark_id,
        "variables": sorted(plan.variables.items()),
        "setup": setup,
        "loop": _ADDRESS.sub("", repr(loop)),
        "folder": os.path.realpath(plan.cwd),  # of which the plan may have the name of a link
        "plan": {
            name: _ADDRESS.sub("", repr(value))
            for name, value in msgspec.structs.asdict(plan).items()
            if name not in _NOT_AS_SUCH
        },
    }
    checkout = Checkout.of(plan.environ)
    if checkout is not None:
        document["checkout"] = checkout.top  # not what is untracked: stores come into it while commits are measured
    text = json.dumps(document, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(slots=True, kw_only=True)
class RecordingRunner:
    """A runner that has noted what its measured executions have read."""

    runner: Runner
    _recordings: list[Recording] = field(default_factory=list[Recording])

    def warm_up(self, execution: Execution) -> Outcome:
        """Execute once, sealed, without Valgrind."""
        return self.runner.warm_up(execution)

    def measure(self, execution: Execution, collect: Collect, tool: Tool) -> Measurement:
        """Execute once under Valgrind and note what is read."""
        measurement = self.runner.measure(execution._replace(record_files=True), collect, tool)
        self._note(measurement)
        return measurement

    def measure_regions(self, execution: Execution, collect: Collect) -> dict[str, Measurement]:
        """Execute once under Callgrind and note what is read."""
        regions = self.runner.measure_regions(execution._replace(record_files=True), collect)
        for measurement in list(regions.values())[:1]:  # all are of one execution
            self._note(measurement)
        return regions

    def _note(self, measurement: Measurement) -> None:
        missing = Recording(inputs=(), incomplete="what it reads was not recorded")
        self._recordings.append(measurement.outcome.recording or missing)

    def recording(self) -> Recording:
        """Return what all of them have read."""
        return merged(self._recordings)
