"""`cg-bench ci collect`: results of other jobs, fetched as data, checked, and merged into one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from cachegrind_bench.ci.artifact import BASE, MOST_SENT, RESULT, unpack
from cachegrind_bench.ci.event import read_event
from cachegrind_bench.ci.plan import COLLECTED, PART
from cachegrind_bench.ci.plan import RESULT as RESULTS
from cachegrind_bench.cli.ci_job import client, data, folder_option, say, token_option, write_missing
from cachegrind_bench.errors import FileFormatError, UsageError
from cachegrind_bench.store.durable import write_atomic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cachegrind_bench.ci.github import Artifact

_MOST_ARTIFACTS = 256  # as many jobs as a matrix may have
_MOST_BYTES = 100_000_000  # unpacked, of all; hostile JSON takes many times as much memory


@click.command("collect", epilog='\b\nExamples:\n  cg-bench ci collect --folder "$FOLDER" --run 123456789')
@click.option("--run", type=int, required=True, metavar="ID", help="The run of a workflow whose artifacts are wanted.")
@folder_option
@token_option
def command(run: int, folder: str, token: str | None) -> None:
    """Fetch what other jobs measured: the artifacts of a run, checked and merged into one result.

    Whoever opened a pull request may have made them, so they are data and nothing else. An artifact that is not exactly what
    'cg-bench ci measure' leaves ends the step.
    """
    event = read_event(os.environ)
    api = client(event, token)
    wanted = _wanted(api.artifacts(run), elsewhere=event.run is not None)
    if not wanted:
        raise UsageError(
            f"run {run} has no result of cg-bench among its artifacts",
            hint="the measuring job has to end with this action's upload; see 'needs' and 'if' of this job",
        )
    results: dict[str, bytes] = {}
    bases: dict[str, bytes] = {}
    size = 0
    for artifact in wanted:
        files = unpack(api.download(artifact, MOST_SENT), artifact.name, {RESULT: True, BASE: False})
        size += sum(map(len, files.values()))
        if size > _MOST_BYTES:
            raise UsageError(f"the artifacts of run {run} are too large: together more than {_MOST_BYTES} bytes")
        results[artifact.name] = files[RESULT]
        if BASE in files:
            bases[artifact.name] = files[BASE]
        say(f"{artifact.name}: {', '.join(sorted(files))}")
    whole, missing = _merged(results)
    write_atomic(data(folder) / RESULT, whole)
    if missing:
        write_missing(folder, missing)
    if bases:
        write_atomic(data(folder) / BASE, _merged(bases)[0])


def _wanted(artifacts: Sequence[Artifact], *, elsewhere: bool) -> list[Artifact]:
    """Return the artifacts to take, the last of each name: of another run (`elsewhere`) what came out in the end, of our own the parts."""
    for beginning in (COLLECTED, RESULTS, PART) if elsewhere else (PART, RESULTS):
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

    FileFormatError for what is no result, NotComparableError if they do not belong together.
    """
    from cachegrind_bench.model.codec import decode, encode
    from cachegrind_bench.suite.merge import merged, missing_from

    # With their profiles: what is wrong in one is an error of who sent it; later it would be ours.
    results = [(name, decode(data, name)) for name, data in files.items()]
    if not any(result.benchmarks for _, result in results):  # of many parts, some may be empty
        raise FileFormatError("a result without benchmarks", path=results[0][0])
    whole = encode(merged(results)) if len(files) > 1 else next(iter(files.values()))
    return whole, missing_from([result for _, result in results])
