"""Stored results: what makes one usable again, what does not, and what damaged or foreign files do."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec.structs import replace

from cachegrind_bench.hermetic.environment import Request
from cachegrind_bench.hermetic.execution import Execution
from cachegrind_bench.hermetic.trace_notes import FILE, LIST, LOOK, Input, Recording
from cachegrind_bench.measure.command import Command
from cachegrind_bench.measure.plan import Plan
from cachegrind_bench.model.metrics import IR_MODEL, LineCost, Profile
from cachegrind_bench.model.result import Benchmark, Environment, Result, Run, Status
from cachegrind_bench.suite import cache as cache_module
from cachegrind_bench.suite.cache import Cache, RecordingRunner, key_of
from cachegrind_bench.valgrind.options import WHOLE, Collect, Tool
from tests.unit import flaming
from tests.unit.pythons import chain, python_profile
from tests.unit.samples import HOSTILE, VECTOR, benchmark, profile_of, times
from tests.unit.test_run import FakeRunner, measurement

if TYPE_CHECKING:
    from cachegrind_bench.model.python_profile import PythonProfile

ENV = Environment(key="0123456789ab", fields={"valgrind": "3.24.0"}, info={"cpu": "x"})
NOW = "2026-01-31T12:00:00Z"
KEY = "0" * 32


def plan(**changes: Any) -> Plan:
    command = Command(typed=("prog", "x"), argv=("/bin/prog", "x"), executable="/bin/prog")
    values: dict[str, Any] = {"command": command, "cwd": Path("/work"), "environ": {"PATH": "/bin", "SECRET": "a"}}
    return Plan(**values | changes)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache.open(tmp_path / ".cg-bench")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.write_text("one")
    return path


def test_a_cache_that_commits_share_has_several_results_for_one_key(data: Path, tmp_path: Path) -> None:
    shared = Cache.open(tmp_path / ".cg-bench", str(tmp_path / "shared"))
    costs = {"one": VECTOR, "two": times(VECTOR, 2)}
    assert shared.lookup(KEY) == "nothing is stored for it yet"
    for text, counts in costs.items():
        data.write_text(text)
        stored = Result(
            tool_version="0", created_at=NOW, commit=None, env=ENV,
            benchmarks=(benchmark(counts=counts, profile=profile_of(main=counts), runs=(Run(layout=0, counts=counts),)),),
        )  # fmt: skip
        assert shared.keep(KEY, read(data), stored) is None
    for text, counts in costs.items():
        data.write_text(text)
        found = shared.lookup(KEY)
        assert isinstance(found, Result)
        assert found.benchmarks[0].counts == counts
    data.write_text("three")
    assert shared.lookup(KEY) == f"{data} changed"
    assert not (tmp_path / ".cg-bench").exists()


def read(path: Path, value: str | None = None) -> Recording:
    from cachegrind_bench.hermetic.files import content

    return Recording(inputs=(Input(FILE, str(path), content(str(path)) if value is None else value),))


def keep(cache: Cache, recording: Recording, *, key: str = KEY, **changes: Any) -> str | None:
    return cache.keep(key, recording, stored_as(benchmark(**changes)))


def stored_as(found: Benchmark) -> Result:
    return Result(tool_version="1", created_at=NOW, commit=None, env=ENV, benchmarks=(found,))


def why(found: Result | str) -> str:
    assert isinstance(found, str)
    return found


def test_a_result_is_used_again_just_as_it_was_stored(cache: Cache, data: Path) -> None:
    base = profile_of(main=VECTOR)
    lines = (LineCost("main.c", "main", 3, VECTOR.as_tuple()),)
    profile = Profile(events=base.events, functions=base.functions, lines=lines)
    stored = benchmark(
        profile=profile,
        warnings=(HOSTILE,),
        command=("x", HOSTILE),
        python=replace(flaming.hostile(surrogate=""), total=2**62),
    )
    assert cache.keep(KEY, read(data), stored_as(stored)) is None
    found = cache.lookup(KEY)
    assert isinstance(found, Result)
    assert (found.benchmarks, found.created_at) == ((stored,), NOW)


@pytest.mark.parametrize("profile", [None, profile_of(main=VECTOR)])
@pytest.mark.parametrize("python", [python_profile({}), flaming.small(), python_profile(chain(200), cut=True)])
def test_a_python_profile_is_used_again_as_well(
    cache: Cache, data: Path, profile: Profile | None, python: PythonProfile
) -> None:
    stored = benchmark(profile=profile, python=python)
    assert cache.keep(KEY, read(data), stored_as(stored)) is None
    found = cache.lookup(KEY)
    assert isinstance(found, Result)
    assert (found.benchmarks, found.created_at) == ((stored,), NOW)


def test_what_was_never_stored_is_measured(cache: Cache) -> None:
    assert why(cache.lookup(KEY)) == "nothing is stored for it yet"


def test_a_changed_input_is_named(cache: Cache, data: Path) -> None:
    keep(cache, read(data))
    data.write_text("two")
    assert why(cache.lookup(KEY)) == f"{data} changed"
    data.unlink()
    assert why(cache.lookup(KEY)) == f"{data} is gone"
    data.write_text("one")
    assert isinstance(cache.lookup(KEY), Result)


def test_a_file_that_appears_is_named(cache: Cache, data: Path) -> None:
    keep(cache, read(data.with_name("new"), "ENOENT"))
    assert isinstance(cache.lookup(KEY), Result)
    data.with_name("new").write_text("")
    assert why(cache.lookup(KEY)) == f"{data.with_name('new')} has appeared"


def test_a_folder_whose_names_change_is_named(cache: Cache, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    from cachegrind_bench.hermetic.files import names

    keep(cache, Recording(inputs=(Input(LIST, str(folder), names(str(folder))),)))
    assert isinstance(cache.lookup(KEY), Result)
    (folder / "x").write_text("")
    assert why(cache.lookup(KEY)) == f"the names in {folder} changed"


def test_the_date_of_a_file_only_looked_at_counts(cache: Cache, data: Path) -> None:
    from cachegrind_bench.hermetic.files import look

    keep(cache, Recording(inputs=(Input(LOOK, str(data), look(str(data))),)))
    os.utime(data, ns=(5, 5))
    assert why(cache.lookup(KEY)) == f"{data} changed"


def test_the_newest_result_counts(cache: Cache, data: Path) -> None:
    keep(cache, read(data), id="old")
    data.write_text("two")
    keep(cache, read(data), id="new")
    found = cache.lookup(KEY)
    assert isinstance(found, Result)
    assert found.benchmarks[0].id == "new"


@pytest.mark.parametrize(
    ("recording", "changes", "reason"),
    [
        (Recording(inputs=(), incomplete="it uses the network"), {}, "it uses the network"),
        (Recording(inputs=()), {"status": Status.FAILED, "counts": None}, "it did not succeed"),
        (
            Recording(inputs=()),
            {"runs": (Run(layout=0, counts=VECTOR), Run(layout=0, counts=times(VECTOR, 2)))},
            "its counts vary from run to run",
        ),
    ],
)
def test_what_cannot_stand_for_another_run_is_not_kept_and_ends_what_was(
    cache: Cache, recording: Recording, changes: dict[str, Any], reason: str
) -> None:
    keep(cache, Recording(inputs=()))
    assert isinstance(cache.lookup(KEY), Result)
    assert keep(cache, recording, **changes) == reason
    assert isinstance(cache.lookup(KEY), str)
    assert keep(cache, recording, **changes) == reason


def test_layouts_may_differ(cache: Cache) -> None:
    runs = (Run(layout=0, counts=VECTOR), Run(layout=1, counts=times(VECTOR, 2)))
    assert keep(cache, Recording(inputs=()), runs=runs) is None


def test_a_damaged_file_costs_a_measurement_and_no_more(cache: Cache) -> None:
    keep(cache, Recording(inputs=()))
    path = cache.folder / f"{KEY}.cache"
    data = path.read_bytes()
    for broken in (b"", data[: len(data) // 2], data.replace(b"sieve", b"other")):
        path.write_bytes(broken)
        assert why(cache.lookup(KEY)).startswith(f"its stored result is damaged: {path}: ")
    assert keep(cache, Recording(inputs=())) is None
    assert isinstance(cache.lookup(KEY), Result)


@pytest.mark.parametrize(
    ("old", "new"), [("cg-bench.cache/3", "cg-bench.cache/1"), ("cg-bench.run/1", "cg-bench.run/9")]
)
def test_a_file_of_another_make_is_as_good_as_damaged(cache: Cache, old: str, new: str) -> None:
    import hashlib

    keep(cache, Recording(inputs=()))
    path = cache.folder / f"{KEY}.cache"
    body = path.read_bytes().split(b"\n", 1)[1]
    assert old.encode() in body
    changed = body.replace(old.encode(), new.encode())
    path.write_bytes(hashlib.sha256(changed).hexdigest().encode() + b"\n" + changed)
    assert "is damaged" in why(cache.lookup(KEY))


def test_a_file_that_cannot_be_read_costs_a_measurement(cache: Cache) -> None:
    path = cache.folder / f"{KEY}.cache"
    path.mkdir()
    assert why(cache.lookup(KEY)) == f"its stored result is of no use: cannot read {path}: Is a directory"
    assert "cannot write" in (keep(cache, Recording(inputs=())) or "")


def test_the_least_recently_used_results_go_first(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "_MOST", 3)
    for number in range(3):
        keep(cache, Recording(inputs=()), key=str(number))
        os.utime(cache.folder / f"{number}.cache", ns=(number, number))
    assert isinstance(cache.lookup("0"), Result)
    keep(cache, Recording(inputs=()), key="3")
    assert sorted(path.stem for path in cache.folder.glob("*.cache")) == ["0", "2", "3"]


def test_the_folder_is_there_before_anything_is_measured(tmp_path: Path) -> None:
    Cache.open(tmp_path / ".cg-bench")
    assert sorted(os.listdir(tmp_path / ".cg-bench")) == [".gitignore", "cache"]
    Cache.open(tmp_path / ".cg-bench")


def test_nothing_but_whole_files_is_left(cache: Cache) -> None:
    keep(cache, Recording(inputs=()))
    assert os.listdir(cache.folder) == [f"{KEY}.cache"]


def test_an_odd_path_is_stored_and_told(cache: Cache, tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\n"))
    path.write_text("one")
    keep(cache, read(path))
    assert isinstance(cache.lookup(KEY), Result)
    path.write_text("two")
    why(cache.lookup(KEY)).encode()


# Keys

OTHERS: dict[str, Any] = {
    "command": Command(typed=("prog", "y"), argv=("/bin/prog", "y"), executable="/bin/prog"),
    "cwd": Path("/elsewhere"),
    "environ": {"PATH": "/usr/bin"},
    "id": "another",
    "request": Request(values={"N": "1"}),
    "model": IR_MODEL,
    "repeat": 2,
    "warmup": 0,
    "stdin": Path("/in"),
    "prepare": "true",
    "cleanup": "true",
    "ignore_exit_status": True,
    "require_sealed": True,
    "clock": (1, 2),
    "call_tree": True,
    "lines": True,
    "layouts": 3,
    "collect": Collect.inside(region="parse"),
    "python_profile": True,
    "python_optional": True,
    "keep_place": True,
}
WITHOUT_EFFECT: dict[str, Any] = {"cpu": 1, "timeout_ms": 5}


def test_every_option_is_in_the_key_or_known_to_change_nothing() -> None:
    names = list(Plan.__struct_fields__)
    assert set(names) <= {*OTHERS, *WITHOUT_EFFECT}
    keys = [key_of(plan(**{name: OTHERS[name]}), ENV, version="1") for name in names if name in OTHERS]
    keys += [
        key_of(plan(), ENV, version="1"),
        key_of(plan(), ENV, version="2"),
        key_of(plan(), ENV, version="1", setup="make"),
        key_of(plan(), ENV, version="1", loop="x"),
        key_of(plan(), msgspec.structs.replace(ENV, key="ba9876543210"), version="1"),
    ]
    assert len(set(keys)) == len(keys)
    same = [key_of(plan(**{name: value}), ENV, version="1") for name, value in WITHOUT_EFFECT.items()]
    assert set(same) == {key_of(plan(), ENV, version="1")}


def test_a_variable_that_the_program_does_not_see_is_not_in_the_key() -> None:
    other = {"PATH": "/bin", "SECRET": "b"}
    assert key_of(plan(), ENV, version="1") == key_of(plan(environ=other), ENV, version="1")
    request = Request(passed=("SECRET",), values={})
    assert key_of(plan(request=request), ENV, version="1") != key_of(
        plan(request=request, environ=other), ENV, version="1"
    )


def test_another_user_or_kernel_has_results_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key_of(plan(), ENV, version="1")
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert key_of(plan(), ENV, version="1") != before


def test_undecodable_variables_have_a_key() -> None:
    assert len(key_of(plan(environ={"PATH": "/\udcff"}), ENV, version="1")) == 32


# The runner that records

EXECUTION = Execution(argv=("/bin/prog",), executable="/bin/prog", variables={}, cwd="/")


def test_only_measured_executions_are_recorded() -> None:
    one, two = Input(FILE, "/a", "ENOENT"), Input(FILE, "/b", "ENOENT")
    inner = FakeRunner([], [measurement(recording=Recording(inputs=(item,))) for item in (one, two)])
    runner = RecordingRunner(runner=inner)
    runner.warm_up(EXECUTION)
    runner.measure(EXECUTION, WHOLE, Tool.CACHEGRIND)
    runner.measure(EXECUTION, WHOLE, Tool.CACHEGRIND)
    assert [execution.record_files for execution in inner.executed] == [False, True, True]
    assert runner.recording() == Recording(inputs=(one, two))


def test_what_was_not_recorded_is_not_known() -> None:
    runner = RecordingRunner(runner=FakeRunner([], [measurement()]))
    runner.measure(EXECUTION, WHOLE, Tool.CACHEGRIND)
    assert runner.recording().incomplete == "what it reads was not recorded"


def test_the_file_holds_no_values_of_variables(cache: Cache) -> None:
    keep(cache, Recording(inputs=()))
    (path,) = cache.folder.iterdir()
    head = json.loads(path.read_bytes().split(b"\n")[1])
    assert sorted(head) == ["inputs", "schema"]
