"""Memory layouts: the places that their numbers mean, which stored results rely on."""

from __future__ import annotations

import pytest

from cachegrind_bench.hermetic.environment import LAYOUTS, LINE, PAGE, PAGES, Layout, layout

ALL = [layout(number) for number in range(LAYOUTS)]


def test_layout_0_is_the_usual_place() -> None:
    assert layout(0) == Layout(stack=0, pages=0)


def test_what_a_number_means_is_frozen() -> None:
    # Results are compared layout by layout: other places would need another schema of the result file.
    assert [(item.stack, item.pages) for item in ALL[:8]] == [
        (0, 0),
        (1728, 37),
        (3456, 74),
        (1088, 111),
        (2816, 20),
        (448, 57),
        (2176, 94),
        (3904, 3),
    ]
    assert (ALL[63].stack, ALL[63].pages) == (2368, 27)


def test_the_stack_takes_every_place_within_a_page_once_and_the_heap_never_the_same() -> None:
    assert sorted(item.stack for item in ALL) == list(range(0, PAGE, LINE))
    assert len({item.pages for item in ALL}) == LAYOUTS
    assert all(0 <= item.pages < PAGES for item in ALL)


@pytest.mark.parametrize("number", [3, 5, 8])
def test_the_first_few_lie_far_apart(number: int) -> None:
    for places, size in (([item.stack for item in ALL], PAGE), ([item.pages for item in ALL], PAGES)):
        ordered = sorted(places[:number])
        gaps = [after - before for before, after in zip(ordered, [*ordered[1:], ordered[0] + size], strict=True)]
        assert min(gaps) >= size / number / 6


@pytest.mark.parametrize("number", [-1, LAYOUTS])
def test_there_are_no_others(number: int) -> None:
    with pytest.raises(ValueError, match="no memory layout"):
        layout(number)
