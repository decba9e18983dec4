"""Paths of regions: the harness disappears with what it costs, and paths with native code add up to the region's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.errors import FileFormatError
from cachegrind_bench.model.python_profile import PythonFunction
from cachegrind_bench.valgrind.perf_map import parse_map
from cachegrind_bench.valgrind.processes import OutPath
from cachegrind_bench.valgrind.python_contexts import PartHead, part_head
from cachegrind_bench.valgrind.region_parts import RegionReader, is_harness
from tests.unit.test_pythonpaths import tree

if TYPE_CHECKING:
    from pathlib import Path

LIB = "/v/site-packages/cachegrind_bench/region"
TRAMPOLINES = parse_map(
    (
        "1000 b py::main:/w/a.py\n1010 b py::f:/w/a.py\n"
        f"2000 b py::region.__enter__:{LIB}/__init__.py\n2010 b py::Marks.enter:{LIB}/marks.py\n"
        f"2020 b py::region.__exit__:{LIB}/__init__.py\n2030 b py::Marks._enter_empty:{LIB}/marks.py\n"
        f"2040 b py::region.__call__.<locals>.measured:{LIB}/__init__.py\n"
    ).encode()
)
CLIENT = "Client Request: cg-bench:"
COUNTER = 0x9021
# Of an empty region: 20 in the marks, 1 of them at the counter; 7 in the function that has the `with`.
EMPTY = {"0x2030": 7, "0x9021'0x9000'0x2010'0x2000'0x2030": 1, "0x9000'0x2010'0x2000'0x2030": 9, "0x2020'0x2030": 10}


def inside(caller: str, times: int) -> dict[str, int]:
    """Return what the marks of so many entries below this caller cost, but for the caller's own part."""
    return {
        f"0x9021'0x9000'0x2010'0x2000'{caller}": times,
        f"0x9000'0x2010'0x2000'{caller}": 9 * times,
        f"0x2020'{caller}": 10 * times,
    }


def part(folder: Path, number: int, trigger: str, rows: dict[str, int], *, pid: int = 7) -> None:
    """Write a part with costs by context; what a context's own address costs is not at its first instruction."""
    lines = ""
    for name, ir in rows.items():
        own = name.split("'")[0]
        address = int(own, 16) + (4 if own != f"{COUNTER:#x}" else 0) if own.startswith("0x") else 4
        lines += f"fn={name}\n{address:#x} {ir}\n"
    total = sum(rows.values())
    text = (
        f"version: 1\npid: {pid}\ncmd:  python s.py\npart: {number}\n\ndesc: Trigger: {trigger}\n\npositions: instr\n"
        f"events: Ir\nsummary: {total}\n\nob=(1) ???\n{lines}\ntotals: {total}\n"
    )
    (folder / (f"out.{pid}" if trigger == "Program termination" else f"out.{pid}.{number}")).write_text(text)


def read(folder: Path, *, depth: int | None = None) -> RegionReader:
    reader = RegionReader(depth=depth)
    paths = sorted(folder.iterdir(), reverse=True)  # in any order
    files = [OutPath(path=path, pid=int(path.name.split(".")[1]), index=None, image=None) for path in paths]
    reader.read_all(files, lambda _pid: TRAMPOLINES)
    return reader


def calibrated(folder: Path) -> None:
    part(folder, 1, f"{CLIENT}warm", {"0x1000": 3})
    part(folder, 2, f"{CLIENT}empty:0x9021", {name: 16 * ir for name, ir in EMPTY.items()})
    part(folder, 3, f"{CLIENT}none", EMPTY)


def test_an_empty_region_costs_nothing_however_often_it_is_entered(tmp_path: Path) -> None:
    calibrated(tmp_path)
    part(tmp_path, 4, f"{CLIENT}region:a", {})
    part(tmp_path, 5, "Program termination", {"0x1000": 5 * 7, **inside("0x1000", 5)})
    profile = read(tmp_path).profiles()["a"]
    assert (profile.total, profile.native, profile.paths) == (0, 0, ())


