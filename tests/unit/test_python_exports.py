"""Python profiles in the formats of other tools: read back by what knows these formats."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench.model.python_profile import TOP
from cachegrind_bench.model.text import plain
from cachegrind_bench.render.exports import callgrind, speedscope
from cachegrind_bench.valgrind.callgrind_file import parse_callgrind_bytes
from tests.conftest import without
from tests.unit import flaming
from tests.unit.pythons import chain, python_profile

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.model.python_profile import PythonProfile

PROFILES = [flaming.small(), flaming.large(3_000), flaming.hostile(), python_profile(chain(200)), python_profile({})]
NAMES = ["small", "large", "hostile", "recursive", "empty"]


@pytest.mark.parametrize("profile", PROFILES, ids=NAMES)
def test_speedscope_gets_every_path_with_its_own_cost(profile: PythonProfile) -> None:
    document = json.loads(speedscope({"a": profile, "b": flaming.small()}))
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = document["shared"]["frames"]
    assert len({json.dumps(frame) for frame in frames}) == len(frames)
    for frame in frames:
        assert isinstance(frame["name"], str)
        assert set(frame) <= {"name", "file", "line"}
        assert frame.get("line", 1) >= 1
    assert [item["name"] for item in document["profiles"]] == ["a", "b"]
    for item, whole in zip(document["profiles"], (profile, flaming.small()), strict=True):
        assert set(item) == {"type", "name", "unit", "startValue", "endValue", "events"}
        assert (item["type"], item["unit"], item["startValue"]) == ("evented", "none", 0)
        costs = costs_of(item)
        assert sum(costs.values()) == item["endValue"] == whole.total
        assert sorted(costs.values()) == sorted(summed(whole).values())


def costs_of(profile: dict[str, Any]) -> dict[tuple[int, ...], int]:
    """Return the own cost of each stack of frames, as a reader of events would; fails where they are not in order."""
    found = defaultdict[tuple[int, ...], int](int)
    stack: list[int] = []
    last = 0
    for event in profile["events"]:
        assert set(event) == {"type", "at", "frame"}
        assert event["at"] >= last
        found[tuple(stack)] += event["at"] - last
        last = event["at"]
        if event["type"] == "O":
            stack.append(event["frame"])
        else:
            assert event["type"] == "C"
            assert stack.pop() == event["frame"]
    assert stack == []
    return {stack: cost for stack, cost in found.items() if cost}


def summed(profile: PythonProfile) -> dict[tuple[int, ...], int]:
    """Return the own cost of each path, by its functions; native code has none."""
    found = defaultdict[tuple[int, ...], int](int)
    stacks: list[tuple[int, ...]] = []
    for path in profile.paths:
        stacks.append((*(() if path.parent == TOP else stacks[path.parent]), path.function))
        found[stacks[-1]] += path.ir
    found[()] += profile.native
    return {stack: cost for stack, cost in found.items() if cost}


def test_a_stack_of_speedscope_begins_with_the_outermost_caller() -> None:
    document = json.loads(speedscope({"rows": flaming.small()}))
    frames = document["shared"]["frames"]
    costs = {
        tuple(frames[place]["name"] for place in stack): cost
        for stack, cost in costs_of(document["profiles"][0]).items()
    }
    assert costs["<module>", "load", "parse_row", "field"] == 90_000
    assert costs["<module>", "walk", "walk", "walk"] == 10_000
    assert costs[("native code not under any Python function",)] == 62_500
    field = next(frame for frame in frames if frame["name"] == "field")
    assert field == {"name": "field", "file": "src/pkg/rows.py", "line": 61}


@pytest.mark.parametrize("profile", PROFILES, ids=NAMES)
def test_our_reader_of_callgrinds_files_finds_the_same_self_costs(profile: PythonProfile) -> None:
    (part,) = parse_callgrind_bytes(callgrind("rows\nfn=x", profile), "rows.out", lines=True)
    assert part.events == ("Ir",)
    assert part.summary == part.header_summary == (profile.total,)
    found = {row.name: row.counts[0] for row in part.profile.functions}
    assert found["native code not under any Python function"] == profile.native
    assert sum(row.counts[0] for row in part.profile.functions) == profile.total
    if profile is PROFILES[0]:
        assert found == {cost.function.name: cost.ir for cost in profile.costs()} | {
            "native code not under any Python function": 62_500
        }
        assert {(line.name, line.line) for line in part.profile.lines} >= {("parse_row", 42), ("field", 61)}


@pytest.mark.parametrize("profile", PROFILES, ids=NAMES)
def test_callgrind_annotate_reads_the_same_totals(profile: PythonProfile, tmp_path: Path) -> None:
    program = shutil.which("callgrind_annotate")
    if program is None:
        without("no callgrind_annotate on PATH (it comes with Valgrind)")
    path = tmp_path / "callgrind.out.rows"
    path.write_bytes(callgrind("rows", profile))

    def annotated(*options: str) -> str:
        command = [program, "--threshold=100", "--show-percs=no", *options, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    own = annotated()
    assert re.search(rf"^ *{profile.total:,} +PROGRAM TOTALS( \(calculated\))?$", own, re.MULTILINE), own
    if profile is not PROFILES[0]:
        return
    for text in (own, annotated("--inclusive=yes")):
        assert "src/pkg/rows.py:parse_row" in text
    assert re.search(r"^ *400,000 .*:parse_row\b", own, re.MULTILINE), own
    inclusive = annotated("--inclusive=yes")
    assert re.search(r"^ *490,000 .*:parse_row\b", inclusive, re.MULTILINE), inclusive
    assert re.search(r"^ *520,000 .*:load\b", inclusive, re.MULTILINE), inclusive


@pytest.mark.parametrize("profile", PROFILES, ids=NAMES)
def test_what_a_function_is_called_for_is_its_inclusive_cost(profile: PythonProfile) -> None:
    names: dict[str, str] = {}
    found = defaultdict[str, int](int)
    lines = callgrind("rows", profile).decode().splitlines()
    for place, line in enumerate(lines):
        match = re.match(r"c?fn=\((\d+)\)(?: (.*))?$", line)
        if match is not None:
            name = names.setdefault(match[1], match[2])
            if line.startswith("cfn="):
                found[name] += int(lines[place + 2].split()[1])
    wanted = defaultdict[str, int](int)
    for cost in profile.costs():
        wanted[plain(cost.function.name) or "???"] += cost.inclusive
    assert found == wanted


def test_calls_and_what_they_cost_stand_with_the_caller() -> None:
    text = callgrind("rows", flaming.small()).decode()
    assert re.search(r"^cfn=\(\d+\)( field)?\ncalls=300 61\n42 90000$", text, re.MULTILINE)
    assert text.startswith("# callgrind format\nversion: 1\n")
