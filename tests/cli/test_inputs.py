"""Result files that cannot be read: each is told with its file and place, and is exit code 2."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest

from cachegrind_bench.cli.options import size as bytes_of
from cachegrind_bench.model.codec import SCHEMA, encode
from cachegrind_bench.usecases.result_files import DEFAULT_LIMIT
from tests.unit.samples import benchmark, failed_benchmark, result, rich_benchmark, run_without_rights

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import CommandLine

ALTERED = "  the file was altered or cut off; measure again to make a new one\n"
NO_RESULT = "  the file was cut off, or is not a result file\n"
WRITTEN_BY = "  'cg-bench run -o FILE' writes result files\n"
PROFILE = "benchmarks[0].profile"
ROW = f"{PROFILE}.functions[0]"
DATA = encode(result())


def replaced(old: bytes, new: bytes) -> bytes:
    assert DATA.count(old) == 1
    return DATA.replace(old, new)


def changed(change: Callable[[Any], object]) -> bytes:
    value = json.loads(DATA)
    change(value)
    return json.dumps(value).encode()


BAD = {
    "empty": (b"", f": the file is empty\n{WRITTEN_BY}"),
    "cut-off": (
        DATA[: DATA.index(b",1353,51")],
        f":1: not JSON: input data was truncated (byte {DATA.index(b',1353,51') + 1})\n{NO_RESULT}",
    ),
    "no-json": (b"desc: I1 cache\n", f":1: not JSON: invalid character (byte 1)\n{NO_RESULT}"),
    "binary": (b"\x7fELF\x02\xff", f":1: not JSON: invalid character (byte 1)\n{NO_RESULT}"),
    "utf-16": (DATA.decode().encode("utf-16"), f":1: not JSON: invalid character (byte 1)\n{NO_RESULT}"),
    "other-schema": (
        replaced(b"cg-bench.run/1", b"cg-bench.suite/1"),
        f": not a result file: its schema is 'cg-bench.suite/1', not 'cg-bench.run/1'\n{WRITTEN_BY}",
    ),
    "no-schema": (b"{}", f": not a result file: its schema is 'missing', not 'cg-bench.run/1'\n{WRITTEN_BY}"),
    "future-schema": (
        replaced(b"cg-bench.run/1", b"cg-bench.run/2"),
        f": schema cg-bench.run/2 is newer than this cg-bench can read ({SCHEMA})\n  install a newer cachegrind-bench\n",
    ),
    "same-id": (
        changed(lambda value: value["benchmarks"].append(value["benchmarks"][0])),
        f": benchmarks[1].id: a second benchmark 'sieve'\n{ALTERED}",
    ),
    "negative": (
        changed(lambda value: value["benchmarks"][0]["counts"].update(Dr=-5)),
        f": benchmarks[0].counts.Dr: -5 is negative\n{ALTERED}",
    ),
    "absurd": (
        changed(lambda value: value["benchmarks"][0]["counts"].update(Ir=1 << 63)),
        f": benchmarks[0].counts.Ir: the number is absurdly large\n{ALTERED}",
    ),
    "negative-row": (
        replaced(b"[0,1,1353,", b"[0,1,-1353,"),
        f": {ROW}[2]: expected a whole number >= 0\n{ALTERED}",
    ),
    "absurd-row": (
        replaced(b"[0,1,1353,", b"[0,1,9223372036854775808,"),
        f": {ROW}[2]: expected a whole number <= 9223372036854775807\n{ALTERED}",
    ),
    "wrong-sum": (
        replaced(b"[0,1,1353,", b"[0,1,1354,"),
        f": {PROFILE}: its rows do not add up to the benchmark's counts\n{ALTERED}",
    ),
}


@pytest.mark.parametrize("through", ["file", "stdin", "pipe"])
@pytest.mark.parametrize(("data", "message"), BAD.values(), ids=BAD)
def test_a_bad_file_is_reported_with_file_and_place(
    cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch, through: str, data: bytes, message: str
) -> None:
    name = {"file": "r.json", "stdin": "<stdin>", "pipe": "fifo"}[through]
    if through == "file":
        Path(name).write_bytes(data)
        told = cg_bench("show", name)
    elif through == "stdin":
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        told = cg_bench("show", "-")
    else:
        os.mkfifo(name)
        writer = threading.Thread(target=Path(name).write_bytes, args=(data,))
        writer.start()
        told = cg_bench("show", name)
        writer.join()
    assert (told.code, told.out) == (2, "")
    assert told.err == f"cg-bench: error: {name}{message}"


@pytest.mark.parametrize("data", [DATA, encode(result(rich_benchmark(), failed_benchmark()))])
def test_a_pipe_and_stdin_give_what_the_file_gives(data: bytes) -> None:
    Path("r.json").write_bytes(data)

    def shown(arguments: str) -> str:
        command = [sys.executable, "-m", "cachegrind_bench", "show"]
        done = subprocess.run(
            ["bash", "-c", f'"$@" {arguments}', "bash", *command], check=True, capture_output=True, text=True
        )
        return done.stdout

    plain = shown("r.json")
    for arguments in (
        "- < r.json",
        "- < <(cat r.json)",
        "<(cat r.json)",
        "/dev/stdin < r.json",
        "/dev/stdin < <(cat r.json)",
    ):
        assert shown(arguments) == plain


def test_only_the_profile_that_is_shown_is_read(cg_bench: CommandLine) -> None:
    data = encode(result(benchmark(id="a"), benchmark(id="b"))).replace(b"[0,1,1353,", b"[0,1,1354,", 1)
    Path("r.json").write_bytes(data)
    assert cg_bench("show", "r.json", "--benchmark", "b").code == 0
    told = cg_bench("show", "r.json", "--benchmark", "*")
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith("cg-bench: error: r.json: benchmarks[0].profile: its rows do not add up")


@pytest.mark.parametrize("through", ["file", "stdin", "pipe"])
@pytest.mark.parametrize("way", ["option", "variable"])
def test_a_file_over_the_limit_is_refused_and_the_option_named(
    cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch, through: str, way: str
) -> None:
    Path("r.json").write_bytes(DATA)
    read_end, write_end = os.pipe()
    os.write(write_end, DATA)
    os.close(write_end)
    with open(read_end, "rb"):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(DATA)))
        name = {"file": "r.json", "stdin": "-", "pipe": f"/dev/fd/{read_end}"}[through]
        limit = len(DATA) - 1
        if way == "variable":
            monkeypatch.setenv("CG_BENCH_MAX_SIZE", str(limit))
        told = cg_bench("show", name, *(["--max-size", str(limit)] if way == "option" else []))
    size = str(len(DATA)) if through == "file" else f"more than {limit}"
    assert (told.code, told.out) == (2, "")
    assert told.err == (
        f"cg-bench: error: {name if name != '-' else '<stdin>'} is too large: {size} bytes, and the limit is {limit}\n"
        "  raise the limit, as in --max-size 4GB\n"
    )


def test_a_file_of_a_terabyte_is_refused_without_reading_it(cg_bench: CommandLine) -> None:
    with Path("r.json").open("wb") as stream:
        stream.truncate(10**12)
    told = cg_bench("show", "r.json")
    assert (told.code, told.out) == (2, "")
    assert "r.json is too large: 1000000000000 bytes, and the limit is 1000000000\n" in told.err


def test_what_cannot_be_opened_is_reported(cg_bench: CommandLine) -> None:
    Path("folder").mkdir()
    Path("loop").symlink_to("loop")
    for name, message in (("folder", "Is a directory"), ("loop", "Too many levels of symbolic links")):
        told = cg_bench("show", name)
        assert (told.code, told.out) == (2, "")
        assert told.err == f"cg-bench: error: cannot read {name}: {message}\n{WRITTEN_BY}"


def test_a_file_that_one_may_not_read_is_reported() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        path = Path(folder) / "r.json"
        path.write_bytes(DATA)
        path.chmod(0)
        code = (
            "import sys\nimport cachegrind_bench.model.codec\n"
            "from cachegrind_bench.usecases.result_files import read_result\n"
            "from cachegrind_bench.errors import UsageError\nbegin()\n"
            "try:\n    read_result(sys.argv[1])\nexcept UsageError as error:\n    print(error)\n"
        )
        assert run_without_rights(code, str(path)) == f"cannot read {path}: Permission denied\n"


def test_a_closed_stdin_is_reported(cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    told = cg_bench("show", "-")
    assert (told.code, told.out) == (2, "")
    assert told.err == f"cg-bench: error: cannot read stdin: it is closed\n{WRITTEN_BY}"


def test_a_stdin_that_cannot_be_read_is_reported(cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: object, /) -> int:
            del buffer
            raise OSError(5, "Input/output error")

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(Broken())))
    told = cg_bench("show", "-")
    assert (told.code, told.out) == (2, "")
    assert told.err == f"cg-bench: error: cannot read <stdin>: Input/output error\n{WRITTEN_BY}"


@pytest.mark.parametrize("when", ["created", "written"])
def test_a_full_disk_for_what_stdin_brings_is_reported(
    cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    def full(*_: object) -> Any:
        if when == "created":
            raise OSError(28, "No space left on device")
        return open("/dev/full", "w+b", buffering=0)

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(DATA)))
    told = cg_bench("show", "-")
    assert (told.code, told.out) == (2, "")
    assert told.err == (
        "cg-bench: error: cannot keep <stdin> in a temporary file: No space left on device\n"
        "  free some space, let TMPDIR name another folder, or save it to a file first\n"
    )


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("1000000", 10**6),
        ("512B", 512),
        ("5kB", 5000),
        ("5 KB", 5000),
        ("5KiB", 5120),
        ("500MB", 500 * 10**6),
        ("2GB", 2 * 10**9),
        ("2gb", 2 * 10**9),
        ("1GiB", 1 << 30),
        (" 1TB ", 10**12),
        (7, 7),
    ],
)
def test_sizes_are_read(text: str | int, size: int) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "0GB", "-1", "1.5GB", "GB", "1G", "x"])
def test_what_is_not_a_size_is_reported(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a size: write bytes, or as in 500MB, 2GB or 1GiB"):
        bytes_of(text)


def test_the_default_limit_is_a_gigabyte(cg_bench: CommandLine) -> None:
    assert DEFAULT_LIMIT == 10**9
    assert "[default: 1GB]" in " ".join(cg_bench("show", "--help").out.split())
