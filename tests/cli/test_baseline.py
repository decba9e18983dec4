"""`cg-bench run --save-baseline` and `cg-bench baseline`: what is kept, listed, shown, removed and replaced."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cachegrind_bench.errors import CommandFailedError
from cachegrind_bench.model.codec import decode, encode
from cachegrind_bench.model.result import Commit
from cachegrind_bench.store.baselines import Baselines
from tests.unit.pythons import python_profile
from tests.unit.samples import HOSTILE, VECTOR, benchmark, failed_benchmark, result, times

if TYPE_CHECKING:
    from cachegrind_bench.model.result import Result
    from tests.cli.conftest import CommandLine, ReplayRunner

FILE = Path(".cg-bench/baselines/main.json")


def saved(name: str, value: Result) -> bytes:
    data = encode(value)
    Baselines.find(Path.cwd()).save(name, data)
    return data


def written(value: Result) -> bytes:
    data = encode(value)
    Path("r.json").write_bytes(data)
    return data


def later(*benchmarks: Any) -> Result:
    commit = Commit(sha="fe" * 20, parent=None, branch=None, dirty=True, committed_at="2026-02-01T12:00:00Z")
    return result(*benchmarks, commit=commit, created_at="2026-02-01T12:34:56Z")


# Saving what was measured


def test_a_measurement_is_saved_under_a_name(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    told = cg_bench("run", "--save-baseline", "main", "-o", "r.json", "--", "/bin/true")
    assert told.code == 0
    assert told.out.startswith("true\n")
    assert told.err.endswith("cg-bench: saved as baseline main\n")
    assert FILE.read_bytes() == Path("r.json").read_bytes()
    assert decode(FILE.read_bytes(), "main").benchmarks[0].id == "true"
    assert len(replay.executed) == 2


def test_the_baseline_can_be_named_by_the_environment_and_saved_in_silence(
    replay: ReplayRunner, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    del replay
    monkeypatch.setenv("CG_BENCH_SAVE_BASELINE", "main")
    told = cg_bench("run", "-q", "--", "/bin/true")
    assert (told.code, told.out, told.err) == (0, "", "")
    assert FILE.exists()


def test_the_folder_is_there_before_the_program_is_started(
    replay: ReplayRunner, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    execute = replay._execute

    def look(target: Any) -> Any:
        seen.append(sorted([*os.listdir(), *os.listdir(".cg-bench"), *os.listdir(FILE.parent)]))
        return execute(target)

    monkeypatch.setattr(replay, "_execute", look)
    cg_bench("run", "--save-baseline", "main", "--", "/bin/true")
    assert seen == [[".cg-bench", ".gitignore", "baselines"]] * 2


def test_a_failed_measurement_leaves_the_old_baseline(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    data = saved("main", result())
    replay.failures = [None, CommandFailedError("the command failed", exit_status=3)]
    assert cg_bench("run", "--save-baseline", "main", "--id", "sieve", "--", "/bin/true").code == 4
    assert FILE.read_bytes() == data
    assert os.listdir(FILE.parent) == ["main.json"]


def test_one_benchmark_does_not_take_the_place_of_others(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    data = saved("main", result())
    told = cg_bench("run", "--save-baseline", "main", "--id", "other", "--", "/bin/true")
    assert (told.code, replay.executed) == (2, [])
    assert "the baseline 'main' holds other benchmarks, which would be lost: sieve" in told.err
    assert FILE.read_bytes() == data


@pytest.mark.parametrize("name", ["a/b", "", "../x"])
def test_a_bad_name_is_reported_before_anything_is_measured(
    replay: ReplayRunner, cg_bench: CommandLine, name: str
) -> None:
    told = cg_bench("run", "--save-baseline", name, "--", "/bin/true")
    assert (told.code, told.out) == (2, "")
    assert told.err == (
        f"cg-bench: error: {name!r} cannot name a baseline\n"
        "  a name has letters, digits and . _ - and begins with a letter or digit, 100 at most\n"
    )
    assert replay.executed == []
    assert os.listdir() == []


def test_a_place_that_cannot_be_written_is_reported_before_anything_is_measured(
    replay: ReplayRunner, cg_bench: CommandLine
) -> None:
    Path(".cg-bench").touch()
    told = cg_bench("run", "--save-baseline", "main", "--", "/bin/true")
    assert told.code == 2
    assert "cannot make the folder" in told.err
    assert replay.executed == []


# List

LIST = """\
3 baselines in {store}

  name     benchmarks  commit                                 branch  measured
  broken   unreadable
  main     sieve       0123456789ab                           main    2026-01-31T12:00:00Z
  release  a, b        fefefefefefe with uncommitted changes          2026-02-01T12:34:56Z

  warning: broken cannot be read: {store}/baselines/broken.json:1: not JSON: invalid character (byte 1)
