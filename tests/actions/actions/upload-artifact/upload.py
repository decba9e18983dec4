"""Writes NAME.zip into the folder that CG_BENCH_TEST_ARTIFACTS names, with the members the real action would choose.

Their names are relative to the one path that was given, or to what all of them have in common.
"""

from __future__ import annotations

import glob
import hashlib
import io
import itertools
import json
import os
import re
import sys
import zipfile
import zlib
from pathlib import Path
from typing import NoReturn

UNSAFE_IN_NAMES = re.compile(r'["":<>|*?\r\n\\/]')
UNSAFE_IN_PATHS = re.compile(r'["":<>|*?\r\n]')


def fail(reason: str) -> NoReturn:
    print(f"::error::{reason}")
    sys.exit(1)


def literal_part(pattern: str) -> Path:
    """Return the path up to its first wildcard: where a search for it starts."""
    return Path(*itertools.takewhile(lambda part: not glob.has_magic(part), Path(pattern).parts))


def files_of(pattern: str, *, hidden: bool) -> set[Path]:
    """Return all files a pattern means, those in folders it means as well."""
    start = literal_part(pattern)
    found: set[Path] = set()
    for name in glob.glob(pattern, recursive=True, include_hidden=True):
        path = Path(name)
        inside = [path, *path.rglob("*")] if path.is_dir() else [path]
        for file in inside:
            # The search's own starting point counts, what is above it does not.
            seen = [start.name, *file.relative_to(start).parts]
            if file.is_file() and (hidden or not any(part.startswith(".") for part in seen)):
                found.add(file)
    return found


def root_of(patterns: list[str], found: set[Path]) -> Path:
    starts = sorted({literal_part(pattern) for pattern in patterns})
    starts = [path for path in starts if not any(other in path.parents for other in starts)]
    if len(starts) > 1:
        return Path(os.path.commonpath(starts))
    return starts[0].parent if found == {starts[0]} else starts[0]


def main() -> None:
    given: dict[str, str] = {name: str(value or "") for name, value in json.loads(os.environ["INPUTS"]).items()}
    name = given["name"]
    if not name or UNSAFE_IN_NAMES.search(name):
        fail(f"The artifact name is not valid: {name}")
    if given["if-no-files-found"] not in ("warn", "error", "ignore"):
        fail(f"Unrecognized if-no-files-found input. Provided: {given['if-no-files-found']}")
    if given["archive"] != "true":
        fail("upload-artifact (stand-in): knows `archive: true` only")
    if given["retention-days"] and not 0 <= int(given["retention-days"]) <= 90:
        fail("retention-days is out of range")

    lines = [line.strip() for line in given["path"].splitlines() if line.strip()]
    if not lines:
        fail("Input required and not supplied: path")
    workspace = os.environ["GITHUB_WORKSPACE"]
    places = [os.path.normpath(os.path.join(workspace, os.path.expanduser(line.removeprefix("!")))) for line in lines]
    wanted = [place for line, place in zip(lines, places, strict=True) if not line.startswith("!")]
    unwanted = [place for line, place in zip(lines, places, strict=True) if line.startswith("!")]
    if not wanted:
        fail("upload-artifact (stand-in): all paths are exclusions")
    hidden = given["include-hidden-files"] == "true"
    found = {file for place in wanted for file in files_of(place, hidden=hidden)}
    found -= {file for place in unwanted for file in files_of(place, hidden=True)}
    if not found:
        reason = f"No files were found with the provided path: {given['path']}. No artifacts will be uploaded."
        if given["if-no-files-found"] == "error":
            fail(reason)
        print(f"::warning::{reason}" if given["if-no-files-found"] == "warn" else reason)
        return

    root = root_of(wanted, found)
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(found):
            member = file.relative_to(root).as_posix()
            if UNSAFE_IN_PATHS.search(member):
                fail(f"The path for one of the files in artifact is not valid: {member}")
            archive.writestr(zipfile.ZipInfo(member), file.read_bytes())
            print(f"  {member}")
    target = Path(os.environ["CG_BENCH_TEST_ARTIFACTS"], f"{name}.zip")
    try:
        with target.open("wb" if given["overwrite"] == "true" else "xb") as archived:
            archived.write(data.getvalue())
    except FileExistsError:
        fail(
            "Failed to CreateArtifact: Received non-retryable error: Failed request: (409) Conflict: "
            "an artifact with this name already exists on the workflow run"
        )
    identity = zlib.crc32(name.encode())
    run = f"{os.environ['GITHUB_SERVER_URL']}/{os.environ['GITHUB_REPOSITORY']}/actions/runs/{os.environ['GITHUB_RUN_ID']}"
    with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as out:
        out.write(f"artifact-id={identity}\nartifact-url={run}/artifacts/{identity}\n")
        out.write(f"artifact-digest={hashlib.sha256(data.getvalue()).hexdigest()}\n")
    print(f"Artifact {name} has been successfully uploaded")


main()
