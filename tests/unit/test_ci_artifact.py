"""An artifact is whatever a fork wants it to be: only a plain zip of the few known files gets through, and none to disk."""

from __future__ import annotations

import io
import os
import stat
import struct
import warnings
import zipfile
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.ci import artifact
from cachegrind_bench.ci.artifact import MOST_FILE, MOST_SENT, unpack
from cachegrind_bench.errors import FileFormatError

if TYPE_CHECKING:
    from pathlib import Path

ALLOWED = {"result.json": True, "base.json": False}
GOOD = {"result.json": b'{"a": 1}', "base.json": b"{}"}


def zipped(
    files: dict[str, bytes] | list[tuple[str | zipfile.ZipInfo, bytes]], method: int = zipfile.ZIP_DEFLATED
) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile dislikes two of one name as well
        for name, data in files.items() if isinstance(files, dict) else files:
            archive.writestr(name, data)
    return buffer.getvalue()


def refused(data: bytes, match: str) -> None:
    with pytest.raises(FileFormatError, match=match) as caught:
        unpack(data, "the-artifact", ALLOWED)
    assert str(caught.value).startswith("the-artifact: ")


def patched(data: bytes, local: int, central: int, form: str, value: int) -> bytes:
    """Change a field of the only file in both of its headers, given its places in them."""
    changed = bytearray(data)
    struct.pack_into(form, changed, local, value)
    struct.pack_into(form, changed, data.index(b"PK\x01\x02") + central, value)
    return bytes(changed)


@pytest.fixture(autouse=True)
def _nothing_reaches_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder, and let whoever opens a file of it fail."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("zipfile.ZipFile.extract", None)
    monkeypatch.setattr("zipfile.ZipFile.extractall", None)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_the_files_of_a_plain_zip_are_returned(method: int) -> None:
    assert unpack(zipped(GOOD, method), "x", ALLOWED) == GOOD
    one = {"result.json": b""}
    assert unpack(zipped(one, method), "x", ALLOWED) == one
    assert os.listdir() == []


def test_what_must_be_there_is_missed() -> None:
    refused(zipped({"base.json": b"{}"}), "it has no file result.json")
    refused(zipped({}), "it has no file result.json")


@pytest.mark.parametrize(
    "name",
    ["../result.json", "/etc/passwd", "./result.json", "result.json/", "RESULT.JSON", "x" * 60_000, "\n::error::x"],
)
def test_any_other_name_is_refused_and_never_becomes_a_path(name: str) -> None:
    data = zipped({"result.json": b"{}", name: b"x"})
    with pytest.raises(FileFormatError, match="which does not belong there") as caught:
        unpack(data, "the-artifact", ALLOWED)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600
    assert os.listdir() == []


def test_of_a_name_with_a_nul_only_what_is_before_it_is_the_name() -> None:
    """As zipfile has it: what is checked is what is returned, and the rest is nowhere."""
    data = zipped({"result.jsonX../../x": b"{}"}).replace(b"result.jsonX", b"result.json\0")
    assert unpack(data, "x", ALLOWED) == {"result.json": b"{}"}


def test_two_files_of_one_name_are_refused_as_readers_differ_in_which_they_take() -> None:
    refused(zipped([("result.json", b"1"), ("result.json", b"2")]), "two of one name")


def test_too_many_files_are_refused() -> None:
    refused(zipped({f"{number}": b"" for number in range(1000)}), "too many files")


def test_what_was_sent_is_bounded_before_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zipfile.ZipFile", None)
    refused(bytes(MOST_SENT + 1), f"too large: more than {MOST_SENT} bytes")
    refused(bytes(50_000_000), "too large")
    refused(b"PK\x01\x02" * 1001, "too many files")


def test_a_file_of_fifty_megabytes_passes_and_one_byte_more_does_not() -> None:
    assert MOST_FILE == 50_000_000
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("result.json", bytes(MOST_FILE + 1))
    assert len(buffer.getvalue()) < 1_000_000
    refused(buffer.getvalue(), "result.json is too large")


