"""The result of a job: measured with 'run' or 'ab', taken from an earlier step, or collected from what other jobs measured."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.ci.artifact import BASE, MOST_SENT, RESULT, RESULTS, unpack
from cachegrind_bench.ci.plan import Keep
from cachegrind_bench.ci.runner import harmless
from cachegrind_bench.compare.explained import FINE, REGRESSION
from cachegrind_bench.config.command import shell_sign
from cachegrind_bench.errors import FileFormatError, MeasurementError, NotComparableError, UsageError
from cachegrind_bench.model.codec import decode, encode
from cachegrind_bench.model.text import plain
from cachegrind_bench.store.durable import write_atomic
from cachegrind_bench.suite.merge import merged, missing_from
from cachegrind_bench.usecases.ci.job import MISSING, Job, command_words
from cachegrind_bench.usecases.result_files import read_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.ci.github import Artifact

_ENDED_WELL = (FINE, MeasurementError.exit_code)  # 4: some benchmarks failed, which the result says
_COMPARED = (FINE, REGRESSION, NotComparableError.exit_code, MeasurementError.exit_code)
_MOST_ARTIFACTS = 256  # as many jobs as a matrix may have
_MOST_BYTES = 100_000_000  # unpacked, of all; hostile JSON takes many times as much memory


class MeasureRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to measure: a command (`text`, with its `identity`), or the suite; or the `result` of an earlier step to take.

    `base` is a commit to measure too.
    """

    text: str | None
    identity: str | None
    result: str | None
    shard: str | None
    jobs: str | None
    base: str | None


def measure(job: Job, request: MeasureRequest) -> None:
    """Leave the result in the job's folder. Benchmarks that fail are in it, and do not end the job here."""
    result = job.data / RESULT
    if request.result:
        others = {"command": request.text, "id": request.identity, "shard": request.shard, "jobs": request.jobs}
        others["baseline: ab"] = request.base
        _take(job, request.result, [name for name, value in others.items() if value])
        return
    words = _words(request)
    if not request.base:
        _run(job, ["run", "-o", str(result), *words], _ENDED_WELL, [result])
        return
    if request.shard:
        raise UsageError(
            "baseline: ab always measures the whole suite of both commits",
            hint="leave out 'shard', or take another baseline",
        )
    kept = job.folder / "ab"
    sides = {"candidate.json": RESULT, "base.json": BASE}
    _run(job, ["ab", "--keep", str(kept), request.base, *words], _COMPARED, [kept / side for side in sides])
    for side, name in sides.items():
        os.replace(kept / side, job.data / name)


def _take(job: Job, path: str, others: list[str]) -> None:
    """Copy a result that an earlier step made. UsageError if it cannot be read, or there are inputs for measuring."""
    if others:
        raise UsageError(
            f"result and {others[0]} exclude each other",
            hint="the result is measured already; leave out one of the two",
        )
    data = read_bytes(path)
    found = decode(data, path)
    count, commit = len(found.benchmarks), found.commit
    head = job.repository.commit("HEAD")
    if commit is not None and head is not None and commit.sha != head:
        raise UsageError(
            f"{path} is of commit {commit.sha[:12]}, and {head[:12]} is checked out",
            hint="measure in this job, after checkout",
        )
    write_atomic(job.data / RESULT, data)
    job.runner.say(f"taken from {path}: {count} benchmark(s)")


def _words(request: MeasureRequest) -> list[str]:
    """Return the options and the command for `run`. UsageError where it is not a command, or one for a shell."""
    text = (request.text or "").strip()
    options = ["--shard", request.shard] if request.shard else []
    options += ["--jobs", request.jobs] if request.jobs else []
    if not text:
        if request.identity:
            raise UsageError(
                "id names the benchmark of a command, but there is no command", hint="add the input 'command'"
            )
        return options
    if "\n" in text:
        raise UsageError("command: there are several lines", hint="one command; several are a suite: 'cg-bench init'")
    try:
        words = command_words(text, request.identity)
    except ValueError as error:
        raise UsageError(f"command: {error}: {request.text}", hint="as in a shell, quotes come in pairs") from error
    sign = shell_sign(text)
    if sign is not None:
        raise UsageError(f"command: it has {sign!r}, but no shell runs it", hint=f"write: sh -c {shlex.quote(text)}")
    return [*options, *words]


