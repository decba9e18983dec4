"""The formats that cg-bench reads of others, each with samples and a reader that checks itself: it returns, or raises RefusedError.

What a reader accepts of damaged data has to be right: a result must survive being written and read again, and stored records
must be the ones that were stored.
"""

from __future__ import annotations

import gzip
import io
import tempfile
import zipfile
from functools import cache as cache_once
from pathlib import Path
from typing import TYPE_CHECKING

from cachegrind_bench.ci.artifact import BASE, RESULT, unpack
from cachegrind_bench.errors import CgBenchError
from cachegrind_bench.history.formats import csvformat, github_action_benchmark, jsonl
from cachegrind_bench.model.codec import ResultFile, decode, encode
from cachegrind_bench.model.text import plain
from cachegrind_bench.render.result_page import page
from cachegrind_bench.store import profiles
from cachegrind_bench.store.checking import wrong_with
from cachegrind_bench.store.reading import snapshot
from cachegrind_bench.store.record import Record, run_record
from cachegrind_bench.store.segments import read_segment, segment_names
from tests.unit import stored
from tests.unit.stored import RECORDS, RENAME

if TYPE_CHECKING:
    from collections.abc import Callable


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


@cache_once
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="cg-bench-fuzz-")


def _scratch() -> str:
    return _folder().name


def _files(*patterns: str) -> list[bytes]:
    paths = sorted(path for pattern in patterns for path in DATA.glob(pattern))
    assert paths
    return [path.read_bytes() for path in paths]


def _zip() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(RESULT, b"{}" * 50)
        archive.writestr(BASE, b"[]")
    return stream.getvalue()


_SEGMENT_NAME, _SEGMENT = stored.segment(RECORDS)
_RESULTS = _files("results/v1/*.json")
_RECORD_OF_RESULT = run_record(decode(_RESULTS[-1], "sample")).name


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
    "result": (result, _RESULTS),
    "page": (html_page, _RESULTS),
    "record": (record, [RECORDS[0].data]),
    "segment": (segment, [_SEGMENT]),
    "segment-lines": (segment_lines, [gzip.decompress(_SEGMENT)]),
    "stored-profile": (stored_profile, _RESULTS),
    "artifact": (artifact, [_zip()]),
    "history-jsonl": (history_jsonl, [_JSONL]),
    "history-csv": (history_csv, [_CSV]),
    "history-action": (history_action, [_ACTION]),
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