def test_what_is_done_in_a_region_is_all_that_is_left(tmp_path: Path) -> None:
    calibrated(tmp_path)
    part(tmp_path, 4, f"{CLIENT}region:a", {})
    rows = {"0x1000": 2 * 7 + 100, **inside("0x1000", 2), "0x1010'0x1000": 30}
    part(tmp_path, 5, f"{CLIENT}region:b%20c", rows)
    part(tmp_path, 6, f"{CLIENT}region:a", {"0x1010": 1 * 7 + 50, **inside("0x1010", 1), "malloc": 11})
    part(tmp_path, 7, "Program termination", {"0x1000": 7 + 1, **inside("0x1000", 1)})
    found = read(tmp_path).profiles()
    assert list(found) == ["a", "b c"]
    assert tree(found["a"]) == {"main": (0, 101), "main/f": (0, 30)}
    assert (found["a"].total, found["a"].native) == (131, 0)
    assert tree(found["b c"]) == {"f": (0, 50)}
    assert (found["b c"].total, found["b c"].native) == (61, 11)


def test_what_the_harness_calls_belongs_to_its_caller(tmp_path: Path) -> None:
    calibrated(tmp_path)
    part(tmp_path, 4, f"{CLIENT}region:a", {})
    rows = {"0x2040'0x1000": 3 * 7 + 6, **inside("0x2040'0x1000", 3), "0x1010'0x2040'0x1000": 30}
    part(tmp_path, 5, "Program termination", rows)
    profile = read(tmp_path).profiles()["a"]
    assert tree(profile) == {"main": (0, 0), "main/f": (0, 30)}
    assert (profile.total, profile.native) == (36, 6)


def test_a_child_that_was_forked_in_a_region_adds_up_with_its_parent(tmp_path: Path) -> None:
    calibrated(tmp_path)
    part(tmp_path, 4, f"{CLIENT}region:a", {})
    part(tmp_path, 5, "Program termination", {"0x1000": 7, **inside("0x1000", 1), "0x1010'0x1000": 10})
    part(tmp_path, 1, f"{CLIENT}region:a", {"0x1010'0x1000": 999}, pid=9)  # a copy of what the parent has
    part(tmp_path, 2, "Program termination", {"0x1010'0x1000": 4}, pid=9)
    profile = read(tmp_path).profiles()["a"]
    assert tree(profile) == {"main": (0, 0), "main/f": (0, 14)}
    assert profile.total == 14


def test_marks_of_c_have_no_address_and_cost_native_code(tmp_path: Path) -> None:
    part(tmp_path, 1, f"{CLIENT}empty:cg_bench_toggle_region", {})
    part(tmp_path, 2, f"{CLIENT}region:a", {"cg_bench_toggle_region": 4})
    part(tmp_path, 3, "Program termination", {"0x1000": 10, "cg_bench_toggle_region'0x1000": 4, "main": 5})
    profile = read(tmp_path).profiles()["a"]
    assert (tree(profile), profile.total) == ({"main": (0, 14)}, 19)


def test_calls_that_are_too_deep_are_reported(tmp_path: Path) -> None:
    part(tmp_path, 1, f"{CLIENT}region:a", {})
    part(tmp_path, 2, "Program termination", {"0x1010'0x1000'0x1010": 10})
    assert read(tmp_path, depth=2).cut
    assert read(tmp_path, depth=2).profiles()["a"].cut
    assert not read(tmp_path, depth=3).cut


def test_only_the_marks_themselves_are_the_harness() -> None:
    def harness(file: str) -> bool:
        return is_harness(PythonFunction(file, "f", 0))

    assert harness(f"{LIB}/__init__.py")
    assert harness("cachegrind_bench/region/marks.py")
    assert not any(map(harness, ["/w/region/marks.py", "/w/cachegrind_bench/cli/main.py", "<string>", "marks.py"]))


def test_the_head_of_a_part_is_its_number_and_its_reason(tmp_path: Path) -> None:
    part(tmp_path, 3, "--dump-before=fork", {})
    assert part_head(tmp_path / "out.7.3") == PartHead(tmp_path / "out.7.3", 3, "--dump-before=fork")


@pytest.mark.parametrize("text", ["", "part: x\nevents: Ir\n", "events: Ir\npart: 1\n"])
def test_a_part_without_a_number_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "out.7").write_text(text)
    with pytest.raises(FileFormatError, match="its part has no number"):
        part_head(tmp_path / "out.7")


def test_a_part_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError):
        part_head(tmp_path)
