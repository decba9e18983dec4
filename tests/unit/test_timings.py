"""How long benchmarks took the last time, and the folder that remembers it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.errors import UsageError
from cachegrind_bench.store.baselines import Baselines, make_store
from cachegrind_bench.store.timings import read_timings, write_timings

if TYPE_CHECKING:
    from pathlib import Path


def test_nothing_is_known_before_the_first_run(tmp_path: Path) -> None:
    assert read_timings(tmp_path) == {}
    assert read_timings(tmp_path / "nonesuch") == {}


def test_what_was_written_is_read_and_others_stay(tmp_path: Path) -> None:
    write_timings(tmp_path, {"b": 20, "ï[n=1]": 10})
    write_timings(tmp_path, {"b": 21, "c": 0})
    assert read_timings(tmp_path) == {"b": 21, "c": 0, "ï[n=1]": 10}


def test_nothing_measured_writes_nothing(tmp_path: Path) -> None:
    write_timings(tmp_path, {})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\udcff",
        '{"schema": "cg-bench.timings/2", "wall_ms": {"a": 1}}',
        '{"schema": "cg-bench.timings/1", "wall_ms": {"a": "1"}}',
    ],
    ids=lambda text: repr(text[:20]),
)
def test_a_file_that_makes_no_sense_is_as_good_as_none_and_is_replaced(tmp_path: Path, text: str) -> None:
    (tmp_path / "timings.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert read_timings(tmp_path) == {}
    write_timings(tmp_path, {"a": 1})
    assert read_timings(tmp_path) == {"a": 1}


def test_a_folder_that_cannot_be_written_is_not_a_reason_to_fail(tmp_path: Path) -> None:
    write_timings(tmp_path / "nonesuch", {"a": 1})
    (tmp_path / "timings.json").mkdir()
    write_timings(tmp_path, {"a": 1})
    assert read_timings(tmp_path) == {}


# The store


def test_a_new_store_is_ignored_by_git_and_an_old_one_is_left_as_it_is(tmp_path: Path) -> None:
    store = tmp_path / ".cg-bench"
    make_store(store)
    assert (store / ".gitignore").read_text() == "*\n"
    (store / ".gitignore").unlink()
    make_store(store)
    make_store(store, store / "baselines")
    assert os.listdir(store) == ["baselines"]


def test_a_store_that_was_first_used_on_a_full_disk_is_new_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store = tmp_path / ".cg-bench"
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(UsageError, match="No space left on device"):
            make_store(store, store / "runs")
    assert os.listdir(tmp_path) == []
    make_store(store, store / "runs")
    assert sorted(os.listdir(store)) == [".gitignore", "runs"]


def test_a_store_that_may_only_be_read_says_so(tmp_path: Path) -> None:
    make_store(tmp_path / "s")
    code = (
        "import sys\nfrom pathlib import Path\nfrom cachegrind_bench.store.files import FileStore\n"
        "from cachegrind_bench.errors import StoreError\nfrom tests.unit.stored import RECORDS\n"
        "try:\n    FileStore(Path(sys.argv[1])).add(RECORDS)\nexcept StoreError as error:\n    print(error.message)\n"
    )
    script = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && exec "$2" -c "$3" "$1"'
    apart = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh")
    done = subprocess.run([*apart, tmp_path / "s", sys.executable, code], capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip(f"no private mounts here: {done.stderr.strip()}")
    assert done.stdout == f"cannot write into the folder {tmp_path / 's'}: Read-only file system\n"


def test_a_store_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / ".cg-bench").touch()
    with pytest.raises(UsageError, match=r"cannot make the folder .*\.cg-bench: "):
        make_store(tmp_path / ".cg-bench")


def test_baselines_and_timings_share_a_store(tmp_path: Path) -> None:
    saved = Baselines.find(tmp_path)
    make_store(saved.store)
    write_timings(saved.store, {"a": 1})
    saved.save("main", b"{}")
    assert saved.names() == ["main"]
    assert sorted(os.listdir(saved.store)) == [".gitignore", "baselines", "timings.json"]
