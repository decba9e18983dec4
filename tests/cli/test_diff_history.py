"""`cg-bench diff` with commits for its sides: which stored run is taken, what is said of it, and where there is none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cachegrind_bench.model.codec import encode
from cachegrind_bench.model.result import Commit, Status, comparability_key
from cachegrind_bench.store.files import FileStore
from cachegrind_bench.store.record import run_record
from tests.unit.comparing import counts, measured
from tests.unit.repositories import PATH, Repository, git_environment
from tests.unit.samples import result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cachegrind_bench.model.result import Result, Snapshot
    from cachegrind_bench.store.protocol import Query
    from tests.cli.conftest import CommandLine

pytestmark = pytest.mark.skipif(shutil.which("git", path=PATH) is None, reason="no git")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    found = Repository(tmp_path / "repository", git_environment(tmp_path))
    monkeypatch.chdir(found.path)
    for name, value in found.environ.items():
        monkeypatch.setenv(name, value)
    return found


def run(
    sha: str, ir: int, *, valgrind: str = "3.24.0", dirty: bool = False, created_at: str = "2026-01-31T12:00:00Z"
) -> Result:
    found = result(measured("a", counts(ir)), created_at=created_at)
    fields = {**found.env.fields, "valgrind": valgrind}
    return replace(
        found,
        env=replace(found.env, fields=fields, key=comparability_key(fields)),
        commit=Commit(sha=sha, parent=None, branch=None, dirty=dirty, committed_at="2026-01-31T12:00:00Z"),
    )


def save_with_profiles(*runs: Result) -> list[Path]:
    """Save these, and return where their profiles are."""
    save(*runs)
    kept, records = FileStore(Path(".cg-bench").absolute()), [run_record(item) for item in runs]
    for record, item in zip(records, runs, strict=True):
        kept.keep_profile(record, item)
    return [kept.profile_path(record.name) for record in records]


def save(*runs: Result) -> None:
    FileStore(Path(".cg-bench").absolute()).add([run_record(item) for item in runs])


def file(name: str, found: Result) -> str:
    Path(name).write_bytes(encode(found))
    return name


def compared(cg_bench: CommandLine, *words: str) -> tuple[int, dict[str, int], list[str]]:
    """Return the exit code, the change of Ir in parts per million by benchmark, and the notices."""
    told = cg_bench("diff", *words, "--format", "json")
    document = json.loads(told.out)
    changes = {item["id"]: item["change_ppm"] and item["change_ppm"]["Ir"] for item in document["benchmarks"]}
    return told.code, changes, document["notices"]


def test_two_commits_are_compared_by_their_stored_runs(repository: Repository, cg_bench: CommandLine) -> None:
    first, second = repository.commit("a"), repository.commit("b")
    save(run(first, 1_000_000), run(second, 1_010_000))
    assert compared(cg_bench, "HEAD~1", "HEAD") == (1, {"a": 10_000}, [])
    assert compared(cg_bench, first[:9], "rev:HEAD") == (1, {"a": 10_000}, [])
    assert compared(cg_bench, "rev:main", f"rev:{first}")[1] == {"a": -9_901}


def test_of_several_runs_of_a_commit_the_last_clean_one_that_compares_is_taken(
    repository: Repository, cg_bench: CommandLine
) -> None:
    first = repository.commit("a")
    candidate = file("r.json", run(repository.commit("b"), 1_000_000))
    save(
        run(first, 900_000, created_at="2026-01-01T00:00:00Z"),
        run(first, 990_000, created_at="2026-01-02T00:00:00Z"),
        run(first, 500_000, created_at="2026-01-03T00:00:00Z", dirty=True),
        run(first, 600_000, created_at="2026-01-04T00:00:00Z", valgrind="3.16.1"),
    )
    assert compared(cg_bench, first, candidate)[1] == {"a": 10_101}


def test_a_run_of_another_environment_is_compared_with_a_commit_that_has_no_other_and_does_not_fit(
    repository: Repository, cg_bench: CommandLine
) -> None:
    first = repository.commit("a")
    save(run(first, 1_000_000, valgrind="3.16.1"))
    told = cg_bench("diff", first, file("r.json", run(repository.commit("b"), 1_000_000)))
    assert told.code == 3
    assert "valgrind 3.16.1 → 3.24.0" in told.out


def test_a_branch_means_the_nearest_run_before_its_end_and_it_is_said_how_far(
    repository: Repository, cg_bench: CommandLine
) -> None:
    shas = [repository.commit(str(number)) for number in range(5)]
    save(run(shas[0], 1), run(shas[1], 1_000_000), run(shas[3], 5, valgrind="3.16.1"))
    candidate = file("r.json", run("f" * 40, 1_010_000))
    code, changes, notices = compared(cg_bench, "main", candidate)
    assert (code, changes) == (1, {"a": 10_000})
    assert notices == [
        f"the baseline is {shas[1][:12]}, 3 commits before main ({shas[4][:12]})",
        f"a run of {shas[3][:12]} was skipped, as its key differs: valgrind 3.16.1 → 3.24.0",
    ]


def test_the_merge_base_with_a_branch_is_where_the_candidate_left_it(
    repository: Repository, cg_bench: CommandLine
) -> None:
    base = repository.commit("base")
    repository.git("switch", "--quiet", "-c", "topic")
    topic = repository.commit("topic")
    repository.git("switch", "--quiet", "main")
    main = repository.commit("main goes on")
    save(run(base, 1_000_000), run(main, 5_000_000), run(topic, 1_010_000))
    assert compared(cg_bench, "merge-base:main", "rev:topic") == (1, {"a": 10_000}, [])
    repository.git("switch", "--quiet", "topic")
    assert compared(cg_bench, "merge-base:main", file("r.json", run(topic, 1_010_000)))[1] == {"a": 10_000}


def test_on_githubs_merge_of_a_pull_request_the_baseline_is_what_it_was_merged_with(
    repository: Repository, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = repository.commit("base")
    repository.git("switch", "--quiet", "-c", "topic")
    repository.commit("topic")
    repository.git("switch", "--quiet", "main")
    main = repository.commit("main goes on")
    repository.git("merge", "--quiet", "--no-ff", "-m", "merge", "topic")
    merge = repository.git("rev-parse", "HEAD")
    repository.git("reset", "--quiet", "--hard", main)
    save(run(base, 1), run(main, 1_000_000))
    monkeypatch.setenv("GITHUB_SHA", merge)
    monkeypatch.setenv("GITHUB_REF", "refs/pull/7/merge")
    assert compared(cg_bench, "merge-base:main", file("r.json", run(merge, 1_010_000))) == (1, {"a": 10_000}, [])


def test_a_baseline_that_is_searched_in_vain_is_reported_loudly_and_fails_nothing(
    repository: Repository, cg_bench: CommandLine
) -> None:
    first = repository.commit("a")
    save(run(first, 1_000_000, valgrind="3.16.1"))
    candidate = file("r.json", run("f" * 40, 1_000_000))
    told = cg_bench("diff", "main", candidate)
    assert told.code == 0
    assert told.out.startswith("base       main, nothing found\n")
    assert "no baseline: no run of main (" in told.out
    assert "valgrind 3.16.1 → 3.24.0" in told.out
    assert told.err.startswith("cg-bench: warning: no baseline: ")
    assert cg_bench("diff", "main", candidate, "--require-baseline").code == 3
    assert cg_bench("diff", "main", candidate, "--limit", "Ir=5").code == 1


def several(sha: str, at: str, **benchmarks: int | None) -> Result:
    """Return a run of a commit at this time of 2026-02-01; None is a benchmark that failed."""
    found = run(sha, 1, created_at=f"2026-02-01T{at}:00Z")
    (one,) = found.benchmarks
    failed = replace(one, status=Status.FAILED, counts=None, score=None, runs=(), error="it failed")
    return replace(
        found,
        benchmarks=tuple(
            replace(failed if ir is None else run(sha, ir).benchmarks[0], id=name) for name, ir in benchmarks.items()
        ),
    )


def test_shards_and_repeats_of_one_commit_are_one_baseline(repository: Repository, cg_bench: CommandLine) -> None:
    base = repository.commit("base")
    save(
        several(base, "00:00", a=1_000_000, b=2_000_000),
        several(base, "01:00", c=3_000_000),
        several(base, "02:00", a=None, b=None),
    )
    candidate = file("r.json", several("f" * 40, "03:00", a=1_000_000, b=2_020_000, c=3_000_000))
    assert compared(cg_bench, "main", candidate) == (1, {"a": 0, "b": 10_000, "c": 0}, [])
    assert compared(cg_bench, base, candidate)[1] == {"a": 0, "b": 10_000, "c": 0}
    assert compared(cg_bench, candidate, base)[1] == {"a": 0, "b": -9_901, "c": 0}


def test_what_the_nearest_commit_lacks_is_looked_for_further_back(
    repository: Repository, cg_bench: CommandLine
) -> None:
    shas = [repository.commit(str(number)) for number in range(4)]
    save(
        several(shas[0], "00:00", a=900_000, b=2_000_000, c=3_000_000),
        several(shas[1], "01:00", a=950_000, b=None),
        several(shas[2], "02:00", a=1_000_000),
        several(shas[3], "03:00", a=None),
    )
    candidate = file("r.json", several("f" * 40, "04:00", a=1_000_000, b=2_000_000, c=3_030_000, d=1))
    code, changes, notices = compared(cg_bench, "main", candidate)
    assert (code, changes) == (1, {"a": 0, "b": 0, "c": 10_000, "d": None})
    assert notices == [
        f"the baseline is {shas[2][:12]}, 1 commit before main ({shas[3][:12]})",
        f"the baseline of b, c is {shas[0][:12]}, 3 commits before main ({shas[3][:12]})",
    ]


def test_a_benchmark_that_was_renamed_since_is_compared_by_its_present_name(
    repository: Repository, cg_bench: CommandLine
) -> None:
    base = repository.commit("base")
    save(several(base, "00:00", old=1_000_000, b=5))
    assert cg_bench("history", "rename", "old", "new").code == 0
    for name in ("new", "old"):  # a branch from before the renaming has the old one still
        candidate = file("r.json", several("f" * 40, "03:00", **{name: 1_010_000}, b=5))
        for way in ("main", base):
            assert compared(cg_bench, way, candidate)[:2] == (1, {name: 10_000, "b": 0})


def test_a_candidate_at_the_end_of_the_branch_is_compared_with_what_was_before(
    repository: Repository, cg_bench: CommandLine
) -> None:
    first, second = repository.commit("a"), repository.commit("b")
    own = run(second, 1_010_000)
    save(run(first, 1_000_000), own)
    for base in ("merge-base:main", "main"):
        code, changes, notices = compared(cg_bench, base, file("r.json", own))
        assert (code, changes) == (1, {"a": 10_000})
        assert notices[0].endswith(f"({second[:12]}) itself: it is compared with what was before")
        assert notices[1].startswith(f"the baseline is {first[:12]}, 1 commit before ")
    changed = file("r.json", run(second, 1_030_000, dirty=True))
    assert compared(cg_bench, "main", changed)[1] == {"a": 19_802}


def test_a_store_is_asked_twice_however_far_back_the_baseline_lies(
    repository: Repository, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    shas = [repository.commit(str(number)) for number in range(12)]
    save(run(shas[0], 1_000_000), *(run(sha, 5, valgrind="3.16.1") for sha in shas[1:]))
    asked: list[Query] = []
    snapshots = FileStore.snapshots

    def noted(store: FileStore, query: Query) -> Iterator[Snapshot]:
        asked.append(query)
        return snapshots(store, query)

    monkeypatch.setattr(FileStore, "snapshots", noted)
    code, changes, notices = compared(cg_bench, "main", file("r.json", run("f" * 40, 1_010_000)))
    assert (code, changes, len(asked)) == (1, {"a": 10_000}, 2)
    assert notices[-1] == "6 more runs skipped, as their keys differ"


def test_a_commit_that_was_not_measured_is_an_error_that_says_what_to_do(
    repository: Repository, cg_bench: CommandLine
) -> None:
    sha = repository.commit("a")
    candidate = file("r.json", run(sha, 1))
    told = cg_bench("diff", "HEAD", candidate)
    assert told.code == 2
    assert f"no run of HEAD ({sha[:12]}) is stored in file:" in told.err
    assert "'cg-bench run --save' stores one" in told.err


@pytest.mark.parametrize(
    "name", ["nonesuch", "rev:nonesuch", "merge-base:nonesuch", "rev:", "merge-base:", "--all", "a\nb"]
)
def test_what_names_nothing_is_reported(repository: Repository, cg_bench: CommandLine, name: str) -> None:
    sha = repository.commit("a")
    candidate = file("r.json", run(sha, 1))
    told = cg_bench("diff", "--", name, candidate)
    assert (told.code, told.out) == (2, "")
    assert "Traceback" not in told.err


def test_a_file_goes_before_a_commit_of_the_same_name(repository: Repository, cg_bench: CommandLine) -> None:
    sha = repository.commit("a")
    save(run(sha, 5))
    main = file("main", run(sha, 1_000_000))
    assert compared(cg_bench, main, main)[1] == {"a": 0}
    assert compared(cg_bench, "rev:main", main)[1] != {"a": 0}


def test_the_candidate_cannot_be_searched(repository: Repository, cg_bench: CommandLine) -> None:
    repository.commit("a")
    told = cg_bench("diff", "main", "merge-base:main")
    assert told.code == 2
    assert "can only be the base" in told.err


def test_outside_of_a_repository_files_compare_as_ever(cg_bench: CommandLine, tmp_path: Path) -> None:
    assert not (tmp_path / ".git").exists()
    name = file("r.json", run("f" * 40, 1_000_000))
    assert cg_bench("diff", name, name).code == 0
    assert "nor a commit that git knows" in cg_bench("diff", "main", name).err


@pytest.mark.parametrize("damage", ["another run's", "cut off"])
def test_a_base_whose_profile_cannot_be_used_is_compared_by_its_record(
    repository: Repository, cg_bench: CommandLine, damage: str
) -> None:
    first, second = repository.commit("a"), repository.commit("b")
    mine, other = save_with_profiles(run(first, 1_000_000), run(second, 5_000_000))
    mine.write_bytes(other.read_bytes() if damage == "another run's" else mine.read_bytes()[:50])
    told = cg_bench("diff", first, file("b.json", run(second, 1_010_000)), "--format", "json")
    assert [item["change_ppm"]["Ir"] for item in json.loads(told.out)["benchmarks"]] == [10_000]
    assert f"{mine.name}" in told.err
    assert "; the run is shown without it\n" in told.err
