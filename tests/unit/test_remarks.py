"""Instructions that repeat themselves, by their bytes, and the sentence where one weighs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.measure import remarks
from cachegrind_bench.measure.remarks import counted_by_element, string_instruction
from cachegrind_bench.model.call_graph import CallGraph, Code

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("f3 a4", "rep movsb"),
        ("f3 aa c3", "rep stosb"),
        ("f3 ab", "rep stosl"),
        ("66 f3 a5", "rep movsw"),
        ("f3 48 a5", "rep movsq"),
        ("f3 48 ab", "rep stosq"),
        ("f2 ae", "repne scasb"),
        ("f3 a6", "repe cmpsb"),
        ("a4", None),
        ("f3 0f 1e fa", None),  # endbr64
        ("f3 c3", None),
        ("f3", None),
        ("", None),
    ],
)
def test_what_repeats_is_known_by_its_bytes(code: str, name: str | None) -> None:
    assert string_instruction(bytes.fromhex(code)) == name


def test_it_is_told_where_it_is_a_hundredth_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remarks, "code_at", lambda _path, address, _size: bytes([0xF3, address]))
    copy, clear = Code("/lib/x", "x.c", "copy"), Code("/lib/x", "x.c", "clear")
    graph = CallGraph({}, {}, heavy={(copy, 0xA4): 300, (clear, 0xAB): 9, (clear, 0xC3): 500})
    assert counted_by_element(graph, 1000) == [
        "30 % of the instructions are one `rep movsb` in copy: Valgrind counts it once for each byte, and a CPU takes many at a time"
    ]
    assert counted_by_element(None, 1000) == []


def test_an_object_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        graph = CallGraph({}, {}, heavy={(Code(str(path), "", "f"), 0): 1000})
        assert counted_by_element(graph, 1000) == []
