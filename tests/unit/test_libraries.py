"""The loader's list of libraries as it is handed out, searched as glibc does (elf/dl-cache.c: search_cache)."""

from __future__ import annotations

import os
import random
import struct
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.hermetic.fake_proc import CACHE, LibraryCache

if TYPE_CHECKING:
    from collections.abc import Iterable

HEADER, ENTRY = struct.Struct("=20sIIB3xI12x"), struct.Struct("=IIIIQ")
MAGIC = b"glibc-ld.so.cache1.1"
HWCAPS = (b"x86-64-v2\0", b"x86-64-v3\0")
Entries = dict[bytes, list[tuple[int, bytes, int, int]]]


def compared(one: bytes, other: bytes) -> int:
    """Compare as _dl_cache_libcmp does: numbers by their value."""
    i = j = 0
    while i < len(one):
        if one[i : i + 1].isdigit():
            if not other[j : j + 1].isdigit():
                return 1
            numbers = []
            for text, at in ((one, i), (other, j)):
                end = at
                while text[end : end + 1].isdigit():
                    end += 1
                numbers.append((int(text[at:end]), end))
            if numbers[0][0] != numbers[1][0]:
                return numbers[0][0] - numbers[1][0]
            i, j = numbers[0][1], numbers[1][1]
        elif other[j : j + 1].isdigit():
            return -1
        elif one[i] != (other[j] if j < len(other) else 0):
            return one[i] - (other[j] if j < len(other) else 0)
        else:
            i, j = i + 1, j + 1
    return -(other[j] if j < len(other) else 0)


class Searched:
    """A cache as the loader sees it; `seen` are the places that it has looked at."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        magic, self.count, length, flags, self.extension = HEADER.unpack_from(data)
        assert (magic, flags) == (MAGIC, 2)
        assert HEADER.size + self.count * ENTRY.size + length == len(data)
        self.seen: list[tuple[int, int]] = []

    def text(self, at: int) -> bytes:
        return self.data[at : self.data.index(b"\0", at)]

    def entry(self, place: int) -> tuple[int, bytes, int, int, int]:
        flags, key, value, version, hwcap = ENTRY.unpack_from(self.data, HEADER.size + place * ENTRY.size)
        self.seen.append((place, key))
        return flags, self.text(key), value, version, hwcap

    def find(self, name: bytes) -> list[tuple[int, bytes, int, int]]:
        left, right = 0, self.count - 1
        while left <= right:
            middle = (left + right) // 2
            order = compared(name, self.entry(middle)[1])
            if order == 0:
                while middle > 0 and compared(name, self.entry(middle - 1)[1]) == 0:
                    middle -= 1
                found = []
                while middle <= right and (entry := self.entry(middle))[1] == name:
                    found.append((entry[0], self.text(entry[2]), *entry[3:]))
                    middle += 1
                return list(dict.fromkeys(found))
            if order < 0:
                left = middle + 1
            else:
                right = middle - 1
        return []

    def hwcaps(self) -> list[bytes]:
        magic, count = struct.unpack_from("=II", self.data, self.extension)
        assert magic == 0xEAA42174
        sections = [struct.unpack_from("=IIII", self.data, self.extension + 8 + 16 * n) for n in range(count)]
        ((at, size),) = [(at, size) for tag, _flags, at, size in sections if tag == 1]
        return [self.text(offset) for (offset,) in struct.iter_unpack("=I", self.data[at : at + size])]


def real(entries: Entries) -> bytes:
    """Write a cache as ldconfig does."""
    from functools import cmp_to_key

    names = sorted(entries, key=cmp_to_key(compared), reverse=True)
    rows = [(name, *entry) for name in names for entry in entries[name]]
    start = HEADER.size + len(rows) * ENTRY.size
    strings, packed = bytearray(), b""
    for name, flags, value, version, hwcap in rows:
        at = start + len(strings)
        strings += name + b"\0" + value + b"\0"
        packed += ENTRY.pack(flags, at, at + len(name) + 1, version, hwcap)
    offsets = []
    for text in HWCAPS:
        offsets.append(start + len(strings))
        strings += text
    strings += bytes(-(start + len(strings)) % 4)
    table = start + len(strings)
    strings += struct.pack("=2I", *offsets)
    extension = start + len(strings)
    strings += struct.pack("=II", 0xEAA42174, 1) + struct.pack("=IIII", 1, 0, table, 8)
    return HEADER.pack(MAGIC, len(rows), len(strings), 2, extension) + packed + strings


def some(draw: random.Random, count: int) -> Entries:
    """Make up libraries: some with several files, and many with names that begin alike."""
    found: Entries = {}
    while len(found) < count:
        name = f"lib{draw.choice(('', 'icu', 'x'))}{draw.choice('abcm')}{draw.randint(0, 99)}.so.{draw.randint(0, 12)}"
        kinds = draw.choice((1, 1, 1, 2, 3, 4))
        found[name.encode()] = [
            (0x303, f"/lib/{kind}/{name}".encode(), 0, (1 << 62 | kind) if kind < kinds - 1 else 0)
            for kind in range(kinds)
        ]
    return found


def handed_out(data: bytes, needed: Iterable[bytes], spare: int = 0) -> Searched:
    descriptor = os.memfd_create("test")
    try:
        LibraryCache(data).write(descriptor, {name + b"\0" for name in needed}, spare=spare)
        return Searched(os.pread(descriptor, 1 << 28, 0))
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("needs", [0, 1, 5, 63, 64])
def test_every_library_is_found_as_before_whatever_is_needed(needs: int) -> None:
    draw = random.Random(needs)
    entries = some(draw, 300)
    found = handed_out(real(entries), draw.sample(sorted(entries), needs))
    assert {name: found.find(name) for name in entries} == entries
    assert all(found.find(name) == [] for name in (b"libnone.so.1", b"liba", b"zlib.so", b"a.so", b"libx.so.6"))
    assert found.hwcaps() == [b"x86-64-v2", b"x86-64-v3"]


def test_looking_for_what_is_needed_takes_the_same_steps_whatever_else_is_installed() -> None:
    entries = some(random.Random(1), 20)
    steps = []
    for others in (0, 50, 2000):
        found = handed_out(real({**some(random.Random(2), others), **entries}), entries)
        for name in entries:
            found.find(name)
        steps.append((len(found.data), found.seen))
    assert steps[0] == steps[1] == steps[2]


def test_a_list_may_be_made_longer_by_a_page() -> None:
    data = real(some(random.Random(1), 20))
    plain, longer = handed_out(data, ()), handed_out(data, (), spare=4096)
    assert len(longer.data) == len(plain.data) + 4096
    assert longer.count == plain.count


def test_more_libraries_than_expected_are_found_in_a_larger_list() -> None:
    entries = some(random.Random(1), 3000)
    found = handed_out(real(entries), ())
    assert all(found.find(name) == entries[name] for name in entries)


def test_the_list_of_this_machine_can_be_read() -> None:
    if not os.path.exists(CACHE):
        pytest.skip(f"there is no {CACHE} here")
    with open(CACHE, "rb") as file:
        data = file.read()
    paths = LibraryCache(data).names_by_path()
    assert any(name.startswith(b"libc.so") for name in paths.values())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"ld.so-1.7.0\0" + bytes(100),
        real({})[:47],
        real(some(random.Random(1), 3))[:60],
        real({b"early.so": [(1, b"/e", 0, 0)]}),
    ],
    ids=["empty", "old", "short", "cut off", "a name before lib"],
)
def test_a_list_of_another_kind_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        LibraryCache(data)
