"""Runs a workflow with `act` on this machine, without containers and without the network.

Other people's actions are the stand-ins in tests/actions. A workflow that names an action or an input that does not
exist there fails before it starts, which act itself would not notice.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Ran", "Step", "find", "problems", "run"]

ROOT = Path(__file__).resolve().parent.parent
STAND_INS = Path(__file__).resolve().parent / "actions"
TOOLS = ROOT / ".tools" / "actions"

_RUNNERS = ("ubuntu-latest", "ubuntu-24.04", "ubuntu-22.04")
# Nobody listens there: what does not lead to this machine fails at once.
_NO_PROXY = "http://127.0.0.1:9"
_INDEX = "CG_BENCH_TEST_JOB_INDEX"
_END = "End of the action"
_NOTHING = 1 << 16  # the depth of blank lines and comments: they are in whatever is around them

_USES = re.compile(r"""^(?P<lead>\s*(?:-\s+)?)uses:\s*["']?(?P<action>[^\s"'#]+)""")
_KEY = re.compile(r"""^(?P<lead>\s*(?:-\s+)?)["']?(?P<key>[\w-]+)["']?:(?:\s+(?P<rest>.*))?$""")
_STRATEGY = re.compile(r"^(?P<indent> +)strategy:\s*(?:#.*)?$")
_STEPS = re.compile(r"^(?P<indent> +)steps:\s*(?:#.*)?$")
_ANNOTATION = re.compile(r"::(?:error|warning|notice)(?: [^\n]*?)?::")

# act gives each step a terminal, and those of an action its inputs as INPUT_*; a runner of GitHub's does neither. Our
# bash comes first on PATH and takes both away again.
_BASH = """#!{bash}
[ -t 1 ] || exec {bash} "$@"
unset "${{!INPUT_@}}"
{bash} "$@" </dev/null 2>&1 | cat
exit "${{PIPESTATUS[0]}}"
"""

# The number of a job in its matrix, which act does not know. With one job at a time, they come in the matrix's order.
_NUMBERING = (
    "- name: Number of the job",
    "  shell: bash",
    "  run: |",
    '    n=0; while ! mkdir "$CG_BENCH_TEST_CELLS/$GITHUB_JOB-$n" 2>/dev/null; do n=$((n + 1)); done',
    f'    echo "{_INDEX}=$n" >>"$GITHUB_ENV"',
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step that ran (skipped ones are not there); a composite action's own steps have a longer `path` of ids."""

    job: str
    path: tuple[str, ...]
    name: str
    succeeded: bool
    matrix: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a run left: nothing is masked, so that a test sees what leaks.

    `annotations` are whole lines, `::error file=a.c::text`. `outputs` has those of each step that ran under
    "job/step", and of steps of a composite action under "job/step/inner step"; of a matrix, the last job's.
    `jobs` has "success" or "failure" of each job that was not skipped.
    """

    status: int
    log: str
    summary: str
    annotations: list[str]
    outputs: Mapping[str, Mapping[str, str]]
    jobs: Mapping[str, str]
    steps: tuple[Step, ...]


def find(name: str) -> Path:
    """Return act or actionlint, or end the test.

    What those who hand it out refuse is no fault of this project: without it, its tests are skipped in CI as well.
    """
    program = TOOLS / "bin" / name
    if not program.exists():
        import pytest

        from tests.conftest import without

        refused = TOOLS / f"{name}.refused"
        if refused.exists():
            pytest.skip(f"no {name}: {refused.read_text('utf-8').strip()}")
        without(f"no {name} in .tools/actions (`tests/tools/fetch-actions-tools .tools/actions` says why)")
    return program


def run(
    workflow: Path,
    *,
    event: str,
    payload: Mapping[str, object],
    repository: Path,
    origin: Path | str,
    artifacts: Path,
    api_url: str,
    token: str,
    actions: Mapping[str, Path] | None = None,
    environ: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
    run_id: int = 1,
    only_job: str | None = None,
    network: bool = False,
    timeout: float = 300,
) -> Ran:
    """Run a workflow for an event, in a clean environment, and return what came of it.

    `repository` is the work tree that local actions are checked against; the steps' workspace is empty until
    actions/checkout fills it from `origin`, a bare repository or a URL. `actions` has more actions, or others, by
    "OWNER/NAME"; of a work tree, what git does not ignore is taken. `environ` is added to the environment of all steps,
    `variables` are those of the repository (`vars`).
    What runs after `timeout` seconds is killed, and that is an error.
    """
    act = find("act")
    known = {f"{path.parent.parent.name}/{path.parent.name}": path.parent for path in STAND_INS.glob("*/*/action.yml")}
    known |= actions or {}
    if found := problems(workflow, known, repository):
        raise AssertionError("\n".join(found))
    with tempfile.TemporaryDirectory(prefix="act-") as name:
        folder = Path(name)
        for part in ("home", "cwd", "bin", "cells", "workflow"):
            (folder / part).mkdir()
        artifacts.mkdir(parents=True, exist_ok=True)
        _write_bash(folder / "bin")
        copy = folder / "workflow" / workflow.name
        copy.write_text(_adapted(workflow.read_text(encoding="utf-8")), encoding="utf-8")
        outer = _outer_environment(folder, network=network) | {
            "CG_BENCH_TEST_ORIGIN": str(origin),
            "CG_BENCH_TEST_ARTIFACTS": str(artifacts),
            "CG_BENCH_TEST_CELLS": str(folder / "cells"),
            **(environ or {}),
        }
        github = _github_environment(event, payload, str(origin), workflow.name) | {
            "GITHUB_API_URL": api_url,
            "GITHUB_GRAPHQL_URL": f"{api_url}/graphql",
            "GITHUB_RUN_ID": str(run_id),
            "GITHUB_RUN_NUMBER": "1",
        }
        # act reads .yml as YAML, so as JSON: no quoting, and no secret in a process list.
        files = {"event.json": payload, "env.yml": github, "secrets.yml": {"GITHUB_TOKEN": token}, "none.yml": {}}
        files["vars.yml"] = dict(variables or {})
        for file, content in files.items():
            (folder / file).write_text(json.dumps(content), encoding="utf-8")
        mapped = {action: _source(path, folder / "actions" / action) for action, path in known.items()}
        command = [str(act), event, "-C", str(repository), "-W", str(copy), "-e", str(folder / "event.json")]
        command += [f"--platform={runner}=-self-hosted" for runner in _RUNNERS]
        command += [f"--local-repository={use}={mapped[_name(use)]}" for use in _all_uses(workflow, mapped, repository)]
        command += [f"--env-file={folder / 'env.yml'}", f"--secret-file={folder / 'secrets.yml'}"]
        command += [f"--var-file={folder / 'vars.yml'}", f"--input-file={folder / 'none.yml'}"]
        command += [f"--action-cache-path={folder / 'cache'}", "--action-offline-mode", "--pull=false"]
        command += ["--no-cache-server", "--container-daemon-socket=-", "--no-skip-checkout", "--rm"]
        command += [
            "--json",
            "--insecure-secrets",
            f"--actor={github['GITHUB_TRIGGERING_ACTOR']}",
            "--concurrent-jobs=1",
        ]
        command += ["--job", only_job] if only_job else []
        status, text = _call(command, env=outer, cwd=folder / "cwd", log=folder / "log", timeout=timeout)
    return _read(status, text)


# --- What a workflow names -------------------------------------------------------------------------------------------------


def problems(workflow: Path, actions: Mapping[str, Path], repository: Path) -> list[str]:
    """Return what is wrong with the actions a workflow names, and those name in turn: unknown ones, unknown inputs."""
    found: list[str] = []
    for file, number, use, inputs in _uses(workflow, actions, repository):
        where = f"{file.name}:{number}"
        definition = _definition(use, actions, repository)
        if definition is None:
            found.append(f"{where}: no action {use} here (tests/actions has those that tests know)")
            continue
        declared = _inputs(definition.read_text(encoding="utf-8"))
        found += [f"{where}: {use} has no input {name!r}" for name in inputs if name not in declared]
    return found


def _all_uses(workflow: Path, actions: Mapping[str, Path], repository: Path) -> list[str]:
    """Return "OWNER/NAME@REF" of each action of a repository, those of actions as well."""
    uses = {use for _, _, use, _ in _uses(workflow, actions, repository) if not use.startswith("./")}
    return sorted({f"{_name(use)}@{use.partition('@')[2]}" for use in uses})


def _uses(
    file: Path, actions: Mapping[str, Path], repository: Path, seen: set[Path] | None = None
) -> Iterator[tuple[Path, int, str, list[str]]]:
    """Yield file, line, action and names of inputs of each `uses:`, in the actions' own files as well."""
    seen = {file} if seen is None else seen
    lines = file.read_text(encoding="utf-8").splitlines()
    for index, line in enumerate(lines):
        match = _USES.match(line)
        if match is None:
            continue
        use = match["action"]
        yield file, index + 1, use, _given(lines, index, len(match["lead"]))
        definition = _definition(use, actions, repository)
        if definition is not None and definition not in seen:
            seen.add(definition)
            yield from _uses(definition, actions, repository, seen)


def _name(use: str) -> str:
    """Return OWNER/NAME of OWNER/NAME/PATH@REF."""
    return "/".join(use.partition("@")[0].split("/")[:2])


def _definition(use: str, actions: Mapping[str, Path], repository: Path) -> Path | None:
    """Return the action.yml, or the called workflow, that a `uses:` means."""
    if use.startswith("./"):
        base, path = repository, use
    elif _name(use) in actions and "@" in use:
        base, path = actions[_name(use)], "/".join(use.partition("@")[0].split("/")[2:])
    else:
        return None
    places = (
        [base / path]
        if path.endswith((".yml", ".yaml"))
        else [base / path / f"action.{end}" for end in ("yml", "yaml")]
    )
    return next((place for place in places if place.exists()), None)


def _given(lines: Sequence[str], index: int, column: int) -> list[str]:
    """Return the names under `with:` of the step whose `uses:` is at this line and column."""
    first = index
    while first > 0 and not _begins(lines[first], column):
        if _depth(lines[first - 1]) < column and not _begins(lines[first - 1], column):
            break
        first -= 1
    for number in range(first, len(lines)):
        if number > index and _depth(lines[number]) < column:
            break
        match = _KEY.match(lines[number])
        if match and match["key"] == "with" and len(match["lead"]) == column:
            rest = (match["rest"] or "").strip()
            if rest and not rest.startswith("#"):
                raise AssertionError(f"line {number + 1}: `with:` on one line cannot be checked here")
            return _keys(lines, number + 1, column)
    return []


def _begins(line: str, column: int) -> bool:
    """Tell whether this line begins a list's item with a key at this column."""
    match = re.match(r" *-\s+", line)
    return match is not None and len(match[0]) == column


def _inputs(definition: str) -> list[str]:
    lines = definition.splitlines()
    return next((_keys(lines, at + 1, 0) for at, line in enumerate(lines) if re.match(r"inputs:\s*(#.*)?$", line)), [])


def _keys(lines: Sequence[str], first: int, above: int) -> list[str]:
    """Return the keys of a block mapping that starts at this line, deeper than `above`."""
    keys: list[str] = []
    depth: int | None = None
    for line in lines[first:]:
        if _depth(line) <= above:
            break
        match = _KEY.match(line)
        if match is None or not line.strip() or line.lstrip().startswith("#"):
            continue
        depth = _depth(line) if depth is None else depth
        if _depth(line) == depth:
            keys.append(match["key"])
    return keys


def _depth(line: str) -> int:
    """Return how far a line is indented."""
    text = line.lstrip(" ")
    return len(line) - len(text) if text and not text.startswith("#") else _NOTHING


# --- What act gets ---------------------------------------------------------------------------------------------------------


def _adapted(workflow: str) -> str:
    """Return a workflow with what act lacks: numbers in the matrix. Its jobs run one after the other.

    Two at once would be two writers of one map of act's, which is where its local repositories are.
    """
    lines: list[str] = []
    source = _numbered(workflow).splitlines()
    for number, line in enumerate(source):
        if "max-parallel:" in line:
            continue
        lines.append(line)
        if match := _STRATEGY.match(line):
            lines.append(f"{match['indent']}  max-parallel: 1")
        elif match := _STEPS.match(line):
            following = next(text for text in source[number + 1 :] if _depth(text) < _NOTHING)
            indent = " " * _depth(following)
            lines += [indent + text for text in _NUMBERING]
    return "\n".join(lines) + "\n"


def _ended(action: str) -> str:
    """Return a composite action with one more step, which does nothing.

    After an action's end, act reads the files of its last step once more, as if they were the action's own: without this,
    that step's outputs would go over those the action maps.
    """
    lines = action.splitlines()
    start = next((number for number, line in enumerate(lines) if _STEPS.match(line)), None)
    if start is None:
        return action
    indent = next(_depth(line) for line in lines[start + 1 :] if _depth(line) < _NOTHING)
    end = next((number for number in range(start + 1, len(lines)) if _depth(lines[number]) < indent), len(lines))
    step = (f"- name: {_END}", "  if: always()", "  shell: bash", '  run: ":"')
    return "\n".join([*lines[:end], *(" " * indent + line for line in step), *lines[end:]]) + "\n"


def _numbered(text: str) -> str:
    return text.replace("strategy.job-index", f"env.{_INDEX}")


def _source(action: Path, dest: Path) -> Path:
    """Return a copy of an action, of a work tree without what git ignores: act reads all of it into memory."""
    if (action / ".git").exists():
        listed = _git(action, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        for name in filter(None, listed.split("\0")):
            if (action / name).is_file():
                (dest / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(action / name, dest / name, follow_symlinks=False)
    else:
        shutil.copytree(action, dest, symlinks=True)
    for file in (*dest.rglob("action.yml"), *dest.rglob("action.yaml")):
        file.write_text(_ended(_numbered(file.read_text(encoding="utf-8"))), encoding="utf-8")
    return dest


def _write_bash(folder: Path) -> None:
    real = next(path for path in ("/bin/bash", "/usr/bin/bash", shutil.which("bash")) if path and Path(path).exists())
    (folder / "bash").write_text(_BASH.format(bash=real), encoding="utf-8")
    (folder / "bash").chmod(0o755)


def _outer_environment(folder: Path, *, network: bool) -> dict[str, str]:
    """Return act's own environment; the steps see it as well."""
    venv = str(Path(sys.executable).parent)
    path = [entry for entry in os.environ.get("PATH", os.defpath).split(":") if entry != venv]
    env = {
        "PATH": ":".join([str(folder / "bin"), *path]),
        "HOME": str(folder / "home"),
        "LANG": "C.UTF-8",
        "USER": "runner",
        "ACT_DISABLE_VERSION_CHECK": "1",
        "RUNNER_ENVIRONMENT": "github-hosted",
        "RUNNER_NAME": "GitHub Actions 1",
    }
    if not network:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            env |= {name: _NO_PROXY, name.upper(): _NO_PROXY}
        env |= {"no_proxy": "127.0.0.1,localhost", "NO_PROXY": "127.0.0.1,localhost"}
    return env


def _github_environment(event: str, payload: Mapping[str, Any], origin: str, file: str) -> dict[str, str]:
    """Return what GitHub's documentation of events says of GITHUB_REF and GITHUB_SHA; act knows only some of them."""
    name = str(payload["repository"]["full_name"])
    actor = str(payload.get("sender", {}).get("login", "octocat"))
    default = f"refs/heads/{payload['repository'].get('default_branch', 'main')}"
    if event == "pull_request":
        ref, sha = f"refs/pull/{payload['number']}/merge", ""
    elif event == "merge_group":
        ref, sha = str(payload["merge_group"]["head_ref"]), str(payload["merge_group"]["head_sha"])
    elif event == "push":
        ref, sha = str(payload["ref"]), str(payload.get("after", ""))
    else:
        ref, sha = str(payload.get("ref") or default), ""
        ref = ref if ref.startswith("refs/") else f"refs/heads/{ref}"
    if not sha:
        sha = _git(None, "ls-remote", origin, ref).split("\t")[0]
    return {
        "GITHUB_REPOSITORY": name,
        "GITHUB_REPOSITORY_OWNER": name.partition("/")[0],
        "GITHUB_REF": ref,
        "GITHUB_REF_TYPE": "tag" if ref.startswith("refs/tags/") else "branch",
        "GITHUB_SHA": sha,
        "SHA_REF": sha,  # act's name for it
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_TRIGGERING_ACTOR": actor,
        "GITHUB_WORKFLOW_REF": f"{name}/.github/workflows/{file}@{ref}",
        "GITHUB_WORKFLOW_SHA": sha,
    }


def _git(folder: Path | None, *words: str) -> str:
    where = ["-C", str(folder)] if folder else []
    return subprocess.run(["git", *where, *words], capture_output=True, text=True, check=True).stdout


# --- Running act -----------------------------------------------------------------------------------------------------------


def _call(command: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path, timeout: float) -> tuple[int, str]:
    """Run act under a guard, which ends it and all it started when we say so, or are gone."""
    with log.open("wb") as out:
        guard = subprocess.Popen(
            [sys.executable, "-I", __file__, *command],
            env=env,
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status: int | None = guard.wait(timeout)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            if guard.stdin is not None:
                guard.stdin.close()
            guard.wait()
    text = log.read_text(encoding="utf-8", errors="replace")
    if status is None:
        raise TimeoutError(f"act ran for more than {timeout} s:\n{_read(1, text).log[-4000:]}")
    return status, text


def _guard(command: Sequence[str]) -> int:
    """Run a program until it ends or our input does, then kill what is left of it: each step has a session of its own."""
    set_child_subreaper = 36
    ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    while child.poll() is None:
        if select.select([0], [], [], 0.02)[0]:
            break
    # Those whose parent is killed become our children, until there are none.
    while children := _children():
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(-1, 0)
    return 1 if child.returncode is None else child.returncode


def _children() -> list[int]:
    found: list[int] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name, in parentheses, may hold anything; after it come the state and the parent.
            if int(stat.read_text(errors="replace").rpartition(")")[2].split()[1]) == os.getpid():
                found.append(int(stat.parent.name))
    return found


# --- What act says ---------------------------------------------------------------------------------------------------------


def _read(status: int, text: str) -> Ran:
    entries = [entry for entry in map(_entry, text.splitlines()) if _END not in str(entry.get("msg", ""))]
    if any("Skipping unsupported platform" in str(entry.get("msg", "")) for entry in entries):
        raise AssertionError(f"`runs-on` names a runner that tests.act does not know ({', '.join(_RUNNERS)})")
    paths = {(entry.get("jobID"), *entry.get("stepID", ())) for entry in entries}
    annotations: list[str] = []
    summary: list[str] = []
    outputs: dict[str, dict[str, str]] = {}
    jobs: dict[str, str] = {}
    steps: list[Step] = []
    ended: set[tuple[str, tuple[str, ...]]] = set()
    for entry in entries:
        job, path = str(entry.get("jobID", "")), tuple(str(part) for part in entry.get("stepID", ()))
        if _ANNOTATION.match(raw := str(entry.get("raw", ""))):
            annotations.append(raw.rstrip("\r\n"))
        # What `_ended` prevents comes from local actions, which are not ours to change.
        inner = any(len(other) > len(path) + 1 and other[: len(path) + 1] == (job, *path) for other in paths)
        if entry.get("command") == "summary" and not inner:
            summary.append(str(entry["content"]))
        elif entry.get("command") == "set-output" and not (inner and (job, path) in ended):
            outputs.setdefault("/".join((job, *path)), {})[str(entry["name"])] = str(entry["arg"])
        if "jobResult" in entry and jobs.get(job) != "failure":
            jobs[job] = str(entry["jobResult"])
        ended.difference_update((job, path[:depth]) for depth in range(1, len(path)))  # the next job of a matrix
        if entry.get("stage") == "Main" and entry.get("stepResult") in {"success", "failure"}:
            ended.add((job, path))
            steps.append(
                Step(
                    job=job,
                    path=path,
                    name=str(entry.get("step", "")),
                    succeeded=entry["stepResult"] == "success",
                    matrix=entry.get("matrix") or {},
                )
            )
    log = "\n".join(str(entry.get("msg", "")).rstrip("\r\n") for entry in entries)
    # fmt: off
    return Ran(status=status, log=log, summary="".join(summary), annotations=annotations, outputs=outputs, jobs=jobs,
               steps=tuple(steps))
    # fmt: on


def _entry(line: str) -> dict[str, Any]:
    with suppress(ValueError):
        value = json.loads(line)
        if isinstance(value, dict):
            return value
    return {"msg": line}


if __name__ == "__main__":
    sys.exit(_guard(sys.argv[1:]))
