"""What a job compares with: a commit, by its event or the branch that was named, and its functions.

A checkout may not have the commit, so it is fetched. A history keeps counts only, but the job that measured them left its
profiles as an artifact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.ci.artifact import MOST_SENT, RESULT, RESULTS, unpack
from cachegrind_bench.compare.verdict import State
from cachegrind_bench.errors import CgBenchError, MeasurementError, UsageError
from cachegrind_bench.model.codec import ResultFile
from cachegrind_bench.usecases.comparison import InMemory, Side

if TYPE_CHECKING:
    from cachegrind_bench.ci.event import Event
    from cachegrind_bench.ci.github import Client
    from cachegrind_bench.compare.explained import Explained
    from cachegrind_bench.vcs.revisions import Repository

# Artifacts of the same name that are looked through: those of a few weeks of a busy repository.
_MOST_LOOKED_AT = 500
_DEEPER = "actions/checkout with fetch-depth: 0 has all commits"


def base_commit(
    event: Event, repository: Repository, head: str, *, branch: str = "", tip: bool = False
) -> tuple[str, str]:
    """Return what the base is called, and its commit: for `head`, where it left this branch, or with `tip` the branch's end.

    The branch is that of the pull request, or the default branch. Of what was accepted already it is `head` itself, before
    which a base is searched. MeasurementError if the commits cannot be fetched.
    """
    if event.group_base is not None and not branch:
        return "the merge group's base", _fetched(repository, event.group_base)
    name = branch or (event.pull.base_ref if event.pull is not None else event.default_branch) or "main"
    merged = None if branch or tip else repository.pull_request_base(head)
    if merged is not None:
        return name, merged
    if event.accepts(head) and not branch:
        return name, head
    end = repository.fetch_branch(name, _elsewhere(event, repository))
    if end is None:
        raise MeasurementError(f"the branch {name} could not be fetched to compare with", hint=_DEEPER)
    base = end if tip else repository.merge_base(head, end)
    if base is None:
        raise UsageError(
            f"{head[:12]} and the branch {name} have no commit in common", hint="name another: merge-base:NAME"
        )
    return name, base


def commit_to_measure(event: Event, repository: Repository) -> str:
    """Return the commit to measure as well as the one that is checked out, after fetching it.

    Of what was accepted already, that is what was there before. UsageError or MeasurementError if there is none.
    """
    head = repository.commit("HEAD")
    if head is None:
        raise UsageError(
            "baseline: ab measures two commits, and there is no checkout", hint="a step with actions/checkout"
        )
    _, wanted = base_commit(event, repository, head)
    if wanted == head:
        before = event.before or repository.first_parent(head)
        if before is None:
            raise MeasurementError(f"there is no commit before {head[:12]} to compare with")
        wanted = before
    return _fetched(repository, wanted)


def _elsewhere(event: Event, repository: Repository) -> str | None:
    """Return the address of the event's repository if the checkout is of another at the same GitHub, as of a fork."""
    remotes = repository.remotes()
    address = repository.address(remotes[0]) if remotes else ""
    if not address.startswith(f"{event.server_url}/"):
        return None
    project = address.removeprefix(f"{event.server_url}/").removesuffix("/").removesuffix(".git")
    return None if project.lower() == event.repository.lower() else f"{event.server_url}/{event.repository}"


def _fetched(repository: Repository, sha: str) -> str:
    found = repository.fetch_commit(sha)
    if found is None:
        raise MeasurementError(f"the commit {sha[:12]}, to compare with, could not be fetched", hint=_DEEPER)
    return found


def unexplained(made: Explained) -> bool:
    """Return whether something moved and it is not known in which function, or allocations of the base would be."""
    return any(
        (item.change is not None and item.state is not State.UNCHANGED and item.id not in made.details)
        or "base" in item.uncounted
        for item in made.comparison.differences
    )


def with_profiles(base: Side, api: Client, artifact: str) -> Side:
    """Return the base with the profiles of the run that measured it; with a remark where they cannot be fetched."""
    commit = base.file.result.commit
    if commit is None:
        return base
    try:
        found = api.last_own(artifact, lambda item: item.sha == commit.sha, most=_MOST_LOOKED_AT)
        if found is None:
            raise UsageError(f"no artifact {artifact} of its run is left")
        files = unpack(api.download(found, MOST_SENT), found.name, RESULTS)
        source, whole = ResultFile(files[RESULT], found.name), base.file.whole()
        measured = {(item.id, item.key, item.counts) for item in source.result.benchmarks}
        benchmarks = [
            replace(
                item,
                profile=item.profile or source.profile(item.id),
                python=item.python or source.python(item.id),
                calls=item.calls or source.calls(item.id),
            )
            if (item.id, item.key, item.counts) in measured  # else it is another measurement
            else item
            for item in whole.benchmarks
        ]
        return replace(base, file=InMemory(replace(whole, benchmarks=tuple(benchmarks))))
    except CgBenchError as error:
        remark = f"the base's functions are not known, so no function is named: {error.message}"
        return replace(base, remarks=(*base.remarks, remark))
