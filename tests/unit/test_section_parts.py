"""Which parts of an execution are those of a framework's loop."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachegrind_bench.harness.engine.loop import Sections
from cachegrind_bench.harness.engine.section_parts import scaled, sections_of
from cachegrind_bench.model.metrics import EVENTS, FunctionCost, LineCost, Profile
from cachegrind_bench.model.result import ProcessCost
from cachegrind_bench.valgrind.processes import Accounts
from cachegrind_bench.valgrind.python_contexts import PartHead

STATE = Sections(begin=("after:start", "after:resume"), end=("before:pause", "before:stop"), reset=("after:start",))
PAIRS = Sections(begin=("after:now",), end=("before:elapsed",), skip=1)
CALLS = Sections(begin=("after:now",), end=("before:elapsed",), reset=("before:iter",))
TIMER = Sections(
    begin=("before:Start", "before:Reset"),
    settle=("before:Now",),
    end=("before:Stop",),
    reset=("before:Reset",),
    finish=("before:Done",),
)


SHARED = Sections(begin=("after:start",), end=("before:stop",), share=(1, 2), skip=1)


@pytest.mark.parametrize(
    ("sections", "triggers", "parts", "number"),
    [
        pytest.param(STATE, ">start <stop >start <stop", [4], 1, id="the last of two repetitions"),
        pytest.param(STATE, ">start <pause >resume <stop", [2, 4], 2, id="what lies between pauses"),
        pytest.param(STATE, ">resume >start <stop <pause", [3], 1, id="a start that resumes, a stop that pauses"),
        pytest.param(STATE, ">start <clone <stop", [2, 3], 1, id="a thread that is started inside"),
        pytest.param(STATE, "<stop <stop", [], 0, id="nothing without a beginning"),
        pytest.param(STATE, ">start", [], 0, id="nothing without an end"),
        pytest.param(PAIRS, ">now >now <elapsed <elapsed >now >now <elapsed", [7], 1, id="all after the first"),
        pytest.param(PAIRS, ">now >now <elapsed >now <elapsed >now <elapsed", [5, 7], 2, id="batches"),
        pytest.param(
            CALLS,
            "<iter >now >now <elapsed <elapsed <iter >now >now <elapsed >now <elapsed <elapsed <iter >now >now <elapsed <elapsed",
            [16],
            1,
            id="the last of three calls, whatever batches they have",
        ),
        pytest.param(TIMER, "<Reset <Start <Now <Stop <Done", [4], 1, id="what the start itself does is left out"),
        pytest.param(TIMER, "<Reset <Start <Now <Reset <Now <Stop <Done", [6], 1, id="from the last reset on"),
        pytest.param(TIMER, "<Reset <Start <Now <Now <Stop <Done", [4, 5], 1, id="a clock that the code itself reads"),
        pytest.param(TIMER, "<Reset <Start <Start <Stop <Done", [4], 1, id="a return that looks like an entry"),
        pytest.param(TIMER, "<Reset <Start <Now <Stop <Done <Start <Stop", [4], 1, id="nothing after its end"),
        pytest.param(
            SHARED, "<stop >start <stop >start <stop >start <stop >start <stop", [9], 1, id="the second of two, warm"
        ),
        pytest.param(SHARED, ">start <stop >start <stop >start <stop", [], 0, id="not as many of one as of the other"),
    ],
)
def test_the_parts_that_count_are(sections: Sections, triggers: str, parts: list[int], number: int) -> None:
    when = {">": "--dump-after=", "<": "--dump-before="}
    heads = [PartHead(Path(), i, when[word[0]] + word[1:]) for i, word in enumerate(triggers.split(), 1)]
    found = sections_of(heads, sections)
    assert [head.part for section in found.sections for head in section] == parts
    if sections is CALLS:
        assert [head.part for section in found.before for head in section] == [9, 11]
    assert len(found.sections) == number


def test_what_happened_is_noted_by_its_first_letters() -> None:
    heads = [PartHead(Path(), 1, "--dump-after=now"), PartHead(Path(), 2, "--dump-before=elapsed")]
    assert sections_of([*heads, PartHead(Path(), 3, "--dump-before=fork"), *heads], PAIRS).order == "bebe"


def test_counts_are_those_of_a_thousand_iterations_and_add_up() -> None:
    rows = (FunctionCost("a.c", "a", (7,) * 9), FunctionCost("a.c", "b", (5,) * 9))
    lines = tuple(
        LineCost("a.c", name, line, (1 + line,) * 9) for name, line in (("a", 1), ("a", 2), ("a", 1), ("b", 4))
    )
    profile = Profile(events=EVENTS, functions=rows, lines=lines)
    costs = (ProcessCost(executable="x", counts=profile.counts()),)
    found = scaled(Accounts(profile=profile, processes=costs, doubts=(), split_needed=False), 100)
    assert found.profile.totals() == (120,) * 9
    assert found.processes[0].counts == found.profile.counts()
    assert [(row.name, row.counts[0]) for row in found.profile.lines] == [("a", 20), ("a", 30), ("a", 20), ("b", 50)]
    odd = scaled(Accounts(profile=profile, processes=costs, doubts=(), split_needed=False), 3000).profile
    assert [row.counts[0] for row in odd.functions] == [2, 1]  # to which their lines add up
    assert [row.counts[0] for row in odd.lines] == [0, 1, 1, 1]
    assert Sections(begin=("after:a",), end=("before:b",)).dumps == ("--dump-after=a", "--dump-before=b")
