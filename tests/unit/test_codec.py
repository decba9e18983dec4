"""The result file: what is written is read again, and anything else is refused with the file and the place."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cachegrind_bench.errors import FileFormatError
from cachegrind_bench.model.codec import SCHEMA, decode, encode
from cachegrind_bench.model.metrics import Counts, LineCost
from cachegrind_bench.model.result import Run
from tests.unit.samples import (
    HOSTILE,
    VECTOR,
    benchmark,
    failed_benchmark,
    profile_of,
    result,
    rich_benchmark,
    times,
)

if TYPE_CHECKING:
    from collections.abc import Callable

ROW = "benchmarks[0].profile.functions[0]"


def document() -> Any:
    return json.loads(encode(result()))


def with_lines(*lines: list[int]) -> Any:
    """Return a document whose one function, string 1 of file 0, has these lines instead of the two that fit."""
    first = times(VECTOR, 2)
    rows = (LineCost("main.c", "main", 7, first.as_tuple()), LineCost("main.c", "main", 0, VECTOR.as_tuple()))
    whole = first + VECTOR
    profile = replace(profile_of(main=whole), lines=rows)
    value = json.loads(encode(result(benchmark(counts=whole, profile=profile))))
    value["benchmarks"][0]["profile"]["lines"] = [*lines] or value["benchmarks"][0]["profile"]["lines"]
    return value


def refusal(value: object) -> FileFormatError:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    with pytest.raises(FileFormatError) as caught:
        decode(data, "r.json")
    return caught.value


def set_at(path: str, value: object) -> Callable[[Any], None]:
    """Return a change of a document: `path` as in error messages, such as `benchmarks[0].counts.Ir`."""
    *keys, last = path.replace("[", ".[").split(".")

    def key(text: str) -> Any:
        return int(text[1:-1]) if text.startswith("[") else text

    def change(target: Any) -> None:
        for step in keys:
            target = target[key(step)]
        target[key(last)] = value

    return change


def remove_at(path: str) -> Callable[[Any], None]:
    *keys, last = path.replace("[", ".[").split(".")

    def change(target: Any) -> None:
        for step in keys:
            target = target[int(step[1:-1]) if step.startswith("[") else step]
        del target[last]

    return change


@pytest.mark.parametrize(
    "value",
    [
        result(),
        result(rich_benchmark()),
        result(failed_benchmark(), benchmark(id=HOSTILE)),
        result(commit=None),
        result(benchmark(profile=None, score=benchmark().score, parameters={"n": "1"}, tags=("slow", "é"))),
    ],
    ids=["plain", "rich", "failed", "no-commit", "no-profile"],
)
def test_what_is_written_is_read_again_and_written_alike(value: Any) -> None:
    data = encode(value)
    assert decode(data, "r.json") == value
    assert encode(decode(data, "r.json")) == data


def test_the_bytes_are_canonical() -> None:
    data = encode(result(rich_benchmark()))
    assert data.endswith(b"}\n")
    assert data.count(b"\n") == 1
    assert (
        json.dumps(json.loads(data), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n" == data
    )


def test_lines_are_written_and_read_again_and_absent_where_there_are_none() -> None:
    data = encode(decode(json.dumps(with_lines()).encode(), "r.json"))
    profile = json.loads(data)["benchmarks"][0]["profile"]
    assert profile["lines"] == [[0, 1, 7, *times(VECTOR, 2).as_tuple()], [0, 1, 0, *VECTOR.as_tuple()]]
    assert encode(decode(data, "r.json")) == data
    assert b'"lines"' not in encode(result(rich_benchmark()))
    data = json.dumps(with_lines()).encode()
    found = decode(data, "r.json").benchmarks[0].profile
    assert found is not None
    assert found.lines[0] == LineCost("main.c", "main", 7, times(VECTOR, 2).as_tuple())


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([[0, 1, 7, *VECTOR.as_tuple()]], ": the lines of 'main' in 'main.c' do not add up to its row"),
        ([[0, 1, *VECTOR.as_tuple()]], "[0]: it has 11 numbers instead of 12"),
        ([[0, 1, 7, *VECTOR.as_tuple()]] * 2, "[1]: a second row of line 7 of 'main' in 'main.c'"),
        ([[1, 1, 7, *[0] * 9]], "[0]: a line of 'main' in 'main', which is not a function of this profile"),
        ([[0, 2, 7, *[0] * 9]], "[0]: it points to string 2 of 2"),
        ([[0, 1, -7, *[0] * 9]], "[0][2]: expected a whole number >= 0"),
        ([[0, 1, 7, 1 << 63, *[0] * 8]], "[0][3]: expected a whole number <= 9223372036854775807"),
        ([7], "[0]: expected a list, got a whole number"),
    ],
)
def test_wrong_lines_are_refused_with_their_path(lines: Any, message: str) -> None:
    assert str(refusal(with_lines(*lines))) == f"r.json: benchmarks[0].profile.lines{message}"


@pytest.mark.parametrize("lines", [None, 7, {}, "x"])
def test_lines_that_are_no_list_are_refused(lines: object) -> None:
    value = with_lines()
    value["benchmarks"][0]["profile"]["lines"] = lines
    assert str(refusal(value)).startswith("r.json: benchmarks[0].profile.lines: expected a list, got ")


def test_every_name_of_a_profile_is_stored_once() -> None:
    data = json.loads(encode(result(benchmark(id="a"), benchmark(id="b"))))
    assert data["strings"] == ["main.c", "main"]


def test_keys_of_later_versions_of_the_schema_are_passed_over() -> None:
    value = document()
    value["news"] = {"x": [1, None]}
    value["benchmarks"][0]["news"] = "x"
    assert decode(json.dumps(value).encode(), "r.json") == result()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_at("created_at", 5), "created_at: expected a string, got a whole number"),
        (set_at("created_at", True), "created_at: expected a string, got true or false"),
        (set_at("tool", []), "tool: expected an object, got a list"),
        (set_at("tool", {}), "tool: 'version' is missing"),
        (set_at("commit.dirty", 1), "commit.dirty: expected true or false, got a whole number"),
        (set_at("commit.sha", None), "commit.sha: expected a string, got null"),
        (set_at("env.info", {"x": None}), "env.info[...]: expected a whole number or a string, got null"),
        (set_at("env.fields", {"x": 1}), "env.fields[...]: expected a string, got a whole number"),
        (set_at("env.fields", "x"), "env.fields: expected an object, got a string"),
        (set_at("benchmarks", {}), "benchmarks: expected a list, got an object"),
        (set_at("benchmarks[0]", None), "benchmarks[0]: expected an object, got null"),
        (remove_at("benchmarks[0].id"), "benchmarks[0]: 'id' is missing"),
        (set_at("benchmarks[0].status", "fine"), "benchmarks[0].status: invalid enum value 'fine'"),
        (set_at("benchmarks[0].status", "failed"), "benchmarks[0].counts: a benchmark with status 'failed' has counts"),
        (set_at("benchmarks[0].counts", None), "benchmarks[0].counts: a benchmark with status 'ok' has no counts"),
        (set_at("benchmarks[0].counts.Ir", -1), "benchmarks[0].counts.Ir: -1 is negative"),
        (set_at("benchmarks[0].counts.Ir", "1"), "benchmarks[0].counts.Ir: expected a whole number, got a string"),
        (
            set_at("benchmarks[0].counts.Ir", True),
            "benchmarks[0].counts.Ir: expected a whole number, got true or false",
        ),
        (set_at("benchmarks[0].counts.Ir", 1 << 63), "benchmarks[0].counts.Ir: the number is absurdly large"),
        (remove_at("benchmarks[0].counts.DLmw"), "benchmarks[0].counts: 'DLmw' is missing"),
        (set_at("benchmarks[0].score", None), "benchmarks[0].score: counts and score go together"),
        (set_at("benchmarks[0].score.model", "best"), "benchmarks[0].score.model: 'best' is not a cost model"),
        (set_at("benchmarks[0].score.model", "IR"), "benchmarks[0].score.model: 'IR' is written 'ir'"),
        (
            set_at("benchmarks[0].score.value", 1),
            "benchmarks[0].score.value: these counts give 3418 under l1+5ll+30ram",
        ),
        (set_at("benchmarks[0].runs[0].layout", -1), "benchmarks[0].runs[0].layout: -1 is not the number of a layout"),
        (
            set_at("benchmarks[0].exit_status", "0"),
            "benchmarks[0].exit_status: expected a whole number or null, got a string",
        ),
        (set_at("benchmarks[0].seal.cpu.state", "?"), "benchmarks[0].seal[...].state: invalid enum value '?'"),
        (set_at("benchmarks[0].command", ["a", 1]), "benchmarks[0].command[1]: expected a string, got a whole number"),
        (set_at("benchmarks[0].profile.events", ["Ir"]), "benchmarks[0].profile: its events lack I1mr"),
        (set_at("benchmarks[0].profile.functions", 5), "benchmarks[0].profile.functions: expected a list, got a"),
        (remove_at("benchmarks[0].profile.functions"), "benchmarks[0].profile: 'functions' is missing"),
        (set_at("benchmarks[0].profile.functions", [[0, [1]]]), f"{ROW}[1]: expected a whole number, got a list"),
        (set_at("env.fields", {"functions": [5, 10]}), "env.fields[...]: expected a string, got a list"),
        (set_at("env.info", {"lines": [[1]]}), "env.info[...]: expected a whole number or a string, got a list"),
        (set_at("benchmarks[0].parameters", {"lines": []}), "benchmarks[0].parameters[...]: expected a string, got"),
        (
            set_at("benchmarks[0].profile.events", ["Ir"] * 9),
            "benchmarks[0].profile.events: it has an event twice",
        ),
        (
            set_at("benchmarks[0].profile.functions", []),
            "benchmarks[0].profile: its rows do not add up to the benchmark's",
        ),
        (set_at(f"{ROW}[2]", 1), "benchmarks[0].profile: its rows do not add up to the benchmark's counts"),
        (set_at(f"{ROW}[2]", -5), f"{ROW}[2]: expected a whole number >= 0"),
        (set_at(f"{ROW}[2]", 1 << 64), f"{ROW}[2]: expected a whole number <= "),
        (set_at(f"{ROW}[2]", True), f"{ROW}[2]: expected a whole number, got true or false"),
        (set_at(f"{ROW}[2]", "5"), f"{ROW}[2]: expected a whole number, got a string"),
        (set_at(f"{ROW}[1]", 2), f"{ROW}: it points to string 2 of 2"),
        (set_at(ROW, {}), f"{ROW}: expected a list, got an object"),
        (set_at(ROW, [0]), f"{ROW}: it has 1 numbers instead of 11"),
        (set_at("strings", []), f"{ROW}: it points to string 1 of 0"),
    ],
)
def test_a_wrong_value_is_refused_with_its_file_and_path(change: Callable[[Any], None], message: str) -> None:
    value = document()
    change(value)
    error = refusal(value)
    assert str(error).startswith(f"r.json: {message}")
    assert "measure again" in (error.hint or "")


def test_a_profile_without_an_event_of_the_counts_is_refused() -> None:
    value = document()
    profile = value["benchmarks"][0]["profile"]
    profile["events"][-1] = "Bc"
    assert str(refusal(value)) == "r.json: benchmarks[0].profile: its events lack DLmw"


def test_a_function_that_appears_twice_is_refused() -> None:
    value = document()
    rows = value["benchmarks"][0]["profile"]["functions"]
    rows.append([0, 1, *[0] * 9])
    assert str(refusal(value)) == "r.json: benchmarks[0].profile.functions[1]: a second row of 'main' in 'main.c'"


def test_a_benchmark_that_appears_twice_is_refused() -> None:
    value = document()
    value["benchmarks"] *= 2
    assert str(refusal(value)) == "r.json: benchmarks[1].id: a second benchmark 'sieve'"


def test_a_profile_without_counts_is_refused() -> None:
    value = json.loads(encode(result(failed_benchmark())))
    value["benchmarks"][0]["profile"] = {"events": [], "functions": []}
    assert str(refusal(value)) == "r.json: benchmarks[0].profile: a profile without counts"


@pytest.mark.parametrize("number", ["1.0", "1e3"])
def test_floats_are_refused(number: str) -> None:
    data = encode(result()).replace(b'"wall_ms":1234', b'"wall_ms":' + number.encode())
    said = "benchmarks[0].wall_ms: expected a whole number, got a number with a fraction"
    assert str(refusal(data)) == f"r.json: {said}"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_does_not_have_are_refused(number: str) -> None:
    data = encode(result()).replace(b'"wall_ms":1234', b'"wall_ms":' + number.encode())
    assert str(refusal(data)).startswith("r.json:1: not JSON: invalid character (byte ")


def test_a_file_that_was_cut_off_is_not_json_at_any_place() -> None:
    data = encode(result())
    for length in range(1, len(data) - 1):
        error = refusal(data[:length])
        assert str(error).startswith("r.json:1: not JSON: ")
        assert error.hint == "the file was cut off, or is not a result file"


def test_an_empty_file_is_reported() -> None:
    assert str(refusal(b"")) == "r.json: the file is empty"


def test_a_file_that_is_not_json_is_reported_with_line_and_byte() -> None:
    data = json.dumps(document(), indent=1).encode()
    place = data.index(b'"wall_ms"') - 1
    error = refusal(data[:place] + b"?" + data[place:])
    line = data[:place].count(b"\n") + 1
    assert str(error).startswith(f"r.json:{line}: not JSON: ")
    assert str(error).endswith(f"(byte {place + 1})")


def test_text_that_is_not_utf8_is_refused() -> None:
    data = encode(result()).replace(b'"created_at":"', b'"created_at":"\xff')
    assert "UTF-8" in str(refusal(data))  # msgspec says where since 0.23


def test_the_mark_that_some_editors_put_before_utf8_is_passed_over() -> None:
    assert decode(b"\xef\xbb\xbf" + encode(result()), "r.json") == result()


@pytest.mark.parametrize("data", [b"\xff{", b'{"schema": "\xff"}', b"[" * 100_000, b'{"a": ' + b"[" * 100_000])
def test_what_no_reader_can_take_is_refused(data: bytes) -> None:
    assert str(refusal(data)).startswith("r.json:")


@pytest.mark.parametrize("number", ["2", "10", "999999999"])
def test_a_schema_of_the_future_asks_for_a_newer_version(number: str) -> None:
    error = refusal({"schema": f"cg-bench.run/{number}"})
    assert str(error) == f"r.json: schema cg-bench.run/{number} is newer than this cg-bench can read ({SCHEMA})"
    assert error.hint == "install a newer cachegrind-bench"


@pytest.mark.parametrize(
    "value",
    [{}, {"schema": "cg-bench.suite/1"}, {"schema": ""}, {"schema": "cg-bench.run/0"}, {"schema": "cg-bench.run/²"}],
)
def test_another_family_of_files_is_named(value: object) -> None:
    assert "not a result file: its schema is" in str(refusal(value))


def test_a_schema_that_is_not_text_is_refused() -> None:
    assert str(refusal({"schema": 1})) == "r.json: schema: expected a string, got a whole number"


@pytest.mark.parametrize("value", [[], "x", 5, None, True])
def test_json_that_is_not_an_object_is_refused(value: object) -> None:
    assert str(refusal(value)).startswith("r.json: the document: expected an object, got ")


def test_an_error_is_short_however_long_the_value() -> None:
    for path in ("benchmarks[0].status", "schema"):
        value = document()
        set_at(path, "x" * 1_000_000)(value)
        assert len(str(refusal(value))) < 1000
    value = document()
    value["env"]["fields"]["k" * 1_000_000] = 5
    assert len(str(refusal(value))) < 1000


@pytest.mark.parametrize(
    ("event", "value", "why"),
    [
        ("Ir", 0, "a program that executed no instruction was not measured"),
        ("ILmr", 52, "more misses in the last level of the cache than in the first"),
        ("D1mr", 10**6, "more misses than accesses"),
    ],
)
def test_counts_that_no_program_can_have_are_refused(event: str, value: int, why: str) -> None:
    counts = Counts.from_mapping({**VECTOR.as_dict(), event: value})
    data = encode(result(benchmark(counts=counts)))
    with pytest.raises(FileFormatError, match=why):
        decode(data, "r.json")


def test_counts_are_those_of_one_of_the_runs() -> None:
    data = encode(result(benchmark(runs=(Run(layout=0, counts=times(VECTOR, 2)),))))
    with pytest.raises(FileFormatError, match="they are those of none of its runs"):
        decode(data, "r.json")


_READ_AT_ONCE = """
import sys, threading
sys.setswitchinterval(1e-6)
from cachegrind_bench.model.codec import decode
data = open(sys.argv[1], "rb").read()
barrier = threading.Barrier(4)
def read():
    barrier.wait()
    decode(data, "x")
threads = [threading.Thread(target=read) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_threads_that_read_their_first_results_at_once_do_not_crash() -> None:
    root = Path(__file__).resolve().parents[2]
    sample = root / "tests" / "data" / "results" / "v1" / "sample.json"
    for _ in range(5):  # without a lock, one process in seven crashes
        command = [sys.executable, "-c", _READ_AT_ONCE, str(sample)]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
