"""A benchmark of pytest finds the same memory alone and after others: then it counts the same, whatever it does with that."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest

from tests.suites import VERSIONS, suite_python
from tests.valgrind.measuring import measure

if TYPE_CHECKING:
    from collections.abc import Mapping

_PAGE, _WORD = 4096, 8
_VALGRINDS_OWN = 0x38000000  # it loads itself there, or above; below is the memory of the program
_MOST_MOVED = 8  # pointers to the instruction that forked: for the first piece of work it is another one
# The ninth call is one that is counted.
_MEETS = """
import socket
import pytest
calls = 0
def meet():
    global calls
    calls += 1
    if calls == 9:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect("../meeting")
            connection.recv(1)
def test_0(benchmark): benchmark(meet)
def test_1(benchmark): benchmark(meet)
def test_2(benchmark): benchmark(meet)  # in a copy of the process
@pytest.mark.benchmark
@pytest.mark.asyncio
async def test_3(): meet()  # in the process of the benchmark itself
"""
_BEFORE = """
import decimal, json
def test_a(benchmark): benchmark(json.dumps, {"a": [1, 2, 3]})
def test_b(benchmark): benchmark(decimal.Decimal, "1.5")
"""


@dataclass
class Meeting:
    """Reads the memory of each process that connects, and lets it go on."""

    path: Path
    memories: list[Mapping[int, bytes]] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(self.path))
        self._socket.listen()
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self.path.unlink()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:  # closed in any case: whoever waits goes on
                peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("=3i"))
                with suppress(OSError):  # then there are too few
                    self.memories.append(_memory(struct.unpack("=3i", peer)[0]))


def _memory(pid: int) -> dict[int, bytes]:
    """Return the pages that a program under Valgrind may write, by their addresses."""
    pages: dict[int, bytes] = {}
    process = Path(f"/proc/{pid}")
    with (process / "mem").open("rb", buffering=0) as memory:
        for line in (process / "maps").read_text().splitlines():
            place, access, *_ = line.split()
            start, end = (int(address, 16) for address in place.split("-"))
            if end <= _VALGRINDS_OWN and access[1] == "w":
                memory.seek(start)
                found = memory.read(end - start)
                pages |= {start + at: found[at : at + _PAGE] for at in range(0, len(found), _PAGE)}
    return pages


def _moved(one: Mapping[int, bytes], other: Mapping[int, bytes]) -> list[str]:
    """Return the places where the memories have different addresses: those differ where objects lie, or are freed, elsewhere."""
    assert one.keys() == other.keys()
    found: list[str] = []
    for start in one:
        if one[start] != other[start]:
            words = zip(*(struct.unpack(f"={_PAGE // _WORD}Q", pages[start]) for pages in (one, other)), strict=True)
            found += [
                f"{start + number * _WORD:x}: {a:x} and {b:x}"
                for number, (a, b) in enumerate(words)
                if a != b and a - a % _PAGE in one and b - b % _PAGE in one
            ]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_memory_is_the_same_alone_and_after_other_benchmarks(version: str, folder: Path) -> None:
    python = suite_python(version)
    (folder / "test_a.py").write_text(_BEFORE)
    (folder / "test_b.py").write_text(_MEETS)
    with Meeting(folder.parent / "meeting") as meeting:
        first = measure(folder, python=python)
        assert first.status == 0, first.said
        alone = measure(folder, "-k", "test_2 or test_3", python=python)
        assert alone.status == 0, alone.said
    *_, second, third, second_alone, third_alone = meeting.memories
    assert len(second) * _PAGE > 10 << 20
    for after_others, without in ((second, second_alone), (third, third_alone)):
        moved = _moved(after_others, without)
        assert len(moved) <= _MOST_MOVED, "\n".join(moved[:100])
    for name in ("test_2", "test_3"):
        assert first.found[name]["counts"] == alone.found[name]["counts"]
