"""Unpacks zips of the folder that CG_BENCH_TEST_ARTIFACTS names: one by its name, or all that a pattern means."""

from __future__ import annotations

import fnmatch
import json
import os
import sys
import zipfile
from pathlib import Path
from typing import NoReturn


def fail(reason: str) -> NoReturn:
    print(f"::error::{reason}")
    sys.exit(1)


def main() -> None:
    given: dict[str, str] = {name: str(value or "") for name, value in json.loads(os.environ["INPUTS"]).items()}
    if given["artifact-ids"] or given["skip-decompress"] != "false":
        fail("download-artifact (stand-in): knows neither `artifact-ids` nor `skip-decompress`")
    if given["github-token"] and (
        given["run-id"] != os.environ["GITHUB_RUN_ID"] or given["repository"] != os.environ["GITHUB_REPOSITORY"]
    ):
        fail("download-artifact (stand-in): knows the artifacts of this run only")
    folder = Path(os.environ["CG_BENCH_TEST_ARTIFACTS"])
    dest = Path(os.environ["GITHUB_WORKSPACE"], os.path.expanduser(given["path"]))
    if given["name"]:
        archives = [folder / f"{given['name']}.zip"]
        if not archives[0].exists():
            fail(f"Unable to download artifact(s): Artifact not found for name: {given['name']}")
    else:
        archives = sorted(file for file in folder.glob("*.zip") if fnmatch.fnmatch(file.stem, given["pattern"] or "*"))
    for archive in archives:
        apart = not given["name"] and given["merge-multiple"] != "true"
        target = dest / archive.stem if apart else dest
        target.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(archive) as content:
            content.extractall(target)
    with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as out:
        out.write(f"download-path={dest}\n")
    print(f"Total of {len(archives)} artifact(s) downloaded")


main()
