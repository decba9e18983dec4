"""A job of GitHub Actions: what its steps share, the step that plans it, and the one that ends it."""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench import process
from cachegrind_bench.ci.artifact import RESULT
from cachegrind_bench.ci.event import Event, read_event
from cachegrind_bench.ci.plan import Hold, Mode, artifact_name, plan
from cachegrind_bench.ci.runner import Runner, add_token
from cachegrind_bench.errors import CgBenchError, MeasurementError, UsageError
from cachegrind_bench.model.parsing import parse
from cachegrind_bench.model.text import plain, shortened
from cachegrind_bench.render.comparison.github import command
from cachegrind_bench.startup.exchange import ITERATIONS
from cachegrind_bench.store.durable import store_errors, write_atomic
from cachegrind_bench.usecases.ci.base import commit_to_measure
from cachegrind_bench.usecases.comparison_inputs import resolve
from cachegrind_bench.usecases.numbers import handed_over, may_loop, numbers_of, stored
from cachegrind_bench.usecases.result_files import read_regular, read_regular_result, read_result
from cachegrind_bench.vcs.revisions import Repository
from cachegrind_bench.waiting import Waiting

if TYPE_CHECKING:
    from cachegrind_bench.ci.github import Client
    from cachegrind_bench.model.codec import ResultFile
    from cachegrind_bench.store.protocol import Store

# What another step made. All are in the folder that `ci plan` made.
REPORT, VERDICT, MISSING, NUMBERS = "report.md", "verdict.json", "missing.txt", "iterations.json"
_LONGEST_ADVICE = 400  # it may quote what a program said
_COMPARE = "'cg-bench ci compare' writes it"
_CONFIGURATIONS = ("cg-bench.toml", "pyproject.toml")
_TOKENS = ("CG_BENCH_TOKEN", "GITHUB_TOKEN", "GH_TOKEN")
# Inputs of the action that the commands it runs must not see.
_INPUTS = frozenset(
    f"CG_BENCH_{name}"
    for name in (
        *("MODE", "COMMAND", "RESULT", "CONFIG", "ID", "SHARD", "JOBS"),
        *("INDEX", "FOLDER", "BASE", "HOLD", "RUN", "ARTIFACT"),
        *("THRESHOLD", "METRIC", "BASELINE", "REQUIRE_BASELINE", "FAIL_ON", "COMMENT", "STORE", "ISSUES"),
    )
)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a comparison came to. `changed`: whether there is anything to comment on."""

    headline: str
    code: int
    changed: bool


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """The job by its event, and the folder that its steps share."""

    runner: Runner
    event: Event
    cwd: Path
    folder: Path
    token: str | None = None

    @property
    def data(self) -> Path:
        """The folder of what becomes the artifact: only what others may need, and nothing else."""
        return self.folder / "artifact"

    @property
    def repository(self) -> Repository:
        """The checkout."""
        return _repository(self.runner, self.cwd)

    def result(self, name: str = RESULT) -> ResultFile:
        """Return what was measured or collected, or another result of the folder."""
        return read_regular_result(self.data / name)

    def client(self) -> Client:
        """Return GitHub's API for the repository of this job. UsageError without a token."""
        from cachegrind_bench.ci.github import Client

        if not self.token:
            raise UsageError("there is no token for GitHub's API", hint="the action's input 'token' has one by default")
        return Client(api_url=self.event.api_url, repository=self.event.repository, token=self.token)

    def write_verdict(self, verdict: Verdict) -> None:
        """Hand the verdict to later steps."""
        write_atomic(self.folder / VERDICT, msgspec.json.encode(verdict))

    def verdict(self) -> Verdict:
        """Return what `write_verdict` wrote. UsageError if there is none."""
        path = self.folder / VERDICT
        return parse(read_regular(path, _COMPARE), Verdict, str(path))

    def missing(self) -> str | None:
        """Return in words that parts of the suite are missing; None if none is known to be."""
        path = self.folder / MISSING
        number = int(path.read_bytes()) if path.exists() else 0
        what = "benchmark of the suite was" if number == 1 else "benchmarks of the suite were"
        return f"{number} {what} not measured: a job that measured a part left no result" if number else None

    def run(self, words: Sequence[str]) -> tuple[int | None, str, str]:
        """Run a cg-bench of our own, whose output is ours. Return its exit code, None if a signal ended it, its error and advice."""
        done = process.run(
            [sys.executable, "-I", "-m", "cachegrind_bench", *words],
            cwd=self.cwd,
            env={
                **{name: value for name, value in self.runner.environ.items() if name not in {*_INPUTS, *_TOKENS}},
                **({ITERATIONS: str(numbers)} if (numbers := self.folder / NUMBERS).exists() else {}),
            },
            echo=lambda chunk: self.runner.write(bytes(chunk)),
            guarded=True,
            tidies=True,
        )
        return done.status, *_reason(done.stderr.decode("utf-8", "replace"))