"""


@pytest.fixture
def three() -> Path:
    """Save three baselines, one of them damaged; return where."""
    saved("release", later(benchmark(id="a"), benchmark(id="b")))
    saved("main", result())
    store = Baselines.find(Path.cwd())
    store.save("broken", b"oops")
    return store.store


def test_baselines_are_listed_and_a_damaged_one_is_named(cg_bench: CommandLine, three: Path) -> None:
    told = cg_bench("baseline", "list")
    assert (told.code, told.err) == (0, "")
    # How wide a column of numbers is when a word stands in it is the table's business.
    assert [line.split() for line in told.out.splitlines()] == [
        line.split() for line in LIST.format(store=three).splitlines()
    ]


def test_scripts_get_the_list_in_json(cg_bench: CommandLine, three: Path) -> None:
    found = json.loads(cg_bench("baseline", "list", "--format", "json").out)
    assert found["schema"] == "cg-bench.baselines/1"
    broken, main, release = found["baselines"]
    assert broken == {
        "name": "broken",
        "error": f"{three}/baselines/broken.json:1: not JSON: invalid character (byte 1)",
    }
    assert (main["name"], main["benchmarks"], main["branch"]) == ("main", ["sieve"], "main")
    assert release == {
        "name": "release",
        "error": None,
        "benchmarks": ["a", "b"],
        "commit": "fe" * 20,
        "branch": None,
        "dirty": True,
        "created_at": "2026-02-01T12:34:56Z",
    }


@pytest.mark.usefixtures("three")
def test_the_form_of_a_list_can_be_given_by_the_environment(
    cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CG_BENCH_FORMAT", "markdown")
    assert cg_bench("baseline", "list").out.startswith("### 3 baselines in ")


def test_where_nothing_was_saved_the_list_is_empty(cg_bench: CommandLine) -> None:
    told = cg_bench("baseline", "list")
    assert (told.code, told.out) == (0, f"0 baselines in {Path.cwd()}/.cg-bench\n")
    assert json.loads(cg_bench("baseline", "list", "--format", "json").out)["baselines"] == []
    assert os.listdir() == []


def test_a_list_is_harmless_whatever_the_results_hold(cg_bench: CommandLine) -> None:
    value = result()
    assert value.commit is not None
    saved("main", replace(value, created_at=HOSTILE, commit=replace(value.commit, sha="\x1b[31m", branch=HOSTILE)))
    saved("none", replace(value, commit=None))
    told = cg_bench("baseline", "list")
    assert told.code == 0
    assert "\x1b" not in told.out
    assert len(told.out.splitlines()) == 5


# Show


def test_a_baseline_is_shown_as_its_file_would_be(cg_bench: CommandLine) -> None:
    saved("main", result(benchmark(id="a"), benchmark(id="b")))
    for options in ([], ["--format", "json"], ["--benchmark", "b", "--top", "1", "--sort", "Ir"]):
        told = cg_bench("baseline", "show", "main", *options)
        assert told.code == 0
        assert told == cg_bench("show", str(FILE), *options)


def test_the_options_of_show_can_be_given_by_the_environment(
    cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved("main", result(benchmark(id="a"), benchmark(id="b")))
    monkeypatch.setenv("CG_BENCH_BENCHMARK", "b")
    assert cg_bench("baseline", "show", "main").out.startswith("b\n")


@pytest.mark.parametrize("action", ["show", "remove"])
def test_a_baseline_that_is_not_there_is_reported_with_those_that_are(cg_bench: CommandLine, action: str) -> None:
    saved("main", result())
    told = cg_bench("baseline", action, "x")
    assert (told.code, told.out) == (2, "")
    assert told.err == "cg-bench: error: there is no baseline 'x'\n  saved baselines: main\n"


# Remove


def test_baselines_are_removed(cg_bench: CommandLine) -> None:
    for name in ("a", "b", "c"):
        saved(name, result())
    told = cg_bench("baseline", "remove", "a", "c", "a")
    assert (told.code, told.out, told.err) == (0, "removed a\nremoved c\n", "")
    assert Baselines.find(Path.cwd()).names() == ["b"]


def test_if_one_is_not_there_none_is_removed(cg_bench: CommandLine) -> None:
    saved("main", result())
    assert cg_bench("baseline", "remove", "main", "x").code == 2
    assert FILE.exists()


# Update


def test_an_update_says_what_it_changed(cg_bench: CommandLine) -> None:
    saved("main", result(benchmark(id="a"), benchmark(id="b")))
    data = written(later(benchmark(id="a"), benchmark(id="b"), benchmark(id=f"c {HOSTILE}")))
    told = cg_bench("baseline", "update", "main", "r.json")
    first, added, *rest = told.out.splitlines()
    assert (told.code, told.err) == (0, "")
    assert first == "main: updated, 3 benchmarks"
    assert added.startswith("  added     c a|b <script>")
    assert rest == [
        "  replaced  a",
        "  replaced  b",
        "  commit    0123456789ab -> fefefefefefe with uncommitted changes",
    ]
    assert FILE.read_bytes() == data


def test_an_update_of_what_is_not_there_makes_it(cg_bench: CommandLine) -> None:
    data = written(replace(result(), commit=None))
    told = cg_bench("baseline", "update", "main", "r.json")
    assert (told.code, told.out) == (0, "main: new, 1 benchmark\n  added     sieve\n  commit    unknown\n")
    assert FILE.read_bytes() == data


def test_a_baseline_can_be_made_of_another_or_of_stdin(cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    data = saved("main", result())
    assert cg_bench("baseline", "update", "release", "main").code == 0
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert cg_bench("baseline", "update", "third", "-").code == 0
    assert [FILE.with_name(f"{name}.json").read_bytes() for name in ("release", "third")] == [data] * 2


def test_benchmarks_are_not_lost_unless_forced(cg_bench: CommandLine) -> None:
    old = saved("main", result(benchmark(id="a"), benchmark(id="b"), benchmark(id="c")))
    new = written(later(benchmark(id="b", counts=times(VECTOR, 2))))
    told = cg_bench("baseline", "update", "main", "r.json")
    assert (told.code, told.out) == (2, "")
    assert told.err == (
        "cg-bench: error: r.json lacks 2 benchmarks of the baseline 'main': a, c\n  use --force to drop them\n"
    )
    assert FILE.read_bytes() == old
    told = cg_bench("baseline", "update", "--force", "main", "r.json")
    assert told.code == 0
    assert "  replaced  b\n  dropped   a\n  dropped   c\n" in told.out
    assert FILE.read_bytes() == new


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_a_result_with_a_failed_benchmark_is_refused(cg_bench: CommandLine, force: tuple[str, ...]) -> None:
    old = saved("main", result())
    written(result(benchmark(), failed_benchmark(id="broken")))
    told = cg_bench("baseline", "update", *force, "main", "r.json")
    assert (told.code, told.out) == (4, "")
    assert told.err.startswith("cg-bench: error: r.json holds 1 failed benchmark: broken\n")
    assert FILE.read_bytes() == old


def test_a_result_without_benchmarks_is_refused(cg_bench: CommandLine) -> None:
    Path("r.json").write_bytes(encode(result()).replace(b'"benchmarks":[', b'"benchmarks":[],"x":['))
    told = cg_bench("baseline", "update", "main", "r.json")
    assert (told.code, told.err) == (2, "cg-bench: error: r.json has no benchmarks\n")


def test_a_damaged_baseline_is_replaced_only_by_force(cg_bench: CommandLine) -> None:
    store = Baselines.find(Path.cwd())
    store.save("main", b"oops")
    data = written(result())
    told = cg_bench("baseline", "update", "main", "r.json")
    assert told.code == 2
    assert told.err.startswith("cg-bench: error: the baseline 'main' is damaged: ")
    assert told.err.endswith("\n  use --force to replace it\n")
    assert cg_bench("baseline", "update", "main", "r.json", "--force").out.startswith("main: new, 1 benchmark\n")
    assert FILE.read_bytes() == data


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a/b", "r.json"), "'a/b' cannot name a baseline"),
        (("main", "missing.json"), "'missing.json' is neither a result file nor a saved baseline"),
        (("main", "file:missing.json"), "cannot read missing.json: No such file or directory"),
        (("main", "file:."), "cannot read .: Is a directory"),
        (("main", "oops.json"), "oops.json:1: not JSON: invalid character (byte 1)"),
    ],
)
def test_what_cannot_be_read_is_reported_and_nothing_is_made(
    cg_bench: CommandLine, arguments: tuple[str, str], message: str
) -> None:
    written(result())
    Path("oops.json").write_text("oops")
    told = cg_bench("baseline", "update", *arguments)
    assert (told.code, told.out) == (2, "")
    assert told.err.splitlines()[0] == f"cg-bench: error: {message}"
    assert sorted(os.listdir()) == ["oops.json", "r.json"]


def test_a_damaged_profile_does_not_replace_a_sound_baseline(cg_bench: CommandLine) -> None:
    old = saved("main", result())
    Path("r.json").write_bytes(old.replace(b'"functions":[[0,1,1353,', b'"functions":[[0,1,1354,'))
    told = cg_bench("baseline", "update", "main", "r.json")
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith("cg-bench: error: r.json: ")
    assert FILE.read_bytes() == old


def test_a_damaged_python_profile_does_not_either(cg_bench: CommandLine) -> None:
    old = saved("main", result())
    data = encode(result(benchmark(python=python_profile({"f:1": (1, 77)}))))
    Path("r.json").write_bytes(data.replace(b'"paths":[[0,0,1,77]]', b'"paths":[[0,9,1,77]]'))
    told = cg_bench("baseline", "update", "main", "r.json")
    assert (told.code, told.out) == (2, "")
    assert "points to function 9 of 1" in told.err
    assert FILE.read_bytes() == old


def test_a_file_over_the_limit_is_refused(cg_bench: CommandLine) -> None:
    written(result())
    told = cg_bench("baseline", "update", "main", "r.json", "--max-size", "1kB")
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith("cg-bench: error: r.json is too large: ")


def test_keys_of_a_newer_version_are_kept(cg_bench: CommandLine) -> None:
    data = written(result()).replace(b'{"benchmarks"', b'{"zukunft":1,"benchmarks"')
    Path("r.json").write_bytes(data)
    assert cg_bench("baseline", "update", "main", "r.json").code == 0
    assert FILE.read_bytes() == data


def test_long_lists_are_cut_short(cg_bench: CommandLine) -> None:
    written(result(*(benchmark(id=f"b{number:02}") for number in range(25))))
    told = cg_bench("baseline", "update", "main", "r.json")
    assert told.out.splitlines()[20:22] == ["  added     b19", "  added     and 5 more"]
    written(result())
    told = cg_bench("baseline", "update", "main", "r.json")
    assert "lacks 25 benchmarks of the baseline 'main': b00, b01, " in told.err
    assert "b09 and 15 more\n" in told.err


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ((), "Usage: cg-bench baseline "),
        (("nonsense",), "cg-bench: error: 'baseline' has no command 'nonsense'\n"),
        (("show",), "cg-bench: error: missing argument 'NAME'\n"),
        (("update", "main"), "cg-bench: error: missing argument 'FILE'\n"),
        (("remove",), "cg-bench: error: missing argument 'NAME...'\n"),
    ],
)
def test_bad_usage_is_reported(cg_bench: CommandLine, arguments: tuple[str, ...], what: str) -> None:
    told = cg_bench("baseline", *arguments)
    assert told.code == 2
    assert (told.out + told.err).startswith(what)


def test_a_working_directory_that_was_removed_is_reported(cg_bench: CommandLine, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    for words in ("baseline list", "baseline show x", "baseline remove x", "baseline update x -", "ci plan"):
        told = cg_bench(*words.split())
        assert (told.code, told.err.splitlines()[0]) == (
            2,
            "cg-bench: error: the working directory no longer exists",
        )
