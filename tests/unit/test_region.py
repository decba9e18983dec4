"""`region` where nothing is measured: it runs the code, checks its name, and imports nothing heavy."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.region import LONGEST_NAME, region
from cachegrind_bench.region.marks import encoded
from cachegrind_bench.region.requests import TOGGLE_COLLECT, Request, Requests

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_region_runs_its_code_and_lets_errors_through() -> None:
    with region("parse"):
        done = True
    assert done
    with pytest.raises(ZeroDivisionError), region("parse"):
        _ = 1 / 0


def test_a_decorated_function_is_the_function_itself_where_nothing_is_measured() -> None:
    def parse(text: str) -> int:
        return len(text)

    assert region("parse")(parse) is parse


def test_a_decorated_coroutine_function_still_is_one() -> None:
    @region("fetch")
    async def fetch() -> int:
        await asyncio.sleep(0)
        return 7

    assert asyncio.run(fetch()) == 7


@pytest.mark.parametrize("name", ["", "x" * (LONGEST_NAME + 1)])
def test_a_name_that_cannot_be_shown_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="1 to 200 characters"):
        region(name)


def test_a_decorator_without_a_name_is_refused() -> None:
    with pytest.raises(TypeError, match="needs a name"):
        region(test_a_name_that_cannot_be_shown_is_refused)  # type: ignore[arg-type]


def test_a_generator_cannot_be_decorated() -> None:
    def rows() -> object:
        yield 1

    async def pages() -> object:
        yield 1

    for function in (rows, pages):
        with pytest.raises(TypeError, match="is a generator"):
            region("rows")(function)


@pytest.mark.parametrize("wrap", [staticmethod, classmethod])
def test_a_method_that_is_wrapped_already_cannot_be_decorated(wrap: Callable[[object], object]) -> None:
    with pytest.raises(TypeError, match="below @staticmethod"):
        region("parse")(wrap(len))  # type: ignore[arg-type]


def test_importing_it_imports_neither_ctypes_nor_the_rest_of_the_package() -> None:
    code = "import sys; before = set(sys.modules); import cachegrind_bench.region; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {name for name in done.stdout.split() if name.startswith(("cachegrind_bench", "ctypes", "mmap"))} == {
        "cachegrind_bench",
        "cachegrind_bench._version",
        "cachegrind_bench.region",
    }


def test_a_client_request_does_nothing_on_a_real_cpu() -> None:
    requests = Requests()
    request = Request(TOGGLE_COLLECT)
    requests.send(request)
    assert requests.running_on_valgrind() == 0


@pytest.mark.parametrize(
    ("name", "mark"),
    [
        ("parse", "parse"),
        ("a b/c:d ", "a%20b/c:d%20"),
        ("100 %", "100%20%25"),
        ("a\nb", "a%0Ab"),
        ("é", "%C3%A9"),
        ("\udcff", "%ED%B3%BF"),
    ],
)
def test_a_mark_spells_a_name_in_printable_ascii_without_blanks(name: str, mark: str) -> None:
    assert encoded(name) == mark