def _reason(said: str) -> tuple[str, str]:
    """Return the error that a cg-bench ended with, and the advice."""
    errors = re.findall(r"^cg-bench: error: (.+)\n?((?:  .+\n?)*)", said, re.MULTILINE)
    if not errors:
        return "the reason is in the log", ""
    message, advice = errors[-1]
    return message, shortened("; ".join(map(str.strip, advice.splitlines())), _LONGEST_ADVICE)


def _repository(runner: Runner, cwd: Path) -> Repository:
    return Repository(cwd=cwd, environ=dict(runner.environ), waiting=Waiting())


def command_words(text: str | None, identity: str | None) -> list[str]:
    """Return the words for `run` of a command that was given as one text; none for a suite. ValueError if it is not a command."""
    if not text or not text.strip():
        return []
    return [*(["--id", identity] if identity else []), "--", *shlex.split(text)]


def annotate(runner: Runner, level: str, message: str) -> None:
    """Write an annotation: a `notice`, `warning` or `error` that GitHub shows with the job."""
    runner.write(command(level, "cg-bench", plain(message)))


def use_token(runner: Runner, event: Event, token: str | None) -> None:
    """Let git, in this process and those it starts, use the token; what it fetches may be private."""
    for name in _TOKENS:
        runner.environ.pop(name, None)
    if token:
        add_token(runner.environ, event.server_url, token)


class PlanRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of the action that say what a job has to do; `open_store` is None if there is no history."""

    mode: str
    config: str | None
    text: str | None
    identity: str | None
    shard: str | None
    baseline: str
    index: str | None
    open_store: Callable[[], Store] | None
    token: str | None


def plan_job(runner: Runner, request: PlanRequest, cwd: Path) -> None:
    """Find out what this job has to do, and set it as outputs of the step."""
    event = read_event(runner.environ)
    made = plan(event, Mode(request.mode), shard=bool(request.shard), store=request.open_store is not None)
    if made.notice:
        annotate(runner, "notice", made.notice)
    directory = _directory(request.config, cwd)
    base = ""
    if made.measure and made.compare and request.baseline == "ab":
        use_token(runner, event, request.token)
        base = commit_to_measure(event, _repository(runner, directory))
    place = runner.environ.get("RUNNER_TEMP") or tempfile.gettempdir()
    with store_errors(Path(place), "make a folder in"):
        folder = tempfile.mkdtemp(prefix="cg-bench-", dir=place)
    job = Job(runner=runner, event=event, cwd=directory, folder=Path(folder))
    job.data.mkdir()
    if made.measure and request.baseline != "ab" and not request.text and may_loop(directory):
        use_token(runner, event, request.token)
        handed_over(_numbers(request, directory), job.folder / NUMBERS)
    # What tells several uses in one job apart; nothing where there need be only one.
    within = os.path.relpath(cwd, runner.environ.get("GITHUB_WORKSPACE") or cwd)
    parts = (request.identity or request.config or request.text or "", "" if within == "." else within)
    what = " ".join(filter(None, parts))
    steps = {name: getattr(made, name) for name in ("measure", "collect", "compare", "comment", "store", "trend")}
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value or "") for name, value in steps.items()}
    runner.set_outputs(
        {
            "directory": str(directory),
            "folder": folder,
            **texts,
            "artifact": artifact_name(made.keep, event.job, request.index or "", what) if made.keep else "",
            "hold": made.hold.value,
            "base": base,
        }
    )
    runner.say(f"{event.name}: {', '.join(name for name, value in steps.items() if value) or 'nothing to do'}")


def _numbers(request: PlanRequest, cwd: Path) -> dict[str, int]:
    """Return how many iterations the benchmarks of the base count, as far as it can be read: the comparison says what is wrong with it."""
    kind, _, path = request.baseline.partition(":")
    with suppress(CgBenchError):
        if kind == "file":
            return numbers_of(read_result(resolve(path, cwd)).result.benchmarks)
        if request.open_store is not None:
            with request.open_store() as store:
                return stored(store)
    return {}


def _directory(config: str | None, cwd: Path) -> Path:
    """Return where commands are run: where the configuration is, if one is named."""
    if not config:
        return cwd
    path = Path(config)
    if path.name not in _CONFIGURATIONS or not path.is_file():
        raise UsageError(
            f"config: {config!r} is not a file named {' or '.join(_CONFIGURATIONS)}", hint="'cg-bench init' writes one"
        )
    return path.parent.absolute()


def gate(job: Job, hold: Hold) -> int:
    """Return the exit code of the job, after all has been reported."""
    if hold is Hold.NOTHING:
        return 0
    result = job.result().result
    sha = None if result.commit is None else result.commit.sha
    compared = (job.folder / VERDICT).exists()
    # What the job was given may not be what it checked out.
    if hold is Hold.VERDICT or (compared and not job.event.accepts(sha)):
        found = job.verdict()
        job.runner.say(found.headline)
        return found.code
    failed, missing = result.failed, job.missing()
    if not failed and missing is None:
        return 0
    message = missing or f"{len(failed)} of the benchmarks failed: {', '.join(failed[:5])}"
    if not compared:  # otherwise it has reported that already
        raise MeasurementError(message, hint="their output is in the log of the job that measured them")
    job.runner.say(message)
    return MeasurementError.exit_code
