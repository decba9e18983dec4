"""What the steps of a job have in common: the folder they share, annotations, the token, and our own commands."""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from cachegrind_bench.ci.credentials import add_setting, for_git
from cachegrind_bench.cli import output
from cachegrind_bench.cli.defaults import configured_store
from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.text import plain
from cachegrind_bench.render.comparison.github import command as workflow_command
from cachegrind_bench.store.durable import write_atomic
from cachegrind_bench.vcs.git import top_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, MutableMapping, Sequence

    from cachegrind_bench.ci.event import Event
    from cachegrind_bench.ci.github import Client

Function = TypeVar("Function", bound="Callable[..., Any]")

NO_STORE = "none"
# Where jobs on machines that are gone tomorrow can keep a history without anything else.
_STORE = "git:cg-bench-data"
# What another step made. All are in the folder that `ci plan` made.
REPORT, VERDICT, MISSING = "report.md", "verdict.json", "missing.txt"
_TOKENS = ("CG_BENCH_TOKEN", "GITHUB_TOKEN", "GH_TOKEN")
# Inputs of the action that are no business of the commands it runs.
_INPUTS = frozenset(
    f"CG_BENCH_{name}"
    for name in (
        *("MODE", "COMMAND", "RESULT", "CONFIG", "ID", "SHARD", "JOBS"),
        *("INDEX", "FOLDER", "BASE", "HOLD", "RUN", "ARTIFACT"),
        *("THRESHOLD", "METRIC", "BASELINE", "REQUIRE_BASELINE", "FAIL_ON", "COMMENT", "STORE", "ISSUES"),
    )
)


def folder_option(function: Function) -> Function:
    """Take the folder that the steps of a job share, as `folder`."""
    return click.option(
        "--folder",
        required=True,
        type=click.Path(exists=True, file_okay=False),
        help="Where the steps of this job keep their files; 'cg-bench ci plan' makes it.",
    )(function)


def store_name_option(function: Function) -> Function:
    """Take the store, as `store`: empty is the configuration's, `none` is none at all."""
    return click.option("--store", default="", metavar="URL", help="History, as for 'cg-bench run', or 'none'.")(
        function
    )


def history(store: str) -> str | None:
    """Return the URL of the store that is meant by `store_name_option`; None is the configuration's."""
    return store or (None if configured_store() else _STORE)


def history_words(store: str) -> list[str]:
    """Return the options that name this store to our own commands."""
    url = history(store)
    return [] if url is None else ["--store", url]


def command_words(text: str | None, identity: str | None) -> list[str]:
    """Return the words for `run` of a command that was given as one text; none for a suite. ValueError if it is no command."""
    if not text or not text.strip():
        return []
    return [*(["--id", identity] if identity else []), "--", *shlex.split(text)]


def data(folder: str) -> Path:
    """Return the folder of what becomes the artifact: only what others may need, and nothing else."""
    return Path(folder) / "artifact"


def token_option(function: Function) -> Function:
    """Take the job's token, as `token`."""
    return click.option("--token", metavar="TOKEN", help="GitHub's token, for its API and for git.")(function)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a comparison came to. `changed` tells whether there is anything to comment on."""

    headline: str
    code: int
    changed: bool


def write_verdict(folder: str, verdict: Verdict) -> None:
    """Hand the verdict to later steps."""
    write_atomic(Path(folder) / VERDICT, msgspec.json.encode(verdict))


def read_verdict(folder: str) -> Verdict:
    """Return what `write_verdict` wrote. UsageError if there is none."""
    path = Path(folder) / VERDICT
    try:
        found = json.loads(path.read_text("utf-8"))
        return Verdict(headline=str(found["headline"]), code=int(found["code"]), changed=bool(found["changed"]))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UsageError(f"cannot read {path}: {error}", hint="'cg-bench ci compare' writes it") from error


def write_missing(folder: str, number: int) -> None:
    """Hand on how many benchmarks of a suite are in no part that was collected."""
    write_atomic(Path(folder) / MISSING, str(number).encode())


def read_missing(folder: str) -> str | None:
    """Return in words that parts of the suite are missing; None if none is known to be."""
    path = Path(folder) / MISSING
    number = int(path.read_text("ascii")) if path.exists() else 0
    what = "benchmark of the suite was" if number == 1 else "benchmarks of the suite were"
    return f"{number} {what} not measured: a job that measured a part left no result" if number else None


def say(text: str) -> None:
    """Write a line to the log, of which GitHub takes no part for a command."""
    output.write(f"cg-bench: {harmless(plain(text))}\n")


def harmless(text: str) -> str:
    """Return text without what GitHub's runner takes for a command in the middle of a line, the older form of them."""
    return text.replace("##[", "##\u200b[")


def annotate(level: str, message: str) -> None:
    """Write an annotation: a `notice`, `warning` or `error` that GitHub shows with the job."""
    output.write(workflow_command(level, "cg-bench", plain(message)))


@contextmanager
def unheard() -> Generator[None]:
    """Let GitHub take nothing for a command that is written inside: programs and names may contain anything."""
    word = secrets.token_hex(16)
    output.write(f"::stop-commands::{word}\n")
    try:
        yield
    finally:
        output.write(f"::{word}::\n")


@contextmanager
def group(title: str) -> Generator[None]:
    """Let GitHub fold what is written inside, and take nothing of it for a command."""
    output.write(f"::group::{plain(title)}\n")
    try:
        with unheard():
            yield
    finally:
        output.write("::endgroup::\n")


def own_command(words: Sequence[str]) -> tuple[int | None, str]:
    """Run a cg-bench of our own, whose output is ours. Return its exit code, None if a signal ended it, and the error it told."""
    from cachegrind_bench import process

    done = process.run(
        [sys.executable, "-I", "-m", "cachegrind_bench", *words],
        cwd=Path.cwd(),
        env={name: value for name, value in os.environ.items() if name not in _INPUTS and name not in _TOKENS},
        echo=lambda chunk: output.write(bytes(chunk)),
    )
    told = re.findall(r"^cg-bench: error: (.+)$", done.stderr.decode("utf-8", "replace"), re.MULTILINE)
    return done.status, told[-1] if told else "the reason is in the log"


def use_token(event: Event, token: str | None) -> None:
    """Let git, in this process and those it starts, use the token; what it fetches may be private."""
    for name in _TOKENS:
        os.environ.pop(name, None)
    if token:
        for_git(os.environ, event.server_url, token)


def trust_workspace(environ: MutableMapping[str, str]) -> None:
    """Let git read the checkout in a container, where it belongs to the user outside; actions/checkout says so only to itself."""
    for place in filter(None, {environ.get("GITHUB_WORKSPACE"), str(top_folder(Path.cwd()) or "")}):
        add_setting(environ, "safe.directory", place)


def client(event: Event, token: str | None) -> Client:
    """Return GitHub's API for the repository of this job. UsageError without a token."""
    from cachegrind_bench.ci.github import Client

    if not token:
        raise UsageError("there is no token for GitHub's API", hint="the action's input 'token' has one by default")
    return Client(api_url=event.api_url, repository=event.repository, token=token)
