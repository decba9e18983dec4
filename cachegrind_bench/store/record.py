"""What a history keeps: immutable documents, canonical bytes named by what they hold.

A run is a result file without profiles and output; a rename says that a benchmark has another name from now on. Knows
bytes and names; must not know where they are kept.
"""

from __future__ import annotations

import hashlib
import json
import re

import msgspec
from msgspec.structs import replace

from cachegrind_bench.model.codec import encode
from cachegrind_bench.model.result import Result

RENAME_SCHEMA = "cg-bench.rename/1"

MOST_BYTES = 125_000_000  # of one document

_UID = 16
_RUN = re.compile(r"runs/([0-9]{4})/([0-9]{2})/([0-9a-f]{12}|nocommit)\.([0-9a-f]{8})\.([0-9a-f]{8})\.json", re.ASCII)
_RENAME = re.compile(r"renames/([0-9a-f]{16})\.json", re.ASCII)


class RunName(msgspec.Struct, frozen=True, kw_only=True):
    """What the name of a run says: month (as 2026-01), the commit's first 12 digits or None, and parts of key and uid."""

    month: str
    sha12: str | None
    key8: str
    uid8: str


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One document: `name` is its path in a store, with slashes, and `data` its canonical bytes."""

    name: str
    data: bytes

    @property
    def uid(self) -> str:
        """The first 16 hex digits of the SHA-256 over the bytes."""
        return uid_of(self.data)


def uid_of(data: bytes) -> str:
    """Return the first 16 hex digits of the SHA-256 over these bytes."""
    return hashlib.sha256(data).hexdigest()[:_UID]


def canonical_line(document: object) -> bytes:
    """Return a document as one line: sorted keys, no blanks, UTF-8. ValueError for a text that is not Unicode."""
    return json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def run_record(result: Result) -> Record:
    """Return the record of a result: what its programs wrote, and its profiles, stay behind."""
    slim = (replace(item, profile=None, output=None, python=None, calls=None) for item in result.benchmarks)
    return named_record(result, encode(replace(result, benchmarks=tuple(slim))))


def named_record(result: Result, data: bytes) -> Record:
    """Return the record of these canonical bytes, which were read as this result: they may hold more than we know."""
    sha = None if result.commit is None else result.commit.sha
    return Record(name=name_of_run(uid_of(data), result.created_at, sha, result.env.key), data=data)


def name_of_run(uid: str, created_at: str, sha: str | None, key: str) -> str:
    """Return the name of the record of a run that was made then, of this commit, in the environment of this key."""
    commit = "nocommit" if sha is None else sha[:12]
    return f"runs/{created_at[:4]}/{created_at[5:7]}/{commit}.{key[:8]}.{uid[:8]}.json"


def rename_record(old: str, new: str, created_at: str) -> Record:
    """Return the record which says that the benchmark `old` is called `new`, since `created_at` (UTC, with a Z)."""
    document = {"schema": RENAME_SCHEMA, "old": old, "new": new, "created_at": created_at}
    data = canonical_line(document)
    return Record(name=f"renames/{uid_of(data)}.json", data=data)


def is_record_name(name: str) -> bool:
    """Return whether a record can have this name."""
    return _RUN.fullmatch(name) is not None or _RENAME.fullmatch(name) is not None


def run_name(name: str) -> RunName | None:
    """Return what the name of a run says; None for any other name."""
    match = _RUN.fullmatch(name)
    if match is None:
        return None
    year, month, sha, key, uid = match.groups()
    return RunName(month=f"{year}-{month}", sha12=None if sha == "nocommit" else sha, key8=key, uid8=uid)
