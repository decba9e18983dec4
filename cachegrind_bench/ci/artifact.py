"""Artifacts as data: a zip from anyone at all; only the few files it may hold are taken from it, in memory.

A pull request from a fork decides every byte of its artifact. Names never become paths, sizes are bounded before anything is
unpacked, and what comes out still has to be read as what it claims to be.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping

from cachegrind_bench.errors import FileFormatError

RESULT, BASE, PAGE = "result.json", "base.json", "comparison.html"
RESULTS = {RESULT: True, BASE: False, PAGE: False}  # of a job that measured, with whether it must have them

# Of what is sent, and of each file in it: a thousand benchmarks with their profiles are far below both.
MOST_SENT = 20_000_000
MOST_FILE = 50_000_000
_MOST_MEMBERS = 8
_MEMBER = b"PK\x01\x02"  # of one in the directory at the end of a zip, which zipfile reads whole
_MANY_MEMBERS = 1000  # packed data may have that by chance
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def unpack(data: bytes, name: str, allowed: Mapping[str, bool]) -> dict[str, bytes]:
    """Return the files of an artifact by name. `allowed` are the only ones it may have, True those that it must have.

    FileFormatError, with the artifact's `name`, if it is anything but a plain zip of those.
    """
    if len(data) > MOST_SENT:
        raise FileFormatError(f"too large: more than {MOST_SENT} bytes", path=name)
    if data.count(_MEMBER) > _MANY_MEMBERS:
        raise FileFormatError("it has too many files", path=name)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            _check(members, name, allowed)
            return {member.filename: _read(archive, member, name) for member in members}
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
        ValueError,
        OverflowError,
        OSError,
    ) as error:
        raise FileFormatError(f"not a readable zip: {error}", path=name) from error


def _check(members: list[zipfile.ZipInfo], name: str, allowed: Mapping[str, bool]) -> None:
    names = [member.filename for member in members]
    if len(names) > _MOST_MEMBERS or len(set(names)) < len(names):
        raise FileFormatError("it has too many files, or two of one name", path=name)
    for member in members:
        if member.filename not in allowed:
            raise FileFormatError(f"it has a file {member.filename[:100]!r}, which does not belong there", path=name)
        if member.compress_type not in _METHODS or member.flag_bits & 1:
            raise FileFormatError(f"{member.filename} is packed in a way that artifacts are not", path=name)
        if member.file_size > MOST_FILE:
            raise FileFormatError(f"{member.filename} is too large: more than {MOST_FILE} bytes", path=name)
    for wanted in (item for item, needed in allowed.items() if needed and item not in names):
        raise FileFormatError(f"it has no file {wanted}", path=name)


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> bytes:
    """Read one file, which may be longer than it says."""
    with archive.open(member) as file:
        data = file.read(MOST_FILE + 1)
    if len(data) > MOST_FILE:
        raise FileFormatError(f"{member.filename} is too large: more than {MOST_FILE} bytes", path=name)
    return data