def test_a_bomb_that_says_it_is_small_gives_no_more_than_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """The size stands in the zip; a reader that believes the size and one that unpacks to the end would differ."""
    monkeypatch.setattr(artifact, "MOST_FILE", 1000)
    data = patched(zipped({"result.json": bytes(100_000)}), 22, 24, "<I", 900)
    refused(data, "not a readable zip|too large")


def test_a_bomb_that_says_it_is_large_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    data = patched(zipped({"result.json": b"{}"}), 22, 24, "<I", 0xFFFFFFF0)
    monkeypatch.setattr("zipfile.ZipFile.open", None)
    refused(data, "too large")


def test_a_size_that_is_not_true_is_an_error() -> None:
    refused(patched(zipped({"result.json": b'{"a": 1}'}), 22, 24, "<I", 5), "not a readable zip")
    refused(patched(zipped({"result.json": b'{"a": 1}'}), 14, 16, "<I", 12345), "not a readable zip")  # its checksum


def test_what_overlaps_or_lies_elsewhere_is_an_error() -> None:
    data = zipped({"result.json": b"{}"}, zipfile.ZIP_STORED)
    beginning = data.index(b"PK\x01\x02")
    moved = bytearray(data)
    struct.pack_into("<I", moved, beginning + 42, 4)  # where its local header begins
    refused(bytes(moved), "not a readable zip")
    far = zipfile.ZipInfo("result.json")
    far.extra = struct.pack("<HHQ", 1, 8, 0)  # of zip64
    data = zipped([(far, b"{}")])
    moved = bytearray(data.replace(far.extra, struct.pack("<HHQ", 1, 8, 1 << 63)))
    struct.pack_into("<I", moved, data.index(b"PK\x01\x02") + 42, 0xFFFFFFFF)
    refused(bytes(moved), "not a readable zip")


def test_encrypted_files_are_refused() -> None:
    refused(patched(zipped({"result.json": b"{}"}), 6, 8, "<H", 1), "packed in a way that artifacts are not")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_to_pack_are_refused(method: int) -> None:
    refused(zipped({"result.json": b"{}"}, method), "packed in a way")


@pytest.mark.parametrize("method", [1, 93])
def test_ways_to_pack_that_python_does_not_know_are_refused(method: int) -> None:
    refused(patched(zipped({"result.json": b"{}"}), 8, 10, "<H", method), "packed in a way|not a readable zip")


def test_a_zip_in_the_zip_is_only_bytes() -> None:
    inner = zipped({"result.json": b"{}"})
    assert unpack(zipped({"result.json": inner}), "x", ALLOWED) == {"result.json": inner}
    refused(zipped({"inner.zip": inner}), "does not belong")


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFDIR])
def test_a_link_is_text_or_refused_and_never_followed(kind: int, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a secret")
    entry = zipfile.ZipInfo("result.json")
    entry.create_system = 3  # Unix, whose modes stand in the upper half
    entry.external_attr = (kind | 0o777) << 16
    target = str(tmp_path / "secret").encode()
    try:
        found = unpack(zipped([(entry, target)]), "x", ALLOWED)
    except FileFormatError:
        found = {"result.json": target}
    assert found == {"result.json": target}
    assert os.listdir() == ["secret"]


def test_every_zip_that_was_cut_off_is_an_error() -> None:
    data = zipped(GOOD)
    for length in range(len(data)):
        refused(data[:length], "not a readable zip")


def test_every_zip_with_a_bit_turned_is_the_same_or_an_error() -> None:
    data = zipped(GOOD)
    for place in range(len(data)):
        for bit in (0, 3, 7):
            damaged = bytearray(data)
            damaged[place] ^= 1 << bit
            try:
                found = unpack(bytes(damaged), "x", ALLOWED)
            except FileFormatError:
                continue
            assert found in (GOOD, {"result.json": GOOD["result.json"]})


@pytest.mark.parametrize("data", [b"", b"{}", b"PK\x05\x06" + bytes(18)])
def test_what_is_not_a_zip_file_is_an_error(data: bytes) -> None:
    refused(data, "not a readable zip|it has no file")


def test_what_stands_before_or_after_a_zip_does_not_get_through_as_something_else() -> None:
    data = zipped(GOOD)
    assert unpack(b"#!/bin/sh\n" + data, "x", ALLOWED) == GOOD
    refused(data + zipped({"evil": b"x"}), "does not belong")
