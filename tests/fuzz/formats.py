"""The formats that cg-bench reads, each with samples and a reader that checks itself: it returns, or raises RefusedError.

What a reader accepts of damaged data has to be right: out files are read a second time by a few naive lines, a result must survive
being written and read again, and stored records must be the ones that were stored.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sqlite3
import tempfile
import zipfile
import zlib
from contextlib import closing, suppress
from functools import cache as cache_once
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.ci.artifact import BASE, RESULT, unpack
from cachegrind_bench.ci.event import read_event
from cachegrind_bench.config.load import load
from cachegrind_bench.errors import CgBenchError, FileFormatError, MeasurementError
from cachegrind_bench.history.accepted import parse_accepted
from cachegrind_bench.history.formats import csvformat, github_action_benchmark, jsonl
from cachegrind_bench.model.call_graph import every
from cachegrind_bench.model.codec import ResultFile, decode, encode
from cachegrind_bench.model.python_profile import PythonFunction
from cachegrind_bench.model.text import plain
from cachegrind_bench.render.result_page import page
from cachegrind_bench.store import profiles
from cachegrind_bench.store.checking import wrong_with
from cachegrind_bench.store.open import open_store
from cachegrind_bench.store.protocol import Query
from cachegrind_bench.store.reading import snapshot
from cachegrind_bench.store.record import Record, run_record
from cachegrind_bench.store.segments import read_segment, segment_names, write_segment
from cachegrind_bench.suite import cache
from cachegrind_bench.valgrind.callgrind_file import parse_callgrind_bytes
from cachegrind_bench.valgrind.code_log import CompiledCode
from cachegrind_bench.valgrind.failures import check_outcome, refused_programs
from cachegrind_bench.valgrind.out_file import read_cachegrind
from cachegrind_bench.valgrind.perf_map import parse_map
from cachegrind_bench.valgrind.processes import in_cachegrinds_terms, in_order
from cachegrind_bench.valgrind.python_contexts import PathReader, part_head
from tests.unit.samples import outcome
from tests.unit.stored import RECORDS, RENAME
from tests.unit.test_code_log import LOG as CODE_LOG

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cachegrind_bench.model.metrics import Profile

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "data"
CORPUS = DATA / "fuzz"  # what fell once, by format
_LONGEST = 3000  # characters of an error


class RefusedError(Exception):
    """The reader refused the data, in one line."""


def refused(error: CgBenchError) -> RefusedError:
    """Hold an error to what users may expect of it."""
    assert "\n" not in plain(error.message)  # as it is printed
    assert len(error.message) <= _LONGEST, error.message[:200]
    return RefusedError(error.message)


def _sums(lines: Sequence[bytes], events: int, skip: int, *, calls: bool) -> list[int]:
    """Add up self costs, naively."""
    sums, inclusive = [0] * events, False
    for line in lines:
        words = line.split()
        if words and words[0][:1] in b"0123456789+-*" and not inclusive:
            for column, word in enumerate(words[skip:]):
                sums[column] += int(word)
        inclusive = calls and line.startswith((b"calls=", b"jump=", b"jcnd="))
    return sums


def cachegrind(data: bytes) -> None:
    plain, with_lines = (read_cachegrind(io.BytesIO(data), "a.out", lines=lines) for lines in (False, True))
    assert replace(with_lines.profile, lines=()) == plain.profile
    body = data.partition(b"\nevents:")[2].partition(b"\n")[2].split(b"\n")
    assert _sums(body, len(plain.events), 1, calls=False) == [*plain.summary]
    _complete(in_order, plain.profile)


def _complete(read: Callable[[Profile], Profile], profile: Profile) -> None:
    """Use a profile as measuring does: it refuses one without the nine events."""
    assert sum(read(profile).totals()) >= 0 or any(count < 0 for row in profile.functions for count in row.counts)


def callgrind(data: bytes) -> None:
    plain, with_lines = (parse_callgrind_bytes(data, "a.out", lines=lines) for lines in (False, True))
    assert [part.profile for part in plain] == [replace(part.profile, lines=()) for part in with_lines]
    with suppress(FileFormatError):  # what is wrong with calls alone goes unseen where nobody asks for them
        with_calls = parse_callgrind_bytes(data, "a.out", calls=every)
        assert [part.profile for part in plain] == [part.profile for part in with_calls]
    for text in data.split(b"\n"):
        if text.startswith((b"pid:", b"thread:", b"part:")):
            assert text.partition(b":")[2].strip(b" ").isdigit(), text
    for part in plain:
        in_cachegrinds_terms(part)


def python_paths(data: bytes) -> None:
    reader = PathReader(depth=20)
    with tempfile.NamedTemporaryFile(dir=_scratch()) as file:
        file.write(data)
        file.flush()
        part_head(Path(file.name))
        reader.read(Path(file.name), parse_map(_MAP), 0x20000)
    found = reader.profile()
    assert sum(path.ir for path in found.paths) <= found.total


def perf_map(data: bytes) -> None:
    found = parse_map(data)
    for address in (0, 1, 0x10000, 1 << 64):
        assert found.at(address) is None or isinstance(found.at(address), PythonFunction)


def code_log(data: bytes) -> None:
    found = CompiledCode()
    found.read(data.splitlines(keepends=True))
    for address in (0, 0x1000, 0x1030, 1 << 64):
        assert found.at(address) is None or len(found.at(address) or ()) == 3


def log(data: bytes) -> None:
    text = data.decode("utf-8", "backslashreplace")
    assert all("\n" not in doubt for doubt in refused_programs(text))
    for changes in ({"exit_status": 1}, {"exit_status": None, "signal": 4}, {"exit_status": None, "signal": 9}):
        try:
            check_outcome(
                outcome(tail=b"", **changes), text, timeout_ms=1, held_back=(), ignore_status=False, native=False
            )
        except MeasurementError as error:
            refused(error)


def result(data: bytes) -> None:
    found = decode(data, "r.json")
    assert decode(encode(found), "again") == found
    for item in found.benchmarks:
        assert item.profile is None or item.profile.counts() == item.counts


def html_page(data: bytes) -> None:
    file = ResultFile(data, "r.json")
    assert "<script>alert" not in page(file.result, "r.json", file.with_evidence)


def record(data: bytes) -> None:
    name = RECORDS[0].name
    problem = wrong_with(Record(name=name, data=data))
    assert problem is None or "\n" not in problem
    snapshot(Record(name=name, data=data))


def segment(data: bytes) -> None:
    found = list(read_segment(io.BytesIO(data), _SEGMENT_NAME))
    assert found == RECORDS
    assert segment_names(io.BytesIO(data), _SEGMENT_NAME) == [item.name for item in RECORDS]


def segment_lines(data: bytes) -> None:
    segment(gzip.compress(data, 1, mtime=0))


def stored_profile(data: bytes) -> None:
    file = Path(_scratch()) / "p.gz"
    file.write_bytes(gzip.compress(data, 1, mtime=0))
    profiles.unpack(file, _RECORD_OF_RESULT)


def cached(data: bytes) -> None:
    try:
        cache.unpack(data)
    except cache.DamagedError as error:
        raise RefusedError(str(error)) from error


def _with_checksum(data: bytes) -> None:
    cached(hashlib.sha256(data).hexdigest().encode() + b"\n" + data)


def event(data: bytes) -> None:
    file = Path(_scratch()) / "event.json"
    file.write_bytes(data)
    for name in ("push", "pull_request", "merge_group", "workflow_run", "schedule"):
        try:
            found = read_event({"GITHUB_EVENT_NAME": name, "GITHUB_REPOSITORY": "o/r", "GITHUB_EVENT_PATH": str(file)})
        except CgBenchError as error:
            refused(error)
            continue
        assert found.pull is None or found.pull.number >= 0


def artifact(data: bytes) -> None:
    found = unpack(data, "artifact", {RESULT: True, BASE: False})
    assert {RESULT} <= found.keys() <= {RESULT, BASE}


def history_jsonl(data: bytes) -> None:
    for found in jsonl.read(io.BytesIO(data), "h.jsonl"):
        assert wrong_with(found) is None


def history_csv(data: bytes) -> None:
    csvformat.read(data.decode("utf-8", "backslashreplace"), "h.csv")


def history_action(data: bytes) -> None:
    github_action_benchmark.read(data.decode("utf-8", "backslashreplace"), "h.json")


def configuration(data: bytes) -> None:
    file = Path(_scratch()) / "cg-bench.toml"
    file.write_bytes(data)
    load(file, check_files=False)


def accepted(data: bytes) -> None:
    parse_accepted(data.decode("utf-8", "replace"), path="cg-bench-accepted.toml")


# --- SQLite: each line of the data names a cell and what is put into it -----------------------------------------------------------

_CELLS = [("cg_bench_records", column) for column in ("id", "uid", "name", "data")] + [("cg_bench_schema", "version")]
_VALUES: list[object] = [None, 0, -1, 1 << 62, 1.5, "", "x", "2", b"", b"\xff\x00", zlib.compress(b"{}\n"), "\x00"]


def sqlite(data: bytes) -> None:
    """Put values of any type into cells; of an even first byte, change bytes of the file itself."""
    folder = Path(_scratch())
    file = folder / "h.sqlite"
    file.write_bytes(_database())
    if data[:1] and data[0] % 2:
        with closing(sqlite3.connect(file)) as database, database:
            for cell, row, value in zip(*[iter(data[1:])] * 3, strict=False):
                table, column = _CELLS[cell % len(_CELLS)]
                what = _VALUES[value % len(_VALUES)]
                try:
                    database.execute("PRAGMA ignore_check_constraints = ON")
                    database.execute("PRAGMA writable_schema = ON")
                    database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (what, row % 9 + 1))  # noqa: S608
                except sqlite3.Error:
                    continue
    else:
        whole = bytearray(_database())
        for high, low, value in zip(*[iter(data[1:])] * 3, strict=False):
            whole[(high * 256 + low) * 7 % len(whole)] = value
        file.write_bytes(whole)
    known = {item.name: item.data for item in (*RECORDS, RENAME)}
    with open_store(f"sqlite:///{file}", cwd=folder, environ={}) as store:
        for use in (lambda: [*store.read()], lambda: [*store.snapshots(Query())], store.check, store.names):
            try:
                found = use()
            except CgBenchError as error:
                refused(error)
                continue
            for item in found:
                if isinstance(item, Record):
                    assert known.get(item.name, item.data) == item.data
                elif not isinstance(item, str):
                    assert "\n" not in getattr(item, "what", "")


@cache_once
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="cg-bench-fuzz-")


def _scratch() -> str:
    return _folder().name


@cache_once
def _database() -> bytes:
    file = Path(_scratch()) / "whole.sqlite"
    with open_store(f"sqlite:///{file}", cwd=file.parent, environ={}) as store:
        store.add([*RECORDS, RENAME])
    return file.read_bytes()


def _files(*patterns: str) -> list[bytes]:
    paths = sorted(path for pattern in patterns for path in DATA.glob(pattern))
    assert paths
    return [path.read_bytes() for path in paths]


_MAP = b"10000 20 py::main:/a.py\n10020 20 py::inner:/a.py\n20000 10 py::other:/b.py\n"
_PYTHON = (
    b"version: 1\ncreator: callgrind-3.24\npid: 7\ncmd:  python3 a.py\npart: 1\n\ndesc: Trigger: Program termination\n\n"
    b"positions: instr line\nevents: Ir\n\nob=(1) a\nfl=(1) b\nfn=(1) 0x10000\n0x10000 0 5\n+4 0 3\n"
    b"cfn=(2) 0x10020'0x10000\ncalls=1 0\n* 0 9\n\nfn=(2) 0x10020'0x10000\n0x10020 0 4\n+3 0 5\n"
    b"fn=(3) 0x10020'2'0x10020'0x10000\n0x10020 0 1\n\nfn=(4) plain'0x20000\n0x30000 0 2\n\ntotals: 20\n"
)
_LOG = [
    b"==7== Cachegrind\n==7== \n==7== valgrind: the 'impossible' happened:\n==7==    oh\n",
    b"==7== unhandled instruction bytes: 0x62 0xF1 0x7C 0x48\n==7== Can't execute setuid/setgid/setcap executable: /bin/x\n",
]
_EVENT = {
    "number": 1,
    "before": "a" * 40,
    "repository": {"full_name": "o/r", "default_branch": "main"},
    "pull_request": {
        "number": 1,
        "head": {"sha": "a" * 40, "ref": "x", "repo": {"full_name": "f/r", "owner": {"login": "f"}}},
        "base": {"ref": "main", "sha": "b" * 40},
    },
    "merge_group": {"base_sha": "b" * 40},
    "workflow_run": {
        "id": 1, "event": "push", "head_sha": "c" * 40, "name": "m", "head_branch": "x",
        "head_repository": {"full_name": "f/r", "owner": {"login": "f"}},
    },
}  # fmt: skip
_TOML = b"""threshold = ["1%", "fast*=2%"]
store = "file:.cg-bench"
[[benchmark]]
id = "fast"
command = ["./a", "{size}", "{kind}"]
parameters = { size = [1, 2, 3], kind = ["x", "y"] }
exclude = [{ size = 1, kind = "x" }]
tags = ["a"]
timeout = "3s"
env = { A = "b" }
"""
_ACCEPTED = b'[[accepted]]\nbenchmark = "fast*"\ncommit = "0123456789"\nreason = "larger input"\n'


def _zip() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(RESULT, b"{}" * 50)
        archive.writestr(BASE, b"[]")
    return stream.getvalue()


def _segment() -> tuple[str, bytes]:
    stream = io.BytesIO()
    name = write_segment(stream, [item.name for item in RECORDS], RECORDS)
    return name, stream.getvalue()


_SEGMENT_NAME, _SEGMENT = _segment()
_RESULTS = _files("results/v1/*.json")
_RECORD_OF_RESULT = run_record(decode(_RESULTS[-1], "sample")).name
_CACHE = json.dumps({"schema": cache.SCHEMA, "inputs": [["file", "/a", "b", 1, 2]]}).encode() + b"\n{}"


def _exports() -> tuple[bytes, bytes, bytes]:
    runs = [snapshot(item) for item in RECORDS[:2]]
    entries = (
        b"["
        + b",".join(
            github_action_benchmark.write(run).strip().removeprefix("[").removesuffix("]").encode() for run in runs
        )
        + b"]"
    )
    return b"".join(item.data for item in (*RECORDS[:2], RENAME)), "".join(csvformat.write(runs)).encode(), entries


_JSONL, _CSV, _ACTION = _exports()

FORMATS: dict[str, tuple[Callable[[bytes], None], list[bytes]]] = {
    "cachegrind": (cachegrind, _files("valgrind/*/tiny.*.cgout", "valgrind/*/*ir-only.cgout", "outfiles/*.cgout")),
    "callgrind": (callgrind, _files("valgrind/*/*.callgrind", "outfiles/*.callgrind")),
    "python-paths": (python_paths, [_PYTHON]),
    "perf-map": (perf_map, [_MAP]),
    "code-log": (code_log, [CODE_LOG]),
    "log": (log, _LOG),
    "result": (result, _RESULTS),
    "page": (html_page, _RESULTS),
    "record": (record, [RECORDS[0].data]),
    "segment": (segment, [_SEGMENT]),
    "segment-lines": (segment_lines, [gzip.decompress(_SEGMENT)]),
    "stored-profile": (stored_profile, _RESULTS),
    "cache": (_with_checksum, [_CACHE]),
    "event": (event, [json.dumps(_EVENT).encode()]),
    "artifact": (artifact, [_zip()]),
    "history-jsonl": (history_jsonl, [_JSONL]),
    "history-csv": (history_csv, [_CSV]),
    "history-action": (history_action, [_ACTION]),
    "configuration": (configuration, [_TOML]),
    "accepted": (accepted, [_ACCEPTED]),
    "sqlite": (sqlite, [bytes(range(1, 100, 3)), bytes(range(2, 50))]),
}


def try_one(name: str, data: bytes) -> bool:
    """Return whether the format's reader accepts the data; whatever is neither an answer nor an error of one line is raised."""
    try:
        FORMATS[name][0](data)
    except RefusedError:
        return False
    except CgBenchError as error:
        refused(error)
        return False
    return True