def _run(job: Job, words: list[str], ended_well: tuple[int, ...], made: list[Path]) -> None:
    job.runner.write(f"$ cg-bench {harmless(plain(shlex.join(words)))}\n")
    with job.runner.unheard():
        status, why, advice = job.run(words)
    if status not in ended_well or not all(path.exists() for path in made):
        hints = [advice or "the log has all messages"]
        if words[0] == "ab":
            hints.append(
                "what the job has built is not in the worktrees of 'ab': a suite's set-up commands build there"
            )
        raise MeasurementError(f"nothing was measured: {why}", hint="; ".join(hints))


def collect(job: Job, run: int) -> None:
    """Fetch what other jobs measured: the artifacts of a run, checked and merged into one result.

    Whoever opened a pull request may have made them, so they are data and nothing else. UsageError, ApiError or FileFormatError
    for any that is not exactly what `measure` leaves.
    """
    api = job.client()
    wanted = _wanted(api.artifacts(run), elsewhere=job.event.run is not None)
    if not wanted:
        raise UsageError(
            f"run {run} has no result of cg-bench among its artifacts",
            hint="the measuring job must end with this action's upload; check 'needs' and 'if' of this job",
        )
    results: dict[str, bytes] = {}
    bases: dict[str, bytes] = {}
    size = 0
    for artifact in wanted:
        files = unpack(api.download(artifact, MOST_SENT), artifact.name, RESULTS)
        size += sum(map(len, files.values()))
        if size > _MOST_BYTES:
            raise UsageError(f"the artifacts of run {run} are too large: more than {_MOST_BYTES} bytes")
        results[artifact.name] = files[RESULT]
        if BASE in files:
            bases[artifact.name] = files[BASE]
        job.runner.say(f"{artifact.name}: {', '.join(sorted(files))}")
    whole, missing = _merged(results)
    write_atomic(job.data / RESULT, whole)
    if missing:
        write_atomic(job.folder / MISSING, str(missing).encode())
    if bases:
        write_atomic(job.data / BASE, _merged(bases)[0])


def _wanted(artifacts: Sequence[Artifact], *, elsewhere: bool) -> list[Artifact]:
    """Return the artifacts to take, the last of each name: of another run (`elsewhere`) what came out in the end, of our own the parts."""
    for beginning in (Keep.COLLECTED, Keep.RESULT, Keep.PART) if elsewhere else (Keep.PART, Keep.RESULT):
        ours = (item for item in artifacts if item.name.startswith(beginning))
        found = {item.name: item for item in sorted(ours, key=lambda item: item.age)}
        if len(found) > _MOST_ARTIFACTS:
            raise UsageError(
                f"{len(found)} artifacts named {beginning}…: more than {_MOST_ARTIFACTS} are not collected"
            )
        if found:
            return [found[name] for name in sorted(found)]
    return []


def _merged(files: Mapping[str, bytes]) -> tuple[bytes, int]:
    """Return all in one result, and how many benchmarks of the suite are in none.

    FileFormatError for what is not a result, NotComparableError if they do not belong together.
    """
    # With their profiles: what is wrong in one is an error of the sender; later it would be ours.
    results = [(name, decode(data, name)) for name, data in files.items()]
    if not any(result.benchmarks for _, result in results):  # of many parts, some may be empty
        raise FileFormatError("a result without benchmarks", path=results[0][0])
    whole = encode(merged(results)) if len(files) > 1 else next(iter(files.values()))
    return whole, missing_from([result for _, result in results])
